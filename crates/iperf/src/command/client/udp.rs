//! UDP streams of a client.

use std::sync::mpsc;
use std::thread::Scope;

use crate::total::{LEFT_WELL, Total};
use crate::udp::{self, End, Incoming, Listener, Outgoing};
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
    let config = client.config(key)?;
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
    client.judged(move |told| {
        let report = outgoing.run(client.signals, told)?;
        // Nobody answers for a group.
        let is_unanswered =
            is_answered && report.fin_acks_received == 0 && !client.peer.ip().is_multicast();
        let closed_after = report.closed_port_after;
        let common = &client.options.common;
        let mut total = sent_datagrams(common, told.number(), is_answered, report);
        if is_unanswered {
            let why = match closed_after {
                Some(_) => "nicpoll iperf: the server's port is closed; see whether it runs",
                None => {
                    "nicpoll iperf: the server did not answer the end of the stream; what arrived is not \
                     known"
                }
            };
            total.flowed_seconds = closed_after;
            total.problem = Some(String::from(why));
        }
        Ok(total)
    })
}

/// Receives a stream of the server's.
fn receive(client: Client<'_>, incoming: Incoming) -> Run<'_> {
    client.judged(move |told| {
        let report = incoming.run(client.signals, told)?;
        let is_ended = report.end == End::Fin;
        Ok(Total {
            left: is_ended.then_some(LEFT_WELL),
            ..received(report)
        })
    })
}

/// Begins to listen for the server.
fn listen(client: Client<'_>, port: u16, events: &mpsc::Sender<Event>) -> Result<Listener, Failed> {
    let config = client.listener_config(port)?;
    let listener = Listener::bind(&config)?;
    reverse::announce(client, port, listener.receive_buffer(), events);
    Ok(listener)
}
