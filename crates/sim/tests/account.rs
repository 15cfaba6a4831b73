//! The CPU account that samples, beside the exact one.

mod common;

use nicpoll_model::sim::{SimCpu, SimHostFigures};
use nicpoll_sim::simulate;

fn host(discipline: &str, workload: &str, seconds: u64) -> SimHostFigures {
    let mut plan = common::plan(discipline, workload);
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
    let blind = host(polling, "poisson:rate=30k", 2);
    assert!(blind.cpu.soft_interrupt > 0.3, "{:?}", blind.cpu);
    assert!(sampled(&blind).soft_interrupt < 0.02, "{:?}", blind);
    let seen = host(
        &format!("{polling}:cpu.stat_hz=127"),
        "poisson:rate=30k",
        20,
    );
    for (exact, sampled) in [
        (seen.cpu.user, sampled(&seen).user),
        (seen.cpu.system, sampled(&seen).system),
        (seen.cpu.soft_interrupt, sampled(&seen).soft_interrupt),
        (seen.cpu.idle, sampled(&seen).idle),
    ] {
        assert!((exact - sampled).abs() < 0.03, "{seen:?}");
    }
}

/// A look waits for the end of a hard interrupt: their time is never seen, whoever looks.
#[test]
fn hard_interrupts_are_never_seen() {
    for stat_hz in [0, 128] {
        let discipline = format!("napi:cpu.stat_hz={stat_hz}");
        let host = host(&discipline, "constant:rate=30k", 2);
        assert!(host.cpu.interrupt > 0.05, "{:?}", host.cpu);
        assert_eq!(sampled(&host).interrupt, 0.0);
    }
}

/// The account changes nothing that it accounts for.
#[test]
fn a_run_is_the_same_whoever_looks_at_it() {
    let [without, with] = ["", ":cpu.stat_hz=9973"].map(|option| {
        let discipline = format!("freebsd-polling{option}");
        common::run(&discipline, "poisson:rate=90k")
    });
    assert_eq!(without.ledger, with.ledger);
    assert_eq!(without.latency, with.latency);
    assert_eq!(without.hosts[0].cpu, with.hosts[0].cpu);
    assert_ne!(without.hosts[0].cpu_sampled, with.hosts[0].cpu_sampled);
}
