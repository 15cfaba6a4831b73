//! What the three tools share: what the program lends them, how they end, and what documents of senders hold.
//!
//! A full queue is a send error like any other and no reason to doubt a test. A closed port at the receiver, a route that is
//! gone and an interface that takes nothing any more are.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nicpoll_model::traffic::{
    Netblast, NetblastRuns, NetrateHead, NetrateSender, Netreceive, Netsend, SendErrors,
};
use nicpoll_model::{HostDelta, Side, Way};
use nicpoll_sys::stdio::print;
use nicpoll_sys::{stdio, tell};

use crate::losses::{self, CloseAccount};
use crate::netrate::options::Tool;
use crate::netrate::sending::{ConnectError, SendCount, SendProgress};
use crate::netrate::text::{RateSpan, SentSummary, frame_bits_per_second};
use crate::signals::Signals;
use crate::timing::Shortfall;

/// How often the signals are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

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
pub(super) const DONE: ToolEnded = ToolEnded::Status(0);
/// The exit status of a test that obtained less than was asked for, where the originals' is 0.
pub const EXIT_SHORT: u8 = 1;

/// Why a tool could not do its work.
pub(super) enum Refused {
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

/// What this host dropped of what was sent, if anything.
pub(super) fn say_losses(host: Option<&HostDelta>) {
    let lost = host.map(|host| losses::only_losses(host, &[Way::Out]));
    stdio::print_error(lost.unwrap_or_default());
}

/// How a sender's test ended, once its results are told.
pub(super) fn ended(tool: Tool, error: Option<&str>) -> ToolEnded {
    say_error(tool, error);
    error.map_or(DONE, |_| ToolEnded::Status(EXIT_SHORT))
}

pub(super) fn say_error(tool: Tool, error: Option<&str>) {
    if let Some(error) = error {
        tell!("nicpoll {}: {error}", tool.name());
    }
}

/// What the originals print before the results.
pub(super) fn announce(text: &str, json: bool) -> io::Result<()> {
    if json {
        stdio::print_error(text);
        return Ok(());
    }
    print(text)
}

/// What failed and what the kernel said, as perror(3) prints it.
pub(super) fn perror(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", plain(&source.to_string())),
        None => error.to_string(),
    }
}

/// The kernel's words alone.
pub(super) fn plain(text: &str) -> &str {
    text.split(" (os error").next().unwrap_or(text)
}

/// The addresses of a host in the resolver's order, or a refusal in its words when there is none.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Refused> {
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
pub(super) fn watch(
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
pub(super) fn span(asked_seconds: u64, elapsed: Duration, program: &dyn Program) -> RateSpan {
    if asked_seconds > 0 && program.signal().is_none() {
        RateSpan::Asked(asked_seconds)
    } else {
        RateSpan::Elapsed(elapsed)
    }
}

pub(super) fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

/// A sender whose datagrams come rarely may be silent for as long as this many of them take.
const SILENCE_DATAGRAMS: u64 = 8;

/// What was seen of the senders while they ran.
#[derive(Debug)]
pub struct Reach {
    senders: Vec<Arc<SendProgress>>,
    began: Instant,
    taken: u64,
    good_until: Duration,
    looked: Duration,
    is_cut_off: bool,
}

impl Reach {
    /// Senders that begin now.
    pub fn new(senders: Vec<Arc<SendProgress>>) -> Self {
        Reach {
            senders,
            began: Instant::now(),
            taken: 0,
            good_until: Duration::ZERO,
            looked: Duration::ZERO,
            is_cut_off: false,
        }
    }

    /// Looks at the senders.
    pub fn look(&mut self) {
        if self.senders.iter().all(|sender| !sender.has_begun()) {
            self.began = Instant::now();
        }
        self.looked = self.began.elapsed();
        self.is_cut_off |= self.senders.iter().any(|sender| sender.is_cut_off());
        let taken = self.senders.iter().map(|sender| sender.taken()).sum();
        if !self.is_cut_off && taken > self.taken {
            self.good_until = self.looked;
        }
        self.taken = taken;
    }

    /// What came short of what was asked for, and why; `None` when nothing did.
    pub fn shortfall(&self, count: &SendCount) -> Option<String> {
        let gap = |taken| {
            self.looked * SILENCE_DATAGRAMS as u32 / u32::try_from(taken).unwrap_or(u32::MAX)
        };
        let rests = match (self.is_cut_off, count.successes()) {
            (true, _) | (_, 0) => Duration::ZERO,
            (false, taken) => gap(taken),
        };
        let asked = self.looked;
        let obtained = self.good_until;
        Shortfall::of(asked, obtained.saturating_add(rests))?;
        Some(format!("{}: {}", Shortfall { asked, obtained }, why(count)))
    }
}

fn why(count: &SendCount) -> String {
    match count.cut_off() {
        Some(errno) if errno == rustix::io::Errno::CONNREFUSED.raw_os_error() => {
            String::from("nobody receives there, its port is closed")
        }
        Some(errno) => {
            let text = io::Error::from_raw_os_error(errno).to_string();
            format!("{}; see the route and whether the link is up", plain(&text))
        }
        None => String::from("nothing left this host any more; see whether the link is up"),
    }
}

/// What every object begins with.
pub fn head(schema: &str) -> NetrateHead {
    NetrateHead {
        schema: String::from(schema),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
    }
}

/// What was asked of a sender.
pub struct Plan {
    pub peer: SocketAddr,
    pub payload_bytes: usize,
    pub duration_seconds: u64,
    pub is_blocking: bool,
}

/// What both senders tell. Rates are over `elapsed`, the time that sending took.
pub fn sender(
    plan: Plan,
    summary: &SentSummary,
    count: &SendCount,
    elapsed: Duration,
    ended_by_signal: Option<i32>,
    error: Option<String>,
) -> NetrateSender {
    let seconds = elapsed.as_secs_f64();
    let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    let sent = per_second(count.successes());
    let frame_bits = frame_bits_per_second(1, plan.payload_bytes, plan.peer.is_ipv6());
    let errors = count.errors_by_number.iter().map(error_count);
    NetrateSender {
        side: Side::Sender,
        peer_address: plan.peer.ip().to_string(),
        peer_port: plan.peer.port(),
        payload_bytes: plan.payload_bytes,
        asked_duration_seconds: (plan.duration_seconds > 0).then_some(plan.duration_seconds),
        is_blocking: plan.is_blocking,
        started_at: time_of_day(summary.start),
        elapsed_seconds: seconds,
        ended_by_signal,
        error,
        send_calls: count.calls,
        send_errors: count.errors,
        send_successes: count.successes(),
        send_errors_by_errno: errors.collect(),
        error_ratio: (count.calls > 0).then(|| count.errors as f64 / count.calls as f64),
        system_calls: count.system_calls,
        send_calls_per_second: per_second(count.calls),
        sent_packets_per_second: sent,
        sent_payload_bits_per_second: sent.map(|rate| rate * 8.0 * plan.payload_bytes as f64),
        sent_frame_bits_per_second: sent.map(|rate| rate * frame_bits as f64),
    }
}

fn error_count(&(errno, send_calls): &(i32, u64)) -> SendErrors {
    let text = io::Error::from_raw_os_error(errno).to_string();
    SendErrors {
        errno,
        text: plain(&text).to_owned(),
        send_calls,
    }
}

/// A time since 1970 as RFC 3339 writes it, in UTC.
pub fn time_of_day(since_1970: Duration) -> String {
    let time = jiff::Timestamp::UNIX_EPOCH + since_1970;
    time.to_string()
}
