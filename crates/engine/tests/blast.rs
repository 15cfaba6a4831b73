//! Frames that are sent at one end of a veth come to an ordinary UDP socket at the other, each of them, by every way.

mod common;

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::thread;

use nicpoll_engine::blast::{
    Blast, BlastPath, BlastSettings, FLOW_PORTS, FrameReceiver, LinkSettings, LinkTraffic,
};
use nicpoll_engine::{Choice, EngineApplication, EngineError, Named};
use nicpoll_model::engine::{BlastEnd, BlastFrames};
use nicpoll_model::{Origin, Rate};
use nicpoll_sys::schedule;
use nicpoll_sys::socket::set_receive_buffer;
use nicpoll_testkit::{assert_has, needs};
use nicpoll_wire::frame::Mark;

use common::{PATIENCE, PORT, Pair, RECEIVER, attach, await_that, run};

/// As fast as a socket is sure to be read.
const FRAMES_A_SECOND: u64 = 20_000;

/// Room for all that a test sends.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

const PATHS: [BlastPath; 3] = [BlastPath::Live, BlastPath::AfXdp, BlastPath::AfPacket];

fn origin() -> Origin {
    Origin {
        nicpoll_version: String::from("0"),
        argv: Vec::new(),
        started_at: String::from("2026-01-01T00:00:00Z"),
    }
}

/// Gives the receiver's end a NAPI.
fn prepared() -> Pair {
    let pair = Pair::new();
    attach(&pair, "xdp_pass");
    pair
}

fn to(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), PORT)
}

fn datagrams(to: SocketAddr, lengths: &str, flows: u16) -> LinkTraffic {
    LinkTraffic::Datagrams {
        receiver: FrameReceiver {
            to,
            from: None,
            mac: None,
        },
        lengths: lengths.parse().unwrap(),
        flows,
    }
}

fn settings(traffic: LinkTraffic, path: Choice<BlastPath>, count: u64) -> BlastSettings {
    BlastSettings {
        links: vec![LinkSettings {
            interface: String::from("em0"),
            cpu: schedule::allowed_cpus().unwrap()[0],
            traffic,
        }],
        path,
        rate: Rate::packets_per_second(FRAMES_A_SECOND),
        burst: 1,
        count: Some(count),
        duration: None,
        gone: Default::default(),
    }
}

fn start(pair: &Pair, settings: BlastSettings) -> Result<Blast, EngineError> {
    pair.sender
        .run(move |()| Blast::start(&settings, origin()))
        .unwrap()
}

/// A datagram that was received: its sender's port, its payload's length, and its mark.
type Received = (u16, usize, Mark);

/// Sends so many frames, and receives as many.
fn blast(pair: &Pair, at: SocketAddr, settings: BlastSettings) -> (Vec<Received>, BlastEnd) {
    let count = settings.count.unwrap() as usize;
    let socket = pair
        .receiver
        .run(move |()| UdpSocket::bind(at).unwrap())
        .unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // A live frame takes a page of it.
    set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES).unwrap();
    let receiver = thread::spawn(move || {
        let mut memory = [0; 2048];
        let receive = |_| {
            let (bytes, from) = socket.recv_from(&mut memory).ok()?;
            Some((from.port(), bytes, Mark::parse(&memory[..bytes])?))
        };
        (0..count).map_while(receive).collect::<Vec<_>>()
    });
    let blast = start(pair, settings).unwrap();
    await_that("the end", || blast.is_over());
    let end = blast.end(None).unwrap();
    (receiver.join().unwrap(), end)
}

#[test]
fn every_frame_of_every_flow_comes_once_and_in_order_by_every_path() {
    needs!(Root, Ip);
    let pair = prepared();
    for path in PATHS {
        for (address, lengths) in [(RECEIVER, "64"), ("2001:2::2", "imix")] {
            let (flows, count) = (5, 1200);
            let traffic = datagrams(to(address), lengths, flows);
            let (received, end) = blast(
                &pair,
                to(address),
                settings(traffic, Choice::Only(path), count),
            );
            let what = format!("{} to {address}", path.name());
            assert_eq!(received.len() as u64, count, "{what}: {end:?}");
            let mut next: BTreeMap<u16, u64> = BTreeMap::new();
            for (port, _, mark) in &received {
                assert_eq!(*port, FLOW_PORTS.start() + mark.flow, "{what}");
                let expected = next.entry(mark.flow).or_default();
                assert_eq!(mark.sequence, *expected, "{what}");
                *expected += 1;
            }
            assert_eq!(next.len(), usize::from(flows), "{what}");
            let account = end.links[0].account;
            assert_eq!(account.built_frames, count, "{what}");
            assert_eq!(account.handed_frames, count, "{what}");
            let is_known = path != BlastPath::AfPacket;
            assert_eq!(
                account.completed_frames,
                is_known.then_some(count),
                "{what}"
            );
            assert_eq!(account.residual_frames, is_known.then_some(0), "{what}");
            if lengths == "imix" {
                // Ethernet, IPv6 and UDP take 62 bytes, the FCS 4.
                let of = |frame| received.iter().filter(|it| it.1 + 62 + 4 == frame).count();
                assert_eq!([of(84), of(594), of(1518)], [700, 400, 100], "{what}");
            }
        }
    }
}

