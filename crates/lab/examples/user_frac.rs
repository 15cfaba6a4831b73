//! The share of the engine's CPU that an endless loop gets, next to the requested `user_frac`, by controller, load,
//! idle polling and the CPU of the kernel's receive thread; then the engine's own share of a CPU without packets and
//! at 10,000 packets a second.
//!
//! In namespaces of its own, as root:
//! `cargo run --release -p nicpoll-lab --example user_frac [SECONDS [WORK_NS [HZ [first|last [PLACE]]]]]`
//!
//! With `first` the loop and the sender run before ordinary programs, though after the engine: on a machine that does
//! other work at the same time. The kernel gives ordinary programs 5 % even then. PLACE is 0, 1 or 2: where the kernel
//! receives, for that part of the table alone.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    DeviceChoice, Drive, EngineApplication, EngineSettings, FRAMES_MAX, KernelSide, Named,
    RunnerSettings, Sink, SinkSettings, Take,
};
use nicpoll_lab::{EngineSupport, Veth};
use nicpoll_model::{Origin, Side};
use nicpoll_switch::{GUARD_COMMAND, Journal, watch_over};
use nicpoll_sys::schedule::{self, Policy};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

const PORT: u16 = 9000;
/// Unmeasured time in which the burst finds its size.
const WARM_UP: Duration = Duration::from_millis(700);
/// A loop that was away for longer did not run.
const AWAY_NS: u64 = 1_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The varied conditions.
#[derive(Clone, Copy)]
struct Case {
    drive: Drive,
    controller: Controller,
    user_frac: u32,
    has_idle_poll: bool,
    /// Packets a second; `None`: as many as there can be.
    load: Option<u32>,
    has_spinner: bool,
    /// Whether the kernel's work is charged.
    is_charged: bool,
    /// The CPU of the kernel's receive thread, if it is to have one.
    kernel: Option<u32>,
}

struct Bench {
    veth: Veth,
    seconds: f64,
    work_ns: u64,
    hz: u32,
    engine_cpu: u32,
    sender_cpu: u32,
    is_first: bool,
}

/// Result of a case.
struct Seen {
    spinner_by_clock: f64,
    spinner_by_kernel: f64,
    engine: f64,
    kernel: Option<f64>,
    packets_per_second: f64,
    lost_polls: u32,
}

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some(GUARD_COMMAND) {
        let journal = Journal::of_this_machine();
        return Ok(watch_over(&journal, None, &AtomicBool::new(false))?);
    }
    let mut args = std::env::args().skip(1);
    let mut number = |default: f64| args.next().map_or(Ok(default), |text| text.parse());
    let cpus = schedule::allowed_cpus()?;
    let bench = Bench {
        veth: Veth::build()?,
        seconds: number(2.0)?,
        work_ns: number(5_000.0)? as u64,
        hz: number(1_000.0)? as u32,
        engine_cpu: *cpus.last().ok_or("no CPU is allowed")?,
        sender_cpu: cpus[0],
        is_first: std::env::args().nth(4).as_deref() == Some("first"),
    };
    println!(
        "{} Hz, {} ns of work on each packet, engine and loop on CPU {}, sender on CPU {}, {} s each",
        bench.hz, bench.work_ns, bench.engine_cpu, bench.sender_cpu, bench.seconds
    );
    let only = std::env::args().nth(5);
    let only = only.map(|text| text.parse::<usize>()).transpose()?;
    if only.is_none() {
        bench.cost()?;
    }
    println!(
        "\nshare of the CPU in per cent: the loop by its own clock and by the kernel's; all programs together, which \
         'user_frac' is about"
    );
    let places = [
        ("on the sender's CPU, as it comes", None),
        ("in a thread on the sender's CPU", Some(bench.sender_cpu)),
        ("in a thread on the engine's CPU", Some(bench.engine_cpu)),
    ];
    for (index, (place, kernel)) in places.into_iter().enumerate() {
        if only.is_some_and(|only| only != index) {
            continue;
        }
        println!("\nthe kernel receives {place}");
        println!(
            "controller idle_poll       load user_frac | clock kernel programs engine NAPI+irq | packets/s lost_polls"
        );
        bench.table(kernel)?;
    }
    Ok(())
}

