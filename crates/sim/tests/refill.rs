//! What a preempted thread pays for its caches, in runs whose outcome can be computed by hand.

mod common;

use common::{host, plan, run};
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::simulate;

const REFILL_NS: u64 = 20_000;

fn with_refill(discipline: &str, workload: &str) -> SimFigures {
    run(&format!("{discipline}:cpu.refill_ns={REFILL_NS}"), workload)
}

/// How much longer a program that never waits takes for a call, in nanoseconds.
fn longer_ns(discipline: &str) -> f64 {
    let call_ns = |figures: SimFigures| 1e9 / figures.offered_pps;
    call_ns(with_refill(discipline, "blast")) - call_ns(run(discipline, "blast"))
}

fn close(measured: f64, expected: f64, share: f64) {
    let error = (measured - expected).abs() / expected;
    assert!(error <= share, "{measured} where {expected} was expected");
}

#[test]
fn an_interrupt_for_each_frame_costs_its_sender_a_refill_each() {
    // Interrupt and thread make one preemption; the clock's ticks are none.
    close(longer_ns("freebsd-interrupt"), REFILL_NS as f64, 0.01);
    // A softirq has no thread of its own, and takes the caches all the same.
    close(longer_ns("napi"), REFILL_NS as f64, 0.01);
}

#[test]
fn polling_costs_a_program_a_refill_a_tick() {
    let without = run("freebsd-polling", "blast");
    let with = with_refill("freebsd-polling", "blast");
    let ticks = host().cpu.hz as f64;
    let refilled = ticks * REFILL_NS as f64 / 1e9;
    // It is the program's own time, and hence its calls' that are fewer.
    let own = |figures: &SimFigures| figures.hosts[0].cpu.user + figures.hosts[0].cpu.system;
    let left = own(&without) - refilled;
    close(
        with.offered_pps / without.offered_pps,
        left / own(&without),
        0.01,
    );
    close(own(&with), own(&without), 0.01);
}

#[test]
fn ticks_alone_take_no_caches() {
    // The card interrupts ten times a second.
    let quiet = "freebsd-interrupt:card.moderation_ns=100ms";
    let calls = |figures: SimFigures| figures.offered_pps;
    let without = calls(run(quiet, "blast"));
    let with = calls(with_refill(quiet, "blast"));
    let refilled = 10.0 * REFILL_NS as f64 / 1e9;
    close(with, without * (1.0 - refilled), 0.001);
}

#[test]
fn who_was_not_preempted_pays_nothing() {
    // Each packet finds the host asleep, and is read before the next one comes.
    for discipline in ["freebsd-interrupt", "napi"] {
        let mut host = host();
        host.cpu.hz = 1;
        let plan = plan(discipline, "constant:rate=1000");
        let without = simulate(&common::on(&host, &plan)).unwrap();
        host.cpu.refill_ns = REFILL_NS;
        assert_eq!(
            simulate(&common::on(&host, &plan)).unwrap(),
            without,
            "{discipline}"
        );
    }
}

#[test]
fn a_program_that_never_gets_through_its_refill_owes_one() {
    // In a pulse a frame comes every 0.1 ms. It preempts the program, which fetches for 1 ms.
    let line =
        "freebsd-interrupt:link.bits_per_second=10m:application.packet_ns=100us:cpu.refill_ns=1ms";
    let mut plan = plan(line, "pulses:rate=2k:period=100ms");
    plan.duration_ns = 1_000_000_000;
    let figures = simulate(&plan).unwrap();
    assert_eq!(figures.ledger.lost(), 0);
    let packets = 200.0;
    let pulse_s = packets * f64::from(130 * 8) / 10e6;
    // After the pulse it takes all that waits in one go, and sleeps. What is left of ten periods:
    let working_s = packets * 120e-6;
    let rest = (0.1 - pulse_s - working_s) / 0.1;
    assert!(
        figures.hosts[0].cpu.idle > 0.9 * rest,
        "{:?}",
        figures.hosts[0].cpu
    );
    // In the pulse it was never asleep.
    assert!(
        figures.hosts[0].cpu.idle < 1.0 - pulse_s / 0.1,
        "{:?}",
        figures.hosts[0].cpu
    );
}
