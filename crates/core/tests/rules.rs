//! The rules of the original's algorithm, one by one.

use nicpoll_core::{
    Access, Command, DeviceId, Errno, HZ_MAX, Knob, POLL_LIST_LEN, Poller, Registered, Time,
};

const EM0: DeviceId = DeviceId(0);
const EM1: DeviceId = DeviceId(1);
const EM2: DeviceId = DeviceId(2);

type Calls = Vec<(DeviceId, Command, u32)>;

fn poller(devices: &[DeviceId]) -> Poller {
    let mut poller = Poller::new(1000).unwrap();
    for id in devices {
        let _ = poller.register(*id).unwrap();
    }
    poller
}

fn poll(poller: &mut Poller, us: u64) -> Calls {
    let mut calls = Vec::new();
    let mut devices = |id, command, count| {
        calls.push((id, command, count));
        count
    };
    poller.netisr_poll(Time::from_us(us), &mut devices);
    calls
}

/// Runs all chunks of a cycle from `begins_us` to `ends_us`; returns the calls.
fn cycle(poller: &mut Poller, begins_us: u64, ends_us: u64) -> Calls {
    let mut calls = Vec::new();
    loop {
        calls.extend(poll(poller, begins_us));
        let is_chunk = poller.state().residual_burst > 0;
        poller.netisr_pollmore(Time::from_us(if is_chunk { begins_us } else { ends_us }));
        if !is_chunk {
            return calls;
        }
    }
}

#[test]
fn knobs_begin_with_the_defaults_of_the_original() {
    let poller = poller(&[]);
    let defaults = [
        ("burst", 5),
        ("burst_max", 150),
        ("each_burst", 5),
        ("user_frac", 50),
    ];
    for knob in Knob::ALL {
        let expected = match knob.name() {
            "reg_frac" => 20,
            name => defaults
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(0, |(_, value)| *value),
        };
        assert_eq!(poller.read(*knob), expected, "{}", knob.name());
        assert_eq!(Knob::from_name(knob.name()), Some(*knob));
    }
    assert_eq!(
        Knob::from_name("kern.polling.user_frac"),
        Some(Knob::UserFrac)
    );
    assert_eq!(Knob::from_name("enable"), None);
    assert_eq!(Poller::new(0).unwrap_err(), Errno::Einval);
    assert_eq!(Poller::new(HZ_MAX + 1).unwrap_err(), Errno::Einval);
}

#[test]
fn writes_are_taken_within_their_bounds_only() {
    for (knob, good, bad) in [
        (
            Knob::BurstMax,
            &[10, 20_000][..],
            &[0, 9, 20_001, u32::MAX][..],
        ),
        (Knob::EachBurst, &[1, 150], &[0, 151, u32::MAX]),
        (Knob::UserFrac, &[0, 99], &[100, u32::MAX]),
        (Knob::RegFrac, &[1, 1000], &[0, 1001, u32::MAX]),
        (Knob::IdlePoll, &[0, 1, 7, u32::MAX], &[]),
    ] {
        assert_eq!(knob.access(), Access::ReadWrite);
        for value in good {
            let mut poller = poller(&[]);
            assert_eq!(poller.write(knob, *value), Ok(()), "{value}");
            assert_eq!(poller.read(knob), *value);
        }
        for value in bad {
            let mut poller = poller(&[]);
            let before = poller.state();
            assert_eq!(poller.write(knob, *value), Err(Errno::Einval), "{value}");
            assert_eq!(poller.state(), before);
        }
    }
    let mut poller = poller(&[]);
    for knob in Knob::ALL {
        if knob.access() == Access::ReadOnly {
            assert_eq!(poller.write(*knob, 1), Err(Errno::Eperm), "{}", knob.name());
        }
    }
}

#[test]
fn a_lower_burst_max_clamps_burst_and_resets_each_burst_to_10() {
    let mut poller = poller(&[EM0]);
    for tick in 1..=60 {
        poller.hardclock(Time::from_us(1000 * tick));
        cycle(&mut poller, 1000 * tick, 1000 * tick);
    }
    poller.write(Knob::EachBurst, 40).unwrap();
    assert_eq!(poller.state().burst, 65);
    poller.write(Knob::BurstMax, 50).unwrap();
    assert_eq!((poller.state().burst, poller.state().each_burst), (50, 40));
    poller.write(Knob::BurstMax, 30).unwrap();
    assert_eq!((poller.state().burst, poller.state().each_burst), (30, 10));
}

