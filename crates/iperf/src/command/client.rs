//! Runs a client: its own streams and, with -d and -r, a stream from the server for each.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_model::Protocol;
use nicpoll_sys::tell;
use nicpoll_traffic::sockets::{self, kernel_words};
use nicpoll_traffic::{CloseAccount, Shortfall, Signals};

use super::run::{StreamJob, begin_realtime, listen, run_streams, spawn};
use crate::config::{ClientConfig, ListenerConfig, StreamConfig};
use crate::events::{Event, Output, Reporter, RunObject, Settings, StreamKey};
use crate::options::Options;
use crate::output::{self, RunTotal, Runs};
use crate::records::{End, Total};
use crate::slots::Slots;
use crate::stream::{Error, Listen, SPEAKER, StreamRun, Streams};
use crate::wire::{Amount, Directions};
use crate::{tcp, udp};

/// A server that sends nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server may take to connect back after the client's own streams have ended: 2.1.8 waits this
/// much longer than the test time, which it does not know with -n.
const PATIENCE_DUAL: Duration = Duration::from_secs(2);
/// The same with -r.
const PATIENCE_TRADE_OFF: Duration = Duration::from_secs(3);
/// How often to check the client's own streams.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Printed when the server did not connect back (-d, -r).
const MISSING_REVERSE: &str = "ERROR: expected reverse connect did not occur";

/// Runs a client. Returns the exit status: 1 if any stream failed.
///
/// # Errors
/// When the output cannot be opened or written.
pub fn run_client(
    options: &Options,
    signals: &Signals,
    mut account: impl FnMut() -> Option<CloseAccount>,
) -> io::Result<u8> {
    begin_realtime(options);
    let mut runs = Runs::new(options);
    let mut status = 0;
    for _ in 0..options.repeat.unwrap_or(1) {
        let output = runs.open(account())?;
        let done = run_once(options, signals, output)?;
        status = status.max(done.status);
        // A run that was cut short does not count.
        let is_cut_short = signals.is_finishing() || signals.is_sender_done();
        let counts = done.status == 0 && !is_cut_short;
        runs.add(counts.then_some(done.total), done.kept);
        if is_cut_short {
            break;
        }
    }
    runs.end()?;
    Ok(status)
}

/// The outcome of one run.
#[derive(Default)]
struct ClientResult {
    status: u8,
    total: RunTotal,
    kept: Option<RunObject>,
}

fn run_once(
    options: &Options,
    signals: &Signals,
    mut output: Box<dyn Output + '_>,
) -> io::Result<ClientResult> {
    let host = options.host.as_deref().unwrap_or_default();
    let peer = match resolve(host, options.port, options.ipv6) {
        Ok(peer) => peer,
        Err(error) => {
            let error = Error::Because(format!("cannot find {host}: {error}"));
            return give_up(&error, output.as_mut());
        }
    };
    let (events, received) = mpsc::channel();
    let client = ClientStreams {
        options,
        peer,
        signals,
    };
    thread::scope(|scope| {
        if let Err(error) = client.start(scope, &events) {
            return give_up(&error, output.as_mut());
        }
        drop(events);
        print(options, &received, output.as_mut())
    })
}

fn give_up(error: &Error, output: &mut dyn Output) -> io::Result<ClientResult> {
    let text = error.text().unwrap_or_default();
    tell!("{text}");
    output.gave_up(&text)?;
    Ok(ClientResult {
        status: 1,
        kept: output.end()?,
        ..ClientResult::default()
    })
}

fn print(
    options: &Options,
    events: &mpsc::Receiver<Event>,
    output: &mut dyn Output,
) -> io::Result<ClientResult> {
    let mut done = ClientResult::default();
    let is_dual = matches!(options.stream.directions, Directions::Dual { .. });
    for event in events {
        match &event {
            // The first socket that the client opened itself.
            Event::Connected(_, connected)
                if done.total.connected.is_none() && (connected.is_sender || !is_dual) =>
            {
                output.settings(&Settings::Client(*connected))?;
                done.total.connected = Some(*connected);
            }
            Event::Finished(_, outcome) => {
                if let Ok(total) = outcome.as_ref() {
                    let record = total.relayed();
                    let record = record.unwrap_or_else(|| total.printed(options.style));
                    done.total.bytes += record.bytes;
                    done.total.seconds = done.total.seconds.max(record.end);
                }
            }
            _ => {}
        }
        if output.tell(event)? {
            done.status = 1;
        }
    }
    done.kept = output.end()?;
    Ok(done)
}

