//! TCP streams of a client.

use std::io;
use std::sync::mpsc;
use std::thread::{self, Scope};

use nicpoll_traffic::Signals;
use nicpoll_traffic::iperf::options::{self, Directions};
use nicpoll_traffic::iperf::tcp::{self, Incoming, Outgoing, Streams};
use nicpoll_traffic::iperf::text::{self, Protocol};

use super::{Client, reverse};
use crate::iperf::events::{Event, Failed, StreamKey, Told};
use crate::iperf::printer::Total;
use crate::iperf::sent;

/// Starts all streams.
///
/// # Errors
/// When there cannot be any, because the server could not connect back.
pub(super) fn start<'scope>(
    client: Client<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
) -> Result<(), Failed> {
    let listener = match client.options.directions {
        Directions::Dual { port, .. } => Some(reverse::listen(client, port, events)?),
        _ => None,
    };
    let own = (0..client.options.streams).map(|number| {
        let events = events.clone();
        scope.spawn(move || run(client, number, &events))
    });
    let own = own.collect();
    if let Some(listener) = listener {
        let events = events.clone();
        scope.spawn(move || reverse::take(client, &listener, own, &events));
    }
    Ok(())
}

/// Runs what goes over one connection of the client's own; `false` when there was none.
fn run(client: Client<'_>, number: u32, events: &mpsc::Sender<Event>) -> bool {
    let key = StreamKey::new(number);
    let streams = match connect(client) {
        Ok(streams) => streams,
        Err(failed) => {
            Told::run(key, events, |_| Err(failed));
            return false;
        }
    };
    thread::scope(|scope| {
        if let Some(incoming) = streams.incoming {
            scope.spawn(move || {
                Told::run(key.reversed(), events, |told| {
                    receive(incoming, client.signals, told)
                });
            });
        }
        if let Some(outgoing) = streams.outgoing {
            Told::run(key, events, |told| send(client, outgoing, told));
        }
    });
    true
}

fn connect(client: Client<'_>) -> Result<Streams, Failed> {
    let Client { options, peer, .. } = client;
    let common = &options.common;
    let config = tcp::ClientConfig {
        directions: options.directions,
        rate_bps: match options.rate {
            Some(options::Rate::BitsPerSecond(rate)) => Some(rate),
            _ => None,
        },
        write_bytes: common.length_bytes,
        waits_for_full_reads: !common.no_batch,
        send_buffer_bytes: common.window_bytes,
        interval: common.interval,
        bind: client.local_address()?,
        options: client.socket_options(),
        no_delay: common.nodelay,
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        congestion_control: common.congestion.clone(),
        threads: options.streams,
        has_header: !options.compatibility,
        ..tcp::ClientConfig::new(peer, client.amount())
    };
    tcp::connect(&config, client.signals).map_err(|error| match error {
        tcp::Error::Connect { source, .. } => {
            let reason = plain(&source);
            Failed::Because(text::connect_failed(common.style, Protocol::Tcp, &reason))
        }
        error => error.into(),
    })
}

fn send(client: Client<'_>, outgoing: Outgoing, told: &mut Told) -> Result<Total, Failed> {
    let report = outgoing.run(client.signals, told)?;
    Ok(sent(client.options.common.style, &report))
}

/// Receives a stream of the server's.
pub(super) fn receive(
    incoming: Incoming,
    signals: &Signals,
    told: &mut Told,
) -> Result<Total, Failed> {
    let report = incoming.run(signals, told)?;
    Ok(Total::of(report.seconds, report.bytes_received))
}

/// The kernel's words alone, as the original prints them.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    String::from(text.split(" (os error").next().unwrap_or(&text))
}
