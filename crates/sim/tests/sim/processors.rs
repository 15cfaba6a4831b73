//! Hosts with several processors and queues, GRO, and two processors joined by a veth pair.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{HostModel, PathHost, Simulation, explain, simulate};

use crate::common::*;

/// The preset of today's hosts, under a discipline with other numbers.
fn today(discipline: &str) -> PathHost {
    stop(&named("linux"), discipline)
}

fn short(stops: Vec<PathHost>, workload: &str) -> Simulation {
    Simulation {
        duration_ns: 10_000_000,
        warmup_ns: 10_000_000,
        ..between(stops, workload)
    }
}

fn run_short(stops: Vec<PathHost>, workload: &str) -> SimFigures {
    figures(&short(stops, workload))
}

const EIGHT: &str = "napi:cpu.cpus=8:card.queues=8";

/// Packets a second through a router, from eight processors to eight.
fn routed(router: &str, workload: &str) -> SimFigures {
    run_short(vec![today(EIGHT), today(router), today(EIGHT)], workload)
}

#[test]
fn a_router_forwards_on_each_processor_that_has_a_queue() {
    let pps = |router: &str| routed(router, "netblast:flows=64").delivered_packets_per_second;
    let one = pps("napi");
    let four = pps("napi:cpu.cpus=4:card.queues=4");
    assert!((3.5..4.5).contains(&(four / one)), "{four} of {one}");
    // More processors without queues are no help.
    let idle = pps("napi:cpu.cpus=4");
    assert!((0.95..1.05).contains(&(idle / one)), "{idle} of {one}");
}

#[test]
fn one_flow_comes_in_by_one_queue() {
    let figures = routed("napi:cpu.cpus=4:card.queues=4", "netblast");
    let router = &figures.hosts[1];
    let busy: Vec<f64> = router.cpus.iter().map(|cpu| 1.0 - cpu.idle_ratio).collect();
    assert_eq!(busy.len(), 4);
    assert!(
        busy[0] > 0.9 && busy[1..].iter().all(|busy| *busy < 0.05),
        "{busy:?}"
    );
    let mean = busy.iter().sum::<f64>() / 4.0;
    assert!((1.0 - router.cpu.idle_ratio - mean).abs() < 1e-9);
}

#[test]
fn each_queue_has_a_timer_of_its_own() {
    let rounds = |queues: u8| {
        let several = format!("cpu.cpus=4:card.queues={queues}");
        let timer = today(&format!("napi-timer:timeout=100us:defer=1000000:{several}"));
        let figures = run_short(vec![timer], "constant:rate=400k:clients=8");
        let interrupting = run_short(
            vec![today(&format!("napi:{several}"))],
            "constant:rate=400k:clients=8",
        );
        assert!(figures.hosts[0].interrupts < interrupting.hosts[0].interrupts / 2);
        figures.hosts[0].napi.unwrap().timer_polls as f64
    };
    let more = rounds(4) / rounds(1);
    assert!((3.5..5.0).contains(&more), "{more}");
}

#[test]
fn a_program_takes_packets_from_the_processor_of_the_queue() {
    let alone = |more: &str| {
        let discipline = format!("napi:application.packet_ns=2000{more}");
        run_short(vec![today(&discipline)], "poisson:rate=1m:clients=50")
    };
    let shared = alone("").delivered_packets_per_second;
    let apart = alone(":cpu.cpus=2:application.cpu=2");
    // The program's processor is full, and the other one has time left.
    above(apart.delivered_packets_per_second, 1.2 * shared);
    let busy: Vec<f64> = apart.hosts[0]
        .cpus
        .iter()
        .map(|cpu| cpu.user_ratio)
        .collect();
    assert!(busy[0] == 0.0 && busy[1] > 0.5, "{busy:?}");
    // The waking processor pays for the wake-up.
    let soft = |wake: &str| {
        let discipline = format!("napi:cpu.cpus=2:application.cpu=2:cpu.wake_other_ns={wake}");
        let figures = run_short(vec![today(&discipline)], "constant:rate=50k");
        figures.hosts[0].cpus[0].soft_interrupt_ratio
    };
    assert!(soft("5us") > 1.5 * soft("0"));
    // A program on each processor with a queue.
    let each = alone(":cpu.cpus=4:card.queues=4");
    assert!(each.hosts[0].cpus.iter().all(|cpu| cpu.user_ratio > 0.3));
}

