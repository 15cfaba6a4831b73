//! The guarantees of both controllers, in a closed loop.

mod closed_loop;

use closed_loop::{BURST_MAX, Host, TICK_NS};
use nicpoll_core::{Command, Controller, Knob, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Ticks over which the share is kept on average, and within which any step is settled.
const TICKS: u64 = 20;

/// Asserts that from [`TICKS`] ticks after `step_tick`, or after the last late tick, every [`TICKS`] ticks in a row
/// use the share asked for, and no cycle's burst is far from the previous one's.
fn keeps_its_share(host: &Host, step_tick: u64) {
    let state = host.poller.state();
    let case = format!(
        "user_frac {}, {} ns a cycle, {} ns a packet, each_burst {}, {} devices, +-{} %",
        state.user_frac,
        host.cycle_ns,
        host.packet_ns,
        state.each_burst,
        state.handlers,
        host.noise_percent
    );
    let settled_tick = step_tick.max(host.late_tick) + TICKS;
    let aim = 1.0 - f64::from(state.user_frac) / 100.0;
    let packet_ns = host.packet_ns * u64::from(state.handlers);
    let tolerance = f64::max(0.02, packet_ns as f64 / TICK_NS as f64) + 1e-9;
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
    // At its limits the burst cannot reach the share.
    let least_ns = host.cycle_ns + packet_ns * (100 + host.noise_percent) / 100;
    let most_ns =
        host.cycle_ns + u64::from(BURST_MAX) * packet_ns * (100 - host.noise_percent) / 100;
    let is_possible = aim - tolerance <= most_ns as f64 / TICK_NS as f64
        && aim + tolerance >= least_ns as f64 / TICK_NS as f64;
    let shares = host.shares(settled_tick);
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
                keeps_its_share(&host, step_tick);
            }
        }
    }
}

proptest! {
    // The seed is fixed: 200,000 other cases passed when the law was written.
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(4000)
    })]

    /// Before the step: either controller, any cost and any number of ticks, hence any burst and any phase of a
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
        devices in 1..=8u32,
        noise_percent in 0..=30u64,
    ) {
        // A chunk is never cut: the one under way at the step ends first, and then its missed ticks are made up for.
        let each_burst = each_burst.min((4 * TICK_NS / packet_ns / u64::from(devices)).max(1) as u32);
        let before = if is_share_before { Controller::Share } else { Controller::Freebsd };
        let mut host = Host::with_devices(devices, before, user_frac, before_ns);
        host.cycle_ns = cycle_ns;
        host.noise_percent = noise_percent;
        host.poller.write(Knob::EachBurst, each_burst).unwrap();
        host.run(ticks_before);
        if !is_share_before {
            host.poller.set_controller(Controller::Share);
        }
        host.packet_ns = packet_ns;
        let step_tick = host.tick();
        host.run(6 * TICKS);
        keeps_its_share(&host, step_tick + 1);
    }
}

/// A chunk that outlasts a hundred ticks is a stall. Polling resumes as soon as the chunk ends, whether packets
/// always wait or come at a rate.
#[test]
fn share_keeps_its_share_after_a_stall() {
    let mut random = 1u64;
    let mut draw = |range: core::ops::Range<u64>| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        range.start + (random >> 33) % (range.end - range.start)
    };
    let mut stalls = 0;
    for step in 0..1000 {
        let user_frac = draw(1..91) as u32;
        let mut host = Host::new(Controller::Share, user_frac, draw(1_100..5_000));
        host.noise_percent = [1, 5][step % 2];
        host.arrivals = (step % 4 < 2).then_some(|_| 2 * BURST_MAX);
        let each_burst = draw(100..1_000) as u32;
        host.poller.write(Knob::EachBurst, each_burst).unwrap();
        host.run(20 + draw(0..30));
        let packet_ns = core::mem::replace(&mut host.packet_ns, draw(1..2_000) * 1000);
        host.run(1);
        host.packet_ns = packet_ns;
        let ended = host.tick();
        host.run(12 * TICKS);
        stalls += host.poller.state().stalled;
        keeps_its_share(&host, ended);
    }
    assert!(stalls > 500, "{stalls}");
}

