//! netreceive: threads that receive, and one that tells every half second what came.

use std::io::{self, Write};
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{NETRECEIVE_SCHEMA, Netreceive, ReceivingSocket};
use nicpoll_model::{HostDelta, Side, Way};
use nicpoll_sys::{socket, stdio};

use crate::losses;
use crate::netrate::command::common::{
    self, DONE, LOOK_EVERY, Program, Refused, ToolEnded, announce, perror, since_1970,
};
use crate::netrate::options::ReceiveOptions;
use crate::netrate::receive::{RECEIVE_BUFFER_BYTES, ReceiveCount, listen, receive};
use crate::netrate::text;
use crate::signals::Signals;

/// How often the original tells what came.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Receives until a signal comes, and tells what came and what was dropped.
pub fn run(options: &ReceiveOptions, program: &mut dyn Program) -> Result<ToolEnded, Refused> {
    program.catch_signals()?;
    let account = program.open_account();
    let sockets = listen(options.port).map_err(|error| Refused::Because(perror(&error)))?;
    let banner = text::netreceive(sockets.len(), options.threads, options.port);
    announce(&banner, options.json)?;
    let (started, start) = (since_1970(), Instant::now());
    let counts: Vec<Vec<ReceiveCount>> = sockets
        .iter()
        .map(|_| {
            (0..options.threads)
                .map(|_| ReceiveCount::default())
                .collect()
        })
        .collect();
    receive_all(&sockets, &counts, start, options.json, program)?;
    let elapsed = start.elapsed();
    let described = sockets.iter().zip(&counts);
    let described: Vec<ReceivingSocket> = described
        .map(|(socket, counts)| describe(socket, counts))
        .collect::<io::Result<_>>()?;
    let host = account.and_then(|close| close());
    let total = Total::of(&counts, &described, options.threads);
    if !options.json {
        say(&total.text(host.as_ref()), false)?;
        return Ok(DONE);
    }
    let object = total.object(options, started, elapsed, program, described, host);
    Ok(ToolEnded::Netreceive(Box::new(object)))
}

fn receive_all(
    sockets: &[UdpSocket],
    counts: &[Vec<ReceiveCount>],
    start: Instant,
    json: bool,
    program: &dyn Program,
) -> io::Result<()> {
    let signals = Signals::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (socket, counts) in sockets.iter().zip(counts) {
            for count in counts {
                let signals = &signals;
                let receiving = thread::Builder::new().name(String::from("nicpoll-netreceive"));
                threads.push(
                    receiving
                        .spawn_scoped(scope, move || receive(socket, count, signals, start))?,
                );
            }
        }
        let told = tell(counts, json, program, || {
            threads.iter().any(|one| one.is_finished())
        });
        signals.finish.store(true, Ordering::Relaxed);
        for thread in threads {
            match thread.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        told
    })
}

/// The original's lines, until a signal comes or a thread has failed.
fn tell(
    counts: &[Vec<ReceiveCount>],
    json: bool,
    program: &dyn Program,
    has_failed: impl Fn() -> bool,
) -> io::Result<()> {
    let mut told_at = Instant::now();
    let mut told = (0, 0);
    say(&text::netreceive_start(since_1970()), json)?;
    while program.signal().is_none() && !has_failed() {
        let left = TELL_EVERY.saturating_sub(told_at.elapsed());
        thread::sleep(left.min(LOOK_EVERY));
        if told_at.elapsed() < TELL_EVERY {
            continue;
        }
        let now = (
            sum(counts, ReceiveCount::datagrams),
            sum(counts, ReceiveCount::bytes),
        );
        let elapsed = told_at.elapsed();
        told_at += elapsed;
        let (datagrams, bytes) = (now.0 - told.0, now.1 - told.1);
        say(&text::netreceive_interval(datagrams, bytes, elapsed), json)?;
        told = now;
    }
    Ok(())
}

