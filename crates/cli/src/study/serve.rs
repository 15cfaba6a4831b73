//! `nicpoll serve`: the studies of a store in a browser.
//!
//! Three processes: one without rights answers strangers; one without rights, made for each page, reads the store;
//! and this one, which has rights, only passes on which page is wanted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use nicpoll_serve::{
    Answer, PagesEnd, StorePage, StoreServer, answer_to, failed, make_pages, pages_socket,
};
use nicpoll_store::{OpenStore, StoreError, StorePlace};
use nicpoll_sys::program::confined::Confined;
use nicpoll_sys::{stdio, tell};
use nicpoll_traffic::signals::Stop;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::{Failure, over};
use crate::options::{StoreFile, parsed, read_text};
use crate::output;
use crate::reading::{confined, confined_within};

/// The default address of the pages.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8077);
/// CPU time that one page may take.
const PAGE_SECONDS: u64 = 60;
/// Minimum letters of a token.
const TOKEN_MIN: usize = 16;
const TOKEN_MAX: usize = 256;

/// Options of `nicpoll serve`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/serve-examples.txt"))]
pub struct ServeArgs {
    /// Address and port of the pages. At other addresses than loopback a browser needs the printed token
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LISTEN, value_parser = parsed::<SocketAddr>("an address with a port, such as 127.0.0.1:8077 or [::1]:8077"))]
    listen: SocketAddr,
    /// File with the token that a browser needs, on loopback too: at least 16 letters, digits, '-' or '_' [default: a
    /// new one; none on loopback]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where the studies are.
    #[command(flatten)]
    file: StoreFile,
}

/// Serves until a signal comes and returns the exit code.
pub fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let stop = Stop::noted().context("catching signals")?;
    let place = args.file.place()?;
    require_store(&place)?;
    let token = token(args)?;
    let most = getrlimit(Resource::Nofile).maximum;
    let descriptors = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, descriptors).context("asking for more descriptors")?;
    let server = StoreServer::bind(args.listen, token.clone()).map_err(|error| {
        let listen = args.listen;
        anyhow!("listening on {listen}: {error}; --listen names another address and port")
    })?;
    let address = server.address().context("asking for the address")?;
    let (pages, maker) = pages_socket().context("asking for a socket")?;
    let answering = answering(server, pages).context("making the process that answers")?;
    let asked = token.map_or(String::new(), |token| format!("?token={token}"));
    if !address.ip().is_loopback() {
        tell!(
            "nicpoll serve: whoever reaches {address} and knows the token can read these studies. Nothing is encrypted: \
             anybody on the network path can read both"
        );
    }
    output::print(&format!("http://{address}/{asked}\n"))?;
    make_pages(&maker, stop.asked(), |page| page_of(page, &place)).context("passing on pages")?;
    match stop.signal() {
        Some(_) => drop(answering),
        None => {
            let end = answering.answer().map_err(anyhow::Error::from)?;
            let why = String::from_utf8_lossy(&end).into_owned();
            return Err(anyhow!("answering browsers: {why}").into());
        }
    }
    Ok(over(&stop))
}

/// Refuses at the start a file that is no store. A missing one is allowed.
fn require_store(place: &StorePlace) -> Result<(), Failure> {
    let open = || match OpenStore::of(place.clone()) {
        Err(StoreError::Nothing(_)) => Ok(None),
        opened => Ok(Some(opened?)),
    };
    confined(open, |opened| {
        Ok(opened.map_or(Ok(()), |it| it.store().map(drop))?)
    })
}

/// Returns the token that browsers need: the file's, or a new one if others reach the address.
fn token(args: &ServeArgs) -> Result<Option<String>, Failure> {
    match &args.token_file {
        Some(file) => token_of(file).map(Some),
        None if args.listen.ip().is_loopback() => Ok(None),
        None => {
            let mut bytes = [0; 16];
            File::open("/dev/urandom")
                .and_then(|mut file| file.read_exact(&mut bytes))
                .context("drawing a token")?;
            Ok(Some(format!("{:032x}", u128::from_ne_bytes(bytes))))
        }
    }
}

fn token_of(file: &Path) -> Result<String, Failure> {
    let text = read_text(file, "token file", TOKEN_MAX as u64)?;
    let token = text.trim();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
    if token.len() < TOKEN_MIN || !token.chars().all(is_plain) {
        let file = file.display();
        return Err(Failure::Usage(format!(
            "the token file {file} has to hold one word of {TOKEN_MIN} letters, digits, '-' or '_' at least: \
             'openssl rand -hex 16' makes one"
        )));
    }
    Ok(String::from(token))
}

/// Starts the process that answers strangers.
fn answering(server: StoreServer, pages: PagesEnd) -> io::Result<Confined> {
    let serve = |(server, pages): (StoreServer, PagesEnd)| match server.run(&pages) {
        Ok(()) => Vec::new(),
        Err(error) => error.to_string().into_bytes(),
    };
    Confined::start(None, move || (server, pages), serve)
}

/// Makes a page, in a process and a file of its own.
fn page_of(page: &StorePage, place: &StorePlace) -> io::Result<(String, bool, File)> {
    // /var/tmp is on a disk; /tmp may be memory.
    let file = tempfile::tempfile_in("/var/tmp").or_else(|_| tempfile::tempfile())?;
    let written = |answer: &Answer| -> io::Result<(String, bool)> {
        answer.put(|piece| (&file).write_all(stdio::visible(piece, false).as_bytes()))?;
        Ok((String::from(answer.status), answer.is_live))
    };
    let made = confined_within(
        Some(PAGE_SECONDS),
        || Ok(OpenStore::of(place.clone())),
        |opened| {
            Ok(written(&answer_to(
                page,
                opened.and_then(OpenStore::store),
            ))?)
        },
    );
    let (status, is_live) = match made {
        Ok(made) => made,
        Err(failure) => written(&failed(&failure.to_string()))?,
    };
    Ok((status, is_live, file))
}