impl Bench {
    fn table(&self, kernel: Option<u32>) -> Outcome<()> {
        for load in [None, Some(20_000), Some(0)] {
            for has_idle_poll in [false, true] {
                for controller in Controller::ALL {
                    for user_frac in [10, 50, 90] {
                        self.line(Case {
                            drive: Drive::Polling,
                            controller,
                            user_frac,
                            has_idle_poll,
                            load,
                            has_spinner: true,
                            is_charged: true,
                            kernel,
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn line(&self, case: Case) -> Outcome<()> {
        let seen = self.run(case)?;
        let load = match case.load {
            None => String::from("overload"),
            Some(rate) => format!("{rate}/s"),
        };
        println!(
            "{:<10} {:>9} {load:>10} {:>9} | {:>5.1} {:>6.1} {:>8.1} {:>6.1} {:>8} | {:>9.0} {:>10}",
            case.controller.name(),
            u32::from(case.has_idle_poll),
            case.user_frac,
            seen.spinner_by_clock,
            seen.spinner_by_kernel,
            100.0 - seen.engine - seen.kernel.unwrap_or(0.0),
            seen.engine,
            seen.kernel
                .map_or(String::from("-"), |kernel| format!("{kernel:.1}")),
            seen.packets_per_second,
            seen.lost_polls,
        );
        Ok(())
    }

    /// Measures the engine's share without a loop on its CPU.
    fn cost(&self) -> Outcome<()> {
        println!("\nCPU of the engine alone, no work on packets");
        println!("discipline       load charged | engine % packets/s");
        for load in [0, 10_000, 50_000] {
            for (drive, is_charged) in [
                (Drive::Polling, false),
                (Drive::Polling, true),
                (Drive::Interrupt, false),
                (Drive::Adaptive, true),
            ] {
                let bench = Bench {
                    veth: Veth::build()?,
                    work_ns: 0,
                    ..*self
                };
                let seen = bench.run(Case {
                    drive,
                    controller: Controller::Freebsd,
                    user_frac: 50,
                    has_idle_poll: false,
                    load: Some(load),
                    has_spinner: false,
                    is_charged,
                    kernel: None,
                })?;
                println!(
                    "{:<10} {load:>8}/s {is_charged:>7} | {:>8.2} {:>9.0}",
                    drive.name(),
                    seen.engine,
                    seen.packets_per_second
                );
            }
        }
        Ok(())
    }

    fn run(&self, case: Case) -> Outcome<Seen> {
        let settings = SinkSettings {
            interface: String::from("em0"),
            device: DeviceChoice::Auto,
            check: None,
            take: Take::Ports([PORT].into()),
            frames: FRAMES_MAX,
            work_ns: self.work_ns,
            engine: EngineSettings {
                cpus: vec![self.engine_cpu],
                runner: RunnerSettings {
                    drive: case.drive,
                    hz: self.hz,
                    controller: case.controller,
                    storm_threshold: 0,
                },
                knobs: vec![
                    (Knob::BurstMax, 2000),
                    (Knob::UserFrac, case.user_frac),
                    (Knob::IdlePoll, u32::from(case.has_idle_poll)),
                ],
            },
            kernel_side: case
                .kernel
                .map_or(KernelSide::AsIs, |_| KernelSide::Threaded),
            kernel_cpus: case.kernel.into_iter().collect(),
            gone: Default::default(),
        };
        let is_charged = case.is_charged;
        let start = move |(): &mut ()| {
            let drive = settings.engine.runner.drive;
            let mut helpers = EngineSupport::of(&["em0"], drive, settings.kernel_side);
            helpers.is_charged = is_charged;
            Sink::start(&settings, origin(), &helpers)
        };
        let mut sink = self.veth.inside(Side::Receiver).run(start)??;
        let ends = Arc::new(AtomicBool::new(false));
        let sender = self.send(case.load, &ends)?;
        let spinner = case
            .has_spinner
            .then(|| spin(self.engine_cpu, self.is_first, &ends));
        thread::sleep(WARM_UP);
        sink.interval()?;
        thread::sleep(Duration::from_secs_f64(self.seconds));
        let interval = sink.interval()?;
        ends.store(true, Ordering::Relaxed);
        let (by_clock, by_kernel) =
            spinner.map_or((0.0, 0.0), |spinner| spinner.join().unwrap_or((0.0, 0.0)));
        let _ = sender.join();
        let seconds = interval.end_seconds - interval.start_seconds;
        let percent = |ns: u64| ns as f64 / seconds / 1e7;
        let end = sink.end(None)?;
        let lost = end.polling.iter().find(|one| one.name == "lost_polls");
        Ok(Seen {
            spinner_by_clock: by_clock,
            spinner_by_kernel: by_kernel,
            engine: percent(interval.counts.cpu_ns),
            kernel: interval.counts.kernel_ns.map(percent),
            packets_per_second: interval.counts.received_packets as f64 / seconds,
            lost_polls: lost.map_or(0, |one| one.value),
        })
    }

    /// Sends until it is told to end.
    fn send(&self, load: Option<u32>, ends: &Arc<AtomicBool>) -> Outcome<JoinHandle<()>> {
        let (cpu, is_first, ends) = (self.sender_cpu, self.is_first, Arc::clone(ends));
        let sender = move |(): &mut ()| {
            thread::spawn(move || {
                settle(cpu, is_first);
                let Ok(socket) = UdpSocket::bind("198.18.0.1:0") else {
                    return;
                };
                let (began, mut sent) = (Instant::now(), 0u64);
                while !ends.load(Ordering::Relaxed) {
                    let due =
                        load.map(|rate| (began.elapsed().as_secs_f64() * f64::from(rate)) as u64);
                    if due.is_some_and(|due| sent >= due) {
                        thread::sleep(Duration::from_micros(50));
                        continue;
                    }
                    let _ = socket.send_to(&[0; 64], ("198.18.0.2", PORT));
                    sent += 1;
                }
            })
        };
        Ok(self.veth.inside(Side::Sender).run(sender)?)
    }
}

fn origin() -> Origin {
    Origin {
        nicpoll_version: String::new(),
        argv: Vec::new(),
        started_at: String::new(),
    }
}

/// Binds the calling thread to a CPU.
fn settle(cpu: u32, is_first: bool) {
    let _ = schedule::pin(cpu);
    if is_first {
        let thread = gettid().as_raw_nonzero().get().unsigned_abs();
        let _ = schedule::set_policy(thread, Policy::Fifo { priority: 1 });
    }
}

/// Runs an endless loop on a CPU: returns the percentage that it got after the warm-up, by its own clock and by the
/// kernel's.
fn spin(cpu: u32, is_first: bool, ends: &Arc<AtomicBool>) -> JoinHandle<(f64, f64)> {
    let ends = Arc::clone(ends);
    thread::spawn(move || {
        settle(cpu, is_first);
        let ns = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let warm = ns(ClockId::Monotonic) + WARM_UP.as_nanos() as u64;
        while ns(ClockId::Monotonic) < warm {}
        let (began, cpu_before) = (ns(ClockId::Monotonic), ns(ClockId::ThreadCPUTime));
        let (mut last, mut own) = (began, 0);
        while !ends.load(Ordering::Relaxed) {
            let now = ns(ClockId::Monotonic);
            own += if now - last < AWAY_NS { now - last } else { 0 };
            last = now;
        }
        let wall = (last - began) as f64;
        let by_kernel = (ns(ClockId::ThreadCPUTime) - cpu_before) as f64;
        (100.0 * own as f64 / wall, 100.0 * by_kernel / wall)
    })
}
