//! What the server sends over sockets of its own (-d and -r): a stream for each of the client's.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nicpoll_traffic::SocketBuffer;

use super::Client;
use crate::command::settings;
use crate::command::ways::Run;
use crate::events::{Event, Failed, StreamKey, Told};
use crate::text;
use crate::threads;
use crate::wire::Directions;

/// A server that sends nothing for this long is given up.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server may take to connect once the client's own streams have ended: 2.1.8 waits for
/// this much longer than the time of the test, and does not know what to wait for with -n.
const PATIENCE_DUAL: Duration = Duration::from_secs(2);
/// The same with -r.
const PATIENCE_TRADE_OFF: Duration = Duration::from_secs(3);
/// How often the client's own streams are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where to listen for the server.
pub(super) fn address(client: Client<'_>, port: u16) -> Result<SocketAddr, Failed> {
    let any = match client.peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
    };
    let mut address = client.local_address()?.unwrap_or(any);
    address.set_port(port);
    Ok(address)
}

/// Tells that the client listens.
pub(super) fn announce(
    client: Client<'_>,
    port: u16,
    buffer: SocketBuffer,
    events: &mpsc::Sender<Event>,
) {
    let settings = settings::of_listener(&client.options.common, port, None, buffer.granted_bytes);
    // Whoever prints outlives every stream.
    let _ = events.send(Event::Settings(settings));
}

/// Takes as many streams as the client has of its own, each on a thread of its own, until they would
/// have to be there. `own` are the threads of the client's, which end with whether there was one.
pub(super) fn take<'a>(
    client: Client<'a>,
    own: Vec<ScopedJoinHandle<'_, bool>>,
    events: &mpsc::Sender<Event>,
    mut accept: impl FnMut(Duration) -> Result<Option<Run<'a>>, Failed>,
) {
    let streams = client.options.common.stream.streams;
    let is_later = matches!(
        client.options.common.stream.directions,
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
            match accept(LOOK_EVERY) {
                Ok(Some(run)) => {
                    taken += 1;
                    if let Err(error) = threads::start(scope, move || Told::run(key, events, run)) {
                        Told::run(key, events, |_| Err(error.into()));
                    }
                    continue;
                }
                Ok(None) => {}
                Err(failed) => return Told::run(key, events, |_| Err(failed)),
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