/// What every stream shares.
#[derive(Clone, Copy)]
struct ClientStreams<'a> {
    options: &'a Options,
    peer: SocketAddr,
    signals: &'a Signals,
}

impl<'a> ClientStreams<'a> {
    fn stream(&self) -> &'a StreamConfig {
        &self.options.stream
    }

    /// Starts all streams.
    ///
    /// # Errors
    /// When none can start, because there is no listener for the server's streams.
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        events: &mpsc::Sender<Event>,
    ) -> Result<(), Error>
    where
        'a: 'scope,
    {
        let listener = match self.stream().directions {
            Directions::Dual { port, .. } => Some(self.listen(port, events)?),
            _ => None,
        };
        let own = (0..self.stream().streams)
            .filter_map(|number| self.start_own(scope, events, number))
            .collect();
        if let Some(listener) = listener {
            let events = events.clone();
            spawn(scope, move || self.take_back(listener, own, &events))
                .map_err(Error::no_thread)?;
        }
        Ok(())
    }

    /// Starts one of the client's own streams. Its thread returns whether the stream was set up.
    fn start_own<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        events: &mpsc::Sender<Event>,
        number: u32,
    ) -> Option<ScopedJoinHandle<'scope, bool>>
    where
        'a: 'scope,
    {
        let key = StreamKey::new(number);
        let own_events = events.clone();
        let started = spawn(scope, move || {
            let test = match self.connect() {
                Ok(test) => test,
                Err(failed) => {
                    Reporter::fail(key, &own_events, failed);
                    return false;
                }
            };
            let incoming = test.incoming.map(|run| (key.reversed(), self.judged(run)));
            let outgoing = test.outgoing.map(|run| (key, self.judged(run)));
            run_streams(incoming.into_iter().chain(outgoing).collect(), &own_events);
            true
        });
        started
            .map_err(|error| Reporter::fail(key, events, Error::no_thread(error)))
            .ok()
    }

    fn connect(&self) -> Result<Streams, Error> {
        let config = self.config()?;
        if self.options.is_udp() {
            return udp::connect(&config);
        }
        tcp::connect(&config, self.signals).map_err(|error| match error {
            Error::Connect { source, .. } => {
                let style = self.options.style;
                Error::Told(output::connect_failed(style, &kernel_words(&source)))
            }
            error => error,
        })
    }

    /// Compares a stream's result with the amount requested.
    fn judged(self, run: StreamRun) -> StreamJob<'a> {
        Box::new(move |reporter| {
            let outcome = run(self.signals, reporter);
            let mut total = reporter.salvaged(outcome)?;
            let doubt = total.doubt.map(|doubt| format!("{SPEAKER}{doubt}"));
            total.problem = total.problem.or(doubt);
            // Whoever ended it knows.
            if self.signals.is_finishing() || self.signals.is_sender_done() {
                total.problem = None;
            } else if let Some(less) = self.less_than_asked(&total) {
                let why = total.problem.as_deref();
                let why = why.map(|why| why.trim_start_matches(SPEAKER));
                let left = match total.end {
                    Some(End::Closed) => "the server ended the stream",
                    _ => "the server is gone",
                };
                let why = why.unwrap_or(left);
                total.problem = Some(format!("{SPEAKER}{less}: {why}"));
            }
            Ok(total)
        })
    }

    /// How much a stream moved, if less than requested.
    fn less_than_asked(&self, total: &Total) -> Option<String> {
        let stream = self.stream();
        match stream.amount {
            Amount::ENDLESS => None,
            Amount::Time(asked) => {
                let of = |seconds| Shortfall::of(asked, Duration::from_secs_f64(seconds));
                match total.flowed_seconds {
                    Some(flowed) => of(flowed).map(|short| short.while_sending()),
                    None => of(total.whole.end).map(|short| short.to_string()),
                }
            }
            Amount::Bytes(asked) => {
                let obtained = total.whole.bytes;
                // Datagrams may be lost.
                let is_short = stream.protocol == Protocol::Tcp && obtained < asked;
                is_short.then(|| format!("ended after {obtained} of {asked} bytes"))
            }
        }
    }

    /// The configuration of the client's own streams.
    fn config(&self) -> Result<ClientConfig, Error> {
        Ok(ClientConfig {
            bind: self.local_address()?,
            ..ClientConfig::new(self.peer, self.stream().clone())
        })
    }

    fn local_address(&self) -> Result<Option<SocketAddr>, Error> {
        let Some(bind) = &self.options.bind else {
            return Ok(None);
        };
        let port = bind.port.unwrap_or(0);
        let found = resolve(&bind.address, port, self.peer.is_ipv6());
        found.map(Some).map_err(|error| {
            let address = &bind.address;
            Error::Because(format!("cannot find the local address {address}: {error}"))
        })
    }

    /// Starts to listen for the streams of a server that connects back.
    fn listen(&self, port: u16, events: &mpsc::Sender<Event>) -> Result<Box<dyn Listen>, Error> {
        let any = sockets::any_address(self.peer.is_ipv6(), port);
        let mut bind = self.local_address()?.unwrap_or(any);
        bind.set_port(port);
        // A client's rate limits only what it sends.
        let stream = StreamConfig {
            rate: None,
            ..self.stream().clone()
        };
        let config = ListenerConfig {
            of_server: Some(self.peer),
            ..ListenerConfig::new(bind, IDLE_TIMEOUT, stream)
        };
        let listener = listen(&config, &Slots::new(true), None)?;
        // The printer outlives every stream.
        let settings = Settings::Listener(port, listener.buffer());
        let _ = events.send(Event::Settings(settings));
        Ok(listener)
    }

    /// Takes streams from the server, each on its own thread, until there are as many as the client's own or it
    /// is too late for more. `own` are the threads of the client's streams; each returns whether its stream was
    /// set up.
    fn take_back(
        self,
        mut listener: Box<dyn Listen>,
        own: Vec<ScopedJoinHandle<'_, bool>>,
        events: &mpsc::Sender<Event>,
    ) {
        let streams = self.stream().streams;
        let (is_later, patience) = match self.stream().directions {
            Directions::Dual {
                is_at_once: false, ..
            } => (true, PATIENCE_TRADE_OFF),
            _ => (false, PATIENCE_DUAL),
        };
        let mut own = Some(own);
        let mut own_ended = None;
        // At most the number of own streams, once known.
        let mut expected = streams;
        thread::scope(|scope| {
            let mut taken = 0;
            while taken < expected {
                let key = StreamKey {
                    is_later,
                    ..StreamKey::new(streams + taken)
                };
                match self.take_one(listener.as_mut()) {
                    Ok(Some(job)) => {
                        taken += 1;
                        if let Err(error) = spawn(scope, move || Reporter::run(key, events, job)) {
                            Reporter::fail(key, events, Error::no_thread(error));
                        }
                        continue;
                    }
                    Ok(None) => {}
                    Err(failed) => return Reporter::fail(key, events, failed),
                }
                if self.signals.is_sender_done() {
                    return;
                }
                if let Some(ended) =
                    own.take_if(|own| own.iter().all(ScopedJoinHandle::is_finished))
                {
                    let made = ended.into_iter().filter_map(|own| own.join().ok());
                    expected = made.filter(|is_made| *is_made).count() as u32;
                    own_ended = Some(Instant::now());
                }
                if taken < expected && own_ended.is_some_and(|since| since.elapsed() >= patience) {
                    let missing = Error::Told(String::from(MISSING_REVERSE));
                    return Reporter::fail(key, events, missing);
                }
            }
        });
    }

    fn take_one(self, listener: &mut dyn Listen) -> Result<Option<StreamJob<'a>>, Error> {
        let Some(taken) = listener.accept(self.signals, LOOK_EVERY)? else {
            return Ok(None);
        };
        let test = (taken.open)(self.signals)?;
        Ok(test.incoming.map(|run| self.judged(run)))
    }
}

/// The first address of a name in the requested family.
fn resolve(host: &str, port: u16, wants_ipv6: bool) -> io::Result<SocketAddr> {
    let found = (host, port).to_socket_addrs()?;
    let mut found = found.filter(|address| address.is_ipv6() == wants_ipv6);
    found.next().ok_or_else(|| {
        let family = match wants_ipv6 {
            true => "IPv6",
            false => "IPv4 (ask for IPv6 with -V)",
        };
        io::Error::other(format!("it has no address of family {family}"))
    })
}
