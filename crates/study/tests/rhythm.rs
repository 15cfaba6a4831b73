//! The rhythm watch agrees with the poll counter, and distinguishes a timer's rounds from others.

mod common;

use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_model::Side;
use nicpoll_observe::RhythmWatch;
use nicpoll_study::demo::{INTERRUPT, POLLING};
use nicpoll_testkit::needs;

const QUIET: Duration = Duration::from_millis(20);

fn traffic(test: &mut TestLab) {
    test.traffic(&nicpoll_lab::udp(64), Duration::from_millis(50), QUIET);
}

#[test]
fn both_see_the_same_polls_and_arrivals_begin_them() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let napi_id = test.put(INTERRUPT, 0).unwrap();
    let netns = test.inode(Side::Receiver);
    test.polls.watch(netns, Some(napi_id)).unwrap();
    let watch = RhythmWatch::begin(&[(napi_id, 0)]).unwrap();
    // The first round only makes the instance known.
    traffic(&mut test);
    let (counted, seen) = (test.polls.read().unwrap(), watch.read(napi_id).unwrap());
    traffic(&mut test);
    let counted = test.polls.read().unwrap().since(&counted);
    let now = watch.read(napi_id).unwrap();
    assert!(counted.polls() > 0);
    assert_eq!(now.polls - seen.polls, counted.polls());
    assert_eq!(now.frames - seen.frames, counted.frames);
    assert_eq!(now.rounds - seen.rounds, counted.rounds);
    assert_eq!(now.timer_rounds, 0);
    assert_eq!(now.foreign_polls, 0);
    assert_eq!(
        now.work.iter().map(|(_, polls)| polls).sum::<u64>(),
        now.polls
    );
    assert_eq!(
        now.polls_by_cpu.iter().map(|(_, polls)| polls).sum::<u64>(),
        now.polls
    );
}

#[test]
fn a_timers_rounds_are_known_for_its_own() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let period_ns = 1_000_000;
    let napi_id = test.put(POLLING, period_ns).unwrap();
    traffic(&mut test);
    let watch = RhythmWatch::begin(&[(napi_id, period_ns)]).unwrap();
    thread::sleep(Duration::from_millis(200));
    traffic(&mut test);
    let seen = watch.read(napi_id).unwrap();
    assert!(seen.rounds > 1, "{seen:?}");
    // A hypervisor that takes the CPU between a round's end and the event of its last poll can hide a timer.
    assert!(10 * seen.timer_rounds >= 9 * seen.rounds, "{seen:?}");
    assert!(10 * seen.short_gaps <= seen.rounds, "{seen:?}");
    // The timer starts when a round ends.
    let median = seen.median_gap_ns().unwrap() as f64;
    assert!(median > 0.96 * period_ns as f64, "{seen:?}");
    let gaps: u64 = seen.gaps_ns.iter().map(|(_, count)| count).sum();
    assert!(gaps > 0 && gaps <= seen.timer_rounds, "{seen:?}");
    assert!(seen.long_gaps <= seen.missed_periods);
}

#[test]
fn what_is_not_watched_is_an_error() {
    needs!(Root, PerNapi);
    let _test = TestLab::build();
    let watch = RhythmWatch::begin(&[]).unwrap();
    assert!(watch.read(1).is_err());
}
