//! Delays from the wire on a real kernel, without a card: the kernel runs a program that sends packets with any time
//! stamp into a veth, and a clock of the test stands for the card's.

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aya::programs::SchedClassifier;
use aya::{Ebpf, TestRun, TestRunOptions};
use common::*;
use nicpoll_model::ab::{AbDelayKind, AbStamps};
use nicpoll_observe::clock::monotonic_ns;
use nicpoll_observe::{CardClock, Histogram, PacketDelays, Stamped};
use nicpoll_switch::Control;
use nicpoll_sys::link::LinkHandle;
use nicpoll_testkit::needs;
use nicpoll_wire::frame::{Mac, UdpPath};
use rustix::time::Timespec;

/// Time of a packet in the card, and then until it is read.
const AGE: Duration = Duration::from_millis(40);
const WAIT: Duration = Duration::from_millis(60);
/// Relative width of a histogram's buckets.
const BUCKET: f64 = 1.0 / 16.0;
const PACKETS: u64 = 30;
/// Offsets of fields in `struct __sk_buff` that a test may set, and its length.
const IFINDEX: usize = 40;
const HWTSTAMP: usize = 184;
const CONTEXT_BYTES: usize = 192;

/// An invented card's clock: far ahead of the kernel's, and faster by some ppm.
#[derive(Clone)]
struct Card {
    fast_ppm: i64,
    set_by_ns: Arc<AtomicI64>,
}

impl Card {
    fn new(fast_ppm: i64) -> Self {
        let set_by_ns = Arc::new(AtomicI64::new(1_700_000_000_000_000_000));
        Card {
            fast_ppm,
            set_by_ns,
        }
    }

    fn now_ns(&self) -> i64 {
        let kernel_ns = monotonic_ns() as i64;
        let gain_ns = kernel_ns / 1_000 * self.fast_ppm / 1_000;
        kernel_ns + gain_ns + self.set_by_ns.load(Ordering::Relaxed)
    }

    fn clock(&self) -> CardClock {
        let card = self.clone();
        let read = move || {
            let now_ns = card.now_ns();
            Ok(Timespec {
                tv_sec: now_ns / 1_000_000_000,
                tv_nsec: now_ns % 1_000_000_000,
            })
        };
        CardClock::of(String::from("a card's"), read).unwrap()
    }
}

/// A receiver with all its packets followed.
struct Watched {
    pair: Pair,
    delays: PacketDelays,
    card: Card,
}

/// Measurements of some packets.
struct Seen {
    stack: Histogram,
    wire: Histogram,
    stamps: Option<AbStamps>,
}

impl Seen {
    /// Packets in no figure from the wire. Every other packet is in one.
    fn left_out(&self) -> u64 {
        let left_out = self.stamps.unwrap().left_out_packets;
        assert_eq!(self.wire.count() + left_out, self.stack.count());
        left_out
    }
}

impl Watched {
    fn new(fast_ppm: i64) -> Self {
        let pair = Pair::new();
        run(&pair.sender, "ethtool -K em0 tso off");
        run(&pair.receiver, "ethtool -K em0 gro on");
        pair.listen(1 << 20);
        let napi = |_: &mut State| {
            let ifindex = LinkHandle::named("em0").unwrap().ifindex();
            Control::new().napis(ifindex).unwrap()[0].id
        };
        let napi_id = pair.receiver.run(napi).unwrap();
        let card = Card::new(fast_ppm);
        let instances = BTreeMap::from([(napi_id, Some(0))]);
        let delays = PacketDelays::begin(&instances, 1, vec![card.clock()]).unwrap();
        Watched { pair, delays, card }
    }

    fn look(&self) -> (BTreeMap<AbDelayKind, Histogram>, Stamped) {
        let delays = self.delays.read().unwrap();
        (delays, self.delays.stamped().unwrap().unwrap())
    }

    /// Sends packets with these stamps, a moment apart, and reads them after their wait.
    fn of(&self, stamp: impl FnMut() -> i64 + Send + 'static) -> Seen {
        let (before, stamped_before) = self.look();
        self.send(stamp);
        thread::sleep(WAIT);
        assert_eq!(self.pair.received(PACKETS), PACKETS);
        let (after, stamped) = self.look();
        let of = |kind| after[&kind].since(&before[&kind]);
        let kind = AbDelayKind::UdpWireToRead;
        let stack = of(AbDelayKind::UdpStackToRead);
        // A packet whose slot in the table another one takes is no longer followed.
        assert!((PACKETS - 3..=PACKETS).contains(&stack.count()));
        Seen {
            stack,
            wire: of(kind),
            stamps: stamped.since(&stamped_before, kind),
        }
    }

    fn send(&self, mut stamp: impl FnMut() -> i64 + Send + 'static) {
        let path = UdpPath {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            source: format!("{SENDER}:5000").parse().unwrap(),
            destination: format!("{RECEIVER}:{PORT}").parse().unwrap(),
        };
        let mut frame = [0; 200];
        let length = path.write(&[0; PAYLOAD_BYTES], &mut frame).unwrap();
        let send = move |_: &mut State| {
            let object = aya::include_bytes_aligned!("../bpf/tc_deliver.bpf.o");
            let mut ebpf = Ebpf::load(object).unwrap();
            let program = ebpf.program_mut("deliver").unwrap();
            let program: &mut SchedClassifier = program.try_into().unwrap();
            program.load().unwrap();
            let ifindex = LinkHandle::named("em0").unwrap().ifindex();
            let mut context = [0; CONTEXT_BYTES];
            context[IFINDEX..][..4].copy_from_slice(&ifindex.to_ne_bytes());
            for _ in 0..PACKETS {
                context[HWTSTAMP..][..8].copy_from_slice(&stamp().to_ne_bytes());
                let options = TestRunOptions {
                    data_in: Some(&frame[..length]),
                    ctx_in: Some(&context),
                    ..TestRunOptions::default()
                };
                assert_eq!(program.test_run(options).unwrap().return_value, 0);
                thread::sleep(Duration::from_millis(1));
            }
        };
        self.pair.sender.run(send).unwrap();
    }

