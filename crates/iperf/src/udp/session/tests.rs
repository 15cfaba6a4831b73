//! Compares a session, in every dialect, with a model that remembers every id.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Amount;
use crate::wire::{ClientHeader, fill_payload};

const PAYLOAD_BYTES: usize = 64;

const DIALECTS: [Dialect; 7] = [
    Dialect::V2_0_2,
    Dialect::V2_0_10,
    Dialect::V2_0_13,
    Dialect::V2_1,
    Dialect::HeaderlessV2_0,
    Dialect::HeaderlessLater,
    Dialect::Unknown,
];

/// A datagram as a client of this dialect sends it.
fn datagram(dialect: Dialect, id: i64, sent_us: u64) -> RawDatagram {
    let header = DatagramHeader::at(id, Duration::from_micros(sent_us));
    let mut payload = [0; PAYLOAD_BYTES];
    match dialect {
        Dialect::HeaderlessV2_0 => {
            fill_payload(&mut payload);
            Dialect::V2_0_2.write_header(&header, &mut payload);
        }
        Dialect::HeaderlessLater => {
            fill_payload(&mut payload);
            Dialect::V2_0_13.write_header(&header, &mut payload);
        }
        Dialect::Unknown => dialect.write_header(&header, &mut payload),
        _ => {
            let amount = Amount::Time(Duration::from_secs(1));
            let client = match dialect {
                Dialect::V2_0_2 => ClientHeader::for_udp_v2_0_5(5001, amount, 0),
                _ => ClientHeader::for_udp(5001, amount, 0),
            };
            dialect.prepare_payload(&mut payload, &client);
            dialect.write_header(&header, &mut payload);
        }
    }
    RawDatagram::parse(&payload).unwrap()
}

/// The same datagram as received.
fn head(raw: RawDatagram, arrival_ns: Option<i64>) -> DatagramHead {
    DatagramHead {
        source: (Ipv4Addr::LOCALHOST, 1).into(),
        raw,
        payload_bytes: PAYLOAD_BYTES,
        arrival_ns,
    }
}

/// The model: what arrived, and the counts that follow. Positions count from 0, whatever the ids.
#[derive(Default)]
struct Oracle {
    seen: BTreeSet<u64>,
    highest: Option<u64>,
    out_of_order: u64,
    duplicates: u64,
    jitter_ns: f64,
    transit_ns: Option<i64>,
}

impl Oracle {
    fn take(&mut self, place: u64, transit_ns: i64) {
        if !self.seen.insert(place) {
            self.duplicates += 1;
        } else if self.highest.is_some_and(|highest| place < highest) {
            self.out_of_order += 1;
        }
        self.highest = self.highest.max(Some(place));
        if let Some(previous) = self.transit_ns.replace(transit_ns) {
            let deviation = (transit_ns - previous).abs() as f64;
            self.jitter_ns += (deviation - self.jitter_ns) / 16.0;
        }
    }
}

/// Positions of datagrams around a moving front, each with its transit time in microseconds.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let step = prop_oneof![6 => Just(1i64), 2 => 2..9i64, 2 => -9..=0i64];
    vec((step, 0..10_000u64), 1..200).prop_map(|steps| {
        // The first one always arrives, since it opens the session.
        let mut front = 0i64;
        let mut places = vec![(0, 500)];
        for (step, transit_us) in steps {
            let place = (front + step).max(0);
            front = front.max(place);
            places.push((place.unsigned_abs(), transit_us));
        }
        places
    })
}

/// Feeds a session; returns it with the answer to the first FIN.
fn receive(
    dialect: Dialect,
    first_id: u64,
    arrivals: &[(u64, u64)],
    sent: u64,
) -> (UdpSession, [u8; ServerReport::BYTES]) {
    let now = Instant::now();
    let of = |place: u64| datagram(dialect, (place + first_id) as i64, 1_000 * place);
    let peer = (Ipv4Addr::LOCALHOST, 1).into();
    let mut session = UdpSession::open(peer, &of(arrivals[0].0), now);
    for &(place, transit_us) in arrivals {
        let arrival_ns = 1_000 * (1_000 * place + transit_us) as i64;
        session
            .take(&head(of(place), Some(arrival_ns)), now)
            .unwrap();
    }
    let fin = datagram(dialect, -((sent + first_id) as i64), 0);
    // The first FINs may be too short to earn an answer; they change nothing.
    let answer = (0..4).find_map(|_| {
        let (header, answer) = session.take(&head(fin, None), now).unwrap();
        assert!(header.id < 0);
        answer
    });
    (session, answer.unwrap())
}

