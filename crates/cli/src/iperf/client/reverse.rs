//! What the server sends over connections of its own (-d and -r): one for each of the client's.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_traffic::iperf::options::Directions;
use nicpoll_traffic::iperf::tcp::{self, ReverseListener};
use nicpoll_traffic::iperf::text;

use super::{Client, tcp as own_socket};
use crate::iperf::events::{Event, Failed, StreamKey, Told};
use crate::iperf::settings;

/// How long the server may take to connect once the client's own streams have ended: 2.1.8 waits for
/// this much longer than the time of the test, and does not know what to wait for with -n.
const PATIENCE_DUAL: Duration = Duration::from_secs(2);
/// The same with -r.
const PATIENCE_TRADE_OFF: Duration = Duration::from_secs(3);
/// How often the client's own streams are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that sends nothing for this long is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Begins to listen for the server, before it can be asked to connect.
pub(super) fn listen(
    client: Client<'_>,
    port: u16,
    events: &mpsc::Sender<Event>,
) -> Result<ReverseListener, Failed> {
    let common = &client.options.common;
    let any = match client.peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
    };
    let mut bind = client.local_address()?.unwrap_or(any);
    bind.set_port(port);
    let config = tcp::ListenerConfig {
        read_bytes: common.length_bytes,
        waits_for_full_reads: !common.no_batch,
        interval: common.interval,
        options: client.socket_options(),
        max_segment_bytes: common.mss.and_then(|mss| mss.try_into().ok()),
        ..tcp::ListenerConfig::new(tcp::ServerConfig {
            bind,
            receive_buffer_bytes: common.window_bytes,
            idle_timeout: IDLE_TIMEOUT,
        })
    };
    let listener = ReverseListener::bind(&config, client.peer)?;
    let granted = listener.receive_buffer().granted_bytes;
    // Whoever prints outlives every stream.
    let _ = events.send(Event::Settings(settings::of_listener(
        common, port, granted,
    )));
    Ok(listener)
}

/// Takes as many connections as the client has made, each on a thread of its own, until they would
/// have to be there. `own` are the client's connections, which end with whether there was one.
pub(super) fn take(
    client: Client<'_>,
    listener: &ReverseListener,
    own: Vec<ScopedJoinHandle<'_, bool>>,
    events: &mpsc::Sender<Event>,
) {
    let streams = client.options.streams;
    let is_later = matches!(
        client.options.directions,
        Directions::Dual {
            is_at_once: false,
            ..
        }
    );
    let patience = if is_later {
        PATIENCE_TRADE_OFF
    } else {
        PATIENCE_DUAL
    };
    let mut own = Some(own);
    let mut own_ended = None;
    // Those that were connected at most, once that is known.
    let mut expected = streams;
    thread::scope(|scope| {
        let mut taken = 0;
        while taken < expected {
            let key = StreamKey {
                is_later,
                ..StreamKey::new(streams + taken)
            };
            match listener.accept(client.signals, LOOK_EVERY) {
                Ok(Some(incoming)) => {
                    taken += 1;
                    scope.spawn(move || {
                        Told::run(key, events, |told| {
                            own_socket::receive(incoming, client.signals, told)
                        });
                    });
                    continue;
                }
                Ok(None) => {}
                Err(error) => return Told::run(key, events, |_| Err(error.into())),
            }
            if client.signals.sender_done.load(Ordering::Acquire) {
                return;
            }
            if let Some(ended) = own.take_if(|own| own.iter().all(ScopedJoinHandle::is_finished)) {
                let made = ended.into_iter().filter_map(|own| own.join().ok());
                expected = made.filter(|is_made| *is_made).count() as u32;
                own_ended = Some(Instant::now());
            }
            if taken < expected && own_ended.is_some_and(|since| since.elapsed() >= patience) {
                let missing = Failed::Because(text::MISSING_REVERSE.to_owned());
                return Told::run(key, events, |_| Err(missing));
            }
        }
    });
}