#[test]
fn ledgers_close_however_queues_and_programs_are_placed() {
    for (cpus, queues, program) in [(2, 1, 0), (3, 2, 3), (4, 4, 2), (16, 16, 0)] {
        let several = format!("cpu.cpus={cpus}:card.queues={queues}:card.rx_ring=64");
        for method in ["napi", "napi-timer:timeout=200us"] {
            let placed = today(&format!("{method}:{several}:application.cpu={program}"));
            let router = today(&format!("{method}:{several}"));
            run_short(vec![placed.clone()], "poisson:rate=2m:clients=40:links=2");
            for workload in ["netblast:flows=7", "rr", "iperf-udp:rate=200m"] {
                run_short(
                    vec![placed.clone(), router.clone(), placed.clone()],
                    workload,
                );
            }
        }
    }
    let several = "napi:cpu.cpus=3:card.queues=2";
    run_short(vec![today(several)], "rr:clients=20:links=2");
    let busy = today("busy-poll:cpu.cpus=2:card.queues=2");
    run_short(vec![busy], "poisson:rate=200k:clients=9");
    run_short(vec![today(several); 3], "iperf-tcp:dual=1");
}

#[test]
fn merged_segments_cost_less_and_are_answered_once() {
    let tcp = |gro: u8| {
        // So slow that many segments wait for each poll, and the line is not the limit.
        let slow = format!("napi:network.gro={gro}:tcp.segment_ns=3000:network.ipv4_ns=1000");
        let mut plan = short(vec![today("napi"), today(&slow)], "iperf-tcp:window=256k");
        // The first segment alone waits for a delayed acknowledgement.
        plan.warmup_ns = 300_000_000;
        figures(&plan)
    };
    let (by_itself, merged) = (tcp(0), tcp(1));
    let rate = |figures: &SimFigures| figures.flows[0].delivered_payload_bits_per_second;
    above(rate(&merged), 1.5 * rate(&by_itself));
    let answers = |figures: &SimFigures| {
        figures.flows[1].delivered_datagrams as f64 / figures.flows[0].delivered_datagrams as f64
    };
    assert!(answers(&by_itself) > 0.4, "{}", answers(&by_itself));
    below(answers(&merged), 0.5 * answers(&by_itself));
    // Datagrams are not merged.
    let udp = |gro: u8| {
        run_short(
            vec![today(&format!("napi:network.gro={gro}"))],
            "poisson:rate=500k",
        )
    };
    assert_eq!(udp(0), udp(1));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let run = || routed("napi:cpu.cpus=4:card.queues=3", "netblast:flows=5");
    assert_eq!(run(), run());
}

// Two processors joined by a veth pair.

const WAKE_NS: u64 = 700;
const DELAY_NS: u64 = 9_000;

fn veth_host() -> HostModel {
    let mut host = host();
    host.set("veth.pair", 1).unwrap();
    host.set("veth.wake_ns", WAKE_NS).unwrap();
    host.set("veth.wake_delay_ns", DELAY_NS).unwrap();
    // No tick comes between.
    host.set("cpu.hz", 1).unwrap();
    host
}

fn pair(disciplines: [&str; 2], workload: &str) -> Simulation {
    let mut plan = path(&disciplines, workload);
    for stop in &mut plan.stops {
        stop.host = veth_host();
    }
    plan
}

fn run_pair(disciplines: [&str; 2], workload: &str) -> SimFigures {
    figures(&pair(disciplines, workload))
}

/// Returns the cost of a call up to the driver, with 64 bytes of payload.
fn call(host: &HostModel) -> u64 {
    host.cpu.syscall_ns + host.network.output_ns + host.socket.copy_kib_ns * 64 / 1024
}

/// Returns the cost of receiving one packet, which the sending processor pays.
fn softirq(host: &HostModel) -> u64 {
    host.card.poll_ns + host.card.rx_packet_ns + host.network.ipv4_ns + host.network.udp_ns
}

fn read(host: &HostModel) -> u64 {
    host.cpu.syscall_ns + host.socket.copy_kib_ns * 64 / 1024
}

#[test]
fn a_request_is_taken_in_by_the_processor_that_sent_it() {
    let figures = run_pair(["napi", "napi"], "rr");
    let host = veth_host();
    // From the call's end on. The sender continues while the wake-up reaches the other processor.
    let there = host.card.tx_packet_ns + softirq(&host);
    let taken_up = DELAY_NS + host.cpu.context_switch_ns + read(&host);
    let answer = host.application.packet_ns + call(&host);
    let trip = figures.flows[0].round_trip.as_ref().unwrap();
    let expected = 2 * (there + taken_up) + answer;
    close(trip.mean_ns.unwrap(), expected as f64, 0.002);
    for host in &figures.hosts {
        assert_eq!(host.interrupts, 0, "a veth pair has no interrupts");
        let polls = host.napi.unwrap().polls;
        assert!(polls.abs_diff(host.ledger.made_packets) <= 1, "{polls}");
    }
    assert!(figures.lines.is_empty(), "nor a line");
}

