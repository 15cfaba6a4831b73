//! The receiving end: any number of clients, each stream on a thread of its own, until a signal, the
//! time (-t) or the number of connections (-P) ends it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_traffic::Signals;
use nicpoll_traffic::iperf::options::{Common, ServerOptions};
use nicpoll_traffic::iperf::text::{
    self, Format, Interval, Protocol, Receipt, ServerBanner, Window,
};
use nicpoll_traffic::iperf::{SocketOptions, tcp, udp};

use super::events::{Event, Failed, Told};
use super::printer::{Printer, Total};
use super::{manner, open_output};

/// How often the end of the time is looked at while nobody connects.
const PATIENCE: Duration = Duration::from_millis(200);
/// A client that says nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a server. Returns the exit status.
pub fn run(options: &ServerOptions, signals: &Signals) -> io::Result<u8> {
    let common = &options.common;
    let bind = match address(common) {
        Ok(bind) => bind,
        Err(error) => return Ok(refuse(common, &error)),
    };
    let mut printer = Printer::new(manner(common), open_output(common)?);
    let (events, told) = mpsc::channel();
    thread::scope(|scope| {
        let printing = scope.spawn(move || print(&told, &mut printer));
        let served = if common.udp {
            serve_udp(options, bind, signals, &events, scope)
        } else {
            serve_tcp(options, bind, signals, &events, scope)
        };
        drop(events);
        let printed = printing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the printing thread panicked")));
        match (served, printed) {
            (Err(error), _) => Ok(refuse(common, &error)),
            (Ok(()), printed) => printed.map(|()| 0),
        }
    })
}

fn refuse(common: &Common, error: &io::Error) -> u8 {
    eprintln!("{}", text::bind_failed(common.style, &error.to_string()));
    1
}

fn serve_tcp<'scope>(
    options: &'scope ServerOptions,
    bind: SocketAddr,
    signals: &'scope Signals,
    events: &mpsc::Sender<Event>,
    scope: &'scope Scope<'scope, '_>,
) -> io::Result<()> {
    let common = &options.common;
    let config = tcp::ListenerConfig {
        read_bytes: common.length_bytes,
        waits_for_full_reads: !common.no_batch,
        interval: common.interval,
        options: socket_options(common),
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        ..tcp::ListenerConfig::new(tcp::ServerConfig {
            bind,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: IDLE_TIMEOUT,
        })
    };
    let listener = tcp::Listener::bind(&config).map_err(io::Error::other)?;
    let granted = listener.receive_buffer().granted_bytes;
    announce(options, granted, events);
    each_client(options, signals, |number| {
        let accepted = listener
            .accept(signals, PATIENCE)
            .map_err(io::Error::other)?;
        Ok(accepted.map(|accepted| {
            start(scope, events, number, move |observer| {
                let report = accepted
                    .run(signals, observer)
                    .map_err(|error| match error {
                        tcp::ServerError::Cancelled => Failed::Cancelled,
                        error => Failed::Because(error.to_string()),
                    })?;
                Ok(total(report.seconds, report.bytes_received, None))
            })
        }))
    })
}

fn serve_udp<'scope>(
    options: &'scope ServerOptions,
    bind: SocketAddr,
    signals: &'scope Signals,
    events: &mpsc::Sender<Event>,
    scope: &'scope Scope<'scope, '_>,
) -> io::Result<()> {
    let common = &options.common;
    let config = udp::ListenerConfig {
        takes_trains: !common.no_batch,
        interval: common.interval,
        options: socket_options(common),
        ..udp::ListenerConfig::new(udp::ServerConfig {
            bind,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: IDLE_TIMEOUT,
        })
    };
    let mut listener = udp::Listener::bind(&config).map_err(io::Error::other)?;
    let granted = listener.receive_buffer().granted_bytes;
    announce(options, granted, events);
    each_client(options, signals, |number| {
        let session = listener
            .accept(signals, PATIENCE)
            .map_err(io::Error::other)?;
        Ok(session.map(|session| {
            start(scope, events, number, move |observer| {
                let report = session
                    .run(signals, observer)
                    .map_err(|error| match error {
                        udp::ServerError::Cancelled => Failed::Cancelled,
                        error => Failed::Because(error.to_string()),
                    })?;
                let receipt = Receipt {
                    jitter_ms: 1e3 * report.jitter_seconds.unwrap_or(0.0),
                    lost: report.lost as i64,
                    total: report.datagrams_expected,
                    out_of_order: report.out_of_order,
                };
                let seconds = report.seconds_to_fin.unwrap_or(report.seconds);
                Ok(total(seconds, report.bytes_received, Some(receipt)))
            })
        }))
    })
}

