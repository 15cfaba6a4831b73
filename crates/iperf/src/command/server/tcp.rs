//! TCP streams of a server.

use std::io;
use std::sync::mpsc;
use std::thread::Scope;

use nicpoll_sys::stdio::Daemon;
use nicpoll_traffic::Notices;

use super::ports::Ports;
use super::{Running, Server, announce, settle, tell_of};
use crate::command::ways::{Numbers, Run, Ways};
use crate::command::{sent, settings};
use crate::config::ListenerConfig;
use crate::events::{Event, StreamKey, Told};
use crate::tcp::{self, Outgoing, Streams};
use crate::total::Total;

/// Serves clients until it is time to end.
pub(super) fn serve<'scope>(
    server: Server<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
    daemon: Option<Daemon>,
) -> io::Result<()> {
    let common = &server.options.common;
    let config = server.listener_config();
    let mut ports = Ports::bind(
        &server,
        |_| tcp::Listener::bind(&config).map_err(io::Error::other),
        |first, bind| {
            let config = ListenerConfig {
                bind,
                ..config.clone()
            };
            first.beside(&config).map_err(io::Error::other)
        },
    )?;
    settle(daemon, common)?;
    let buffer = ports.first().receive_buffer();
    announce(common, buffer.granted_bytes, events);
    let numbers = Numbers::default();
    let mut notices = Notices::default();
    let served = server.each_client(|patience| {
        let accepted = ports.take(patience, |listener, patience| {
            let accepted = listener.accept(server.signals, patience);
            tell_of(notices.due(listener.refusal()));
            accepted.map_err(io::Error::other)
        });
        let Some(accepted) = accepted? else {
            return Ok(None);
        };
        let (peer, test) = (accepted.peer().into(), accepted.test());
        let (numbers, events) = (numbers.clone(), events.clone());
        let run = move || {
            let key = numbers.next();
            match accepted.open(server.signals) {
                Ok(streams) => ways(server, key, &numbers, streams).run(&events),
                Err(error) => Told::run(key, &events, |_| Err(error.into())),
            }
        };
        Ok(Running::start(scope, peer, test, run, |refusal| {
            ports.first().refuse(refusal)
        }))
    });
    ports.first().let_go_of_strangers();
    served
}

fn ways<'a>(server: Server<'a>, key: StreamKey, numbers: &Numbers, streams: Streams) -> Ways<'a> {
    let common = &server.options.common;
    let is_both_ways = streams.incoming.is_some();
    let incoming = streams.incoming.map(|incoming| -> (StreamKey, Run) {
        let run = move |told: &mut Told| {
            let report = incoming.run(server.signals, told)?;
            Ok(Total::received(&report))
        };
        (key, Box::new(run))
    });
    let outgoing = streams.outgoing.map(|outgoing| -> (StreamKey, Run) {
        let key = if is_both_ways { key.reversed() } else { key };
        (key, send(server, outgoing))
    });
    let back = streams.back.map(|back| -> (StreamKey, Run) {
        let key = numbers.next_back(back.is_at_once());
        let run = move |told: &mut Told| {
            let write_bytes = back.write_bytes();
            let outgoing = back.connect(server.signals)?;
            let connected = outgoing.connected();
            told.settings(settings::of_way_back(common, connected, write_bytes, None));
            send(server, outgoing)(told)
        };
        (key, Box::new(run))
    });
    Ways {
        incoming,
        outgoing,
        back,
    }
}

fn send(server: Server<'_>, outgoing: Outgoing) -> Run<'_> {
    let style = server.options.common.style;
    Box::new(move |told| Ok(sent(style, &outgoing.run(server.signals, told)?)))
}