proptest! {
    #[test]
    fn every_dialect_is_counted_as_a_full_account_does(
        arrivals in arrivals(),
        lost_at_the_end in 0..5u64,
        dialect in proptest::sample::select(&DIALECTS),
        headerless_first_id in 0..2u64,
    ) {
        let mut oracle = Oracle::default();
        for &(place, transit_us) in &arrivals {
            oracle.take(place, 1_000 * transit_us as i64);
        }
        let sent = oracle.highest.unwrap() + 1 + lost_at_the_end;
        // 2.0.13 and 2.1 start with different ids, which -C hides.
        let first_id = match dialect {
            Dialect::HeaderlessLater | Dialect::Unknown => headerless_first_id,
            known => known.first_id(),
        };
        let (session, answer) = receive(dialect, first_id, &arrivals, sent);
        let lost = sent - oracle.seen.len() as u64;
        prop_assert_eq!(session.datagrams, arrivals.len() as u64);
        prop_assert_eq!(session.sequence.highest(), sent);
        prop_assert_eq!(session.sequence.lost(), lost);
        prop_assert_eq!(session.sequence.out_of_order(), oracle.out_of_order);
        prop_assert_eq!(session.sequence.duplicates(), oracle.duplicates);
        let jitter_ns = session.jitter.ns().unwrap();
        prop_assert!((jitter_ns - oracle.jitter_ns).abs() <= 1e-6 * oracle.jitter_ns.max(1.0));

        let stated = ServerReport::parse(&answer, dialect).unwrap();
        prop_assert_eq!((stated.lost, stated.datagrams), (lost, sent));
        prop_assert_eq!(stated.bytes, session.bytes);
        let behind = oracle.out_of_order + oracle.duplicates;
        prop_assert_eq!(stated.out_of_order, behind);
        prop_assert_eq!(stated.jitter.as_micros(), (jitter_ns / 1e3) as u128);
    }
}

/// Sends the FIN of 20 datagrams as its version writes the repetition with this number, arriving `late` after
/// its send time. Returns the lost and total datagrams in the answer.
fn told(dialect: Dialect, arrived: u64, repetition: i64, late: Duration) -> (u64, u64) {
    let now = Instant::now();
    let first_id = dialect.first_id();
    let of = |place: u64| datagram(dialect, (place + first_id) as i64, 1_000 * place);
    let arrival_ns = |sent_us: u64| Some(1_000 * (sent_us as i64 + 300));
    let mut session = UdpSession::open((Ipv4Addr::LOCALHOST, 1).into(), &of(0), now);
    for place in 0..arrived {
        let head = head(of(place), arrival_ns(1_000 * place));
        session.take(&head, now).unwrap();
    }
    let id = 20 + first_id as i64 + repetition * dialect.fin_id_step();
    let fin = datagram(dialect, -id, 20_000);
    let arrival_ns = arrival_ns(20_000).map(|ns| ns + late.as_nanos() as i64);
    let (_, answer) = session.take(&head(fin, arrival_ns), now).unwrap();
    let stated = ServerReport::parse(&answer.unwrap(), dialect).unwrap();
    assert_eq!(stated.lost, session.sequence.lost());
    (stated.lost, stated.datagrams)
}

#[test]
fn a_fin_that_was_lost_is_no_datagram() {
    for dialect in [Dialect::V2_0_10, Dialect::V2_0_13, Dialect::V2_1] {
        for repetition in 0..4 {
            // Repetitions have the send time of the first FIN; none is early.
            let late = dialect.fin_every() * repetition + Duration::from_millis(2);
            for arrived in [20, 17] {
                let told = told(dialect, arrived, repetition.into(), late);
                assert_eq!(told, (20 - arrived, 20), "{dialect:?} {repetition}");
            }
        }
    }
}

#[test]
fn a_late_fin_takes_no_datagram_away_that_was_lost() {
    // The last three datagrams were lost, the first FIN was not.
    let late = Duration::from_millis(4);
    assert_eq!(told(Dialect::V2_1, 17, 0, late), (3, 20));
    // It came late, but no datagram is missing.
    let late = Duration::from_millis(500);
    assert_eq!(told(Dialect::V2_1, 20, 0, late), (0, 20));
}

#[test]
fn an_id_before_the_first_is_data_without_a_place_in_the_sequence() {
    let now = Instant::now();
    let of = |id| datagram(Dialect::V2_1, id, 0);
    let mut session = UdpSession::open((Ipv4Addr::LOCALHOST, 1).into(), &of(1), now);
    for id in [1, 0, 2] {
        session.take(&head(of(id), None), now).unwrap();
    }
    assert_eq!((session.datagrams, session.sequence.highest()), (3, 2));
    assert_eq!(session.sequence.lost(), 0);
}

fn take(server: &mut DatagramServer, source: u16, id: i64) -> Option<Vec<u8>> {
    let sent = WallClock::start().at(Instant::now());
    let header = DatagramHeader::at(id, sent);
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
    // A FIN without a session opens none.
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

fn payload(dialect: Dialect, id: i64) -> Vec<u8> {
    let mut payload = vec![0; 64];
    if dialect == Dialect::V2_0_2 {
        // Its client header: flags, threads, port.
        payload[16..20].copy_from_slice(&1u32.to_be_bytes());
        payload[20..24].copy_from_slice(&5001u32.to_be_bytes());
    } else {
        let flags = crate::wire::flags::IDS_64_BIT | crate::wire::flags::HAS_LENGTH;
        payload[16..20].copy_from_slice(&flags.to_be_bytes());
    }
    let header = DatagramHeader::at(id, Duration::new(7, 8000));
    dialect.write_header(&header, &mut payload);
    payload
}

#[test]
fn both_lengths_of_header_are_read_and_end_markers_have_no_id() {
    for (dialect, first) in [(Dialect::V2_0_2, 0), (Dialect::V2_1, 1)] {
        let mut ids = ClientIds::default();
        let numbers = [first, first + 1, first + 5, first + 4];
        let read = numbers.map(|id| ids.id(&payload(dialect, id)));
        assert_eq!(read, [Some(1), Some(2), Some(6), Some(5)], "{dialect:?}");
        assert_eq!(ids.id(&payload(dialect, -7)), None, "{dialect:?}");
        assert_eq!(ids.id(&[0; 11]), None);
    }
}
