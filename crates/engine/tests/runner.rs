//! The runner on a port that is no interface: what it asks the port for, and what the core is told when work takes
//! longer than a tick.

mod common;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{CpuAccount, Drive, Engine, RunnerSettings};

use common::{Asked, FakePort, Nobody, await_that, last_cpu, settings};

/// An engine of a port that moves all packets, and whose polls take so long.
fn engine(drive: Drive, poll: Duration) -> (Engine<Nobody>, Arc<Asked>) {
    let port = FakePort::new(move |count| {
        thread::sleep(poll);
        count
    });
    let asked = Arc::clone(&port.asked);
    (port.engine(settings(drive, Controller::Freebsd)), asked)
}

fn await_knob(engine: &Engine<Nobody>, knob: Knob, least: u32) {
    let read = || engine.ask(move |runner| runner.poller().read(knob));
    await_that(knob.name(), || read().unwrap() >= least);
}

#[test]
fn ticks_that_come_while_work_goes_on_are_lost_polls_and_then_stalls() {
    // Five ticks for each chunk: more come than can be made up for.
    let (engine, _) = engine(Drive::Polling, Duration::from_millis(5));
    await_knob(&engine, Knob::LostPolls, 50);
    await_knob(&engine, Knob::Stalled, 1);
    // The burst went down, as far as it goes.
    let runner = engine.end().unwrap();
    assert_eq!(runner.poller().read(Knob::Burst), 1);
}

#[test]
fn polling_arms_no_wake_up_and_checks_the_status_now_and_then() {
    let (engine, asked) = engine(Drive::Polling, Duration::ZERO);
    await_knob(&engine, Knob::Burst, 60);
    let runner = engine.end().unwrap();
    assert!(!runner.ports()[0].has_interrupts);
    assert_eq!(asked.wake_ups.load(Ordering::Relaxed), 0);
    assert!(asked.status_checks.load(Ordering::Relaxed) > 0);
    assert_eq!(runner.poller().read(Knob::Handlers), 1);
    assert_eq!(runner.tallies().counts.wake_up_events, 0);
}

#[test]
fn under_interrupts_the_poller_has_no_device_and_requests_are_heard() {
    let (engine, asked) = engine(Drive::Interrupt, Duration::ZERO);
    let wake_ups = || asked.wake_ups.load(Ordering::Relaxed);
    await_that("it sleeps", || wake_ups() >= 2);
    let handlers = engine.ask(|runner| runner.poller().read(Knob::Handlers));
    assert_eq!(handlers, Ok(0));
    let has_interrupts = engine.ask(|runner| runner.ports()[0].has_interrupts);
    assert_eq!(has_interrupts, Ok(true));
}

#[test]
fn a_storm_is_throttled_when_there_is_a_threshold_and_never_without() {
    let [without, with] = [0, 20].map(|storm_threshold| {
        let mut port = FakePort::new(|count| count);
        port.waiting = 1;
        port.wire.1.write_all(b"!").unwrap();
        let engine = port.engine(RunnerSettings {
            storm_threshold,
            ..settings(Drive::Interrupt, Controller::Freebsd)
        });
        let polls = || engine.ask(|runner| runner.tallies().counts.polls);
        await_that("a hundred polls", || polls().unwrap() >= 100);
        engine.end().unwrap().tallies()
    });
    assert_eq!(without.counts.throttled_passes, 0);
    assert!(with.counts.throttled_passes > 0, "{with:?}");
    // About one pass a tick once it is throttled: the low part of the sawtooth.
    assert!(with.counts.polls <= with.events.ticks + 25, "{with:?}");
}

#[test]
fn in_a_lull_ticks_are_slept_over_and_counted_until_a_packet_comes() {
    for idle_poll in [0, 1] {
        let polls = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&polls);
        let port = FakePort::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            0
        });
        let mut wire = port.wire.1.try_clone().unwrap();
        let mut runner = port.runner(settings(Drive::Polling, Controller::Freebsd));
        // Each tick is one poll.
        for (knob, value) in [(Knob::EachBurst, 150), (Knob::IdlePoll, idle_poll)] {
            runner.poller_mut().write(knob, value).unwrap();
        }
        let engine = Engine::start(runner, last_cpu()).unwrap();
        let ticks = || engine.ask(|runner| runner.tallies().events.ticks).unwrap();
        await_that("a lull", || ticks() >= 500);
        let (seen, asked) = (ticks(), polls.load(Ordering::Relaxed));
        assert_eq!(asked < seen / 2, idle_poll == 0, "{asked} of {seen}");
        assert_eq!(
            engine.ask(|runner| runner.ports()[0].has_interrupts),
            Ok(false)
        );
        // The level stands: each rest ends at once.
        wire.write_all(b"!").unwrap();
        let woken = || {
            engine
                .ask(|runner| runner.tallies().counts.wake_up_events)
                .unwrap()
        };
        let seen = ticks();
        match idle_poll {
            0 => await_that("it is woken", || woken() >= 3),
            _ => await_that("ticks", || ticks() >= seen + 100),
        }
        assert_eq!(woken() > 0, idle_poll == 0);
        assert_eq!(engine.end().unwrap().poller().read(Knob::Handlers), 1);
    }
}

