//! netreceive: threads that receive, and one that prints their counts every half second.

use std::io;
use std::net::UdpSocket;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{NETRECEIVE_SCHEMA, Netreceive, ReceivingSocket};
use nicpoll_model::{Side, Way};
use nicpoll_sys::{socket, stdio};

use crate::losses;
use crate::netrate::command::common::{
    OpenAccount, ToolFailure, announce, head, print_document, since_1970, time_of_day,
};
use crate::netrate::options::NetrateOptions;
use crate::netrate::receive::{RECEIVE_BUFFER_BYTES, ReceiveCount, Received, listen, receive};
use crate::netrate::text;
use crate::signals::{LOOK_EVERY, Signals, Stop};

/// Interval between the original's lines.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// A socket, and the counts of its threads.
type CountedSocket = (UdpSocket, Vec<ReceiveCount>);

/// Receives until a signal, then prints what arrived and what was dropped.
pub fn run(options: &NetrateOptions, open_account: OpenAccount<'_>) -> Result<u8, ToolFailure> {
    let stop = Stop::on_signals()?;
    let account = open_account();
    let sockets = listen(options.port)?;
    let threads = options.threads.unwrap_or(1);
    announce(
        &text::netreceive(sockets.len(), threads, options.port),
        options,
    )?;
    let (started, start) = (since_1970(), Instant::now());
    let counted = sockets.into_iter().map(|socket| {
        let counts = (0..threads).map(|_| ReceiveCount::default());
        (socket, counts.collect())
    });
    let counted: Vec<CountedSocket> = counted.collect();
    receive_all(&counted, start, options.json, &stop)?;
    let all = sum(&counted);
    let seconds = all
        .first_and_last
        .map(|(first, last)| (last - first).as_secs_f64());
    let per_second = |count: u64| {
        let seconds = seconds.filter(|&seconds| seconds > 0.0)?;
        Some(count as f64 / seconds)
    };
    let elapsed_seconds = start.elapsed().as_secs_f64();
    let sockets: Vec<_> = counted.iter().map(describe).collect::<io::Result<_>>()?;
    let received = Netreceive {
        head: head(NETRECEIVE_SCHEMA),
        side: Side::Receiver,
        port: options.port,
        threads_per_socket: threads,
        started_at: time_of_day(started),
        elapsed_seconds,
        ended_by_signal: stop.signal(),
        received_packets: all.datagrams,
        duplicate_packets: all.duplicates.filter(|_| threads == 1),
        received_payload_bytes: all.bytes,
        receiving_seconds: seconds,
        received_packets_per_second: per_second(all.datagrams),
        received_payload_bits_per_second: per_second(all.bytes).map(|rate| rate * 8.0),
        socket_dropped_packets: sockets.iter().map(|socket| socket.dropped_packets).sum(),
        sockets,
        host: account.and_then(|close| close()),
    };
    match options.json {
        true => print_document(&received)?,
        false => say(&last_lines(&received), false)?,
    }
    Ok(0)
}

fn receive_all(
    counted: &[CountedSocket],
    start: Instant,
    json: bool,
    stop: &Stop,
) -> io::Result<()> {
    let signals = Signals::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (socket, counts) in counted {
            for count in counts {
                let signals = &signals;
                let receiving = thread::Builder::new().name(String::from("nicpoll-netreceive"));
                threads.push(
                    receiving
                        .spawn_scoped(scope, move || receive(socket, count, signals, start))?,
                );
            }
        }
        let told = tell(counted, json, || {
            stop.signal().is_some() || threads.iter().any(|one| one.is_finished())
        });
        signals.finish.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        told
    })
}

/// Prints the original's lines until a signal comes or a thread fails.
fn tell(counted: &[CountedSocket], json: bool, is_over: impl Fn() -> bool) -> io::Result<()> {
    let mut told_at = Instant::now();
    let mut told = Received::default();
    say(&text::netreceive_start(since_1970()), json)?;
    while !is_over() {
        let left = TELL_EVERY.saturating_sub(told_at.elapsed());
        thread::sleep(left.min(LOOK_EVERY));
        if told_at.elapsed() < TELL_EVERY {
            continue;
        }
        let now = sum(counted);
        let elapsed = told_at.elapsed();
        told_at += elapsed;
        let (datagrams, bytes) = (now.datagrams - told.datagrams, now.bytes - told.bytes);
        say(&text::netreceive_interval(datagrams, bytes, elapsed), json)?;
        told = now;
    }
    Ok(())
}

/// Prints to standard error, like the original. With a document, a failure to print is ignored.
fn say(text: &str, json: bool) -> io::Result<()> {
    if json {
        stdio::print_error(text);
        return Ok(());
    }
    stdio::try_print_error(text)
}

/// What all threads received.
fn sum(counted: &[CountedSocket]) -> Received {
    let counts = counted.iter().flat_map(|(_, counts)| counts);
    let all = counts.map(ReceiveCount::look);
    all.fold(Received::default(), Received::and)
}

fn describe((socket, counts): &CountedSocket) -> io::Result<ReceivingSocket> {
    Ok(ReceivingSocket {
        address: socket.local_addr()?.ip().to_string(),
        receive_buffer_asked_bytes: RECEIVE_BUFFER_BYTES,
        receive_buffer_granted_bytes: socket::receive_buffer(socket)?,
        received_packets: counts.iter().map(|count| count.look().datagrams).sum(),
        dropped_packets: socket::receive_drops(socket).ok().map(u64::from),
    })
}

fn last_lines(received: &Netreceive) -> String {
    let drops = received.host.as_ref();
    let drops = drops.map(|host| losses::all(host, &[Way::In]));
    let unknown = || format!("dropped by this host: {}\n", losses::count(None));
    let twice = match received.duplicate_packets {
        Some(duplicates @ 1..) => format!("of these came before: {duplicates} pkts\n"),
        _ => String::new(),
    };
    format!(
        "received: {} pkts, {} bytes\n{twice}dropped by these sockets: {}\n{}",
        received.received_packets,
        received.received_payload_bytes,
        losses::count(received.socket_dropped_packets),
        drops.unwrap_or_else(unknown)
    )
}
