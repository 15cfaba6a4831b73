//! The tools from their arguments to their last line.
//!
//! What must hold: without nicpoll's own options, standard output, standard error and the exit status
//! are the originals', but for what netreceive adds when it ends. With `--json` standard output is left to
//! one document, and what the originals print there before it goes to standard error.

mod blast;
mod document;
mod help;
mod reach;
mod receive;
mod send;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_model::netrate::{Netblast, Netreceive, Netsend};
use nicpoll_model::repeat::NetblastRuns;
use nicpoll_model::{HostDelta, Way};
use nicpoll_sys::stdio::print;
use nicpoll_sys::{stdio, tell};

pub use help::text as help_text;

use super::ConnectError;
use super::options::{
    CommandLine, EXIT_REFUSED, OptionError, Tool, parse_netblast, parse_netreceive, parse_netsend,
};
use super::text::RateSpan;
use crate::{CloseAccount, Signals, losses};

/// How often the signals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a tool is lent by the program that runs it.
pub trait Program {
    /// Has signals that ask to stop noted from now on rather than end the program.
    ///
    /// # Errors
    /// When they cannot be caught.
    fn catch_signals(&mut self) -> io::Result<()>;

    /// The signal that came.
    fn signal(&self) -> Option<i32>;

    /// Opens the account of this host.
    fn open_account(&self) -> Option<CloseAccount>;
}

/// What a tool leaves to whoever ran it.
#[derive(Debug)]
pub enum ToolEnded {
    /// The exit status.
    Status(u8),
    /// What netblast counted, to be printed.
    Netblast(Box<Netblast>),
    /// What several runs of netblast came to, to be printed.
    NetblastRuns(Box<NetblastRuns>),
    /// What netreceive counted, to be printed.
    Netreceive(Box<Netreceive>),
    /// What netsend counted, to be printed.
    Netsend(Box<Netsend>),
}

/// Everything was done and said.
const DONE: ToolEnded = ToolEnded::Status(0);
/// The exit status of a test that obtained less than was asked for, where the originals' is 0.
pub const EXIT_SHORT: u8 = 1;

/// Runs a tool with its arguments.
///
/// # Errors
/// When something fails that the originals do not have.
pub fn run(tool: Tool, args: &[String], program: &mut dyn Program) -> io::Result<ToolEnded> {
    match tool {
        Tool::Netblast => dispatch(tool, parse_netblast(args), program, blast::run),
        Tool::Netreceive => dispatch(tool, parse_netreceive(args), program, receive::run),
        Tool::Netsend => dispatch(tool, parse_netsend(args), program, send::run),
    }
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
    asked: Result<CommandLine<T>, OptionError>,
    program: &mut dyn Program,
    run: fn(&T, &mut dyn Program) -> Result<ToolEnded, Refused>,
) -> io::Result<ToolEnded> {
    let refused = match asked {
        Ok(CommandLine::Help) => {
            print(help::text(tool))?;
            return Ok(DONE);
        }
        Ok(CommandLine::Run(options)) => match run(&options, program) {
            Ok(ended) => return Ok(ended),
            Err(Refused::Because(text)) => text,
            Err(Refused::Failed(error)) => return Err(error),
        },
        Err(error) => error.to_string(),
    };
    tell!("{refused}");
    Ok(ToolEnded::Status(EXIT_REFUSED))
}

/// What this host dropped of what was sent, if anything.
fn say_losses(host: Option<&HostDelta>) {
    let lost = host.map(|host| losses::only_losses(host, &[Way::Out]));
    stdio::print_error(lost.unwrap_or_default());
}

/// How a sender's test ended, once its results are told.
fn ended(tool: Tool, error: Option<&str>) -> ToolEnded {
    say_error(tool, error);
    error.map_or(DONE, |_| ToolEnded::Status(EXIT_SHORT))
}

fn say_error(tool: Tool, error: Option<&str>) {
    if let Some(error) = error {
        tell!("nicpoll {}: {error}", tool.name());
    }
}

/// What the originals print before the results.
fn announce(text: &str, json: bool) -> io::Result<()> {
    if json {
        stdio::print_error(text);
        return Ok(());
    }
    print(text)
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

/// The addresses of a host in the resolver's order, or a refusal in its words when there is none.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Refused> {
    match (host, port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let text = error.to_string();
            // The standard library puts words of its own before the resolver's.
            let words = text.rsplit(": ").next().unwrap_or(&text);
            Err(Refused::Because(String::from(plain(words))))
        }
    }
}

/// Waits until the time is up, a signal comes, or `is_done`; then has the traffic end. A second signal
/// ends the program at once.
fn watch(
    deadline: Option<Instant>,
    program: &dyn Program,
    signals: &Signals,
    mut is_done: impl FnMut() -> bool,
) {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) || program.signal().is_some() || is_done() {
            break;
        }
        thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
    signals.finish.store(true, Ordering::Relaxed);
}

/// What rates are taken over: the time asked for, unless there was none or a signal came before.
fn span(asked_seconds: u64, elapsed: Duration, program: &dyn Program) -> RateSpan {
    if asked_seconds > 0 && program.signal().is_none() {
        RateSpan::Asked(asked_seconds)
    } else {
        RateSpan::Elapsed(elapsed)
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}