#[test]
fn frames_are_handed_over_joined_only_where_the_kernel_cuts_them_up() {
    needs!(Root, Ip);
    // In turns of more frames than one datagram takes.
    let joined = || BlastSettings {
        burst: 40,
        ..settings(
            datagrams(to(RECEIVER), "64", 1),
            Choice::Only(BlastPath::AfPacket),
            1200,
        )
    };
    let facts = |pair: &Pair| {
        let blast = start(pair, joined()).unwrap();
        blast.facts().links[0].clone()
    };
    // A veth passes a long datagram on as it is, unless there is an XDP program at its other end.
    let apart = facts(&Pair::new());
    assert!(!apart.is_cut_by_kernel);
    let why = apart.not_joined.unwrap();
    assert_has(&why, "'ethtool -K em0 tx-udp-segmentation off'");
    let pair = prepared();
    let together = facts(&pair);
    assert!(together.is_cut_by_kernel);
    assert_eq!(together.not_joined, None);
    let came = |pair: &Pair| {
        let counter = run(
            &pair.receiver,
            "cat /sys/class/net/em0/statistics/rx_packets",
        );
        counter.trim().parse::<u64>().unwrap()
    };
    let before = came(&pair);
    let (received, _) = blast(&pair, to(RECEIVER), joined());
    let numbers = received
        .iter()
        .map(|(_, bytes, mark)| (*bytes, mark.sequence));
    assert!(numbers.eq((0..1200).map(|number| (18, number))));
    assert!(came(&pair) >= before + 1200);
}

#[test]
fn frames_of_several_links_are_told_apart_by_their_flows() {
    needs!(Root, Ip);
    let pair = prepared();
    let traffic = datagrams(to(RECEIVER), "64", 2);
    let one = settings(traffic, Choice::Only(BlastPath::AfXdp), 50);
    let mut both = one.clone();
    // A queue has one socket: the second link of the same interface is refused, and nothing is sent.
    both.links.push(one.links[0].clone());
    assert!(start(&pair, both.clone()).is_err());
    run(
        &pair.sender,
        "ip link add em1 type veth peer name em2\n\
         ip link set em1 up\nip link set em2 up\n\
         ip addr add 198.18.1.1/24 dev em1\n\
         ip neigh add 198.18.1.2 lladdr 02:00:00:00:00:09 dev em1",
    );
    both.links[1].interface = String::from("em1");
    both.links[1].traffic = datagrams(to("198.18.1.2"), "64", 2);
    let blast = start(&pair, both).unwrap();
    let first = |index: usize| match &blast.facts().links[index].frames {
        BlastFrames::Datagrams { first_flow, .. } => *first_flow,
        BlastFrames::Replay { .. } => panic!("no replay was asked for"),
    };
    assert_eq!([first(0), first(1)], [0, 2]);
    await_that("the end", || blast.is_over());
    let end = blast.end(None).unwrap();
    assert_eq!(end.totals.built_frames, 100);
    assert!(
        end.links
            .iter()
            .all(|link| link.account.completed_frames == Some(50))
    );
}