#[test]
fn a_blast_pays_for_its_own_reception_and_for_waking() {
    // Long enough for several packets to come before the reader runs.
    let slow = "napi:veth.wake_delay_ns=50us";
    let figures = run_pair([slow, slow], "netblast");
    let host = veth_host();
    let wakes = figures.hosts[1].context_switches / 2;
    let sent = figures.flows[0].calls;
    let each = call(&host) + host.card.tx_packet_ns + softirq(&host) + host.application.packet_ns;
    let all_ns = sent * each + wakes * WAKE_NS;
    close(all_ns as f64, 2e8, 0.001);
    assert!(wakes > 0 && wakes < sent, "{wakes} of {sent}");
    assert_eq!(figures.ledger.lost(), 0);
    // The reader's processor has nothing but reading, and sleeps between.
    let reader = read(&host) + host.application.packet_ns;
    let busy_ns = (1.0 - figures.hosts[1].cpu.idle_ratio) * 2e8;
    let expected = sent * reader + wakes * host.cpu.context_switch_ns;
    close(busy_ns, expected as f64, 0.002);
}

#[test]
fn the_receivers_discipline_rules_its_end_on_the_senders_processor() {
    let timer = "napi-timer:timeout=1ms:defer=1000";
    // Rings and timers are those of the sending processor.
    let sender = "napi:card.rx_ring=16:veth.timer_delay_ns=20us";
    let figures = run_pair([sender, timer], "netblast");
    let host = veth_host();
    let round = host.cpu.interrupt_entry_ns
        + softirq(&host)
        + 15 * (softirq(&host) - host.card.poll_ns)
        + WAKE_NS;
    let rounds = 200_000_000 / (1_000_000 + 20_000 + round);
    let napi = figures.hosts[0].napi.unwrap();
    assert!(napi.timer_polls.abs_diff(rounds) <= 1, "{napi:?}, {rounds}");
    let delivered = figures.flows[0].delivered_datagrams;
    assert!(delivered.abs_diff(16 * rounds) <= 16, "{delivered}");
    assert_eq!(
        figures.ledger.lost(),
        figures.ledger.lost_at(0, LossPlace::RxRing)
    );
    // Replies wait for the timer of the other end, requests for none.
    let replies = run_pair([timer, "napi"], "rr");
    let trip = replies.flows[0].round_trip.as_ref().unwrap();
    assert!(trip.mean_ns.unwrap() > 1_000_000.0, "{trip:?}");
}

#[test]
fn what_holds_back_is_the_processor_that_does_the_work() {
    let plan = pair(["napi", "napi"], "netblast");
    let figures = simulate(&plan).unwrap();
    let found = explain(&plan, &figures).unwrap();
    assert_eq!(found.resource, "processor of generic (host 1)");
    assert!(!found.explanation.contains("line"), "{found:?}");
    // Cheaper work counts where it is done, and the other end's discipline at the other end.
    let moves = || {
        found
            .moves
            .iter()
            .flatten()
            .map(|tried| tried.change.as_str())
    };
    for (beginning, is_there) in [
        ("host 1: card.rx_packet_ns", true),
        ("host 2: card.", false),
        ("host 1: discipline", false),
    ] {
        let is_found = moves().any(|change| change.starts_with(beginning));
        assert_eq!(is_found, is_there, "{beginning}: {found:?}");
    }
}

#[test]
fn a_veth_pair_has_two_ends_and_napi() {
    let alone = pair(["napi", "napi"], "netblast");
    let blast = on(&alone.stops[0].host, &plan("napi", "blast"));
    let mut mixed = alone.clone();
    mixed.stops[1].host = host();
    let mut routed = alone.clone();
    routed.stops.push(routed.stops[0].clone());
    for plan in [blast, mixed, routed] {
        assert_refused(&plan, "one of two processors joined by a veth pair");
    }
    for other in ["freebsd-interrupt", "freebsd-polling", "busy-poll"] {
        assert_refused(&pair(["napi", other], "rr"), "a veth pair has NAPI only");
    }
    let stream = pair(["napi", "napi"], "iperf-tcp");
    assert_refused(&stream, "over a veth pair TCP is not simulated");
}
