//! A sender and a receiver over a path that delays, loses and reorders.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Ack, Now, Segment, TcpReceiver, TcpSender};

const HZ: u64 = 1000;
const MSS: u64 = 1448;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

#[derive(Clone, Copy, Debug)]
enum Message {
    Data(Segment),
    Ack(Ack),
}

/// The fate of a message: lost (`None`), or later than the path's delay by so many nanoseconds.
type Fate = dyn FnMut(Message) -> Option<u64>;

/// Two ends and the path between them.
struct Pair {
    now_ns: u64,
    sender: TcpSender,
    receiver: TcpReceiver,
    /// By time of arrival and order of sending.
    path: BTreeMap<(u64, u64), Message>,
    messages: u64,
    delay_ns: u64,
    fate: Box<Fate>,
    /// Bytes that the program may still write.
    unwritten: u64,
    /// Bytes of a read, and time from read to read.
    read_bytes: u64,
    read_every_ns: u64,
    read_ns: u64,
    delivered: u64,
}

impl Pair {
    fn new(send_buffer: u64, receive_buffer: u64, delay_ns: u64) -> Self {
        Pair {
            now_ns: 0,
            sender: TcpSender::new(MSS, send_buffer, receive_buffer, HZ),
            receiver: TcpReceiver::new(MSS, receive_buffer, HZ),
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

    /// Lets the programs and the ends do all they can now.
    fn settle(&mut self) {
        self.unwritten -= self.sender.write(self.unwritten);
        while let Some(segment) = self.sender.poll_segment(self.now()) {
            assert!(segment.bytes > 0 && segment.end() <= self.sender.written);
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
        let held = self.sender.written - self.sender.acknowledged;
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
            timer(self.receiver.delayed_ack_tick),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs until `end_ns`, or until nothing more can happen.
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

/// Loses the data segments whose number, from 0, the closure selects.
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
    use nicpoll_model::line::{IpVersion, Line, LinePacket};
    let line = Line::new(1_000_000_000).unwrap();
    for (ip, most) in [(IpVersion::V4, 1448), (IpVersion::V6, 1428)] {
        assert_eq!(super::segment_bytes_max(1500, ip), most);
        for payload_bytes in [1, 12, 600, most as u32] {
            let packet = LinePacket::Tcp {
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
    // Whole segments of the window every 20 ms. One of them may wait for its second before the window moves.
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
    assert!(
        held[super::SendLimit::Buffer as usize] > 9 * SECOND,
        "{held:?}"
    );
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
    // Nothing passes for five round trips: nothing is left to reveal the loss.
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
    // All that was in flight is sent again, and nothing else.
    assert!((43..=45).contains(&counts.retransmits), "{counts:?}");
    assert_eq!(pair.sender.acknowledged, pair.delivered);
    assert!(pair.delivered > 100 * 45 * MSS, "{}", pair.delivered);
}

#[test]
fn a_lost_opening_of_the_window_is_asked_for() {
    let mut pair = Pair::new(1 << 20, 8 * MSS, MS);
    // The program reads once, after two seconds; the receiver's window update is then lost.
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
    assert_eq!((pair.delivered, pair.sender.acknowledged), (100, 0));
    pair.run_until(SECOND);
    assert_eq!(pair.sender.acknowledged, 100);
    assert_eq!(pair.sender.counts(pair.now_ns).segments, 1);
}

/// Loses data and acknowledgements with chances of `data` and `acks` in 256; a seventh of the draws are late.
fn unreliable(draws: Vec<u8>, data: u8, acks: u8, late_ns: u64) -> Box<Fate> {
    let mut number = 0;
    Box::new(move |message| {
        // Beyond the draws everything is lost: see `then_reliable`.
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
        // With small buffers each round trip or probe moves little.
        let bytes = bytes.min(send_buffer.min(receive_buffer) * 20);
        let messages = draws.len();
        pair.fate = then_reliable(unreliable(draws, data, acks, late_ns), messages);
        pair.unwritten = bytes;
        pair.read_bytes = read_bytes;
        pair.read_every_ns = read_every_ns;
        // The receiver counts a byte once, in order, by its own invariants; the ends must agree.
        pair.run_until(100_000 * SECOND);
        prop_assert_eq!(pair.delivered, bytes);
        prop_assert_eq!(pair.sender.acknowledged, bytes);
        prop_assert_eq!(pair.sender.written, bytes);
        prop_assert!(pair.path.is_empty());
        prop_assert_eq!((pair.sender.deadline_tick(), pair.receiver.delayed_ack_tick), (None, None));
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
        prop_assert!(sender.acknowledged <= has && has <= sender.written);
        prop_assert!(sender.written - sender.acknowledged <= 60_000);
        prop_assert!(receiver.readable() <= 60_000);
    }
}

mod congestion {
    use super::super::*;

    const MSS: u64 = 1000;
    const WIDE: u64 = 1_000_000;

    #[test]
    fn the_first_window_is_that_of_rfc_3390() {
        for (mss, window) in [(536, 2144), (1095, 4380), (1448, 4380), (4000, 8000)] {
            assert_eq!(Congestion::new(mss).window(), window);
        }
    }

    #[test]
    fn it_doubles_each_round_trip_and_then_grows_by_a_segment() {
        let mut congestion = Congestion::new(MSS);
        assert_eq!(congestion.window(), 4 * MSS);
        for ack in 1..=4 {
            congestion.advance(MSS, ack * MSS, WIDE, WIDE);
        }
        assert_eq!(congestion.window(), 8 * MSS);
        congestion.slow_start_until = 8 * MSS - 1;
        for ack in 5..=12 {
            congestion.advance(MSS, ack * MSS, WIDE, WIDE);
        }
        let grown = congestion.window() - 8 * MSS;
        assert!((940..=MSS).contains(&grown), "{grown}");
        // The receiver's window is the limit.
        let held = congestion.window();
        congestion.advance(MSS, 13 * MSS, WIDE, held);
        assert_eq!(congestion.window(), held);
    }

    #[test]
    fn three_duplicates_halve_it_once_and_partial_answers_tell_of_more() {
        let mut congestion = Congestion::new(MSS);
        congestion.window = 20 * MSS;
        let (una, sent) = (10 * MSS, 30 * MSS);
        for limited in [21, 22] {
            assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::No);
            assert_eq!(congestion.window(), limited * MSS);
        }
        assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::Found);
        assert_eq!(congestion.window(), 13 * MSS);
        assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::No);
        assert_eq!(congestion.window(), 14 * MSS);
        let partial = congestion.advance(5 * MSS, una + 5 * MSS, sent, WIDE);
        assert_eq!(partial, Loss::Another);
        assert_eq!(congestion.window(), 10 * MSS);
        let last = congestion.advance(15 * MSS, sent, sent + 10 * MSS, WIDE);
        assert_eq!(last, Loss::No);
        assert_eq!(congestion.window(), 10 * MSS);
        assert!(!congestion.is_recovering);
    }

    #[test]
    fn a_timeout_restarts_and_its_own_duplicates_tell_nothing() {
        let mut congestion = Congestion::new(MSS);
        congestion.window = 20 * MSS;
        congestion.timeout(30 * MSS, WIDE);
        assert_eq!(congestion.window(), MSS);
        assert_eq!(congestion.slow_start_until, 10 * MSS);
        for _ in 0..10 {
            assert_eq!(congestion.duplicate(30 * MSS, 40 * MSS, WIDE), Loss::No);
        }
        // A window that the receiver keeps small is halved from there, to two segments at least.
        congestion.timeout(50 * MSS, 3 * MSS);
        assert_eq!(congestion.slow_start_until, 2 * MSS);
    }
}

mod reassembly {
    use super::super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_join_when_they_touch() {
        let mut queue = Reassembly::default();
        queue.insert(30, 40);
        queue.insert(10, 20);
        assert_eq!(queue.ranges, [(10, 20), (30, 40)]);
        queue.insert(20, 30);
        assert_eq!(queue.ranges, [(10, 40)]);
        assert_eq!(queue.take_from(5), 5);
        assert_eq!(queue.take_from(10), 40);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_bytes_holds(
            ranges in prop::collection::vec((0..60u64, 1..20u64), 0..20),
        ) {
            let mut queue = Reassembly::default();
            let mut bytes = [false; 80];
            for (start, len) in ranges {
                queue.insert(start, start + len);
                bytes[start as usize..(start + len) as usize].fill(true);
                let held = |byte: u64| queue.ranges.iter().any(|r| (r.0..r.1).contains(&byte));
                prop_assert!((0..80).all(|byte| held(byte) == bytes[byte as usize]));
                prop_assert!(queue.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            let run = bytes.iter().take_while(|held| **held).count() as u64;
            prop_assert_eq!(queue.take_from(0), run);
        }
    }
}

mod receiver {
    use super::super::*;

    const MSS: u64 = 1448;
    const START: Now = Now { ns: 0, tick: 0 };

    fn at(tick: u64) -> Now {
        Now {
            ns: tick * 1_000_000,
            tick,
        }
    }

    fn receiver(buffer_bytes: u64) -> TcpReceiver {
        TcpReceiver::new(MSS, buffer_bytes, 1000)
    }

    fn segment(number: u64) -> Segment {
        Segment {
            seq: number * MSS,
            bytes: MSS,
            stamp: at(number + 1),
        }
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_the_first_after_a_tenth_of_a_second() {
        let mut receiver = receiver(65_536);
        assert_eq!(receiver.take(START, segment(0)), MSS);
        assert_eq!(receiver.poll_ack(), None);
        assert_eq!(receiver.take(START, segment(1)), MSS);
        let ack = receiver.poll_ack().unwrap();
        // The echo is that of the first segment that it acknowledges.
        assert_eq!(
            (ack.next, ack.window, ack.echo.tick),
            (2 * MSS, 65_536 - 2 * MSS, 1)
        );
        assert_eq!(
            (receiver.poll_ack(), receiver.delayed_ack_tick),
            (None, None)
        );
        receiver.take(at(5), segment(2));
        assert_eq!(receiver.delayed_ack_tick, Some(105));
        receiver.timer(at(104));
        assert_eq!(receiver.poll_ack(), None);
        receiver.timer(at(105));
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(3 * MSS));
    }

    #[test]
    fn a_read_of_two_segments_moves_the_window_and_a_read_of_one_does_not() {
        let mut receiver = receiver(65_536);
        receiver.take(START, segment(0));
        receiver.take(START, segment(1));
        receiver.poll_ack().unwrap();
        assert_eq!(receiver.read(MSS), MSS);
        assert_eq!(receiver.poll_ack(), None);
        assert_eq!(receiver.read(u64::MAX), MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(65_536));
    }

    #[test]
    fn what_is_out_of_order_is_answered_at_once_and_kept() {
        let mut receiver = receiver(65_536);
        assert_eq!(receiver.take(START, segment(1)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(0));
        assert_eq!(receiver.take(START, segment(3)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(0));
        // The gap closes up to the next one.
        assert_eq!(receiver.take(START, segment(0)), 2 * MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(2 * MSS));
        assert_eq!(receiver.take(START, segment(2)), 2 * MSS);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(4 * MSS));
        // A duplicate too.
        assert_eq!(receiver.take(START, segment(2)), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.next), Some(4 * MSS));
    }

    #[test]
    fn a_closed_window_opens_in_one_step_and_its_probes_are_answered() {
        let mut receiver = receiver(4 * MSS);
        for number in 0..4 {
            receiver.take(START, segment(number));
        }
        let ack = receiver.poll_ack().unwrap();
        assert_eq!((ack.next, ack.window), (4 * MSS, 0));
        let probe = Segment {
            bytes: 1,
            ..segment(4)
        };
        assert_eq!(receiver.take(START, probe), 0);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(0));
        // Less than two segments, and less than half the buffer.
        receiver.read(MSS - 1);
        assert_eq!(receiver.poll_ack(), None);
        receiver.read(MSS + 1);
        assert_eq!(receiver.poll_ack().map(|ack| ack.window), Some(2 * MSS));
    }
}

mod timing {
    use super::super::*;

    /// Returns the estimate after samples with these round trips, sent a tick apart.
    fn settled(round_trips: impl Iterator<Item = u64>) -> RoundTripEstimator {
        let mut round_trip = RoundTripEstimator::new(1000);
        for (sent, ticks) in (0u64..).zip(round_trips) {
            let at = |tick| Now {
                ns: tick * 1_000_000,
                tick,
            };
            round_trip.sample(at(sent + ticks), at(sent));
        }
        round_trip
    }

    #[test]
    fn a_timer_of_less_than_a_tick_waits_for_the_next_one() {
        let now = Now { ns: 5, tick: 7 };
        assert_eq!((now.after(0), now.after(1), now.after(100)), (8, 8, 107));
    }

    #[test]
    fn the_first_timeout_is_three_seconds_and_the_slop() {
        let round_trip = RoundTripEstimator::new(1000);
        assert_eq!(round_trip.timeout_ticks(0), 3200);
        assert_eq!(round_trip.timeout_ticks(1), 6200);
        assert_eq!(round_trip.timeout_ticks(40), 64_000);
    }

    #[test]
    fn a_short_path_has_the_least_timeout() {
        let round_trip = settled([0; 100].into_iter());
        // 1000 / 33 = 30 ticks and 200 of slop; doubled without the slop.
        assert_eq!(round_trip.timeout_ticks(0), 230);
        assert_eq!(round_trip.timeout_ticks(1), 260);
        assert_eq!(round_trip.persist_ticks(0), 5000);
        assert_eq!(round_trip.persist_ticks(12), 5000);
    }

    #[test]
    fn the_estimate_settles_on_a_steady_path() {
        let ticks = settled([80; 1000].into_iter()).timeout_ticks(0) - 200;
        assert!((80..=82).contains(&ticks), "{ticks}");
        // An unsteady one adds four mean deviations.
        let unsteady = (0..1000).map(|number| 80 + 40 * (number % 2));
        let ticks = settled(unsteady).timeout_ticks(0) - 200;
        assert!((170..=190).contains(&ticks), "{ticks}");
    }
}