#[test]
fn a_tick_without_devices_or_after_shutdown_does_nothing() {
    let mut empty = poller(&[]);
    let before = empty.state();
    assert!(!empty.hardclock(Time::from_us(1000)));
    assert_eq!(empty.state(), before);
    let mut shut = poller(&[EM0]);
    shut.shutdown();
    let before = shut.state();
    assert!(!shut.hardclock(Time::from_us(1000)));
    assert_eq!(shut.state(), before);
}

#[test]
fn a_short_tick_is_counted_and_not_taken_for_the_last_one() {
    let mut poller = poller(&[EM0]);
    poller.hardclock(Time::from_us(1000));
    poller.hardclock(Time::from_us(1499));
    assert_eq!(poller.state().short_ticks, 1);
    // Half a period after the first, not after the short one.
    poller.hardclock(Time::from_us(1500));
    assert_eq!(poller.state().short_ticks, 1);
    poller.hardclock(Time::from_us(1999));
    assert_eq!(poller.state().short_ticks, 2);
}

#[test]
fn ticks_wake_once_a_cycle_and_wait_while_it_runs() {
    let mut poller = poller(&[EM0]);
    assert!(poller.hardclock(Time::from_us(1000)));
    let state = poller.state();
    assert_eq!(
        (state.phase, state.pending_polls, state.lost_polls),
        (2, 1, 0)
    );
    // Scheduled, but not begun: suspect.
    assert!(poller.hardclock(Time::from_us(2000)));
    let state = poller.state();
    assert_eq!((state.phase, state.pending_polls), (2, 2));
    assert_eq!((state.suspect, state.lost_polls), (1, 1));
    // Begun: no further wake.
    poll(&mut poller, 2000);
    assert!(!poller.hardclock(Time::from_us(3000)));
    let state = poller.state();
    assert_eq!((state.phase, state.pending_polls), (4, 3));
    assert_eq!((state.suspect, state.lost_polls), (1, 2));
}

#[test]
fn more_than_100_pending_ticks_are_given_up() {
    let mut poller = poller(&[EM0]);
    for tick in 1..=101 {
        poller.hardclock(Time::from_us(1000 * tick));
        poll(&mut poller, 1000 * tick);
    }
    assert_eq!(
        (poller.state().pending_polls, poller.state().stalled),
        (101, 0)
    );
    assert!(poller.hardclock(Time::from_us(102_000)));
    let state = poller.state();
    assert_eq!((state.pending_polls, state.stalled, state.phase), (1, 1, 2));
    // Each of the 101 but the first counted as lost; the tick that gave them up does not.
    assert_eq!((state.lost_polls, state.suspect), (100, 0));
}

#[test]
fn a_burst_goes_in_chunks_to_every_device_in_order() {
    let mut poller = poller(&[EM0, EM1]);
    for tick in 1..=3 {
        poller.hardclock(Time::from_us(1000 * tick));
        cycle(&mut poller, 1000 * tick, 1000 * tick);
    }
    assert_eq!(poller.state().burst, 8);
    poller.hardclock(Time::from_us(4000));
    let only = Command::PollOnly;
    assert_eq!(poll(&mut poller, 4000), [(EM0, only, 5), (EM1, only, 5)]);
    assert_eq!(
        (poller.state().residual_burst, poller.state().phase),
        (3, 4)
    );
    assert!(poller.netisr_pollmore(Time::from_us(4000)));
    assert_eq!(poller.state().phase, 5);
    assert_eq!(poll(&mut poller, 4000), [(EM0, only, 3), (EM1, only, 3)]);
    assert!(!poller.netisr_pollmore(Time::from_us(4000)));
    assert_eq!((poller.state().phase, poller.state().burst), (0, 9));
}

#[test]
fn what_is_not_scheduled_does_nothing() {
    let mut poller = poller(&[EM0]);
    let before = poller.state();
    assert!(poll(&mut poller, 1000).is_empty());
    assert!(!poller.netisr_pollmore(Time::from_us(1000)));
    assert_eq!(poller.state(), before);
    poller.hardclock(Time::from_us(1000));
    assert_eq!(poll(&mut poller, 1000).len(), 1);
    assert!(poll(&mut poller, 1000).is_empty());
}

