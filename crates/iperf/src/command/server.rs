//! Runs a server: any number of clients, each stream on its own thread, until a signal, the time (-t) or the
//! number of tests (-P) ends it.
//!
//! A test counts once its client has proved to exist, so strangers use none up. A client that cannot be served
//! does not end the server.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_sys::stdio::Daemon;
use nicpoll_sys::tell;
use nicpoll_traffic::{ClientRefusal, CloseAccount, Notices, Signals, sockets};

use super::run::{StreamJob, begin_realtime, listen, run_streams, spawn};
use crate::config::ListenerConfig;
use crate::events::{Event, Reporter, Settings, StreamKey};
use crate::options::Options;
use crate::output;
use crate::slots::{Proof, Slots};
use crate::stream::{AcceptedTest, Error, Listen, SPEAKER, StreamRun, Streams};

/// How often to check for the end of the time while nobody connects.
const PATIENCE: Duration = Duration::from_millis(200);
/// The same while a client has not proved to exist.
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_millis(20);
/// How long other clients wait for a stranger to prove it exists when one test runs at a time.
const TIME_TO_PROVE: Duration = Duration::from_millis(250);
/// A client that sends nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Printed when a server is interrupted while streams run.
const WAITING_FOR_THREADS: &str =
    "Waiting for server threads to complete. Interrupt again to force quit.";

/// What every stream shares.
#[derive(Clone, Copy)]
struct ServedTests<'a> {
    options: &'a Options,
    signals: &'a Signals,
}

/// Runs a server; returns the exit status. A daemon detaches from the terminal once it listens.
///
/// # Errors
/// When the output cannot be opened or written.
pub fn run_server(
    options: &Options,
    signals: &Signals,
    account: Option<CloseAccount>,
    daemon: Option<Daemon>,
) -> io::Result<u8> {
    begin_realtime(options);
    let mut output = output::open(options, account)?;
    let (events, received) = mpsc::channel::<Event>();
    let server = ServedTests { options, signals };
    thread::scope(|scope| {
        let printing = spawn(scope, move || {
            let mut events = received.into_iter();
            let printed = events.try_for_each(|event| output.tell(event).map(drop));
            (output, printed)
        })?;
        let served = server.serve(scope, &events, daemon);
        drop(events);
        let Ok((mut output, printed)) = printing.join() else {
            return Err(io::Error::other("the printing thread panicked"));
        };
        let Err(failed) = served else {
            printed?;
            output.end()?;
            return Ok(0);
        };
        let text = failed.text();
        let text = text.unwrap_or_else(|| format!("{SPEAKER}the server was told to stop"));
        tell!("{text}");
        output.gave_up(&text)?;
        output.end()?;
        Ok(1)
    })
}

/// A client being served.
struct ServedClient<'scope> {
    thread: ScopedJoinHandle<'scope, ()>,
    proof: Proof,
    since: Instant,
}

impl ServedClient<'_> {
    /// Whether to serve nobody else meanwhile; only for a short time while the client has not proved to exist.
    fn is_to_be_awaited(&self) -> bool {
        self.proof.is_given() || self.since.elapsed() < TIME_TO_PROVE
    }
}

