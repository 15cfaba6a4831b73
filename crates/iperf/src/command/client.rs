//! The end that asks for a test: as many streams as were asked for, each way of each on a thread of its
//! own.

mod reverse;
mod tcp;
mod udp;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use nicpoll_model::Protocol;
use nicpoll_sys::tell;
use nicpoll_traffic::{CloseAccount, Shortfall, Signals};

use super::ways::{Run, Ways};
use super::{realtime, settings};
use crate::Connected;
use crate::config::{ClientConfig, ListenerConfig, StreamConfig};
use crate::events::{Event, Failed, StreamKey, Told};
use crate::options::ClientOptions;
use crate::output::{Output, RunTotal, Runs};
use crate::pace::Amount;
use crate::threads;
use crate::total::Total;
use crate::wire::Directions;

/// How every message begins that is none of the original's.
const SPEAKER: &str = "nicpoll iperf: ";

/// What every stream needs to know.
#[derive(Clone, Copy)]
struct Client<'a> {
    options: &'a ClientOptions,
    peer: SocketAddr,
    signals: &'a Signals,
}

/// Runs a client. Returns the exit status: 1 when any stream failed.
///
/// # Errors
/// When there is nowhere to print to.
pub fn run(
    options: &ClientOptions,
    signals: &Signals,
    mut account: impl FnMut() -> Option<CloseAccount>,
) -> io::Result<u8> {
    realtime::begin(&options.common);
    let mut runs = Runs::new(options);
    let mut status = 0;
    for _ in 0..options.repeat.unwrap_or(1) {
        let output = runs.open(account())?;
        let done = run_once(options, signals, output)?;
        status = status.max(done.status);
        // It was cut short: what it came to is none of the runs'.
        let is_cut_short = signals.is_finishing() || signals.is_sender_done();
        runs.add((done.status == 0 && !is_cut_short).then_some(done.total));
        if is_cut_short {
            break;
        }
    }
    runs.end()?;
    Ok(status)
}

/// How one run ended.
#[derive(Default)]
struct Done {
    status: u8,
    total: RunTotal,
}

impl Done {
    fn of(status: u8) -> Self {
        Done {
            status,
            ..Done::default()
        }
    }

    fn add(&mut self, total: &Total) {
        let interval = total
            .relayed()
            .map_or(total.interval, |(interval, _)| interval);
        self.total.bytes += interval.bytes;
        self.total.seconds = self.total.seconds.max(interval.end_seconds);
    }
}

fn run_once(
    options: &ClientOptions,
    signals: &Signals,
    mut output: Box<dyn Output>,
) -> io::Result<Done> {
    let common = &options.common;
    let peer = match resolve(&options.host, common.port, common.ipv6) {
        Ok(peer) => peer,
        Err(error) => {
            let text = format!("nicpoll iperf: cannot find {}: {error}", options.host);
            return give_up(&text, output.as_mut()).map(Done::of);
        }
    };
    let (events, told) = mpsc::channel();
    let client = Client {
        options,
        peer,
        signals,
    };
    thread::scope(|scope| {
        let started = if common.is_udp() {
            udp::start(client, scope, &events)
        } else {
            tcp::start(client, scope, &events)
        };
        if let Err(Failed::Because(text)) = started {
            return give_up(&text, output.as_mut()).map(Done::of);
        }
        drop(events);
        print(options, &told, output.as_mut())
    })
}

fn give_up(text: &str, output: &mut dyn Output) -> io::Result<u8> {
    tell!("{text}");
    output.gave_up(text)?;
    output.end()?;
    Ok(1)
}

fn print(
    options: &ClientOptions,
    told: &mpsc::Receiver<Event>,
    output: &mut dyn Output,
) -> io::Result<Done> {
    let mut has_settings = false;
    let mut done = Done::default();
    for event in told {
        if let Event::Connected(_, connected) = &event
            && !has_settings
            && is_own(options, connected)
        {
            output.banner(&settings::of_client(options, connected))?;
            has_settings = true;
            done.total.connected = Some(*connected);
        }
        if let Event::Finished(_, outcome) = &event
            && let Ok(total) = outcome.as_ref()
        {
            done.add(total);
        }
        if output.tell(event)? {
            done.status = 1;
        }
    }
    output.end()?;
    Ok(done)
}

/// Whether a socket is the client's own rather than one that the server connected to.
fn is_own(options: &ClientOptions, connected: &Connected) -> bool {
    connected.is_sender || !matches!(options.common.stream.directions, Directions::Dual { .. })
}