#[test]
fn status_is_checked_in_the_first_chunk_of_every_reg_frac_th_cycle() {
    let mut poller = poller(&[EM0]);
    poller.write(Knob::EachBurst, 1).unwrap();
    poller.write(Knob::RegFrac, 3).unwrap();
    let mut checked = Vec::new();
    for tick in 1..=9 {
        poller.hardclock(Time::from_us(1000 * tick));
        for (chunk, (_, command, _)) in cycle(&mut poller, 1000 * tick, 1000 * tick)
            .into_iter()
            .enumerate()
        {
            if command == Command::PollAndCheckStatus {
                checked.push((tick, chunk));
            }
        }
    }
    assert_eq!(checked, [(3, 0), (6, 0), (9, 0)]);
}

#[test]
fn a_reg_frac_at_or_below_the_count_begins_anew() {
    let mut poller = poller(&[EM0]);
    for tick in 1..=7 {
        poller.hardclock(Time::from_us(1000 * tick));
        cycle(&mut poller, 1000 * tick, 1000 * tick);
    }
    poller.write(Knob::RegFrac, 8).unwrap();
    assert_eq!(poller.state().reg_frac_count, 7);
    poller.write(Knob::RegFrac, 7).unwrap();
    assert_eq!(poller.state().reg_frac_count, 0);
}

#[test]
fn the_burst_moves_by_one_a_cycle_with_the_load() {
    let mut poller = poller(&[EM0]);
    // 50 per cent is not more than the share; 51 is.
    for (elapsed_us, burst) in [(509, 6), (510, 5), (0, 6), (900, 5), (900, 4), (900, 3)] {
        let begins_us = 10_000 + 1000 * u64::from(poller.state().short_ticks) + elapsed_us;
        poller.hardclock(Time::from_us(begins_us));
        cycle(&mut poller, begins_us, begins_us + elapsed_us);
        assert_eq!(poller.state().burst, burst, "{elapsed_us}");
    }
    for _ in 0..5 {
        poller.hardclock(Time::from_us(1_000_000));
        cycle(&mut poller, 1_000_000, 1_000_999);
    }
    assert_eq!(poller.state().burst, 1);
}

#[test]
fn from_5_to_150_takes_145_good_cycles() {
    let mut poller = poller(&[EM0]);
    for tick in 1..=145 {
        assert_eq!(poller.state().burst, 4 + tick as u32);
        poller.hardclock(Time::from_us(1000 * tick));
        cycle(&mut poller, 1000 * tick, 1000 * tick);
    }
    assert_eq!(poller.state().burst, 150);
    poller.hardclock(Time::from_us(146_000));
    cycle(&mut poller, 146_000, 146_000);
    assert_eq!(poller.state().burst, 150);
}

#[test]
fn missed_ticks_cut_the_burst_by_an_eighth_and_run_at_once() {
    let mut poller = poller(&[EM0]);
    for tick in 1..=59 {
        poller.hardclock(Time::from_us(1000 * tick));
        cycle(&mut poller, 1000 * tick, 1000 * tick);
    }
    assert_eq!(poller.state().burst, 64);
    poller.hardclock(Time::from_us(60_000));
    poll(&mut poller, 60_000);
    poller.hardclock(Time::from_us(61_000));
    while poller.state().residual_burst > 0 {
        poller.netisr_pollmore(Time::from_us(61_000));
        poll(&mut poller, 61_000);
    }
    assert!(poller.netisr_pollmore(Time::from_us(61_100)));
    // 64 - 1 for the load, then 63 - 7.
    let state = poller.state();
    assert_eq!((state.burst, state.phase, state.pending_polls), (56, 6, 1));
    cycle(&mut poller, 61_100, 61_200);
    let state = poller.state();
    assert_eq!((state.burst, state.phase, state.pending_polls), (57, 0, 0));
}

#[test]
fn the_list_refuses_as_the_original_does_and_the_last_fills_the_hole() {
    let mut poller = poller(&[EM0, EM1, EM2]);
    assert_eq!(poller.register(EM1), Err(Errno::Eexist));
    assert_eq!(poller.deregister(DeviceId(9)), Err(Errno::Enoent));
    poller.deregister(EM0).unwrap();
    assert_eq!(poller.devices(), [EM2, EM1]);
    poller.deregister(EM1).unwrap();
    assert_eq!((poller.devices(), poller.state().handlers), (&[EM2][..], 1));
    for id in 100..100 + POLL_LIST_LEN as u32 - 1 {
        let _ = poller.register(DeviceId(id)).unwrap();
    }
    assert_eq!(poller.register(EM0), Err(Errno::Enomem));
    // A full list is checked for first.
    assert_eq!(poller.register(EM2), Err(Errno::Enomem));
}

