//! The runner on a port that is no interface: what it asks the port for, and what the core is told when work takes
//! longer than a tick.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Command, Controller, Device, Knob};
use nicpoll_engine::{
    CpuAccount, Drive, Engine, LinkWatch, Port, PortDrops, PortRunner, RunnerSettings,
};
use nicpoll_sys::schedule;

/// What has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a port was asked for.
#[derive(Default)]
struct Asked {
    has_interrupts: AtomicBool,
    wake_ups: AtomicU64,
    status_checks: AtomicU64,
}

/// A port whose polls take so long.
struct Slow {
    asked: Arc<Asked>,
    poll: Duration,
    /// Packets that wait, whatever is taken.
    waiting: u32,
    /// What wakes it without end, if anything does.
    storm: Option<UnixStream>,
}

impl Device for Slow {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        let is_check = command == Command::PollAndCheckStatus;
        let checks = &self.asked.status_checks;
        checks.fetch_add(u64::from(is_check), Ordering::Relaxed);
        thread::sleep(self.poll);
        count
    }

    fn set_interrupts(&mut self, on: bool) {
        self.asked.has_interrupts.store(on, Ordering::Relaxed);
    }
}

impl Port for Slow {
    type Input = ();

    fn input(&self) -> &() {
        &()
    }

    fn input_mut(&mut self) -> &mut () {
        unreachable!("it hands nothing on")
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.asked.wake_ups.fetch_add(1, Ordering::Relaxed);
        self.storm.as_ref().map(AsFd::as_fd)
    }

    fn link(&self) -> LinkWatch {
        LinkWatch::up()
    }

    fn drops(&self) -> PortDrops {
        PortDrops::default()
    }
}

fn engine(drive: Drive, poll: Duration) -> (Engine<()>, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let port = Slow {
        asked: Arc::clone(&asked),
        poll,
        waiting: 0,
        storm: None,
    };
    let settings = RunnerSettings {
        drive,
        hz: 1000,
        controller: Controller::Freebsd,
        storm_threshold: 0,
    };
    let runner = PortRunner::new(settings, vec![Box::new(port)]).unwrap();
    let cpu = *schedule::allowed_cpus().unwrap().last().unwrap();
    (Engine::start(runner, cpu).unwrap(), asked)
}

fn await_knob(engine: &Engine<()>, knob: Knob, least: u32) {
    let began = Instant::now();
    loop {
        let value = engine
            .ask(move |runner| runner.poller().read(knob))
            .unwrap();
        if value >= least {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{}: {value}", knob.name());
        thread::sleep(Duration::from_millis(5));
    }
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
    assert!(!asked.has_interrupts.load(Ordering::Relaxed));
    assert_eq!(asked.wake_ups.load(Ordering::Relaxed), 0);
    assert!(asked.status_checks.load(Ordering::Relaxed) > 0);
    assert_eq!(runner.poller().read(Knob::Handlers), 1);
    assert_eq!(runner.tallies().wake_ups, 0);
}

#[test]
fn under_interrupts_the_poller_has_no_device_and_requests_are_heard() {
    let (engine, asked) = engine(Drive::Interrupt, Duration::ZERO);
    let began = Instant::now();
    while asked.wake_ups.load(Ordering::Relaxed) < 2 {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let handlers = engine.ask(|runner| runner.poller().read(Knob::Handlers));
    assert_eq!(handlers, Ok(0));
    assert!(asked.has_interrupts.load(Ordering::Relaxed));
    drop(engine);
}

#[test]
fn a_storm_is_throttled_when_there_is_a_threshold_and_never_without() {
    let [without, with] = [0, 20].map(|storm_threshold| {
        let (storm, mut cause) = UnixStream::pair().unwrap();
        cause.write_all(b"!").unwrap();
        let port = Slow {
            asked: Arc::default(),
            poll: Duration::ZERO,
            waiting: 1,
            storm: Some(storm),
        };
        let settings = RunnerSettings {
            drive: Drive::Interrupt,
            hz: 1000,
            controller: Controller::Freebsd,
            storm_threshold,
        };
        let runner = PortRunner::new(settings, vec![Box::new(port)]).unwrap();
        let cpu = *schedule::allowed_cpus().unwrap().last().unwrap();
        let engine = Engine::start(runner, cpu).unwrap();
        let began = Instant::now();
        while engine.ask(|runner| runner.tallies().polls).unwrap() < 100 {
            assert!(began.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(5));
        }
        engine.end().unwrap().tallies()
    });
    assert_eq!(without.throttled, 0);
    assert!(with.throttled > 0, "{with:?}");
    // About one pass a tick once it is throttled: the low part of the sawtooth.
    assert!(with.polls <= with.ticks + 25, "{with:?}");
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
    let port = Slow {
        asked: Arc::default(),
        poll: Duration::from_millis(if takes_all { 6 } else { 0 }),
        waiting,
        storm: None,
    };
    let settings = RunnerSettings {
        drive: Drive::Polling,
        hz: 100,
        controller: Controller::Share,
        storm_threshold: 0,
    };
    let runs = Arc::new(AtomicU64::new(0));
    let runner = PortRunner::new(settings, vec![Box::new(port)]).unwrap();
    let runner = runner.charged(Some(Box::new(Threads(Arc::clone(&runs)))));
    let cpu = *schedule::allowed_cpus().unwrap().last().unwrap();
    let engine = Engine::start(runner, cpu).unwrap();
    let began = Instant::now();
    while engine.ask(|runner| runner.tallies().ticks).unwrap() < 100 {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    drop(engine);
    runs.load(Ordering::Relaxed)
}

#[test]
fn the_kernel_brings_no_more_packets_while_more_wait_than_a_cycle_gets_to() {
    assert!(runs_beside(0, false) > 0);
    assert_eq!(runs_beside(u32::MAX, false), 0);
    assert_eq!(runs_beside(u32::MAX, true), 0);
}

#[test]
fn the_kernel_brings_packets_in_each_tick_while_fewer_wait_than_a_cycle_gets_to() {
    assert!(runs_beside(1, false) > 0);
    // Also when nothing of the network's part of the tick is left.
    assert!(runs_beside(1, true) > 0);
}
