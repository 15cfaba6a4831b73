//! The rules of each discipline, one by one, in runs that show each by itself.

mod common;

use common::run;

#[test]
fn empty_polls_are_deferred_as_often_as_asked_and_then_interrupts_return() {
    let figures = run("napi-timer:defer=3:timeout=100us", "constant:rate=100");
    let packets = figures.ledger.offered;
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
    assert_eq!(storm.throttled, 0);
}

#[test]
fn a_full_poll_leaves_the_rest_to_the_program_that_polls() {
    // From the first packet on more comes than the host can take: the program gets its turn all the same.
    let figures = run("busy-poll", "constant:rate=200k");
    assert!(
        figures.delivered_pps > 60_000.0,
        "{}",
        figures.delivered_pps
    );
    let napi = figures.hosts[0].napi.unwrap();
    assert!(napi.busy_polls > 1000, "{napi:?}");
}

#[test]
fn a_program_that_polls_is_not_disturbed_by_the_timer() {
    let figures = run("busy-poll:spin=1ms", "constant:rate=5k");
    assert_eq!(figures.hosts[0].interrupts, 0);
    assert_eq!(figures.hosts[0].napi.unwrap().timer_polls, 0);
    assert!(
        figures.hosts[0].cpu.idle < 0.01,
        "{:?}",
        figures.hosts[0].cpu
    );
}

#[test]
fn a_look_at_the_status_is_dear_and_rare() {
    let soft = |reg_frac: u32| {
        let discipline = format!("freebsd-polling:card.status_ns=100us:reg_frac={reg_frac}");
        run(&discipline, "constant:rate=1k").hosts[0]
            .cpu
            .soft_interrupt
    };
    // 1000 a second of 100 us, or 100.
    let difference = soft(1) - soft(10);
    assert!((difference - 0.09).abs() < 0.005, "{difference}");
}

#[test]
fn ksoftirqd_and_the_program_take_turns() {
    // The program always has work, and so has NAPI once it has been handed over.
    let figures = run("napi:application.packet_ns=1ms", "constant:rate=200k");
    assert!(
        figures.hosts[0].cpu.system > 0.5,
        "{:?}",
        figures.hosts[0].cpu
    );
    assert!(
        figures.hosts[0].cpu.user > 0.05,
        "{:?}",
        figures.hosts[0].cpu
    );
    let short = run(
        "napi:application.packet_ns=1ms:budget=64",
        "constant:rate=200k",
    );
    // A softirq ends with the pass in which somebody else's turn comes, so short passes are fairer.
    assert!(short.hosts[0].cpu.user > 0.3, "{:?}", short.hosts[0].cpu);
}