#[test]
fn a_late_tick_does_not_drop_the_burst_of_share() {
    let mut host = Host::new(Controller::Share, 50, 2_500);
    host.run(50);
    let burst = host.poller.state().burst;
    // Something else had the processor for a tick and a half.
    host.pause(3 * TICK_NS / 2);
    host.run(3);
    assert!(host.late_tick > 50);
    let moved = host.poller.state().burst.abs_diff(burst);
    assert!(moved <= burst / 10, "{burst}: {:?}", host.poller.state());
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
fn what_share_asks_for_in_vain_makes_no_packet_cheaper() {
    let mut host = Host::new(Controller::Share, 50, 2_300);
    host.poller.write(Knob::EachBurst, 64).unwrap();
    // Now more than a cycle can take, now less: the rest of its burst is requested in vain.
    host.arrivals = Some(|tick| if tick % 3 == 0 { 400 } else { 40 });
    host.run(600);
    let settled = host.shares(TICKS);
    let most = settled.iter().copied().fold(0.0, f64::max);
    // Its half of a tick and two packets; a chunk is 14.7 % of a tick.
    assert!(most <= 0.505, "{most}: {settled:?}");
    assert!(settled.iter().any(|share| *share > 0.48), "{settled:?}");
}

#[test]
fn what_a_cycle_is_charged_for_is_taken_off_its_share() {
    for (charge_ns, share) in [(300_000, 0.2), (700_000, 0.0)] {
        let mut host = Host::new(Controller::Share, 50, 2_300);
        host.run(50);
        host.poller.charge(charge_ns);
        host.run(2);
        let shares = host.shares(50);
        // A cycle requests at least one packet, and has a fixed cost.
        let least = (host.cycle_ns + host.packet_ns) as f64 / TICK_NS as f64;
        let charged = shares[0].min(shares[1]);
        assert!((charged - share).abs() <= least, "{charge_ns}: {shares:?}");
        // The next cycle is charged for nothing.
        assert!(shares[0].max(shares[1]) > 0.48, "{charge_ns}: {shares:?}");
    }
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

/// Returns the packets requested in a tick by its cycle, and after it in the time that others leave.
fn asked_in_a_tick(host: &mut Host) -> [u32; 2] {
    host.run_a_cycle();
    let cycle = host.cycles.last().map_or(0, |cycle| cycle.burst);
    let mut asked = 0;
    while host.poller.poll_unclaimed(&mut |_, command, count| {
        assert_eq!(command, Command::PollOnly);
        asked += count;
        count
    }) {}
    [cycle.min(BURST_MAX), asked]
}

#[test]
fn share_takes_what_others_leave_up_to_burst_max_and_freebsd_does_not() {
    let mut host = Host::new(Controller::Freebsd, 50, 2_000);
    host.run(20);
    let before = host.poller.state();
    assert_eq!(asked_in_a_tick(&mut host)[1], 0);
    assert_eq!(host.poller.state().lost_polls, before.lost_polls);

    let mut host = Host::new(Controller::Share, 50, 2_000);
    host.run(20);
    for _ in 0..3 {
        let state = host.poller.state();
        let [cycle, unclaimed] = asked_in_a_tick(&mut host);
        // Half of a tick is some 245 packets; the rest of the thousand is asked for once nobody else wants the time.
        assert!((200..300).contains(&cycle), "{cycle}");
        assert!(cycle + unclaimed <= BURST_MAX && unclaimed > BURST_MAX / 2);
        // The cycles' burst hardly changes.
        assert!(host.poller.state().burst.abs_diff(state.burst) <= 1);
    }
    // Nothing is taken while a cycle is under way.
    let tick = Time::from_ns(host.tick() * 1_000_000 + 999_999);
    assert!(host.poller.hardclock(tick));
    assert!(!host.poller.poll_unclaimed(&mut |_, _, count| count));
}
