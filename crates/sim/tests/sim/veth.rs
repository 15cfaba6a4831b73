//! Two processors that a veth pair joins, in runs whose outcome can be computed by hand.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{HostModel, Simulation, explain, simulate};

use crate::common::*;

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

/// What a call costs up to the driver, with 64 bytes of payload.
fn call(host: &HostModel) -> u64 {
    host.cpu.syscall_ns + host.network.output_ns + host.socket.copy_kib_ns * 64 / 1024
}

/// What taking in one packet costs the processor that sent it.
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
    // From the call's end on. The waker goes on while the other processor hears of it.
    let there = host.card.tx_packet_ns + softirq(&host);
    let taken_up = DELAY_NS + host.cpu.context_switch_ns + read(&host);
    let answer = host.application.packet_ns + call(&host);
    let trip = figures.flows[0].round_trip.as_ref().unwrap();
    let expected = 2 * (there + taken_up) + answer;
    close(trip.mean_ns.unwrap(), expected as f64, 0.002);
    for host in &figures.hosts {
        assert_eq!(host.interrupts, 0, "a veth pair has no interrupts");
        let polls = host.napi.unwrap().polls;
        assert!(polls.abs_diff(host.ledger.made) <= 1, "{polls}");
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
    let busy_ns = (1.0 - figures.hosts[1].cpu.idle) * 2e8;
    let expected = sent * reader + wakes * host.cpu.context_switch_ns;
    close(busy_ns, expected as f64, 0.002);
}

#[test]
fn the_receivers_discipline_rules_its_end_on_the_senders_processor() {
    let timer = "napi-timer:timeout=1ms:defer=1000";
    // Rings and timers are the processor's on which the packets are sent.
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
    let delivered = figures.flows[0].delivered;
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
        assert_refused(&plan, "one of two processors that a veth pair joins");
    }
    for other in ["freebsd-interrupt", "freebsd-polling", "busy-poll"] {
        assert_refused(&pair(["napi", other], "rr"), "a veth pair has NAPI only");
    }
    let stream = pair(["napi", "napi"], "iperf-tcp");
    assert_refused(&stream, "over a veth pair TCP is not simulated");
}