#[test]
fn the_idle_thread_polls_while_it_is_wanted_and_is_woken_by_a_registration() {
    let mut poller = poller(&[]);
    let mut calls = Vec::new();
    let mut devices = |id, command, count| {
        calls.push((id, command, count));
        count
    };
    poller.write(Knob::IdlePoll, 1).unwrap();
    assert!(!poller.idle_poll(&mut devices));
    assert_eq!(poller.state().idlepoll_sleeping, 1);
    let woken = Registered {
        wakes_idle_thread: true,
    };
    assert_eq!(poller.register(EM0), Ok(woken));
    let before = poller.state();
    assert!(poller.idle_poll(&mut devices));
    assert_eq!(calls, [(EM0, Command::PollOnly, 5)]);
    assert_eq!(poller.state().idlepoll_sleeping, 0);
    let mut after = poller.state();
    after.idlepoll_sleeping = before.idlepoll_sleeping;
    assert_eq!(after, before, "it touches no other counter");
    let registered = poller.register(EM1).unwrap();
    assert!(!registered.wakes_idle_thread);
}

#[test]
fn a_cycle_that_loses_its_last_device_stops_polling_until_ticks_are_given_up() {
    let mut poller = Poller::new(1000).unwrap();
    let _ = poller.register(DeviceId(0)).unwrap();
    let mut devices = |_: DeviceId, _: Command, count: u32| count;
    poller.hardclock(Time::from_us(1000));
    poller.netisr_poll(Time::from_us(1000), &mut devices);
    poller.deregister(DeviceId(0)).unwrap();
    assert!(!poller.netisr_pollmore(Time::from_us(1010)));
    let _ = poller.register(DeviceId(1)).unwrap();
    let ticks_without_polls = (2..)
        .take_while(|tick| !poller.hardclock(Time::from_us(tick * 1000)))
        .count();
    // FreeBSD main; 9.1 and older finish the cycle without a device.
    assert_eq!(ticks_without_polls, 100);
    assert_eq!(poller.state().stalled, 1);
}

/// What the original computes in an int wraps at 2^31 microseconds times ticks a second: after 2.147 s at 1000 a
/// second. The negative product counts a late tick as short, and lets the burst grow after the longest cycle.
#[test]
fn products_of_time_do_not_wrap_after_two_seconds() {
    let mut poller = poller(&[EM0]);
    poller.hardclock(Time::from_us(1000));
    cycle(&mut poller, 1000, 1010);
    assert_eq!((poller.state().burst, poller.state().short_ticks), (6, 0));
    // The int would hold -1,294,967,296 and -994,967,296.
    poller.hardclock(Time::from_us(3_001_000));
    assert_eq!(poller.state().short_ticks, 0);
    cycle(&mut poller, 3_001_000, 6_301_000);
    assert_eq!(poller.state().burst, 5);
    // That was no short tick either: the next one is measured from it.
    poller.hardclock(Time::from_us(3_001_400));
    assert_eq!(poller.state().short_ticks, 1);
}

/// After a stall the old cycle continues with the rest of its burst, and its time counts from before the stall.
#[test]
fn after_a_stall_the_old_cycle_goes_on() {
    let mut poller = poller(&[EM0]);
    poller.write(Knob::EachBurst, 3).unwrap();
    poller.hardclock(Time::from_us(1000));
    assert_eq!(poll(&mut poller, 1000), [(EM0, Command::PollOnly, 3)]);
    poller.deregister(EM0).unwrap();
    assert!(!poller.netisr_pollmore(Time::from_us(1010)));
    let _ = poller.register(EM1).unwrap();
    let scheduled = (2..).find(|tick| poller.hardclock(Time::from_us(tick * 1000)));
    let now_us = 1000 * scheduled.unwrap();
    let status_checks = poller.state().reg_frac_count;
    assert_eq!(poll(&mut poller, now_us), [(EM1, Command::PollOnly, 2)]);
    assert!(!poller.netisr_pollmore(Time::from_us(now_us + 10)));
    let state = poller.state();
    // No new cycle began, and this one has taken a hundred ticks.
    assert_eq!((state.reg_frac_count, state.burst), (status_checks, 4));
    assert_eq!((state.pending_polls, state.phase), (0, 0));
}