    fn card(&self) -> Card {
        self.card.clone()
    }
}

fn ns(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[test]
fn a_wait_in_the_card_is_part_of_the_delay_from_the_wire() {
    needs!(Root, Ip, Ethtool);
    for fast_ppm in [-900, 30] {
        let watched = Watched::new(fast_ppm);
        let card = watched.card();
        let began = Instant::now();
        let seen = watched.of(move || card.now_ns() - AGE.as_nanos() as i64);
        let most = ns(began.elapsed() + AGE) * (1.0 + BUCKET);
        assert_eq!(seen.left_out(), 0);
        let [shortest, longest] = [0.0, 1.0].map(|share| seen.wire.quantile_ns(share).unwrap());
        assert!(shortest >= ns(WAIT + AGE) * (1.0 - BUCKET), "{shortest}");
        assert!(longest <= most, "{longest} of {most}");
        // The same packets' wait behind the driver, and their age.
        let [stack, wire] = [&seen.stack, &seen.wire].map(|it| it.quantile_ns(0.5).unwrap());
        assert!(
            (wire - stack - ns(AGE)).abs() < 3.0 * BUCKET * wire,
            "{wire} and {stack}"
        );
        assert!(
            seen.stamps.unwrap().error_ns <= 11_000.0,
            "{:?}",
            seen.stamps
        );
    }
}

#[test]
fn a_stamp_of_this_moment_is_not_taken_for_one_of_the_future() {
    needs!(Root, Ip, Ethtool);
    // Within 12 ms the kernel's clock falls back by more than the tolerance, so each packet needs the right rate.
    let watched = Watched::new(900);
    let card = watched.card();
    let seen = watched.of(move || card.now_ns());
    assert_eq!(seen.left_out(), 0);
}

#[test]
fn packets_whose_stamp_cannot_be_right_are_counted_and_left_out() {
    needs!(Root, Ip, Ethtool);
    let watched = Watched::new(0);
    let card = watched.card();
    let mut wrong = [
        0,
        card.now_ns() + 5_000_000_000,
        card.now_ns() - 11_000_000_000,
        -1,
        i64::MIN,
    ]
    .into_iter()
    .cycle();
    let seen = watched.of(move || wrong.next().unwrap());
    assert_eq!(seen.left_out(), seen.stack.count());
}

#[test]
fn segments_without_a_stamp_are_left_out_too() {
    needs!(Root, Ip, Ethtool);
    let watched = Watched::new(0);
    let (before, stamped_before) = watched.look();
    let listen = |_: &mut State| TcpListener::bind((RECEIVER, PORT)).unwrap();
    let listener = watched.pair.receiver.run(listen).unwrap();
    let connect = |_: &mut State| TcpStream::connect((RECEIVER, PORT)).unwrap();
    let mut client = watched.pair.sender.run(connect).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    for _ in 0..PACKETS {
        client.write_all(&[0; PAYLOAD_BYTES]).unwrap();
        server.read_exact(&mut [0; PAYLOAD_BYTES]).unwrap();
    }
    let (after, stamped) = watched.look();
    let of = |kind| after[&kind].since(&before[&kind]).count();
    let read = of(AbDelayKind::TcpStackToRead);
    assert!(read > 0);
    let kind = AbDelayKind::TcpWireToRead;
    let stamps = stamped.since(&stamped_before, kind).unwrap();
    assert_eq!((of(kind), stamps.left_out_packets), (0, read));
}

#[test]
fn a_clock_that_is_set_is_not_relied_on_until_it_ran_on() {
    needs!(Root, Ip, Ethtool);
    let watched = Watched::new(30);
    let card = watched.card();
    let seen = watched.of(move || {
        card.set_by_ns.fetch_add(1_000_000, Ordering::Relaxed);
        card.now_ns()
    });
    assert_eq!(seen.stamps, None);
    // A line takes two readings, and each look takes one.
    watched.look();
    thread::sleep(Duration::from_millis(100));
    let card = watched.card();
    let seen = watched.of(move || card.now_ns() - AGE.as_nanos() as i64);
    assert_eq!(seen.left_out(), 0);
}

#[test]
fn without_a_card_that_stamps_there_is_nothing_from_the_wire() {
    needs!(Root);
    let delays = PacketDelays::begin(&BTreeMap::from([(1, None)]), 1, Vec::new()).unwrap();
    let kinds: Vec<AbDelayKind> = delays.read().unwrap().into_keys().collect();
    let all = [
        AbDelayKind::UdpStackToRead,
        AbDelayKind::TcpStackToRead,
        AbDelayKind::SmoothedRoundTrip,
    ];
    assert_eq!(kinds, all);
    assert!(delays.stamped().unwrap().is_none());
}