impl<'a> Client<'a> {
    /// Starts the client's own streams, each with what `connect` makes of its key. Their threads end
    /// with whether there was anything.
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        events: &mpsc::Sender<Event>,
        connect: impl Fn(StreamKey) -> Result<Ways<'a>, Failed> + Copy + Send + 'scope,
    ) -> Vec<ScopedJoinHandle<'scope, bool>> {
        let start = |number| {
            let key = StreamKey::new(number);
            let own_events = events.clone();
            let started = threads::start(scope, move || {
                let events = own_events;
                let ways = connect(key);
                let has_any = ways.is_ok();
                match ways {
                    Ok(ways) => ways.run(&events),
                    Err(failed) => Told::run(key, &events, |_| Err(failed)),
                }
                has_any
            });
            match started {
                Ok(thread) => Some(thread),
                Err(error) => {
                    Told::run(key, events, |_| Err(error.into()));
                    None
                }
            }
        };
        let streams = 0..self.options.common.stream.streams;
        streams.filter_map(start).collect()
    }

    /// A stream whose result is held against what was asked for.
    fn judged(self, run: impl FnOnce(&mut Told) -> Result<Total, Failed> + Send + 'a) -> Run<'a> {
        Box::new(move |told| {
            let outcome = run(told);
            let mut total = told.kept(outcome)?;
            // Whoever ended it knows.
            if self.signals.is_finishing() || self.signals.is_sender_done() {
                total.problem = None;
            } else if let Some(less) = self.less_than_asked(&total) {
                let why = total
                    .problem
                    .as_deref()
                    .map(|why| why.trim_start_matches(SPEAKER));
                let why = why.or(total.left).unwrap_or("the server is gone");
                total.problem = Some(format!("{SPEAKER}{less}: {why}"));
            }
            Ok(total)
        })
    }

    /// How much a stream obtained, when it is less than was asked for.
    fn less_than_asked(&self, total: &Total) -> Option<String> {
        let stream = &self.options.common.stream;
        if stream.input.is_some() {
            return None;
        }
        match stream.amount {
            Amount::ENDLESS => None,
            Amount::Time(asked) => {
                let obtained = Duration::from_secs_f64(total.obtained_seconds());
                Shortfall::of(asked, obtained).map(|short| short.to_string())
            }
            Amount::Bytes(asked) => {
                let obtained = total.detail.whole.bytes;
                // Of datagrams, some may be lost.
                let is_tcp = stream.protocol == Protocol::Tcp;
                let is_short = is_tcp && obtained < asked;
                is_short.then(|| format!("ended after {obtained} of {asked} bytes"))
            }
        }
    }

    /// What one of the client's own streams is made after.
    fn config(&self, key: StreamKey) -> Result<ClientConfig, Failed> {
        let stream = self.options.common.stream.clone();
        let mut peer = self.peer;
        if self.options.common.last_port.is_some() {
            // The options have been judged: there are ports for all.
            peer.set_port(peer.port() + key.number as u16);
        }
        Ok(ClientConfig {
            bind: self.local_address()?,
            ..ClientConfig::new(peer, stream)
        })
    }

    /// How to listen for the streams that the server connects back for.
    fn listener_config(&self, port: u16) -> Result<ListenerConfig, Failed> {
        // What limits a client is what it sends, and the server's clock is not its own.
        let stream = StreamConfig {
            rate: None,
            ..self.options.common.stream.clone()
        };
        let bind = reverse::address(*self, port)?;
        Ok(ListenerConfig {
            of_server: Some(self.peer),
            ..ListenerConfig::new(bind, reverse::IDLE_TIMEOUT, stream)
        })
    }

    fn local_address(&self) -> Result<Option<SocketAddr>, Failed> {
        let Some(bind) = &self.options.common.bind else {
            return Ok(None);
        };
        let port = bind.port.unwrap_or(0);
        resolve(&bind.address, port, self.peer.is_ipv6())
            .map(Some)
            .map_err(|error| {
                let address = &bind.address;
                Failed::Because(format!(
                    "nicpoll iperf: cannot find the local address {address}: {error}"
                ))
            })
    }
}

/// The first address of a name, of the family asked for.
fn resolve(host: &str, port: u16, wants_ipv6: bool) -> io::Result<SocketAddr> {
    let found = (host, port).to_socket_addrs()?;
    let mut found = found.filter(|address| address.is_ipv6() == wants_ipv6);
    found.next().ok_or_else(|| {
        let family = if wants_ipv6 {
            "IPv6"
        } else {
            "IPv4 (ask for IPv6 with -V)"
        };
        io::Error::other(format!("it has no address of family {family}"))
    })
}
