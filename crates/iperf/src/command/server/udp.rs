//! UDP streams of a server.

use std::io;
use std::sync::mpsc;
use std::thread::Scope;

use nicpoll_sys::stdio::Daemon;
use nicpoll_sys::tell;
use nicpoll_traffic::Notices;

use super::ports::Ports;
use super::{Running, Server, announce, settle, tell_of};
use crate::command::ways::{Numbers, Run, Ways};
use crate::command::{received, sent_datagrams, settings};
use crate::config::ListenerConfig;
use crate::events::{Event, StreamKey, Told};
use crate::udp::{self, Outgoing, Streams};

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
        |_| udp::Listener::bind(&config).map_err(io::Error::other),
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
    let mut has_warned = false;
    let mut notices = Notices::default();
    let served = server.each_client(|patience| {
        let session = ports.take(patience, |listener, patience| {
            let session = listener.accept(server.signals, patience);
            tell_of(notices.due(listener.refusal()));
            if let (Some(client), false) = (listener.refused(), has_warned) {
                has_warned = true;
                let client = client.ip().to_canonical();
                tell!(
                    "WARNING: {client} asks for datagrams, which anybody can ask for in its name; to \
                     send them start the server with --allow {client}"
                );
            }
            session.map_err(io::Error::other)
        });
        let Some(session) = session? else {
            return Ok(None);
        };
        let (peer, test) = (session.peer().into(), session.test());
        let (key, numbers, events) = (numbers.next(), numbers.clone(), events.clone());
        let run = move || match session.open() {
            Ok(streams) => ways(server, key, &numbers, streams).run(&events),
            Err(error) => Told::run(key, &events, |_| Err(error.into())),
        };
        Ok(Running::start(scope, peer, test, run, |refusal| ports.first().refuse(refusal)))
    });
    ports.first().let_go_of_strangers();
    served
}

fn ways<'a>(server: Server<'a>, key: StreamKey, numbers: &Numbers, streams: Streams) -> Ways<'a> {
    let common = &server.options.common;
    let is_both_ways = streams.incoming.is_some();
    let incoming = streams.incoming.map(|incoming| -> (StreamKey, Run) {
        let run = move |told: &mut Told| Ok(received(incoming.run(server.signals, told)?));
        (key, Box::new(run))
    });
    let outgoing = streams.outgoing.map(|outgoing| -> (StreamKey, Run) {
        let key = if is_both_ways { key.reversed() } else { key };
        (key, send(server, outgoing, false))
    });
    let back = streams.back.map(|back| -> (StreamKey, Run) {
        let key = numbers.next_back(back.is_at_once());
        let run = move |told: &mut Told| {
            let (payload_bytes, rate) = (back.payload_bytes(), back.rate());
            let outgoing = back.connect()?;
            let connected = outgoing.connected();
            told.settings(settings::of_way_back(
                common,
                connected,
                payload_bytes,
                rate,
            ));
            send(server, outgoing, true)(told)
        };
        (key, Box::new(run))
    });
    Ways {
        incoming,
        outgoing,
        back,
    }
}

fn send(server: Server<'_>, outgoing: Outgoing, is_answered: bool) -> Run<'_> {
    Box::new(move |told| {
        let report = outgoing.run(server.signals, told)?;
        let common = &server.options.common;
        Ok(sent_datagrams(common, told.number(), is_answered, report))
    })
}
