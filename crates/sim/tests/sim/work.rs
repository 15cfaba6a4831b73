//! The estimates for a run beforehand: its work, and the warm-up in which a poller's burst climbs.

use nicpoll_sim::{explain_work, simulate, warmup_ns};

use crate::common::*;

/// As `nicpoll sim` estimates.
const PACKETS_PER_SECOND: f64 = 5e6;

#[test]
fn the_default_warm_up_covers_the_climb_of_the_burst() {
    for (discipline, seconds_max) in [
        ("freebsd-interrupt", 0.5),
        ("freebsd-polling", 0.5),
        ("freebsd-polling:cpu.hz=100", 2.0),
        ("freebsd-polling:cpu.hz=100:controller=share", 0.5),
        // The share of a tick that polling has ends the climb long before burst_max does.
        ("freebsd-polling:cpu.hz=2000:burst_max=20000", 0.5),
        ("freebsd-polling:cpu.hz=50:user_frac=99:burst_max=1000", 1.0),
    ] {
        let mut plan = plan(discipline, "poisson:rate=60k");
        plan.duration_ns = 1_000_000_000;
        plan.warmup_ns = warmup_ns(&plan.stops);
        assert!(
            plan.warmup_ns as f64 <= seconds_max * 1e9,
            "{discipline}: {} ns",
            plan.warmup_ns
        );
        let found = simulate(&plan).unwrap().delivered_packets_per_second;
        plan.warmup_ns = 20_000_000_000;
        let settled = simulate(&plan).unwrap().delivered_packets_per_second;
        let error = found / settled - 1.0;
        assert!(error.abs() < 0.02, "{discipline}: {found}, {settled}");
    }
}

#[test]
fn the_work_covers_polls_for_nothing_and_the_trials_of_what_moves_a_bottleneck() {
    let seconds = |discipline: &str, workload: &str| {
        let mut plan = plan(discipline, workload);
        plan.duration_ns = 1_000_000_000;
        plan.warmup_ns = 500_000_000;
        [plan.work(), explain_work(&plan)].map(|work| work / PACKETS_PER_SECOND)
    };
    let [run, trials] = seconds("freebsd-interrupt", "constant:rate=1g");
    assert!(run > 200.0 && trials > 10.0 * run, "{run}, {trials}");
    let [run, trials] = seconds("freebsd-interrupt", "constant:rate=50k");
    assert!(run < 1.0 && trials < 20.0, "{run}, {trials}");
    for busy in [
        "freebsd-polling:idle_poll=1:card.poll_ns=1",
        "busy-poll:card.poll_ns=1",
        "napi-timer:timeout=1us",
    ] {
        let [idle, _] = seconds("napi", "constant:rate=1");
        let [run, _] = seconds(busy, "constant:rate=1");
        assert!(run > 20.0 * idle, "{busy}: {run}, {idle}");
    }
}

/// A program that calls as fast as it can does not call a million times a second on every host.
#[test]
fn the_work_of_a_sender_follows_from_its_costs() {
    let work = |syscall_ns: u64| {
        let plan = plan(
            &format!("freebsd-interrupt:cpu.syscall_ns={syscall_ns}"),
            "blast",
        );
        let calls = simulate(&plan).unwrap().ledger.offered_datagrams as f64;
        assert!(plan.work() >= calls, "{} for {calls}", plan.work());
        plan.work()
    };
    assert!(work(1) > 1.2 * work(10_000));
}
