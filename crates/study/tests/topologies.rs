//! Other topologies than a pair, and other traffic than one stream: deliveries, and closing accounts.

mod common;

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::TestLab;
use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_lab::{
    BackgroundTraffic, Commands, Lab, Running, Topology, TrafficOptions, Veth, WorkloadRequest,
};
use nicpoll_model::line::IpVersion;
use nicpoll_model::{ControlKind, LossPlace, Protocol, Side};
use nicpoll_observe::{Account, CountedDatagrams, HostSnapshot, LedgerHosts, packet_ledger};
use nicpoll_study::NamedWorkload;
use nicpoll_switch::{Journal, Owner};
use nicpoll_testkit::needs;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::scheduled::PulseWorkload;
use nicpoll_traffic::workload::Books;

const DURATION: Duration = Duration::from_millis(200);
const QUIET: Duration = Duration::from_millis(10);

fn topology(text: &str) -> Topology {
    toml::from_str(text).unwrap()
}

/// Runs `workload` over `topology` and returns its books with all hosts' counters before and after.
fn run(topology: &Topology, workload: &NamedWorkload) -> (Books, Lab, Vec<[HostSnapshot; 2]>) {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::at(state.path().join("state"));
    let veth = Arc::new(Veth::of(topology).unwrap());
    let mut lab = Lab::local(veth.link(), &journal, Owner::this_process().unwrap()).unwrap();
    let counters = |lab: &mut Lab| {
        let mut all = vec![
            lab.sender.counters().unwrap(),
            lab.receiver.counters().unwrap(),
        ];
        all.extend(lab.router.as_mut().map(|router| router.counters().unwrap()));
        all
    };
    let before = counters(&mut lab);
    let mut running = Running::start(&mut lab, workload, DURATION).unwrap();
    running
        .wait_for_sender(&mut lab, &AtomicBool::new(false))
        .unwrap();
    let books = running.drain(&mut lab, QUIET).unwrap();
    let after = counters(&mut lab);
    let both = before
        .into_iter()
        .zip(after)
        .map(|(before, after)| [before, after]);
    (books, lab, both.collect())
}

fn named(request: WorkloadRequest, options: TrafficOptions) -> NamedWorkload {
    NamedWorkload {
        name: String::from("traffic"),
        description: request.describe(),
        request,
        options,
        load: None,
        commands: Commands::default(),
    }
}

fn udp(payload_bytes: u16, packets_per_second: u64) -> WorkloadRequest {
    WorkloadRequest::Udp(UdpWorkload {
        payload_bytes,
        packets_per_second: NonZeroU64::new(packets_per_second),
        receive_buffer_bytes: Some(8 << 20),
    })
}

#[test]
fn a_router_forwards_both_versions_of_ip_and_its_counters_are_in_the_account() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    for ip in [IpVersion::V4, IpVersion::V6] {
        let options = TrafficOptions {
            ip,
            ..TrafficOptions::default()
        };
        let workload = named(udp(200, 2000), options);
        let (books, _lab, counters) = run(&topology("kind = \"router\""), &workload);
        let (offered, delivered) = books.packets.unwrap();
        assert!(delivered > 100, "{ip:?}: {books:?}");
        let account = |index: usize| {
            let [before, after] = &counters[index];
            Account { before, after }
        };
        let hosts = LedgerHosts {
            router: Some(account(2)),
            is_ipv6: ip == IpVersion::V6,
            ..LedgerHosts::pair(account(0), account(1))
        };
        let datagrams = CountedDatagrams {
            offered,
            delivered,
            duplicates: books.duplicate_packets,
            control: books.control,
        };
        let ledger = packet_ledger(datagrams, hosts);
        assert_eq!(ledger.residual_packets, Some(0), "{ip:?}: {ledger:?}");
        let router = ledger
            .lines
            .iter()
            .find(|line| line.place == LossPlace::Router);
        assert!(router.unwrap().packets.is_some());
        let forwarded = ledger.cross_checks.iter().map(|check| check.packets);
        assert!(forwarded.max().unwrap() >= delivered, "{ip:?}: {ledger:?}");
    }
}

#[test]
fn links_side_by_side_carry_the_traffic_each_and_their_rates_add_up() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let pulses = WorkloadRequest::Pulses(PulseWorkload {
        payload_bytes: 100,
        packets_per_pulse: NonZeroU32::new(2).unwrap(),
        receive_buffer_bytes: None,
    });
    let workload = named(pulses, TrafficOptions::default());
    let (books, lab, counters) = run(&topology("links = 4"), &workload);
    let (offered, delivered) = books.packets.unwrap();
    // Two each ms on each of four links for 200 ms, as far as the machine allows.
    assert!((800..=1600).contains(&offered), "{books:?}");
    assert!(delivered <= offered && 2 * delivered > offered, "{books:?}");
    let addresses = &lab.link.end(Side::Receiver).addresses;
    let ipv4 = addresses.iter().filter(|(address, _)| address.is_ipv4());
    assert_eq!(ipv4.count(), 4);
    let [before, after] = &counters[1];
    let received = |name: &str| {
        let of = |counters: &HostSnapshot| {
            let interfaces = counters.interfaces.as_ref().unwrap();
            let found = interfaces.values().find(|one| one.name == name);
            found.unwrap().link.rx_packets
        };
        of(after) - of(before)
    };
    for link in ["em0", "em1", "em2", "em3"] {
        assert!(received(link) > offered / 8, "{link}: {}", received(link));
    }
}