impl<'a> ServedTests<'a> {
    /// Serves clients until the server should end.
    fn serve<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        events: &mpsc::Sender<Event>,
        daemon: Option<Daemon>,
    ) -> Result<(), Error>
    where
        'a: 'scope,
    {
        let options = self.options;
        let slots = Slots::new(false);
        let mut listener = self.listen(&slots)?;
        settle(daemon, options).map_err(|error| Error::Because(error.to_string()))?;
        let settings = Settings::Listener(options.port, listener.buffer());
        let _ = events.send(Event::Settings(settings));
        let numbers = Arc::new(AtomicU32::new(0));
        let mut notices = Notices::default();
        let mut has_warned = false;
        let served = self.each_client(|patience| {
            let taken = listener.accept(self.signals, patience)?;
            if let Some(refusal) = notices.due(slots.admission().refusal()) {
                tell!("{SPEAKER}{refusal}");
            }
            if let Some(client) = listener.not_allowed().filter(|_| !has_warned) {
                has_warned = true;
                warn_of_allow(client);
            }
            Ok(taken.and_then(|taken| self.begin(scope, taken, &numbers, events, &slots)))
        });
        slots.close();
        served
    }

    /// Runs a client's streams on their own threads; `None` when no thread can be created.
    fn begin<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        taken: AcceptedTest,
        numbers: &Arc<AtomicU32>,
        events: &mpsc::Sender<Event>,
        slots: &Slots,
    ) -> Option<ServedClient<'scope>>
    where
        'a: 'scope,
    {
        let (numbers, events) = (Arc::clone(numbers), events.clone());
        let key = StreamKey::new(numbers.fetch_add(1, Ordering::Relaxed));
        let open = taken.open;
        let run = move || match open(self.signals) {
            Ok(test) => self.run(key, test, &numbers, &events),
            Err(failed) => Reporter::fail(key, &events, failed),
        };
        match spawn(scope, run) {
            Ok(thread) => Some(ServedClient {
                thread,
                proof: taken.proof,
                since: Instant::now(),
            }),
            Err(source) => {
                let peer = taken.peer.into();
                slots
                    .admission()
                    .refuse(ClientRefusal::Thread { peer, source });
                None
            }
        }
    }

    /// Runs the streams of one test to their ends.
    fn run(self, key: StreamKey, test: Streams, numbers: &AtomicU32, events: &mpsc::Sender<Event>) {
        let job = |run: StreamRun| -> StreamJob<'a> {
            Box::new(move |reporter| run(self.signals, reporter))
        };
        let outgoing_key = match test.incoming {
            Some(_) => key.reversed(),
            None => key,
        };
        let incoming = test.incoming.map(|run| (key, job(run)));
        let outgoing = test.outgoing.map(|run| (outgoing_key, job(run)));
        let mut at_once: Vec<_> = incoming.into_iter().chain(outgoing).collect();
        let mut later = Vec::new();
        if let Some(back) = test.back {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let is_later = !back.is_at_once;
            let key = StreamKey {
                is_later,
                ..StreamKey::new(number).reversed()
            };
            let job: StreamJob<'a> = Box::new(move |reporter| {
                let (connected, run) = (back.connect)(self.signals)?;
                let settings = Settings::WayBack(connected, back.length_bytes, back.rate);
                reporter.send(Event::Settings(settings));
                run(self.signals, reporter)
            });
            let streams = if is_later { &mut later } else { &mut at_once };
            streams.push((key, job));
        }
        run_streams(at_once, events);
        run_streams(later, events);
    }

    /// Takes clients until the server should end. `take` waits at most as long as its argument says; it returns
    /// `None` when nobody came or the client was refused.
    fn each_client<'scope>(
        &self,
        mut take: impl FnMut(Duration) -> Result<Option<ServedClient<'scope>>, Error>,
    ) -> Result<(), Error> {
        let options = self.options;
        let end = options.time.map(|time| Instant::now() + time);
        let mut running: Vec<ServedClient<'scope>> = Vec::new();
        let mut tests_ended = 0;
        loop {
            let is_stopped = self.signals.is_sender_done();
            running.retain(|stream| {
                let is_over = stream.thread.is_finished();
                tests_ended += u32::from(is_over && stream.proof.is_given());
                !is_over
            });
            let proven = running.iter().filter(|stream| stream.proof.is_given());
            let tests = tests_ended + proven.count() as u32;
            let is_over = is_stopped
                || end.is_some_and(|end| Instant::now() >= end)
                || options.connections.is_some_and(|most| tests >= most);
            if is_over {
                if is_stopped && !running.is_empty() {
                    tell!("{WAITING_FOR_THREADS}");
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
            let patience = match running.iter().all(|stream| stream.proof.is_given()) {
                true => PATIENCE,
                false => PATIENCE_WITH_STRANGERS,
            };
            running.extend(take(patience)?);
        }
    }

    fn listen(&self, slots: &Slots) -> Result<Box<dyn Listen>, Error> {
        let options = self.options;
        let bind = address(options).map_err(|error| Error::Because(error.to_string()))?;
        let mut config = ListenerConfig {
            allow: options.allow.clone(),
            ..ListenerConfig::new(bind, IDLE_TIMEOUT, options.stream.clone())
        };
        config.stream.time_max = options.time.unwrap_or(Duration::MAX);
        listen(&config, slots, Some(options.style))
    }
}

/// Explains how to serve a client that was not allowed to receive data.
fn warn_of_allow(client: SocketAddr) {
    let client = client.ip().to_canonical();
    tell!(
        "WARNING: {client} asks for datagrams, and the request may be forged; to \
         send them, start the server with --allow {client}"
    );
}

/// Sends a daemon's errors to its output file if that is text.
fn settle(daemon: Option<Daemon>, options: &Options) -> io::Result<()> {
    let Some(daemon) = daemon else { return Ok(()) };
    let is_text = !options.csv && options.json.is_none();
    let log = options.output.as_ref().filter(|_| is_text);
    let log = log.map(|path| File::options().append(true).open(path));
    daemon.settle(log.transpose()?)
}

fn address(options: &Options) -> io::Result<SocketAddr> {
    let Some(bind) = &options.bind else {
        // An IPv6 socket serves IPv4, too.
        return Ok(sockets::any_address(options.ipv6, options.port));
    };
    let mut found = (bind.address.as_str(), options.port).to_socket_addrs()?;
    found
        .next()
        .ok_or_else(|| io::Error::other("the name has no address"))
}
