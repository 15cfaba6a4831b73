//! Reads what others may have made: files (stores, transcripts, results of other tools, study files), and requests for
//! pages.
//!
//! A process without rights does the reading, also for root. Only its answer comes back, or which page is wanted.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use nicpoll_serve::{PageServer, PagesEnd, ServedPage, make_pages, pages_socket};
use nicpoll_sys::program::confined::{Confined, ConfinedError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The answer of that process: a result, or the exit code and the text of a failure.
type ConfinedAnswer<T> = Result<T, (u8, String)>;

/// Opens something with the caller's rights, and reads it in a process without any.
pub fn confined<O, T: Serialize + DeserializeOwned>(
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    confined_within(None, open, read)
}

/// As [`confined`], with a limit of CPU time.
pub fn confined_within<O, T: Serialize + DeserializeOwned>(
    cpu_seconds: Option<u64>,
    open: impl FnOnce() -> Result<O, Failure>,
    read: impl FnOnce(O) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let answered = |opened: Result<O, Failure>| {
        let answer: ConfinedAnswer<T> = opened
            .and_then(read)
            .map_err(|failure| (failure.code(), failure.to_string()));
        serde_json::to_vec(&answer).unwrap_or_default()
    };
    let bytes = Confined::start(cpu_seconds, open, answered)
        .map_err(ConfinedError::NotMade)
        .and_then(Confined::answer)?;
    let answer: ConfinedAnswer<T> = serde_json::from_slice(&bytes)?;
    answer.map_err(|(code, words)| Failure::of_code(code, words))
}

/// A server of pages, in a process without rights.
pub struct Answering {
    /// Where it listens.
    pub address: SocketAddr,
    process: Confined,
    pages: PagesEnd,
}

impl Answering {
    /// Listens at the address that this option names. This process may have one thread.
    pub fn start(listen: SocketAddr, token: Option<String>, option: &str) -> Result<Self, Failure> {
        let most = getrlimit(Resource::Nofile).maximum;
        let descriptors = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(Resource::Nofile, descriptors).context("asking for more descriptors")?;
        let server = PageServer::bind(listen, token).map_err(|error| {
            anyhow!("listening on {listen}: {error}; {option} names another address and port")
        })?;
        let address = server.address().context("asking for the address")?;
        let (asking, pages) = pages_socket().context("asking for a socket")?;
        let serve = |(server, pages): (PageServer, PagesEnd)| match server.run(&pages) {
            Ok(()) => Vec::new(),
            Err(error) => error.to_string().into_bytes(),
        };
        let process = Confined::start(None, move || (server, asking), serve)
            .context("making the process that answers")?;
        Ok(Answering {
            address,
            process,
            pages,
        })
    }

    /// Has `make` make the pages, as [`make_pages`] says, until `is_over` becomes true.
    pub fn run(
        self,
        is_over: &AtomicBool,
        make: impl FnMut(&ServedPage) -> io::Result<(String, bool, File)>,
    ) -> Result<(), Failure> {
        make_pages(&self.pages, is_over, make).context("passing on pages")?;
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let end = self.process.answer().map_err(anyhow::Error::from)?;
        let why = String::from_utf8_lossy(&end).into_owned();
        Err(anyhow!("answering requests: {why}").into())
    }
}
