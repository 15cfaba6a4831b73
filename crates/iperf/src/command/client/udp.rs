//! UDP streams of a client.

use std::sync::mpsc;
use std::thread::Scope;

use crate::udp::{self, Incoming, Listener, Outgoing};
use crate::wire::Directions;

use super::{Client, reverse};
use crate::command::ways::{Run, Ways};
use crate::command::{received, sent_datagrams};
use crate::events::{Event, Failed, StreamKey};
use crate::threads;

/// Starts all streams.
///
/// # Errors
/// When there cannot be any, because the server could not send back.
pub(super) fn start<'scope>(
    client: Client<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
) -> Result<(), Failed> {
    let listener = match client.options.common.stream.directions {
        Directions::Dual { port, .. } => Some(listen(client, port, events)?),
        _ => None,
    };
    let own = client.start(scope, events, move |key| connect(client, key));
    if let Some(mut listener) = listener {
        let events = events.clone();
        threads::start(scope, move || {
            reverse::take(client, own, &events, |patience| {
                let Some(accepted) = listener.accept(client.signals, patience)? else {
                    return Ok(None);
                };
                let incoming = accepted.open()?.incoming;
                Ok(incoming.map(|incoming| receive(client, incoming)))
            });
        })?;
    }
    Ok(())
}

fn connect<'a>(client: Client<'a>, key: StreamKey) -> Result<Ways<'a>, Failed> {
    let config = client.config()?;
    let streams = udp::connect(&config)?;
    let incoming = streams.incoming.map(|incoming| receive(client, incoming));
    let outgoing = streams.outgoing.map(|outgoing| send(client, outgoing));
    Ok(Ways {
        incoming: incoming.map(|run| (key.reversed(), run)),
        outgoing: outgoing.map(|run| (key, run)),
        back: None,
    })
}

fn send(client: Client<'_>, outgoing: Outgoing) -> Run<'_> {
    let is_answered = client.options.common.stream.directions != Directions::FullDuplex;
    Box::new(move |told| {
        let report = outgoing.run(client.signals, told)?;
        let common = &client.options.common;
        Ok(sent_datagrams(common, told.number(), is_answered, report))
    })
}

/// Receives a stream of the server's.
fn receive(client: Client<'_>, incoming: Incoming) -> Run<'_> {
    Box::new(move |told| Ok(received(incoming.run(client.signals, told)?)))
}

/// Begins to listen for the server.
fn listen(client: Client<'_>, port: u16, events: &mpsc::Sender<Event>) -> Result<Listener, Failed> {
    let config = client.listener_config(port)?;
    let listener = Listener::bind(&config)?;
    reverse::announce(client, port, listener.receive_buffer(), events);
    Ok(listener)
}
