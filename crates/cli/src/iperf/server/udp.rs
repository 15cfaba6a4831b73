//! UDP streams of a server.

use std::io;
use std::sync::mpsc;
use std::thread::Scope;

use nicpoll_traffic::iperf::text::Receipt;
use nicpoll_traffic::iperf::udp;

use super::{IDLE_TIMEOUT, PATIENCE, Server, announce};
use crate::iperf::events::{Event, Failed, StreamKey, Told};
use crate::iperf::printer::Total;

/// Serves clients until it is time to end.
pub(super) fn serve<'scope>(
    server: Server<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
) -> io::Result<()> {
    let common = &server.options.common;
    let config = udp::ListenerConfig {
        takes_trains: !common.no_batch,
        interval: common.interval,
        options: server.socket_options(),
        ..udp::ListenerConfig::new(udp::ServerConfig {
            bind: server.bind,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: IDLE_TIMEOUT,
        })
    };
    let mut listener = udp::Listener::bind(&config).map_err(io::Error::other)?;
    announce(common, listener.receive_buffer().granted_bytes, events);
    let mut number = 0;
    server.each_client(|| {
        let Some(session) = listener
            .accept(server.signals, PATIENCE)
            .map_err(io::Error::other)?
        else {
            return Ok(None);
        };
        let key = StreamKey::new(number);
        number += 1;
        let events = events.clone();
        Ok(Some(scope.spawn(move || {
            Told::run(key, &events, |told| {
                let report = session
                    .run(server.signals, told)
                    .map_err(|error| match error {
                        udp::ServerError::Cancelled => Failed::Cancelled,
                        error => Failed::because(&error),
                    })?;
                let receipt = Receipt {
                    jitter_ms: 1e3 * report.jitter_seconds.unwrap_or(0.0),
                    lost: report.lost as i64,
                    total: report.datagrams_expected,
                    out_of_order: report.out_of_order,
                };
                let seconds = report.seconds_to_fin.unwrap_or(report.seconds);
                Ok(Total {
                    receipt: Some(receipt),
                    ..Total::of(seconds, report.bytes_received)
                })
            });
        })))
    })
}
