//! The receiving end of a UDP stream whose datagrams come by another way than a socket.
//!
//! What must hold: the stream is read and answered as one that comes over a socket is.

use std::time::Duration;

use nicpoll_model::ControlKind;
use nicpoll_sys::socket::Datagram;
use nicpoll_traffic::datagrams::{Arrival, DatagramReceiver};
use nicpoll_traffic::workload::{EndBooks, Payload};
use nicpoll_traffic::{OneWayDelays, SocketBuffer, WallClock};

use super::receiver::Taken;
use super::session::Session;

/// Receives one stream, from a sender that has this host's clock. The first good datagram decides whose.
#[derive(Debug)]
pub struct DatagramServer {
    clock: WallClock,
    session: Option<Session>,
}

impl Default for DatagramServer {
    /// Nothing has come yet.
    fn default() -> Self {
        DatagramServer {
            clock: WallClock::start(),
            session: None,
        }
    }
}

impl DatagramReceiver for DatagramServer {
    fn take(&mut self, arrival: &Arrival<'_>) -> Option<Vec<u8>> {
        let now = arrival.at;
        let arrived: Duration = self.clock.at(now);
        let arrival_ns = i64::try_from(arrived.as_nanos()).ok();
        let taken = Taken::of(&Datagram {
            payload: arrival.payload,
            is_truncated: false,
            source: Some(arrival.source),
            arrival_ns,
        })?;
        let session = match &mut self.session {
            Some(session) if session.peer == taken.source => session,
            None if taken.opens_session() => {
                let mut session = Session::open(taken.source, &taken.raw, now);
                session.delays = Some(Box::new(OneWayDelays::start()));
                self.session.insert(session)
            }
            _ => return None,
        };
        let header = session.read(&taken.raw)?;
        if header.id >= 0 {
            session.data(&header, taken.payload_bytes, arrival_ns, now);
            return None;
        }
        let answer = session.fin(&taken.raw, &header, taken.payload_bytes, arrival_ns, now)?;
        session.acks_sent += 1;
        Some(answer.to_vec())
    }

    fn books(&self) -> EndBooks {
        let session = self.session.as_ref();
        let count = |of: fn(&Session) -> u64| session.map_or(0, of);
        let received = Payload {
            packets: Some(count(|session| session.datagrams)),
            bytes: count(|session| session.bytes),
        };
        let buffer = SocketBuffer {
            asked_bytes: None,
            granted_bytes: 0,
        };
        EndBooks {
            control_sent: vec![(
                ControlKind::FinAcknowledgement,
                count(|session| session.acks_sent),
            )],
            control_received: vec![(ControlKind::Fin, count(|session| session.fins_received))],
            jitter_seconds: session.and_then(Session::jitter_seconds),
            one_way_delays: session.and_then(Session::delays_to_program),
            out_of_order_packets: Some(count(|session| session.sequence.out_of_order())),
            duplicate_packets: Some(count(|session| session.sequence.duplicates())),
            ..EndBooks::of_receiver(received, session.map_or(0.0, Session::seconds), buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Instant;

    use super::*;
    use crate::wire::DatagramHeader;

    fn take(server: &mut DatagramServer, source: u16, id: i64) -> Option<Vec<u8>> {
        let sent = WallClock::start().at(Instant::now());
        let header = DatagramHeader {
            id,
            sent_seconds: sent.as_secs() as u32,
            sent_microseconds: sent.subsec_micros(),
        };
        let mut payload = [0; 1470];
        header.write_to(&mut payload);
        server.take(&Arrival {
            source: SocketAddr::from((Ipv4Addr::LOCALHOST, source)),
            payload: &payload,
            at: Instant::now(),
        })
    }

    #[test]
    fn a_stream_is_counted_and_its_end_is_answered_to_its_own_sender_alone() {
        let mut server = DatagramServer::default();
        // A FIN of nobody's session opens none.
        assert_eq!(take(&mut server, 1, -7), None);
        for id in [1, 2, 2, 4] {
            assert_eq!(take(&mut server, 7, id), None);
        }
        assert_eq!(take(&mut server, 8, 5), None);
        assert_eq!(take(&mut server, 8, -6), None);
        assert!(take(&mut server, 7, -5).is_some());
        let books = server.books();
        assert_eq!(books.received.packets, Some(4));
        assert_eq!(books.received.bytes, 4 * 1470);
        assert_eq!(books.duplicate_packets, Some(1));
        let (kind, fins) = books.control_received[0];
        assert_eq!((kind, fins), (ControlKind::Fin, 1));
        assert_eq!(books.control_sent[0].1, 1);
        assert_eq!(books.one_way_delays.unwrap().entries.iter().sum::<u64>(), 4);
    }
}
