//! The sending end: as many streams as were asked for, each on a thread of its own.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use nicpoll_traffic::Signals;
use nicpoll_traffic::iperf::options::{self, ClientOptions};
use nicpoll_traffic::iperf::text::{
    self, ClientBanner, Format, Interval, Mss, Protocol, Style, Window,
};
use nicpoll_traffic::iperf::{Amount, Rate, SocketOptions, tcp, udp};

use super::events::{Event, Failed, Told};
use super::printer::{Manner, Printer, Total};
use super::{banner_time, manner, open_output};

/// Runs a client. Returns the exit status: 1 when any stream failed.
pub fn run(options: &ClientOptions, signals: &Signals) -> io::Result<u8> {
    let common = &options.common;
    let protocol = if common.udp {
        Protocol::Udp
    } else {
        Protocol::Tcp
    };
    let peer = match resolve(&options.host, common.port, common.ipv6) {
        Ok(peer) => peer,
        Err(error) => {
            eprintln!("nicpoll iperf: cannot find {}: {error}", options.host);
            return Ok(1);
        }
    };
    let manner = Manner {
        is_sender: true,
        ..manner(common)
    };
    let mut printer = Printer::new(manner, open_output(common)?);
    let (events, told) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..options.streams {
            let events = events.clone();
            scope.spawn(move || {
                let mut observer = Told::new(number, events.clone());
                let total = send(options, peer, signals, &mut observer);
                // The printer outlives every stream.
                let _ = events.send(Event::Finished(number, total));
            });
        }
        drop(events);
        print(options, &told, &mut printer, protocol)
    })
}

fn print(
    options: &ClientOptions,
    told: &mpsc::Receiver<Event>,
    printer: &mut Printer,
    protocol: Protocol,
) -> io::Result<u8> {
    let mut has_banner = false;
    let mut status = 0;
    for event in told {
        match event {
            Event::Listening(banner) => printer.banner(&banner)?,
            Event::Connected(number, connected) => {
                if !has_banner {
                    let mss = connected.tcp.map(|tcp| tcp.segment_bytes);
                    let granted = connected.buffer.granted_bytes;
                    printer.banner(&banner(options, protocol, granted, mss))?;
                    has_banner = true;
                }
                printer.connected(number, &connected)?;
            }
            Event::Interval(number, record) => printer.interval(number, &record)?,
            Event::Finished(number, Ok(total)) => printer.finished(number, &total)?,
            Event::Finished(_, Err(Failed::Cancelled)) => {}
            Event::Finished(_, Err(Failed::Because(text))) => {
                eprintln!("{text}");
                status = 1;
            }
        }
    }
    Ok(status)
}

fn banner(
    options: &ClientOptions,
    protocol: Protocol,
    granted_bytes: u64,
    mss: Option<u32>,
) -> String {
    let common = &options.common;
    let format = Format {
        style: common.style,
        letter: common.format,
    };
    let bind = common.bind.as_ref().map(|bind| bind.address.as_str());
    text::client_banner(
        format,
        &ClientBanner {
            protocol,
            host: &options.host,
            port: common.port,
            bind,
            write_bytes: common.length_bytes as u64,
            gap_micros: banner_time(options.rate, common.length_bytes),
            multicast_ttl: None,
            mss: mss.filter(|_| common.print_mss).map(Mss::Current),
            window: Window {
                actual_bytes: granted_bytes,
                requested_bytes: common.window_bytes.map(|bytes| bytes as u64),
            },
            enhanced: None,
        },
    )
}

fn send(
    options: &ClientOptions,
    peer: SocketAddr,
    signals: &Signals,
    observer: &mut Told,
) -> Result<Total, Failed> {
    if options.common.udp {
        send_udp(options, peer, signals, observer)
    } else {
        send_tcp(options, peer, signals, observer)
    }
}

