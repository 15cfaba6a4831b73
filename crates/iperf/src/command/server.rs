//! The end that is asked for tests: any number of clients, each stream on a thread of its own, until a
//! signal, the time (-t) or the number of tests (-P) ends it.
//!
//! What must hold: a test counts when its client has shown to be there, so that no stranger uses one
//! up; and a client that cannot be served ends nothing.

mod ports;
mod tcp;
mod udp;

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_sys::stdio::Daemon;
use nicpoll_sys::tell;
use nicpoll_traffic::{Caller, ClientRefusal, CloseAccount, Signals};

use super::{kernel_words, realtime, settings};
use crate::config::ListenerConfig;
use crate::events::{Event, Failed};
use crate::options::{Common, ServerOptions};
use crate::output::{self, Output};
use crate::slots::Test;
use crate::text::Style;
use crate::{text, threads};

/// How often the end of the time is looked at while nobody connects.
const PATIENCE: Duration = Duration::from_millis(200);
/// The same while it is not known whether a client is there.
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_millis(20);
/// How long others wait for a client to show that it is there, where one test is served at a time.
const TIME_TO_PROVE: Duration = Duration::from_millis(250);
/// A client that says nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What every stream needs to know.
#[derive(Clone, Copy)]
struct Server<'a> {
    options: &'a ServerOptions,
    bind: SocketAddr,
    signals: &'a Signals,
}

/// Runs a server. Returns the exit status. A daemon lets go of the terminal when it listens.
///
/// # Errors
/// When there is nowhere to print to.
pub fn run(
    options: &ServerOptions,
    signals: &Signals,
    account: Option<CloseAccount>,
    daemon: Option<Daemon>,
) -> io::Result<u8> {
    let common = &options.common;
    realtime::begin(common);
    let mut output = output::open(options, account)?;
    let bind = match address(common) {
        Ok(bind) => bind,
        Err(error) => return refuse(common, &error, output.as_mut()),
    };
    let (events, told) = mpsc::channel();
    let server = Server {
        options,
        bind,
        signals,
    };
    thread::scope(|scope| {
        let printing = threads::start(scope, move || {
            let mut events = told.into_iter();
            let printed = events.try_for_each(|event| output.tell(event).map(drop));
            (output, printed)
        })?;
        let served = if common.is_udp() {
            udp::serve(server, scope, &events, daemon)
        } else {
            tcp::serve(server, scope, &events, daemon)
        };
        drop(events);
        let Ok((mut output, printed)) = printing.join() else {
            return Err(io::Error::other("the printing thread panicked"));
        };
        match served {
            Err(error) => refuse(common, &error, output.as_mut()),
            Ok(()) => {
                printed?;
                output.end()?;
                Ok(0)
            }
        }
    })
}

fn refuse(common: &Common, error: &io::Error, output: &mut dyn Output) -> io::Result<u8> {
    let text = said_of(error, common.style);
    tell!("{text}");
    output.gave_up(&text)?;
    output.end()?;
    Ok(1)
}

/// What ended the server: where it could not take its port in iperf's words, and in any case in ours.
fn said_of(error: &io::Error, style: Style) -> String {
    let Some(inner) = error.get_ref() else {
        return text::bind_failed(style, &kernel_words(error));
    };
    let over_tcp = inner.downcast_ref().and_then(|error| match error {
        crate::tcp::Error::Bind { source, .. } => Some(source),
        _ => None,
    });
    let over_udp = inner.downcast_ref().and_then(|error| match error {
        crate::udp::ServerError::Bind { source, .. } => Some(source),
        _ => None,
    });
    match over_tcp.or(over_udp) {
        Some(source) => {
            let words = text::bind_failed(style, &kernel_words(source));
            format!("{words}\nnicpoll iperf: {inner}")
        }
        None => Failed::words(inner),
    }
}

/// Says that a client was refused, and why.
fn tell_of(refusal: Option<ClientRefusal>) {
    if let Some(refusal) = refusal {
        tell!("nicpoll iperf: {refusal}");
    }
}

/// A client that is served.
struct Running<'scope> {
    thread: ScopedJoinHandle<'scope, ()>,
    test: Test,
    since: Instant,
}

