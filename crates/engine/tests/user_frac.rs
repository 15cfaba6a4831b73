//! What programs beside the engine get of its CPU: more under a larger `user_frac`, whatever the load, and nearly all of
//! it while the engine only polls because nobody else wants the CPU.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{CpuAccount, Drive, Engine, PortRunner, write_knob};
use nicpoll_sys::schedule::{self, Policy};
use nicpoll_testkit::needs;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use common::{FakePort, Nobody, await_that, last_cpu, settings};

/// They judge one CPU.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// The burst finds its size, and then the loop is timed.
const WARM_UP: Duration = Duration::from_millis(400);
const TIMED: Duration = Duration::from_millis(800);

const PACKET: Duration = Duration::from_micros(5);

/// The runner of a port where more packets wait than are ever asked for, or none; each takes its time.
fn runner(controller: Controller, has_load: bool, knobs: &[(Knob, u32)]) -> PortRunner<Nobody> {
    let port = FakePort {
        waiting: u32::from(has_load),
        ..FakePort::new(move |count| {
            let packets = if has_load { count } else { 0 };
            let began = Instant::now();
            // A poll that finds nothing takes a little, too.
            while began.elapsed() < PACKET * packets.max(1) {}
            packets
        })
    };
    let mut runner = port.runner(settings(Drive::Polling, controller));
    for (knob, value) in knobs {
        write_knob(runner.poller_mut(), *knob, *value).unwrap();
    }
    runner
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The share of a CPU that an endless loop gets beside the engine.
fn share_of_loop(runner: PortRunner<Nobody>) -> f64 {
    let cpu = last_cpu();
    let engine = Engine::start(runner, cpu).unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&ends);
    let spinner = thread::spawn(move || {
        schedule::pin(cpu).unwrap();
        // After the engine and before everything else that this machine may be doing.
        let thread = gettid().as_raw_nonzero().get().unsigned_abs();
        schedule::set_policy(thread, Policy::Fifo { priority: 1 }).unwrap();
        let own = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let began = Instant::now();
        while began.elapsed() < WARM_UP {}
        let (began, before) = (Instant::now(), own());
        while !is_over.load(Ordering::Relaxed) {}
        (own() - before).as_secs_f64() / began.elapsed().as_secs_f64()
    });
    thread::sleep(WARM_UP + TIMED);
    ends.store(true, Ordering::Relaxed);
    let share = spinner.join().unwrap();
    drop(engine);
    share
}

#[test]
fn a_loop_gets_more_under_a_larger_user_frac_at_any_load() {
    needs!(Root);
    let _alone = alone();
    for controller in Controller::ALL {
        let [little, much] = [20, 80].map(|user_frac| {
            let knobs = [(Knob::BurstMax, 1000), (Knob::UserFrac, user_frac)];
            share_of_loop(runner(controller, true, &knobs))
        });
        let name = controller.name();
        assert!(much > little + 0.2, "{name}: {little:.2} and {much:.2}");
    }
}

#[test]
fn idle_polling_takes_only_what_a_loop_leaves() {
    needs!(Root);
    let _alone = alone();
    let knobs = [(Knob::IdlePoll, 1), (Knob::UserFrac, 10)];
    let share = share_of_loop(runner(Controller::Freebsd, false, &knobs));
    // Polling until 90 % of each tick are over would leave it a tenth.
    assert!(share > 0.5, "{share:.2}");
}

#[test]
fn idle_polling_goes_on_until_the_next_tick_where_nobody_wants_the_cpu() {
    let _alone = alone();
    let polls = |idle_poll| {
        let runner = runner(Controller::Freebsd, false, &[(Knob::IdlePoll, idle_poll)]);
        let engine = Engine::start(runner, last_cpu()).unwrap();
        let ticks = || engine.ask(|runner| runner.tallies().events.ticks);
        await_that("a hundred ticks", || ticks().unwrap() >= 100);
        let tallies = engine.end().unwrap().tallies();
        tallies.counts.polls as f64 / tallies.events.ticks as f64
    };
    // Without idle polling the numbers differ by 1 %. Where others want the CPU after all there is little more.
    let mut tries = Vec::new();
    let is_seen = (0..10).any(|_| {
        let [without, with] = [polls(0), polls(1)];
        tries.push([without, with]);
        with > 1.05 * without
    });
    assert!(is_seen, "polls a tick without and with: {tries:?}");
}

/// Says that the kernel has had the whole CPU.
struct Everything(Instant);

impl CpuAccount for Everything {
    fn kernel_ns(&mut self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

#[test]
fn what_the_kernel_took_of_the_cpu_is_charged_to_polling() {
    let _alone = alone();
    for controller in Controller::ALL {
        let account = Box::new(Everything(Instant::now()));
        let knobs = [(Knob::BurstMax, 1000), (Knob::UserFrac, 50)];
        let runner = runner(controller, true, &knobs).charged(Some(account));
        let engine = Engine::start(runner, last_cpu()).unwrap();
        let burst = || engine.ask(|runner| runner.poller().read(Knob::Burst));
        await_that(controller.name(), || burst().unwrap() <= 1);
        let charged_ns = engine.end().unwrap().tallies().counts.kernel_ns;
        assert!(charged_ns.is_some_and(|ns| ns > 0), "{charged_ns:?}");
    }
}
