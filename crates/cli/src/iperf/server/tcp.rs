//! TCP streams of a server.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Scope};

use nicpoll_traffic::iperf::tcp::{self, Accepted, ConnectBack, Incoming, Outgoing};

use super::{IDLE_TIMEOUT, PATIENCE, Server, announce};
use crate::iperf::events::{Event, Failed, StreamKey, Told};
use crate::iperf::printer::Total;
use crate::iperf::{sent, settings};

/// Serves clients until it is time to end.
pub(super) fn serve<'scope>(
    server: Server<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
) -> io::Result<()> {
    let common = &server.options.common;
    let config = tcp::ListenerConfig {
        read_bytes: common.length_bytes,
        waits_for_full_reads: !common.no_batch,
        interval: common.interval,
        options: server.socket_options(),
        no_delay: common.nodelay,
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        congestion_control: common.congestion.clone(),
        send_time_max: server.options.time.unwrap_or(tcp::SEND_TIME_MAX),
        ..tcp::ListenerConfig::new(tcp::ServerConfig {
            bind: server.bind,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: IDLE_TIMEOUT,
        })
    };
    let listener = tcp::Listener::bind(&config).map_err(io::Error::other)?;
    announce(common, listener.receive_buffer().granted_bytes, events);
    let numbers = Numbers::default();
    server.each_client(|| {
        let accepted = listener
            .accept(server.signals, PATIENCE)
            .map_err(io::Error::other)?;
        Ok(accepted.map(|accepted| {
            let connection = Connection {
                server,
                numbers: numbers.clone(),
                events: events.clone(),
            };
            scope.spawn(move || connection.run(accepted))
        }))
    })
}

/// Numbers sockets from 0.
#[derive(Clone, Default)]
struct Numbers(Arc<AtomicU32>);

impl Numbers {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A client's connection, and the one back to it if it asks for that.
struct Connection<'a> {
    server: Server<'a>,
    numbers: Numbers,
    events: mpsc::Sender<Event>,
}

impl Connection<'_> {
    fn run(&self, accepted: Accepted) {
        let key = StreamKey::new(self.numbers.next());
        let streams = match accepted.open(self.server.signals) {
            Ok(streams) => streams,
            Err(error) => return Told::run(key, &self.events, |_| Err(error.into())),
        };
        let is_both_ways = streams.incoming.is_some();
        let (at_once, later) = match streams.back {
            Some(back) if back.is_at_once() => (Some(back), None),
            back => (None, back),
        };
        thread::scope(|scope| {
            if let Some(outgoing) = streams.outgoing {
                let key = if is_both_ways { key.reversed() } else { key };
                scope.spawn(move || {
                    Told::run(key, &self.events, |told| self.send(outgoing, told));
                });
            }
            if let Some(back) = at_once {
                scope.spawn(|| self.connect_back(back));
            }
            if let Some(incoming) = streams.incoming {
                Told::run(key, &self.events, |told| self.receive(incoming, told));
            }
        });
        if let Some(back) = later {
            self.connect_back(back);
        }
    }

    fn receive(&self, incoming: Incoming, told: &mut Told) -> Result<Total, Failed> {
        let report = incoming.run(self.server.signals, told)?;
        Ok(Total::of(report.seconds, report.bytes_received))
    }

    fn send(&self, outgoing: Outgoing, told: &mut Told) -> Result<Total, Failed> {
        let report = outgoing.run(self.server.signals, told)?;
        Ok(sent(self.server.options.common.style, &report))
    }

    fn connect_back(&self, back: ConnectBack) {
        let key = StreamKey {
            is_later: !back.is_at_once(),
            ..StreamKey::new(self.numbers.next()).reversed()
        };
        Told::run(key, &self.events, |told| {
            let write_bytes = back.write_bytes();
            let outgoing = back.connect(self.server.signals)?;
            let common = &self.server.options.common;
            let connected = outgoing.connected();
            told.settings(settings::of_way_back(common, connected, write_bytes));
            self.send(outgoing, told)
        });
    }
}
