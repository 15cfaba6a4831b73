//! The rules of each discipline, each in a run of its own; the sampling CPU account, interrupt storms on a router,
//! and the effect of chance.

use nicpoll_model::sim::{SimCpu, SimFigures, SimHostFigures};
use nicpoll_sim::{Simulation, simulate};

use crate::common::*;

#[test]
fn empty_polls_are_deferred_as_often_as_asked_and_then_interrupts_return() {
    let figures = run("napi-timer:defer=3:timeout=100us", "constant:rate=100");
    let packets = figures.ledger.offered_datagrams;
    assert_eq!(figures.hosts[0].interrupts, packets);
    // The poll that found the packet, and three by the timer that find nothing.
    let napi = figures.hosts[0].napi.unwrap();
    assert_eq!((napi.timer_polls, napi.polls), (3 * packets, 4 * packets));
    assert_eq!(napi.empty_polls, 3 * packets);
}

#[test]
fn passes_with_sleeps_between_are_no_storm() {
    let storm = run("freebsd-interrupt:storm.threshold=20", "constant:rate=1k").hosts[0]
        .storm
        .unwrap();
    assert!(storm.passes >= 199, "{storm:?}");
    assert_eq!(storm.throttled_passes, 0);
}

#[test]
fn a_full_poll_leaves_the_rest_to_the_program_that_polls() {
    // From the first packet on more comes than the host can take: the program gets its turn all the same.
    let figures = run("busy-poll", "constant:rate=200k");
    above(figures.delivered_packets_per_second, 60_000.0);
    let napi = figures.hosts[0].napi.unwrap();
    assert!(napi.busy_polls > 1000, "{napi:?}");
}

#[test]
fn a_program_that_polls_is_not_disturbed_by_the_timer() {
    let figures = run("busy-poll:spin=1ms", "constant:rate=5k");
    assert_eq!(figures.hosts[0].interrupts, 0);
    assert_eq!(figures.hosts[0].napi.unwrap().timer_polls, 0);
    below(cpu(&figures).idle_ratio, 0.01);
}

#[test]
fn a_look_at_the_status_is_dear_and_rare() {
    let soft = |reg_frac: u32| {
        let discipline = format!("freebsd-polling:card.status_ns=100us:reg_frac={reg_frac}");
        run(&discipline, "constant:rate=1k").hosts[0]
            .cpu
            .soft_interrupt_ratio
    };
    // 1000 a second of 100 us, or 100.
    let difference = soft(1) - soft(10);
    assert!((difference - 0.09).abs() < 0.005, "{difference}");
}

#[test]
fn ksoftirqd_and_the_program_take_turns() {
    // The program always has work, and so has NAPI once it has been handed over.
    let figures = run("napi:application.packet_ns=1ms", "constant:rate=200k");
    above(cpu(&figures).system_ratio, 0.5);
    above(cpu(&figures).user_ratio, 0.05);
    let short = run(
        "napi:application.packet_ns=1ms:budget=64",
        "constant:rate=200k",
    );
    // A softirq ends with the pass in which somebody else's turn comes, so short passes are fairer.
    assert!(cpu(&short).user_ratio > 0.3, "{:?}", cpu(&short));
}

const SHARE: &str =
    "freebsd-polling:controller=share:burst_max=4000:each_burst=64:link.bits_per_second=10g";

/// The knee is the least load at which 95 % of the most is delivered.
#[test]
fn share_holds_its_peak_beyond_its_knee_alone_and_next_to_a_program() {
    let peaks = [0, 1].map(|computing| {
        let discipline = format!("{SHARE}:application.computing={computing}");
        let at = |rate: u32| run(&discipline, &format!("poisson:rate={rate}"));
        let loads: Vec<u32> = (2..=12).map(|tenth| tenth * 10_000).collect();
        let delivered: Vec<f64> = loads
            .iter()
            .map(|load| at(*load).delivered_packets_per_second)
            .collect();
        let peak = delivered.iter().copied().fold(0.0, f64::max);
        let knee = delivered.iter().position(|pps| *pps >= 0.95 * peak);
        let knee = loads[knee.unwrap()];
        for times in [2, 4, 8] {
            let figures = at(times * knee);
            above(figures.delivered_packets_per_second, 0.98 * peak);
            // Programs keep what `user_frac` says, but for interrupts.
            let of_programs = cpu(&figures).user_ratio + cpu(&figures).system_ratio;
            above(of_programs, if computing > 0 { 0.48 } else { 0.1 });
        }
        peak
    });
    above(peaks[0], 1.3 * peaks[1]);
}

#[test]
fn only_share_polls_in_time_that_nobody_claims() {
    let idle = |controller: &str| {
        let figures = run(
            &format!("freebsd-polling:user_frac=90:controller={controller}"),
            "poisson:rate=200k",
        );
        cpu(&figures).idle_ratio
    };
    above(idle("freebsd"), 0.5);
    below(idle("share"), 1.0 / 16.0);
}

#[test]
fn a_program_that_computes_has_all_that_others_leave() {
    for discipline in ["freebsd-interrupt", "freebsd-polling", "napi", "busy-poll"] {
        let [alone, next_to] = [0, 1].map(|computing| {
            let discipline = format!("{discipline}:application.computing={computing}");
            run(&discipline, "constant:rate=2k")
        });
        assert_eq!(cpu(&next_to).idle_ratio, 0.0, "{discipline}");
        above(cpu(&next_to).user_ratio, cpu(&alone).user_ratio + 0.5);
        // It does not keep the other program from its packets.
        assert_eq!(next_to.loss_ratio, Some(0.0), "{discipline}");
    }
}

