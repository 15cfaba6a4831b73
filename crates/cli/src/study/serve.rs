//! `nicpoll serve`: the studies of a store in a browser.
//!
//! Three processes: one without rights answers strangers; one without rights, made for each page, reads the store;
//! and this one, which has rights, only passes on which page is wanted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nicpoll_serve::{Answer, ServedPage, answer_to, failed};
use nicpoll_store::{OpenStore, StoreError, StorePlace};
use nicpoll_sys::{stdio, tell};
use nicpoll_traffic::signals::Stop;

use crate::failure::{Failure, over};
use crate::options::{StoreFile, parse_address, token_of};
use crate::output;
use crate::reading::{Answering, confined, confined_within};

/// The default address of the pages.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8077);
/// CPU time that one page may take.
const PAGE_SECONDS: u64 = 60;

/// Options of `nicpoll serve`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/serve-examples.txt"))]
pub struct ServeArgs {
    /// Address and port of the pages. At other addresses than loopback a browser needs the printed token
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LISTEN, value_parser = parse_address)]
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
    let server = Answering::start(args.listen, token.clone(), "--listen")?;
    let address = server.address;
    let asked = token.map_or(String::new(), |token| format!("?token={token}"));
    if !address.ip().is_loopback() {
        tell!(
            "nicpoll serve: whoever reaches {address} and knows the token can read these studies. Nothing is encrypted: \
             anybody on the network path can read both"
        );
    }
    output::print(&format!("http://{address}/{asked}\n"))?;
    server.run(stop.asked(), |page| page_of(page, &place))?;
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

/// Makes a page, in a process and a file of its own.
fn page_of(page: &ServedPage, place: &StorePlace) -> io::Result<(String, bool, File)> {
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
        Err(failure) => written(&failed("500 Internal Server Error", &failure.to_string()))?,
    };
    Ok((status, is_live, file))
}