impl<'scope> Running<'scope> {
    /// Runs a client's streams on a thread of their own; where there can be none, `refuse` takes note.
    fn start(
        scope: &'scope Scope<'scope, '_>,
        peer: Caller,
        test: Test,
        run: impl FnOnce() + Send + 'scope,
        refuse: impl FnOnce(ClientRefusal),
    ) -> Option<Self> {
        match threads::start(scope, run) {
            Ok(thread) => Some(Running {
                thread,
                test,
                since: Instant::now(),
            }),
            Err(source) => {
                refuse(ClientRefusal::Thread { peer, source });
                None
            }
        }
    }

    /// Whether nobody else is served beside it: not for long beside one who may not even be there.
    fn is_to_be_awaited(&self) -> bool {
        self.test.is_proven() || self.since.elapsed() < TIME_TO_PROVE
    }
}

impl Server<'_> {
    /// Takes clients until it is time to end. `take` waits no longer than it is told and returns the next
    /// one's stream, or `None` when nobody came or who came was refused.
    fn each_client<'scope>(
        &self,
        mut take: impl FnMut(Duration) -> io::Result<Option<Running<'scope>>>,
    ) -> io::Result<()> {
        let options = self.options;
        let end = options.time.map(|time| Instant::now() + time);
        let mut running: Vec<Running<'scope>> = Vec::new();
        let mut tests_ended = 0;
        loop {
            let is_stopped = self.signals.sender_done.load(Ordering::Acquire);
            running.retain(|stream| {
                let is_over = stream.thread.is_finished();
                tests_ended += u32::from(is_over && stream.test.is_proven());
                !is_over
            });
            let proven = running.iter().filter(|stream| stream.test.is_proven());
            let tests = tests_ended + proven.count() as u32;
            let is_over = is_stopped
                || end.is_some_and(|end| Instant::now() >= end)
                || options.connections.is_some_and(|most| tests >= most);
            if is_over {
                if is_stopped && !running.is_empty() {
                    tell!("{}", text::WAITING_FOR_THREADS);
                }
                return Ok(());
            }
            let awaited = running.iter().filter(|stream| stream.is_to_be_awaited());
            let awaited = tests_ended + awaited.count() as u32;
            let is_last = options.connections.is_some_and(|most| awaited >= most);
            if is_last || options.single_client && awaited > tests_ended {
                thread::sleep(PATIENCE_WITH_STRANGERS);
                continue;
            }
            let patience = match running.iter().all(|stream| stream.test.is_proven()) {
                true => PATIENCE,
                false => PATIENCE_WITH_STRANGERS,
            };
            running.extend(take(patience)?);
        }
    }

    fn listener_config(&self) -> ListenerConfig {
        let stream = self.options.common.stream.clone();
        ListenerConfig {
            allow: self.options.allow.clone(),
            send_time_max: self.options.time.unwrap_or(Duration::MAX),
            ..ListenerConfig::new(self.bind, IDLE_TIMEOUT, stream)
        }
    }
}

/// A daemon's errors go where its reports go, when those are for people.
fn settle(daemon: Option<Daemon>, common: &Common) -> io::Result<()> {
    let Some(daemon) = daemon else { return Ok(()) };
    let is_text = !common.csv && common.json.is_none();
    let log = common.output.as_ref().filter(|_| is_text);
    let log = log.map(|path| File::options().append(true).open(path));
    daemon.settle(log.transpose()?)
}

/// Tells that the server is up.
fn announce(common: &Common, granted_bytes: u64, events: &mpsc::Sender<Event>) {
    let settings = settings::of_listener(common, common.port, common.last_port, granted_bytes);
    let _ = events.send(Event::Settings(settings));
}

fn address(common: &Common) -> io::Result<SocketAddr> {
    let Some(bind) = &common.bind else {
        // An IPv6 socket serves IPv4 as well.
        return Ok(match common.ipv6 {
            true => (Ipv6Addr::UNSPECIFIED, common.port).into(),
            false => (Ipv4Addr::UNSPECIFIED, common.port).into(),
        });
    };
    let mut found = (bind.address.as_str(), common.port).to_socket_addrs()?;
    found
        .next()
        .ok_or_else(|| io::Error::other("the address has no meaning here"))
}
