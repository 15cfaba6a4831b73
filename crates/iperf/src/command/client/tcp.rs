//! TCP streams of a client.

use std::io;
use std::sync::mpsc;
use std::thread::Scope;

use crate::options::Directions;
use crate::tcp::{self, Incoming, ReverseListener};
use crate::text::{self, Protocol};

use super::{Client, reverse};
use crate::command::sent;
use crate::command::ways::{Run, Ways};
use crate::events::{Event, Failed, StreamKey};
use crate::total::Total;

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
        Directions::Dual { port, .. } => Some(listen(client, port, events)?),
        _ => None,
    };
    let own = client.start(scope, events, move |key| connect(client, key));
    if let Some(listener) = listener {
        let events = events.clone();
        scope.spawn(move || {
            reverse::take(client, own, &events, |patience| {
                let incoming = listener.accept(client.signals, patience)?;
                Ok(incoming.map(|incoming| receive(client, incoming)))
            });
        });
    }
    Ok(())
}

fn connect<'a>(client: Client<'a>, key: StreamKey) -> Result<Ways<'a>, Failed> {
    let Client { options, peer, .. } = client;
    let common = &options.common;
    let config = tcp::ClientConfig {
        directions: options.directions,
        rate: options.rate,
        input: options.input.clone(),
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
        ..tcp::ClientConfig::new(peer, options.amount)
    };
    let streams = tcp::connect(&config, client.signals).map_err(|error| match error {
        tcp::Error::Connect { source, .. } => {
            let reason = plain(&source);
            Failed::Because(text::connect_failed(common.style, Protocol::Tcp, &reason))
        }
        error => error.into(),
    })?;
    let incoming = streams.incoming.map(|incoming| receive(client, incoming));
    let outgoing = streams.outgoing.map(|outgoing| -> Run {
        Box::new(move |told| Ok(sent(common.style, &outgoing.run(client.signals, told)?)))
    });
    Ok(Ways {
        incoming: incoming.map(|run| (key.reversed(), run)),
        outgoing: outgoing.map(|run| (key, run)),
        back: None,
    })
}

/// Receives a stream of the server's.
fn receive(client: Client<'_>, incoming: Incoming) -> Run<'_> {
    Box::new(move |told| {
        let report = incoming.run(client.signals, told)?;
        Ok(Total::received(&report))
    })
}

/// Begins to listen for the server.
fn listen(
    client: Client<'_>,
    port: u16,
    events: &mpsc::Sender<Event>,
) -> Result<ReverseListener, Failed> {
    let common = &client.options.common;
    let config = tcp::ListenerConfig {
        read_bytes: common.length_bytes,
        waits_for_full_reads: !common.no_batch,
        interval: common.interval,
        options: client.socket_options(),
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        ..tcp::ListenerConfig::new(tcp::ServerConfig {
            bind: reverse::address(client, port)?,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: reverse::IDLE_TIMEOUT,
        })
    };
    let listener = ReverseListener::bind(&config, client.peer)?;
    reverse::announce(client, port, listener.receive_buffer(), events);
    Ok(listener)
}

/// The kernel's words alone, as the original prints them.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    String::from(text.split(" (os error").next().unwrap_or(&text))
}