fn sampled_host(discipline: &str, workload: &str, seconds: u64) -> SimHostFigures {
    let mut plan = plan(discipline, workload);
    plan.duration_ns = seconds * 1_000_000_000;
    simulate(&plan).unwrap().hosts.remove(0)
}

fn sampled(host: &SimHostFigures) -> SimCpu {
    host.cpu_sampled.expect("it was sampled")
}

/// Polls begin at a tick. An account that samples at the same tick looks before them, and one with a clock of its own
/// sees them.
#[test]
fn the_tick_that_starts_the_polls_does_not_see_them() {
    let polling = "freebsd-polling:user_frac=50";
    let blind = sampled_host(polling, "poisson:rate=30k", 2);
    assert!(blind.cpu.soft_interrupt_ratio > 0.3, "{:?}", blind.cpu);
    assert!(sampled(&blind).soft_interrupt_ratio < 0.02, "{:?}", blind);
    let seen = sampled_host(
        &format!("{polling}:cpu.stat_hz=127"),
        "poisson:rate=30k",
        20,
    );
    for (exact, sampled) in [
        (seen.cpu.user_ratio, sampled(&seen).user_ratio),
        (seen.cpu.system_ratio, sampled(&seen).system_ratio),
        (
            seen.cpu.soft_interrupt_ratio,
            sampled(&seen).soft_interrupt_ratio,
        ),
        (seen.cpu.idle_ratio, sampled(&seen).idle_ratio),
    ] {
        assert!((exact - sampled).abs() < 0.03, "{seen:?}");
    }
}

/// A look waits for the end of a hard interrupt: their time is never seen, whoever looks.
#[test]
fn hard_interrupts_are_never_seen() {
    for stat_hz in [0, 128] {
        let discipline = format!("napi:cpu.stat_hz={stat_hz}");
        let host = sampled_host(&discipline, "constant:rate=30k", 2);
        assert!(host.cpu.interrupt_ratio > 0.05, "{:?}", host.cpu);
        assert_eq!(sampled(&host).interrupt_ratio, 0.0);
    }
}

/// Sampling does not change the run.
#[test]
fn a_run_is_the_same_whoever_looks_at_it() {
    let [without, with] = ["", ":cpu.stat_hz=9973"].map(|option| {
        let discipline = format!("freebsd-polling{option}");
        run(&discipline, "poisson:rate=90k")
    });
    assert_eq!(without.ledger, with.ledger);
    assert_eq!(without.latency, with.latency);
    assert_eq!(cpu(&without), cpu(&with));
    assert_ne!(without.hosts[0].cpu_sampled, with.hosts[0].cpu_sampled);
}

/// A router of 100 ticks a second under a load that it does not quite carry.
fn routed(options: &str, seconds: u64) -> SimFigures {
    let router = format!("freebsd-interrupt:cpu.hz=100:{options}");
    let node = || stop(&named("node"), "freebsd-interrupt");
    let stops = vec![node(), stop(&named("net6501"), &router), node()];
    figures(&Simulation {
        duration_ns: seconds * 1_000_000_000,
        warmup_ns: 3_000_000_000,
        ..between(stops, "iperf-udp:rate=1g")
    })
}

/// Without a task a tick brings only one throttled pass, and the source never goes quiet.
#[test]
fn a_throttled_driver_without_a_task_falls_and_stays_down() {
    let calm = routed("card.hands_over=0:storm.threshold=0", 1);
    let storm = routed("card.hands_over=0:storm.threshold=1000", 2);
    assert!(storm.delivered_packets_per_second < 0.25 * calm.delivered_packets_per_second);
    // A hundred passes of a hundred packets a second.
    assert!((storm.delivered_packets_per_second / 10_000.0 - 1.0).abs() < 0.02);
    let of = storm.hosts[1].storm.unwrap();
    assert_eq!(of.reports, 2, "{of:?}");
}

/// With a task the storm is reported, and costs nothing: the task takes what a throttled pass leaves.
#[test]
fn a_driver_that_hands_over_weathers_the_storm() {
    let calm = routed("card.hands_over=1:storm.threshold=0", 1);
    let storm = routed("card.hands_over=1:storm.threshold=1000", 2);
    let of = storm.hosts[1].storm.unwrap();
    assert!(of.throttled_passes > 0 && of.reports > 0, "{of:?}");
    above(
        storm.delivered_packets_per_second,
        0.99 * calm.delivered_packets_per_second,
    );
    // The task goes on without interrupts, while more comes than a pass takes.
    let interrupts = |figures: &SimFigures| figures.hosts[1].cards[0].interrupts;
    assert_eq!(interrupts(&calm), 0, "{:?}", calm.hosts[1].cards);
}

/// UDP between the two servers of table A: under polling the loss depends on the phase of the clocks, under
/// interrupts it does not.
#[test]
fn what_hangs_on_the_phase_of_two_clocks_has_a_range() {
    let loss = |discipline: &str| {
        let hosts = ["asa633", "poweredge"].map(|name| stop(&named(name), discipline));
        let plan = between(hosts.to_vec(), "iperf-udp:rate=500m");
        let of = |seed| {
            let plan = Simulation {
                duration_ns: 500_000_000,
                warmup_ns: 500_000_000,
                seed,
                ..plan.clone()
            };
            simulate(&plan).unwrap().loss_ratio.unwrap()
        };
        let lost: Vec<f64> = (1..=12).map(of).collect();
        let least = lost.iter().copied().fold(1.0, f64::min);
        lost.iter().copied().fold(0.0, f64::max) - least
    };
    above(loss("freebsd-polling"), 0.1);
    below(loss("freebsd-interrupt"), 0.02);
}
