//! TCP streams of a client.

use std::sync::mpsc;
use std::thread::Scope;

use nicpoll_model::Protocol;

use crate::tcp::{self, End, Incoming, ReverseListener};
use crate::text;
use crate::wire::Directions;

use super::{Client, reverse};
use crate::command::ways::{Run, Ways};
use crate::command::{kernel_words, sent};
use crate::events::{Event, Failed, StreamKey};
use crate::threads;
use crate::total::{LEFT_WELL, Total};

/// Starts all streams.
///
/// # Errors
/// When there cannot be any, because the server could not connect back.
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
    if let Some(listener) = listener {
        let events = events.clone();
        threads::start(scope, move || {
            reverse::take(client, own, &events, |patience| {
                let incoming = listener.accept(client.signals, patience)?;
                Ok(incoming.map(|incoming| receive(client, incoming)))
            });
        })?;
    }
    Ok(())
}

fn connect<'a>(client: Client<'a>, key: StreamKey) -> Result<Ways<'a>, Failed> {
    let config = client.config(key)?;
    let style = client.options.common.style;
    let streams = tcp::connect(&config, client.signals).map_err(|error| match error {
        tcp::Error::Connect { source, .. } => {
            let reason = kernel_words(&source);
            Failed::Because(text::connect_failed(style, Protocol::Tcp, &reason))
        }
        error => error.into(),
    })?;
    let incoming = streams.incoming.map(|incoming| receive(client, incoming));
    let outgoing = streams.outgoing.map(|outgoing| -> Run {
        let is_answered = client.options.common.stream.directions != Directions::FullDuplex;
        client.judged(move |told| {
            let report = outgoing.run(client.signals, told)?;
            let is_unanswered = is_answered && report.seconds_to_close.is_none();
            let why = "nicpoll iperf: the server did not close the connection in time; what arrived is not \
                       known";
            Ok(Total {
                problem: is_unanswered.then(|| String::from(why)),
                ..sent(style, &report)
            })
        })
    });
    Ok(Ways {
        incoming: incoming.map(|run| (key.reversed(), run)),
        outgoing: outgoing.map(|run| (key, run)),
        back: None,
    })
}

/// Receives a stream of the server's.
fn receive(client: Client<'_>, incoming: Incoming) -> Run<'_> {
    client.judged(move |told| {
        let report = incoming.run(client.signals, told)?;
        let is_ended = report.end == End::Closed;
        Ok(Total {
            left: is_ended.then_some(LEFT_WELL),
            ..Total::received(&report)
        })
    })
}

/// Begins to listen for the server.
fn listen(
    client: Client<'_>,
    port: u16,
    events: &mpsc::Sender<Event>,
) -> Result<ReverseListener, Failed> {
    let config = client.listener_config(port)?;
    let listener = ReverseListener::bind(&config, client.peer)?;
    reverse::announce(client, port, listener.receive_buffer(), events);
    Ok(listener)
}