/// Runs a stream on a thread of its own, which tells what it comes to.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
    number: u32,
    run: impl FnOnce(&mut Told) -> Result<Total, Failed> + Send + 'scope,
) -> ScopedJoinHandle<'scope, ()> {
    let events = events.clone();
    scope.spawn(move || {
        let mut observer = Told::new(number, events.clone());
        let total = run(&mut observer);
        // Whoever prints may have ended on an error of its own.
        let _ = events.send(Event::Finished(number, total));
    })
}

/// Takes clients until it is time to end. `take` returns the thread of the next one, or `None` when
/// nobody came for a while.
fn each_client<'scope>(
    options: &ServerOptions,
    signals: &Signals,
    mut take: impl FnMut(u32) -> io::Result<Option<ScopedJoinHandle<'scope, ()>>>,
) -> io::Result<()> {
    let end = options.time.map(|time| Instant::now() + time);
    let mut number = 0;
    loop {
        let is_over = signals.sender_done.load(Ordering::Acquire)
            || end.is_some_and(|end| Instant::now() >= end)
            || options.connections.is_some_and(|most| number >= most);
        if is_over {
            return Ok(());
        }
        let Some(stream) = take(number)? else {
            continue;
        };
        number += 1;
        if options.single_client {
            // What the stream came to has been told.
            let _ = stream.join();
        }
    }
}

fn announce(options: &ServerOptions, granted_bytes: u64, events: &mpsc::Sender<Event>) {
    let common = &options.common;
    let format = Format {
        style: common.style,
        letter: common.format,
    };
    let bind = common.bind.as_ref().map(|bind| bind.address.as_str());
    let banner = text::server_banner(
        format,
        &ServerBanner {
            protocol: protocol(common),
            port: common.port,
            bind,
            group: None,
            read_bytes: common.length_bytes as u64,
            mss: None,
            window: Window {
                actual_bytes: granted_bytes,
                requested_bytes: common.window_bytes.map(|bytes| bytes as u64),
            },
            enhanced_pid: common.enhanced.then(std::process::id),
        },
    );
    let _ = events.send(Event::Listening(banner));
}

fn print(told: &mpsc::Receiver<Event>, printer: &mut Printer) -> io::Result<()> {
    for event in told {
        match event {
            Event::Listening(banner) => printer.banner(&banner)?,
            Event::Connected(number, connected) => printer.connected(number, &connected)?,
            Event::Interval(number, record) => printer.interval(number, &record)?,
            Event::Finished(number, Ok(total)) => printer.finished(number, &total)?,
            Event::Finished(_, Err(Failed::Cancelled)) => {}
            Event::Finished(_, Err(Failed::Because(text))) => eprintln!("nicpoll iperf: {text}"),
        }
    }
    Ok(())
}

fn total(seconds: f64, bytes: u64, receipt: Option<Receipt>) -> Total {
    Total {
        interval: Interval {
            start_seconds: 0.0,
            end_seconds: seconds,
            bytes,
        },
        receipt,
        sent_datagrams: None,
        server_report: None,
    }
}

fn protocol(common: &Common) -> Protocol {
    if common.udp {
        Protocol::Udp
    } else {
        Protocol::Tcp
    }
}

fn socket_options(common: &Common) -> SocketOptions {
    SocketOptions {
        device: common.bind.as_ref().and_then(|bind| bind.device.clone()),
        type_of_service: common.tos,
        time_to_live: None,
    }
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