fn send_tcp(
    options: &ClientOptions,
    peer: SocketAddr,
    signals: &Signals,
    observer: &mut Told,
) -> Result<Total, Failed> {
    let common = &options.common;
    let config = tcp::ClientConfig {
        rate_bps: match options.rate {
            Some(options::Rate::BitsPerSecond(rate)) => Some(rate),
            _ => None,
        },
        write_bytes: common.length_bytes,
        send_buffer_bytes: common.window_bytes,
        interval: common.interval,
        bind: local_address(options, peer)?,
        options: socket_options(options),
        no_delay: common.nodelay,
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        congestion_control: common.congestion.clone(),
        threads: options.streams,
        has_header: !options.compatibility,
        ..tcp::ClientConfig::new(peer, amount(options.amount))
    };
    let report = tcp::run_client(&config, signals, observer).map_err(|error| match &error {
        tcp::ClientError::Cancelled => Failed::Cancelled,
        tcp::ClientError::Connect { source, .. } => {
            let reason = plain(source);
            Failed::Because(text::connect_failed(common.style, Protocol::Tcp, &reason))
        }
        _ => Failed::Because(with_cause(&error)),
    })?;
    // 2.1 tells the time until the server had read everything, 2.0 that of the writing.
    let seconds = match common.style {
        Style::V2_1 => report.seconds_to_close.unwrap_or(report.seconds),
        Style::V2_0 => report.seconds,
    };
    Ok(Total {
        interval: whole(seconds, report.bytes_sent),
        receipt: None,
        sent_datagrams: None,
        server_report: None,
    })
}

fn send_udp(
    options: &ClientOptions,
    peer: SocketAddr,
    signals: &Signals,
    observer: &mut Told,
) -> Result<Total, Failed> {
    let common = &options.common;
    let config = udp::ClientConfig {
        rate: options.rate.map(rate),
        datagrams_per_call: if common.no_batch { 1 } else { usize::MAX },
        send_buffer_bytes: common.window_bytes,
        interval: common.interval,
        bind: local_address(options, peer)?,
        options: socket_options(options),
        threads: options.streams,
        has_header: !options.compatibility,
        ..udp::ClientConfig::new(peer, common.length_bytes, amount(options.amount))
    };
    let report = udp::run_client(&config, signals, observer).map_err(|error| match &error {
        udp::ClientError::Cancelled => Failed::Cancelled,
        _ => Failed::Because(with_cause(&error)),
    })?;
    if report.fin_acks_received == 0 {
        let tries = report.fins_sent.try_into().unwrap_or(u32::MAX);
        eprintln!(
            "{}",
            super::no_acknowledgement(common, observer.number(), tries)
        );
    }
    Ok(Total {
        interval: whole(report.seconds, report.bytes_sent),
        receipt: None,
        sent_datagrams: Some(report.datagrams_sent),
        server_report: report.server_report,
    })
}

fn amount(amount: options::Amount) -> Amount {
    match amount {
        options::Amount::Time(time) => Amount::Time(time),
        options::Amount::Bytes(bytes) => Amount::Bytes(bytes),
    }
}

fn rate(rate: options::Rate) -> Rate {
    match rate {
        options::Rate::BitsPerSecond(rate) => Rate::BitsPerSecond(rate),
        options::Rate::PacketsPerSecond(rate) => Rate::PacketsPerSecond(rate.round() as u64),
    }
}

fn socket_options(options: &ClientOptions) -> SocketOptions {
    SocketOptions {
        device: options.device.clone(),
        type_of_service: options.common.tos,
        time_to_live: options.ttl,
    }
}

fn whole(seconds: f64, bytes: u64) -> Interval {
    Interval {
        start_seconds: 0.0,
        end_seconds: seconds,
        bytes,
    }
}

fn local_address(options: &ClientOptions, peer: SocketAddr) -> Result<Option<SocketAddr>, Failed> {
    let Some(bind) = &options.common.bind else {
        return Ok(None);
    };
    let port = bind.port.unwrap_or(0);
    resolve(&bind.address, port, peer.is_ipv6())
        .map(Some)
        .map_err(|error| {
            let address = &bind.address;
            Failed::Because(format!(
                "nicpoll iperf: cannot find the local address {address}: {error}"
            ))
        })
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

/// The kernel's words alone, as the original prints them.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    String::from(text.split(" (os error").next().unwrap_or(&text))
}

/// An error with what the kernel said.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("nicpoll iperf: {error} ({source})"),
        None => format!("nicpoll iperf: {error}"),
    }
}
