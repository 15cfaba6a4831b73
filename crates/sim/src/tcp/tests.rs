//! A sender and a receiver over a path that delays, loses and reorders.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Ack, Now, Receiver, Segment, Sender};

const HZ: u64 = 1000;
const MSS: u64 = 1448;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

#[derive(Clone, Copy, Debug)]
enum Message {
    Data(Segment),
    Ack(Ack),
}

/// What becomes of a message: lost, or later than the path's delay by so much.
type Fate = dyn FnMut(Message) -> Option<u64>;

/// Two ends and the path between them.
struct Pair {
    now_ns: u64,
    sender: Sender,
    receiver: Receiver,
    /// By when it arrives and in what order it was sent.
    path: BTreeMap<(u64, u64), Message>,
    messages: u64,
    delay_ns: u64,
    fate: Box<Fate>,
    /// Bytes that the program may still write.
    unwritten: u64,
    /// How many bytes a read takes, and how long after the last.
    read_bytes: u64,
    read_every_ns: u64,
    read_ns: u64,
    delivered: u64,
}

impl Pair {
    fn new(send_buffer: u64, receive_buffer: u64, delay_ns: u64) -> Self {
        Pair {
            now_ns: 0,
            sender: Sender::new(MSS, send_buffer, receive_buffer, HZ),
            receiver: Receiver::new(MSS, receive_buffer, HZ),
            path: BTreeMap::new(),
            messages: 0,
            delay_ns,
            fate: Box::new(|_| Some(0)),
            unwritten: u64::MAX,
            read_bytes: u64::MAX,
            read_every_ns: 0,
            read_ns: 0,
            delivered: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            ns: self.now_ns,
            tick: self.now_ns / MS,
        }
    }

    fn put(&mut self, message: Message) {
        if let Some(later_ns) = (self.fate)(message) {
            self.messages += 1;
            let arrives_ns = self.now_ns + self.delay_ns + later_ns;
            self.path.insert((arrives_ns, self.messages), message);
        }
    }

    /// The programs and the ends do what they can at this moment.
    fn settle(&mut self) {
        self.unwritten -= self.sender.write(self.unwritten);
        while let Some(segment) = self.sender.poll_segment(self.now()) {
            assert!(segment.bytes > 0 && segment.end() <= self.sender.written());
            self.put(Message::Data(segment));
        }
        if let Some(ack) = self.receiver.poll_ack() {
            self.put(Message::Ack(ack));
        }
        if self.read_ns <= self.now_ns && self.receiver.readable() > 0 {
            self.delivered += self.receiver.read(self.read_bytes);
            self.read_ns = self.now_ns + self.read_every_ns;
            if let Some(ack) = self.receiver.poll_ack() {
                self.put(Message::Ack(ack));
            }
        }
        assert_eq!(self.receiver.poll_ack(), None);
        let held = self.sender.written() - self.sender.acknowledged();
        assert!(held == 0 || self.sender.deadline_tick().is_some());
    }