/// The original's results are on standard error; where a document has them, what is said there is none.
fn say(text: &str, json: bool) -> io::Result<()> {
    if json {
        stdio::print_error(text);
        return Ok(());
    }
    io::stderr().lock().write_all(text.as_bytes())
}

fn sum(counts: &[Vec<ReceiveCount>], figure: impl Fn(&ReceiveCount) -> u64) -> u64 {
    counts.iter().flatten().map(figure).sum()
}

fn describe(socket: &UdpSocket, counts: &[ReceiveCount]) -> io::Result<ReceivingSocket> {
    Ok(ReceivingSocket {
        address: socket.local_addr()?.ip().to_string(),
        receive_buffer_asked_bytes: RECEIVE_BUFFER_BYTES,
        receive_buffer_granted_bytes: socket::receive_buffer(socket)?,
        received_packets: counts.iter().map(ReceiveCount::datagrams).sum(),
        dropped_packets: socket::receive_drops(socket).ok().map(u64::from),
    })
}

/// What all sockets received and dropped.
struct Total {
    datagrams: u64,
    bytes: u64,
    duplicates: Option<u64>,
    /// From the first batch taken to the last one.
    receiving: Option<Duration>,
    dropped: Option<u64>,
}

impl Total {
    fn of(counts: &[Vec<ReceiveCount>], sockets: &[ReceivingSocket], threads: usize) -> Self {
        let spans = || {
            counts
                .iter()
                .flatten()
                .filter_map(ReceiveCount::first_and_last)
        };
        let first = spans().map(|(first, _)| first).min();
        let last = spans().map(|(_, last)| last).max();
        Total {
            datagrams: sum(counts, ReceiveCount::datagrams),
            bytes: sum(counts, ReceiveCount::bytes),
            duplicates: counts
                .iter()
                .flatten()
                .filter_map(ReceiveCount::duplicates)
                .reduce(|sum, duplicates| sum + duplicates)
                .filter(|_| threads == 1),
            receiving: last.zip(first).map(|(last, first)| last - first),
            dropped: sockets.iter().map(|socket| socket.dropped_packets).sum(),
        }
    }

    fn text(&self, host: Option<&HostDelta>) -> String {
        let drops = host.map(|host| losses::all(host, &[Way::In]));
        let unknown = || format!("dropped by this host: {}\n", losses::count(None));
        let duplicates = self.duplicates.filter(|&duplicates| duplicates > 0);
        let twice = duplicates.map_or_else(String::new, |duplicates| {
            format!("of these came before: {duplicates} pkts\n")
        });
        format!(
            "received: {} pkts, {} bytes\n{twice}dropped by these sockets: {}\n{}",
            self.datagrams,
            self.bytes,
            losses::count(self.dropped),
            drops.unwrap_or_else(unknown)
        )
    }

    fn object(
        &self,
        options: &ReceiveOptions,
        started: Duration,
        elapsed: Duration,
        program: &dyn Program,
        sockets: Vec<ReceivingSocket>,
        host: Option<HostDelta>,
    ) -> Netreceive {
        let seconds = self.receiving.map(|time| time.as_secs_f64());
        let per_second = |count: u64| {
            let seconds = seconds.filter(|&seconds| seconds > 0.0)?;
            Some(count as f64 / seconds)
        };
        Netreceive {
            head: common::head(NETRECEIVE_SCHEMA),
            side: Side::Receiver,
            port: options.port,
            threads_per_socket: options.threads,
            started_at: common::time_of_day(started),
            elapsed_seconds: elapsed.as_secs_f64(),
            ended_by_signal: program.signal(),
            received_packets: self.datagrams,
            duplicate_packets: self.duplicates,
            received_payload_bytes: self.bytes,
            receiving_seconds: seconds,
            received_packets_per_second: per_second(self.datagrams),
            received_payload_bits_per_second: per_second(self.bytes).map(|rate| rate * 8.0),
            socket_dropped_packets: self.dropped,
            sockets,
            host,
        }
    }
}
