//! The watch on rhythms agrees with the counter of polls, and knows a timer's rounds from others.

mod common;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use common::TestLab;
use nicpoll_model::{Setting, Workload};
use nicpoll_observe::RhythmWatch;
use nicpoll_study::{Lab, Running, apply};
use nicpoll_testkit::needs;

const QUIET: Duration = Duration::from_millis(20);

fn traffic(lab: &Lab) {
    let duration = Duration::from_millis(50);
    let mut running = Running::start(lab, Workload::Udp64, duration).unwrap();
    running.wait_for_sender(&AtomicBool::new(false)).unwrap();
    running.drain(QUIET).unwrap();
}

#[test]
fn both_see_the_same_polls_and_arrivals_begin_them() {
    needs!(Root, PerNapi);
    let mut test = TestLab::build();
    let lab = &mut test.lab;
    let applied = apply(lab, Setting::Interrupt, 0).unwrap();
    let napi_id = applied.napi_id.unwrap();
    lab.polls
        .watch(lab.receiver.netns().inode(), Some(napi_id))
        .unwrap();
    let watch = RhythmWatch::begin(&[(napi_id, 0)]).unwrap();
    // The first round only makes the instance known.
    traffic(lab);
    let (counted, seen) = (lab.polls.read().unwrap(), watch.read(napi_id).unwrap());
    traffic(lab);
    let counted = lab.polls.read().unwrap().since(&counted);
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
    let lab = &mut test.lab;
    let period_ns = 1_000_000;
    let applied = apply(lab, Setting::Polling, period_ns).unwrap();
    let napi_id = applied.napi_id.unwrap();
    traffic(lab);
    let watch = RhythmWatch::begin(&[(napi_id, period_ns)]).unwrap();
    thread::sleep(Duration::from_millis(200));
    traffic(lab);
    let seen = watch.read(napi_id).unwrap();
    assert!(seen.rounds > 1, "{seen:?}");
    // A CPU that is taken away between a round's end and the event of its last poll can hide a timer.
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