/// Threads of the kernel that receive when they are told to; how often they were.
struct Threads(Arc<AtomicU64>);

impl CpuAccount for Threads {
    fn kernel_ns(&mut self) -> u64 {
        0
    }

    fn can_hold_back(&self) -> bool {
        true
    }

    fn let_run(&mut self, on: bool) {
        self.0.fetch_add(u64::from(on), Ordering::Relaxed);
    }
}

/// How often the kernel's threads may run in a hundred ticks or more, beside a port at which so many packets wait after
/// each cycle. Cycles end early, or take all of their share.
fn runs_beside(waiting: u32, takes_all: bool) -> u64 {
    let poll = Duration::from_millis(if takes_all { 6 } else { 0 });
    let port = FakePort {
        waiting,
        ..FakePort::new(move |count| {
            thread::sleep(poll);
            count
        })
    };
    let runs = Arc::new(AtomicU64::new(0));
    let runner = port.runner(RunnerSettings {
        hz: 100,
        ..settings(Drive::Polling, Controller::Share)
    });
    let runner = runner.charged(Some(Box::new(Threads(Arc::clone(&runs)))));
    let engine = Engine::start(runner, last_cpu()).unwrap();
    let ticks = || engine.ask(|runner| runner.tallies().events.ticks);
    await_that("a hundred ticks", || ticks().unwrap() >= 100);
    drop(engine);
    runs.load(Ordering::Relaxed)
}

#[test]
fn the_kernel_brings_packets_in_each_tick_unless_more_wait_than_a_cycle_gets_to() {
    for (waiting, takes_all, runs) in [
        (0, false, true),
        (1, false, true),
        // Also when nothing of the network's part of the tick is left.
        (1, true, true),
        (u32::MAX, false, false),
        (u32::MAX, true, false),
    ] {
        let ran = runs_beside(waiting, takes_all) > 0;
        assert_eq!(ran, runs, "{waiting} {takes_all}");
    }
}

/// An account that sees others take the CPU where the last look was so long ago, or never.
struct Others {
    after: Option<Duration>,
    looked: Instant,
    had_ns: i64,
}

impl CpuAccount for Others {
    fn kernel_ns(&mut self) -> u64 {
        0
    }

    fn others_ns(&mut self) -> Option<i64> {
        let is_seen = self
            .after
            .is_some_and(|after| self.looked.elapsed() >= after);
        self.had_ns += if is_seen { 1_000_000 } else { 0 };
        self.looked = Instant::now();
        Some(self.had_ns)
    }
}

/// Packets of each tick, of a port where more wait than can be taken, and others want the CPU or not.
fn packets_a_tick(controller: Controller, after: Option<Duration>) -> u64 {
    let mut port = FakePort::new(|count| {
        let began = Instant::now();
        while began.elapsed() < count * Duration::from_micros(20) {}
        count
    });
    port.waiting = u32::MAX;
    let mut runner = port.runner(RunnerSettings {
        hz: 100,
        ..settings(Drive::Polling, controller)
    });
    for (knob, value) in [(Knob::BurstMax, 1000), (Knob::UserFrac, 90)] {
        runner.poller_mut().write(knob, value).unwrap();
    }
    let others = Others {
        after,
        looked: Instant::now(),
        had_ns: 0,
    };
    let runner = runner.charged(Some(Box::new(others)));
    let engine = Engine::start(runner, last_cpu()).unwrap();
    let ticks = || engine.ask(|runner| runner.tallies().events.ticks);
    await_that("a hundred ticks", || ticks().unwrap() >= 100);
    let tallies = engine.end().unwrap().tallies();
    tallies.counts.received_packets / tallies.events.ticks
}

#[test]
fn share_polls_on_in_what_nobody_else_wants_and_freebsd_does_not() {
    // The second is seen from tick to tick, and not while the engine leaves the CPU for a moment.
    let wants = [Duration::ZERO, Duration::from_millis(1)];
    for controller in [Controller::Share, Controller::Freebsd] {
        let alone = packets_a_tick(controller, None);
        for want in wants {
            let beside = packets_a_tick(controller, Some(want));
            let polls_on = alone > 2 * beside;
            let expected = controller == Controller::Share;
            assert_eq!(polls_on, expected, "{want:?} {alone} {beside}");
        }
    }
}