#[test]
fn the_neighbour_is_asked_for_and_what_cannot_be_reached_is_refused() {
    needs!(Root, Ip);
    let pair = prepared();
    let refused = |settings: BlastSettings, begins: &str, has: &str| {
        let refusal = start(&pair, settings).map(|_| ());
        let words = refusal.unwrap_err().to_string();
        assert!(words.starts_with(begins) && words.contains(has), "{words}");
    };
    let to_peer = |lengths| settings(datagrams(to(RECEIVER), lengths, 1), Choice::Auto, 10);
    // Linux would ask for any IPv4 address by ARP where no route says better.
    for (address, frame_bytes) in [("2001:db8::1", "84"), ("203.0.113.9", "64")] {
        let elsewhere = settings(datagrams(to(address), frame_bytes, 1), Choice::Auto, 10);
        let begins = format!("no route to {address} from 'em0'");
        refused(elsewhere, &begins, "add one");
    }
    let one =
        |address, frame_bytes| settings(datagrams(to(address), frame_bytes, 1), Choice::Auto, 10);
    refused(
        one("198.18.0.1", "64"),
        "198.18.0.1 is not",
        "one other host",
    );
    refused(to_peer("1519"), "frames of 1519 bytes", "allows 1518 with");
    refused(one("2001:2::2", "64"), "frames of 64 bytes", "take 84 with");
    // The kernel asks by ARP.
    run(&pair.sender, "ip neigh del 198.18.0.2 dev em0");
    let (received, _) = blast(&pair, to(RECEIVER), to_peer("64"));
    assert_eq!(received.len(), 10);
    run(&pair.sender, "ip link set em0 down");
    refused(to_peer("64"), "interface 'em0' is down", "bring it up");
}

#[test]
fn live_frames_are_refused_where_they_would_vanish() {
    needs!(Root, Ip);
    // Without GRO or an XDP program the receiver has no NAPI.
    let pair = Pair::new();
    let traffic = || datagrams(to(RECEIVER), "64", 1);
    let refused = start(
        &pair,
        settings(traffic(), Choice::Only(BlastPath::Live), 10),
    );
    let words = refused.map(|_| ()).unwrap_err().to_string();
    assert!(
        words.contains("all would vanish") && words.contains("gro on"),
        "{words}"
    );
    // The best that can be had says why it is not the best there is.
    let unpaced = BlastSettings {
        rate: None,
        ..settings(traffic(), Choice::Auto, 10)
    };
    let blast = start(&pair, unpaced).unwrap();
    let link = &blast.facts().links[0];
    assert_eq!(link.path, "af-xdp");
    assert!(link.refused_paths[0].why.contains("all would vanish"));
}

/// A capture of datagrams to the receiver, so many microseconds apart, each with a mark of its number.
fn capture(gap_us: u32, numbers: std::ops::Range<u64>) -> Vec<u8> {
    use nicpoll_wire::frame::{Mac, UdpPath};
    let path = UdpPath {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        source: "198.18.0.1:49152".parse().unwrap(),
        destination: to(RECEIVER),
    };
    let words = |words: [u32; 4]| words.into_iter().flat_map(u32::to_le_bytes);
    let mut file: Vec<u8> = words([0xa1b2_c3d4, 0x0004_0002, 0, 0]).collect();
    file.extend(words([65_535, 1, 0, 0]).take(8));
    for number in numbers {
        let mark = Mark {
            sequence: number,
            ..Mark::default()
        };
        let mut memory = [0; 128];
        let length = path.write(&mark.to_bytes(), &mut memory).unwrap();
        let (at, bytes) = (number as u32 * gap_us, length as u32);
        file.extend(words([at / 1_000_000, at % 1_000_000, bytes, bytes]));
        file.extend(&memory[..length]);
    }
    file
}

#[test]
fn a_capture_is_sent_as_it_was_recorded_and_not_faster() {
    needs!(Root, Ip);
    let pair = prepared();
    let file = std::env::temp_dir().join(format!("nicpoll-blast-{}.pcap", std::process::id()));
    std::fs::write(&file, capture(2_000, 0..100)).unwrap();
    let traffic = LinkTraffic::Replay {
        file: file.clone(),
        mac: None,
    };
    let replay = BlastSettings {
        rate: None,
        ..settings(traffic, Choice::Auto, 150)
    };
    let (received, end) = blast(&pair, to(RECEIVER), replay.clone());
    std::fs::remove_file(&file).unwrap();
    // It begins again when it is over, until as many are sent as were asked for.
    assert!(
        received
            .iter()
            .map(|it| it.2.sequence)
            .eq((0..100).chain(0..50))
    );
    assert_eq!(end.links[0].account.completed_frames, Some(150));
    // 149 gaps of 2 ms: earlier than that the last one is not due.
    assert!(end.duration_seconds >= 0.298, "{}", end.duration_seconds);
    let missing = start(&pair, replay);
    assert!(matches!(missing, Err(EngineError::Usage(_))));
}
