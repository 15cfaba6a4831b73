//! Both controllers in a closed loop, and what is promised of them.

mod closed_loop;

use closed_loop::{BURST_MAX, Host, TICK_NS};
use nicpoll_core::{Controller, Knob};
use proptest::prelude::*;

/// Ticks over which the share is kept, and after which it is, whatever came before.
const TICKS: u64 = 20;

/// After `settled_tick` every [`TICKS`] ticks in a row use the share that is asked for, and no cycle's
/// burst is far from the last one's.
fn keeps_its_share(host: &Host, settled_tick: u64) {
    let user_frac = host.poller.state().user_frac;
    let case = format!(
        "user_frac {user_frac}, {} ns a cycle, {} ns a packet, each_burst {}",
        host.cycle_ns,
        host.packet_ns,
        host.poller.state().each_burst
    );
    let aim = 1.0 - f64::from(user_frac) / 100.0;
    let tolerance = f64::max(0.02, host.packet_ns as f64 / TICK_NS as f64) + 1e-9;
    let settled: Vec<_> = host
        .cycles
        .iter()
        .filter(|cycle| cycle.tick >= settled_tick)
        .collect();
    let bursts: Vec<u32> = settled.iter().map(|cycle| cycle.burst).collect();
    for pair in bursts.windows(2) {
        let moved = pair[0].abs_diff(pair[1]);
        assert!(moved <= 1.max(pair[0] / 10), "{case}: {bursts:?}");
    }
    // At a limit there is no other burst to choose.
    let least_ns = host.cycle_ns + host.packet_ns;
    let most_ns = host.cycle_ns + u64::from(BURST_MAX) * host.packet_ns;
    let is_possible = aim - tolerance <= most_ns as f64 / TICK_NS as f64
        && aim + tolerance >= least_ns as f64 / TICK_NS as f64;
    let shares = host.shares(settled_tick);
    assert!(shares.len() as u64 >= 2 * TICKS);
    for window in shares.windows(TICKS as usize).filter(|_| is_possible) {
        let share = window.iter().sum::<f64>() / TICKS as f64;
        assert!(
            (share - aim).abs() <= tolerance,
            "{case}: {share} of {aim}, within {tolerance}: {bursts:?}"
        );
    }
}

#[test]
fn share_keeps_the_share_within_20_ticks_of_any_step_and_holds_still() {
    for user_frac in [1, 10, 50, 80, 99] {
        for packet_ns in [600, 2_500, 12_000, 70_000] {
            let mut host = Host::new(Controller::Share, user_frac, packet_ns);
            for step_ns in [packet_ns, packet_ns * 8, packet_ns / 4, packet_ns * 3] {
                host.packet_ns = step_ns;
                let step_tick = host.tick();
                host.run(5 * TICKS);
                keeps_its_share(&host, step_tick + TICKS);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Before the step either controller, any cost and any number of ticks: any burst, and any place in a
    /// cycle.
    #[test]
    fn share_keeps_the_share_from_any_start(
        user_frac in 0..100u32,
        before_ns in 100..200_000u64,
        is_share_before in any::<bool>(),
        ticks_before in 0..300u64,
        packet_ns in 100..200_000u64,
        cycle_ns in 0..100_000u64,
        each_burst in 1..=50u32,
    ) {
        // What changes by less than a sixteenth of a packet is no step: it passes unseen.
        let packet_ns = if packet_ns.abs_diff(before_ns) <= before_ns / 8 { before_ns } else { packet_ns };
        // A chunk is never cut: the one under way at the step ends first, and then the ticks that it
        // took are made up for.
        let each_burst = each_burst.min((4 * TICK_NS / packet_ns) as u32);
        let before = if is_share_before { Controller::Share } else { Controller::Freebsd };
        let mut host = Host::new(before, user_frac, before_ns);
        host.cycle_ns = cycle_ns;
        host.poller.write(Knob::EachBurst, each_burst).unwrap();
        host.run(ticks_before);
        if !is_share_before {
            host.poller.set_controller(Controller::Share);
        }
        host.packet_ns = packet_ns;
        let step_tick = host.tick();
        host.run(6 * TICKS);
        keeps_its_share(&host, step_tick + 1 + TICKS);
    }
}

#[test]
fn noise_does_not_swing_share() {
    for packet_ns in [600, 12_000, 70_000] {
        let mut host = Host::new(Controller::Share, 50, packet_ns);
        host.run(2 * TICKS);
        let settled_tick = host.tick();
        let mut random: u64 = 1;
        for _ in 0..1000 {
            // A tenth more or less, another every tick.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            host.packet_ns = packet_ns * (90 + (random >> 33) % 21) / 100;
            host.run(1);
        }
        let shares = host.shares(settled_tick);
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        // A packet more than without noise: whether it fits is another matter each time.
        let tolerance = f64::max(0.02, 2.0 * packet_ns as f64 / TICK_NS as f64);
        assert!((share - 0.5).abs() <= tolerance, "{packet_ns} ns: {share}");
        let cycles = host
            .cycles
            .iter()
            .filter(|cycle| cycle.tick >= settled_tick);
        let bursts: Vec<u32> = cycles.map(|cycle| cycle.burst).collect();
        let fills = (TICK_NS / 2 - host.cycle_ns) / packet_ns;
        let is_near = |burst: &u32| u64::from(*burst).abs_diff(fills) <= 1 + fills / 4;
        assert!(bursts.iter().all(is_near), "{packet_ns} ns: {bursts:?}");
    }
}

#[test]
fn no_cycle_of_share_outlasts_its_share_by_more_than_a_chunk() {
    let mut host = Host::new(Controller::Share, 50, 500);
    host.run(50);
    assert!(host.poller.state().burst > 500);
    // Every packet costs 40 times as much from now on.
    host.packet_ns = 20_000;
    host.run(5);
    assert!(host.poller.state().lost_polls == 0, "{:?}", host.cycles);
}

#[test]
fn freebsd_falls_by_one_an_overloaded_cycle() {
    let mut host = Host::new(Controller::Freebsd, 50, 500);
    host.run(400);
    let high = host.poller.state().burst;
    assert!(high > 300);
    // A little over the share, no tick missed.
    host.packet_ns = 1_600;
    let before = host.cycles.len();
    host.run(10);
    let fallen = &host.cycles[before..];
    assert!(
        fallen.len() >= 9
            && fallen
                .windows(2)
                .all(|pair| pair[1].burst + 1 == pair[0].burst),
        "{fallen:?}"
    );
}
