//! `nicpoll netblast`, `netreceive` and `netsend`: FreeBSD's netrate tools.
//!
//! What must hold: without nicpoll's own options, standard output, standard error and the exit status
//! are the originals', but for what netreceive adds when it ends. With `--json` standard output is one
//! object, and what the originals print there before it goes to standard error.

mod blast;
mod help;
mod json;
mod receive;
mod send;

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_traffic::Signals;
use nicpoll_traffic::netrate::ConnectError;
use nicpoll_traffic::netrate::options::{
    Asked, EXIT_REFUSED, OptionError, Tool, parse_netblast, parse_netreceive, parse_netsend,
};
use nicpoll_traffic::netrate::text::Span;

use crate::stop::Stop;

/// How often the signals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs netblast and returns its exit status.
pub fn netblast(args: &[String]) -> io::Result<u8> {
    dispatch(Tool::Netblast, parse_netblast(args), blast::run)
}

/// Runs netreceive and returns its exit status.
pub fn netreceive(args: &[String]) -> io::Result<u8> {
    dispatch(Tool::Netreceive, parse_netreceive(args), receive::run)
}

/// Runs netsend and returns its exit status.
pub fn netsend(args: &[String]) -> io::Result<u8> {
    dispatch(Tool::Netsend, parse_netsend(args), send::run)
}

/// Why a tool could not do its work.
enum Refused {
    /// What the original says too, as it stands.
    Because(String),
    /// Something that the originals do not have.
    Failed(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Refused::Failed(error)
    }
}

impl From<ConnectError> for Refused {
    fn from(error: ConnectError) -> Self {
        Refused::Because(perror(&error))
    }
}

fn dispatch<T>(
    tool: Tool,
    asked: Result<Asked<T>, OptionError>,
    run: fn(&T) -> Result<(), Refused>,
) -> io::Result<u8> {
    let refused = match asked {
        Ok(Asked::Help) => {
            print(help::text(tool))?;
            return Ok(0);
        }
        Ok(Asked::Run(options)) => match run(&options) {
            Ok(()) => return Ok(0),
            Err(Refused::Because(text)) => text,
            // Whoever read the lines has gone, and with them the reason to go on.
            Err(Refused::Failed(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(1),
            Err(Refused::Failed(error)) => return Err(error),
        },
        Err(error) => error.to_string(),
    };
    say(&format!("{refused}\n"))?;
    Ok(EXIT_REFUSED)
}

/// Results, at once.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// What is no result.
fn say(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// What the originals print before the results.
fn announce(text: &str, json: bool) -> io::Result<()> {
    if json { say(text) } else { print(text) }
}

/// What failed and what the kernel said, as perror(3) prints it.
fn perror(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", plain(&source.to_string())),
        None => error.to_string(),
    }
}

/// The kernel's words alone.
fn plain(text: &str) -> &str {
    text.split(" (os error").next().unwrap_or(text)
}

/// The addresses of a host in the resolver's order, or its words when there is none.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    match (host, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let text = error.to_string();
            // The standard library puts words of its own before the resolver's.
            let words = text.rsplit(": ").next().unwrap_or(&text);
            Err(String::from(plain(words)))
        }
    }
}

/// Waits until the time is up, a signal comes, or `is_done`; then has the traffic end. A second signal
/// ends the program at once.
fn watch(deadline: Option<Instant>, stop: &Stop, signals: &Signals, is_done: impl Fn() -> bool) {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) || stop.signal().is_some() || is_done() {
            break;
        }
        thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
    signals.finish.store(true, Ordering::Relaxed);
}

/// What rates are taken over: the time asked for, unless there was none or a signal came before.
fn span(asked_seconds: u64, elapsed: Duration, stop: &Stop) -> Span {
    if asked_seconds > 0 && stop.signal().is_none() {
        Span::Asked(asked_seconds)
    } else {
        Span::Elapsed(elapsed)
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}