    fn next_ns(&self) -> Option<u64> {
        let arrival = self.path.keys().next().map(|key| key.0);
        let can_read = self.receiver.readable() > 0;
        let read = can_read.then_some(self.read_ns.max(self.now_ns + 1));
        let timer = |tick: Option<u64>| tick.map(|tick| tick * MS);
        [
            arrival,
            read,
            timer(self.sender.deadline_tick()),
            timer(self.receiver.deadline_tick()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Until then, or until nothing can happen any more.
    fn run_until(&mut self, end_ns: u64) {
        self.settle();
        while let Some(next_ns) = self.next_ns().filter(|next_ns| *next_ns < end_ns) {
            self.now_ns = self.now_ns.max(next_ns);
            while let Some(arrival) = self.path.first_entry() {
                if arrival.key().0 > self.now_ns {
                    break;
                }
                match arrival.remove() {
                    Message::Data(segment) => {
                        self.receiver.take(self.now(), segment);
                    }
                    Message::Ack(ack) => self.sender.acknowledge(self.now(), ack),
                }
                self.settle();
            }
            self.sender.timer(self.now());
            self.receiver.timer(self.now());
            self.settle();
        }
        self.now_ns = end_ns;
    }
}

/// Loses what the closure says, of data only, counted from 0.
fn losing(mut is_lost: impl FnMut(u64) -> bool + 'static) -> Box<Fate> {
    let mut count = 0;
    Box::new(move |message| match message {
        Message::Data(_) => {
            count += 1;
            (!is_lost(count - 1)).then_some(0)
        }
        Message::Ack(_) => Some(0),
    })
}

#[test]
fn lengths_are_those_of_the_line_arithmetic() {
    use nicpoll_model::line::{IpVersion, Line, Packet};
    let line = Line::new(1_000_000_000).unwrap();
    for (ip, most) in [(IpVersion::V4, 1448), (IpVersion::V6, 1428)] {
        assert_eq!(super::segment_bytes_max(1500, ip), most);
        for payload_bytes in [1, 12, 600, most as u32] {
            let packet = Packet::Tcp {
                ip,
                payload_bytes,
                has_timestamps: true,
            };
            let expected = line.cost(packet).unwrap().line_bytes;
            assert_eq!(u64::from(super::line_bytes(ip, payload_bytes)), expected);
        }
    }
}

#[test]
fn a_window_a_round_trip_is_what_comes_through() {
    // Whole segments of the window in 20 ms. One of them may wait for its second before the window moves.
    let mut pair = Pair::new(1 << 20, 32_768, 10 * MS);
    pair.run_until(10 * SECOND);
    let segments = 32_768 / MSS;
    let expected = (10 * SECOND / (20 * MS)) * segments * MSS;
    let share = pair.delivered as f64 / expected as f64;
    assert!((0.93..=1.0).contains(&share), "{share}");
    assert_eq!(pair.sender.counts(pair.now_ns).retransmits, 0);
    // The send buffer does the same, down to its last whole segments.
    let mut pair = Pair::new(32_768, 1 << 20, 10 * MS);
    pair.run_until(10 * SECOND);
    let share = pair.delivered as f64 / expected as f64;
    assert!((0.93..=1.03).contains(&share), "{share}");
    let held = pair.sender.counts(pair.now_ns).held_ns;
    assert!(held[super::Held::Buffer as usize] > 9 * SECOND, "{held:?}");
}

#[test]
fn one_loss_is_repaired_within_a_round_trip_and_without_a_timeout() {
    let mut pair = Pair::new(1 << 20, 65_536, 10 * MS);
    pair.fate = losing(|number| number == 200);
    pair.run_until(2 * SECOND);
    let counts = pair.sender.counts(pair.now_ns);
    assert_eq!((counts.fast_retransmits, counts.timeouts), (1, 0));
    assert_eq!(counts.retransmits, 1);
    assert!(pair.delivered > 60 * 45 * MSS, "{}", pair.delivered);
}

#[test]
fn several_losses_of_one_window_are_repaired_one_a_round_trip() {
    let mut pair = Pair::new(1 << 20, 65_536, 10 * MS);
    pair.fate = losing(|number| (200..=204).contains(&number));
    pair.run_until(2 * SECOND);
    let counts = pair.sender.counts(pair.now_ns);
    assert_eq!((counts.fast_retransmits, counts.timeouts), (1, 0));
    assert_eq!(counts.retransmits, 5);
}

#[test]
fn a_lost_window_takes_a_timeout() {
    let mut pair = Pair::new(1 << 20, 65_536, 10 * MS);
    // Five round trips without anything, so that nothing is left to tell of the loss.
    pair.fate = Box::new(|message| match message {
        Message::Data(segment) => {
            let is_lost = (SECOND..SECOND + 100 * MS).contains(&segment.stamp.ns);
            (!is_lost).then_some(0)
        }
        Message::Ack(_) => Some(0),
    });
    pair.run_until(5 * SECOND);
    let counts = pair.sender.counts(pair.now_ns);
    assert_eq!((counts.fast_retransmits, counts.timeouts), (0, 1));
    // All that was on its way and nothing else goes out again.
    assert!((43..=45).contains(&counts.retransmits), "{counts:?}");
    assert_eq!(pair.sender.acknowledged(), pair.delivered);
    assert!(pair.delivered > 100 * 45 * MSS, "{}", pair.delivered);
}

#[test]
fn a_lost_opening_of_the_window_is_asked_for() {
    let mut pair = Pair::new(1 << 20, 8 * MSS, MS);
    // The program reads once, after two seconds; what the receiver then tells is lost.
    pair.read_ns = 2 * SECOND;
    pair.read_every_ns = 100 * SECOND;
    let mut updates = 0;
    pair.fate = Box::new(move |message| match message {
        Message::Ack(ack) if ack.next == 8 * MSS && ack.window > 0 => {
            updates += 1;
            (updates > 1).then_some(0)
        }
        _ => Some(0),
    });
    pair.run_until(20 * SECOND);
    assert!(pair.sender.counts(pair.now_ns).probes >= 1);
    assert_eq!(pair.delivered, 8 * MSS);
    assert!(pair.receiver.readable() >= 7 * MSS);
}

#[test]
fn a_lone_segment_waits_for_the_delayed_acknowledgement() {
    let mut pair = Pair::new(1 << 20, 65_536, MS);
    pair.unwritten = 100;
    pair.run_until(50 * MS);
    assert_eq!((pair.delivered, pair.sender.acknowledged()), (100, 0));
    pair.run_until(SECOND);
    assert_eq!(pair.sender.acknowledged(), 100);
    assert_eq!(pair.sender.counts(pair.now_ns).segments, 1);
}

/// Chances in 256 of a loss of data, of a loss of an acknowledgement, and of being late.
fn unreliable(draws: Vec<u8>, data: u8, acks: u8, late_ns: u64) -> Box<Fate> {
    let mut number = 0;
    Box::new(move |message| {
        // Beyond the draws the path is reliable, so that every run ends.
        let draw = *draws.get(number)?;
        number += 1;
        let lost = match message {
            Message::Data(_) => draw < data,
            Message::Ack(_) => draw < acks,
        };
        (!lost).then_some(if draw % 7 == 0 { late_ns } else { 0 })
    })
}

fn then_reliable(mut first: Box<Fate>, messages: usize) -> Box<Fate> {
    let mut number = 0;
    Box::new(move |message| {
        number += 1;
        if number <= messages {
            first(message)
        } else {
            Some(0)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order_whatever_is_lost(
        draws in prop::collection::vec(any::<u8>(), 0..400),
        (data, acks) in (0..200u8, 0..200u8),
        late_ns in prop_oneof![Just(0), 0..30 * MS],
        delay_ns in 1..50 * MS,
        send_buffer in 1..100_000u64,
        receive_buffer in 1..100_000u64,
        bytes in 1..300_000u64,
        read_bytes in prop_oneof![Just(u64::MAX), 1_000..10_000u64],
        read_every_ns in 0..5 * MS,
    ) {
        let mut pair = Pair::new(send_buffer, receive_buffer, delay_ns);
        // Of small buffers each round trip moves little, or each probe.
        let bytes = bytes.min(send_buffer.min(receive_buffer) * 20);
        let messages = draws.len();
        pair.fate = then_reliable(unreliable(draws, data, acks, late_ns), messages);
        pair.unwritten = bytes;
        pair.read_bytes = read_bytes;
        pair.read_every_ns = read_every_ns;
        // The receiver counts a byte once, in order, by its own invariants; the ends must agree.
        pair.run_until(100_000 * SECOND);
        prop_assert_eq!(pair.delivered, bytes);
        prop_assert_eq!(pair.sender.acknowledged(), bytes);
        prop_assert_eq!(pair.sender.written(), bytes);
        prop_assert!(pair.path.is_empty());
        prop_assert_eq!((pair.sender.deadline_tick(), pair.receiver.deadline_tick()), (None, None));
    }

    #[test]
    fn at_any_moment_what_was_written_is_somewhere(
        draws in prop::collection::vec(any::<u8>(), 400),
        loss in 0..60u8,
        end_ns in 1..3 * SECOND,
    ) {
        let mut pair = Pair::new(60_000, 60_000, 5 * MS);
        pair.fate = then_reliable(unreliable(draws, loss, loss, 0), 400);
        pair.run_until(end_ns);
        let (sender, receiver) = (&pair.sender, &pair.receiver);
        let has = pair.delivered + receiver.readable();
        prop_assert!(sender.acknowledged() <= has && has <= sender.written());
        prop_assert!(sender.written() - sender.acknowledged() <= 60_000);
        prop_assert!(receiver.readable() <= 60_000);
    }
}