#[test]
fn a_line_is_no_faster_than_its_rate_and_says_so() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let tcp = named(
        WorkloadRequest::Tcp(TcpWorkload {}),
        TrafficOptions::default(),
    );
    let begun = Instant::now();
    let (books, lab, _) = run(&topology("rate = \"20Mbit/s\""), &tcp);
    // The queue's content adds to what the line carried meanwhile.
    let seconds = begun.elapsed().as_secs_f64();
    let most = 20e6 * seconds / 8.0 + 256e3;
    assert!((books.delivered_bytes as f64) < most, "{books:?}");
    assert!(books.delivered_bytes > 10_000, "{books:?}");
    let line = lab.link.line.as_ref().unwrap();
    assert_eq!(line.bits_per_second.get(), 20_000_000);
}

#[test]
fn a_session_is_answered_beside_a_flood_and_traffic_goes_both_ways() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let rr = WorkloadRequest::Rr(RrWorkload {
        requests_per_second: NonZeroU32::new(500),
        ..RrWorkload::default()
    });
    let flood = TrafficOptions {
        background: vec![BackgroundTraffic {
            traffic: udp(64, 20_000),
            from: Side::Receiver,
        }],
        ..TrafficOptions::default()
    };
    let pair = Topology::default();
    let (books, ..) = run(&pair, &named(rr, flood));
    let trips = books.round_trip.unwrap();
    assert!((20..=101).contains(&trips.transactions), "{trips:?}");
    // The account has the flood, and the rate does not.
    assert!(
        books.packets.unwrap().0 > 2 * trips.transactions + 500,
        "{books:?}"
    );
    let received = books.receiver.packets.unwrap();
    assert!(received <= trips.transactions + trips.timeouts, "{books:?}");

    let dual = TrafficOptions {
        both_ways: true,
        ..TrafficOptions::default()
    };
    let (books, ..) = run(&pair, &named(udp(200, 1000), dual));
    let (offered, delivered) = books.packets.unwrap();
    assert!(
        (200..=402).contains(&offered) && delivered > 100,
        "{books:?}"
    );
    assert_eq!(books.receiver.packets, Some(delivered));
    let fins = books
        .control
        .iter()
        .filter(|line| line.kind == ControlKind::Fin);
    assert_eq!(fins.count(), 2, "FINs of both ways");
}

#[test]
fn a_session_over_tcp_is_answered_beside_a_flood_of_datagrams() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let session = WorkloadRequest::Rr(RrWorkload {
        requests_per_second: NonZeroU32::new(200),
        protocol: Some(Protocol::Tcp),
        ..RrWorkload::default()
    });
    assert!(session.describe().contains("over TCP"));
    let flood = TrafficOptions {
        background: vec![BackgroundTraffic {
            traffic: udp(64, 20_000),
            from: Side::Sender,
        }],
        ..TrafficOptions::default()
    };
    let (books, ..) = run(&Topology::default(), &named(session, flood));
    let trips = books.round_trip.unwrap();
    assert!((5..=41).contains(&trips.transactions), "{trips:?}");
    // A stream is counted in bytes: requests and answers of 64 each.
    assert_eq!(books.packets, None);
    assert!(
        books.delivered_bytes >= 2 * 64 * trips.transactions,
        "{books:?}"
    );
    assert_eq!(books.offered_bytes, books.delivered_bytes, "{books:?}");
}

#[test]
fn many_clients_share_a_rate_and_are_all_answered() {
    needs!(Root, PerNapi);
    let _alone = TestLab::alone();
    let clients = |requests_per_second| {
        WorkloadRequest::Rr(RrWorkload {
            clients: NonZeroU16::new(20),
            requests_per_second: NonZeroU32::new(requests_per_second),
            ..RrWorkload::default()
        })
    };
    let pair = Topology::default();
    let (open, ..) = run(&pair, &named(clients(2000), TrafficOptions::default()));
    let trips = open.round_trip.unwrap();
    assert!((200..=420).contains(&trips.transactions), "{trips:?}");
    let (closed, ..) = run(&pair, &named(clients(0), TrafficOptions::default()));
    let faster = closed.round_trip.unwrap();
    assert!(faster.transactions > trips.transactions, "{faster:?}");
    assert_eq!(faster.timeouts, 0);
}
