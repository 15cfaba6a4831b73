//! Hosts of several processors and queues, and segments that are merged.

use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{PathHost, Simulation};

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
    let pps = |router: &str| routed(router, "netblast:flows=64").delivered_pps;
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
    let busy: Vec<f64> = router.cpus.iter().map(|cpu| 1.0 - cpu.idle).collect();
    assert_eq!(busy.len(), 4);
    assert!(
        busy[0] > 0.9 && busy[1..].iter().all(|busy| *busy < 0.05),
        "{busy:?}"
    );
    let mean = busy.iter().sum::<f64>() / 4.0;
    assert!((1.0 - router.cpu.idle - mean).abs() < 1e-9);
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
    let shared = alone("").delivered_pps;
    let apart = alone(":cpu.cpus=2:application.cpu=2");
    // What the program has left for itself it uses: it is full, and the other has time.
    above(apart.delivered_pps, 1.2 * shared);
    let busy: Vec<f64> = apart.hosts[0].cpus.iter().map(|cpu| cpu.user).collect();
    assert!(busy[0] == 0.0 && busy[1] > 0.5, "{busy:?}");
    // Waking it costs whoever wakes it.
    let soft = |wake: &str| {
        let discipline = format!("napi:cpu.cpus=2:application.cpu=2:cpu.wake_other_ns={wake}");
        let figures = run_short(vec![today(&discipline)], "constant:rate=50k");
        figures.hosts[0].cpus[0].soft_interrupt
    };
    assert!(soft("5us") > 1.5 * soft("0"));
    // A program on each processor with a queue.
    let each = alone(":cpu.cpus=4:card.queues=4");
    assert!(each.hosts[0].cpus.iter().all(|cpu| cpu.user > 0.3));
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
        // So slow that many wait for each poll, and the line is not what limits.
        let slow = format!("napi:network.gro={gro}:tcp.segment_ns=3000:network.ipv4_ns=1000");
        let mut plan = short(vec![today("napi"), today(&slow)], "iperf-tcp:window=256k");
        // The first segment alone waits for a delayed answer.
        plan.warmup_ns = 300_000_000;
        figures(&plan)
    };
    let (by_itself, merged) = (tcp(0), tcp(1));
    let rate = |figures: &SimFigures| figures.flows[0].delivered_payload_bits_per_second;
    above(rate(&merged), 1.5 * rate(&by_itself));
    let answers = |figures: &SimFigures| {
        figures.flows[1].delivered as f64 / figures.flows[0].delivered as f64
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
fn what_is_not_simulated_is_refused() {
    let one = "constant:rate=1k";
    let elsewhere = "the program runs where its packets come in";
    for (discipline, workload, words) in [
        (
            "napi:card.queues=2",
            one,
            "card.queues = 2 and application.cpu = 0 need",
        ),
        (
            "napi:application.cpu=3:cpu.cpus=2",
            one,
            "application.cpu = 3 need",
        ),
        (
            "freebsd-polling:cpu.cpus=2",
            one,
            "freebsd-polling is simulated on one processor and without GRO",
        ),
        (
            "freebsd-interrupt:network.gro=1",
            one,
            "network.gro = 0, or napi, napi-timer or busy-poll",
        ),
        ("napi:cpu.cpus=2:application.cpu=2", "rr", elsewhere),
        ("busy-poll:cpu.cpus=2:application.cpu=2", one, elsewhere),
        (
            "napi:cpu.cpus=2",
            "constant:rate=1k:payload=3000",
            "datagrams of 3000 bytes go in fragments",
        ),
    ] {
        assert_refused(&short(vec![today(discipline)], workload), words);
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let run = || routed("napi:cpu.cpus=4:card.queues=3", "netblast:flows=5");
    assert_eq!(run(), run());
}
