//! Receiving and counting: an application on the engine that does with each packet what it is told to, which may be
//! nothing.
//!
//! What must hold: every frame that the device took is received, lost at a named place, or still in a ring.

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Origin;
use nicpoll_model::engine::KernelSideFacts;
use nicpoll_model::sink::{SINK_SCHEMA, SinkAccount, SinkCounts, SinkEnd, SinkInterval, SinkStart};

use crate::check::{Check, Streams};
use crate::clock::now_ns;
use crate::device::{DeviceChoice, Intake, Reception};
use crate::engine::EngineEnded;
use crate::engines::{EngineSettings, Engines, polling_by_cpu, polling_of_all};
use crate::error::EngineError;
use crate::knob_socket::KnobServer;
use crate::port::{AnyPort, PacketInput, Port};
use crate::receive_setup::{GrantedSetup, Helpers, KernelSide, ReceiveWish};
use crate::runner::{PortRunner, Tallies};
use crate::take::Take;
use crate::work::Work;

/// How often it is looked whether the rings are empty at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// What is received, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// The interface, in the network namespace of the calling thread.
    pub interface: String,
    /// By which device.
    pub device: DeviceChoice,
    /// Which packets.
    pub take: Take,
    /// Frames that each queue keeps until they are polled for; a power of two.
    pub frames: u32,
    /// CPU time to spend on each packet.
    pub work_ns: u64,
    /// By which numbers in the packets losses are looked for.
    pub check: Option<Check>,
    /// How the engines run, and where.
    pub engine: EngineSettings,
    /// What is asked of the kernel's side.
    pub kernel_side: KernelSide,
    /// CPUs for the kernel's threads, where it is to have any; none: those that the engine leaves free.
    pub kernel_cpus: Vec<u32>,
}

/// Counts the packets of one queue.
#[derive(Debug)]
struct Counter {
    work: Work,
    packets: u64,
    bytes: u64,
    streams: Option<Box<Streams>>,
}

impl Counter {
    /// Makes a counter for each queue.
    fn of(settings: &SinkSettings) -> impl FnMut() -> Self {
        let work = Work::of_ns(settings.work_ns);
        let check = settings.check;
        move || Counter {
            work,
            packets: 0,
            bytes: 0,
            streams: check.map(|check| Box::new(Streams::new(check))),
        }
    }
}

impl PacketInput for Counter {
    fn packet(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        if let Some(streams) = &mut self.streams {
            streams.record(frame, now_ns());
        }
        self.work.spend();
    }
}

type SinkPort = AnyPort<Counter>;

/// A sink that runs.
pub struct Sink {
    // Declared first: nobody asks an engine that has ended.
    knobs: KnobServer,
    // The engines' threads end before the device leaves the interface.
    engines: Engines<SinkPort>,
    intake: Box<dyn Intake>,
    // Put back last: taking the program off may take NAPI instances along.
    granted: Option<Box<dyn GrantedSetup>>,
    cpus: Vec<u32>,
    start: SinkStart,
    began: Instant,
    last: (f64, SinkCounts),
}

impl Sink {
    /// Starts to receive.
    ///
    /// # Errors
    /// When the interface cannot be had, or a setting is out of range. Nothing is left at the interface then.
    pub fn start(
        settings: &SinkSettings,
        origin: Origin,
        helpers: &Helpers,
    ) -> Result<Self, EngineError> {
        let (interface, take) = (&settings.interface, &settings.take);
        let granted = helpers.set_up(&ReceiveWish {
            interface,
            side: settings.kernel_side,
            kernel_cpus: &settings.kernel_cpus,
            engine_cpus: &settings.engine.cpus,
        })?;
        let reception = Reception {
            interface,
            take,
            frames: settings.frames,
        };
        let opened = settings.device.receive(&reception, Counter::of(settings))?;
        let queues = opened.ports.len() as u32;
        let engines = Engines::start(&settings.engine, opened.ports, helpers.accounts)?;
        let knobs = engines.serve_knobs(interface)?;
        let runner = settings.engine.runner;
        let cpus: Vec<u32> = engines.iter().map(|(cpu, _)| cpu).collect();
        let kernel_side = granted
            .as_ref()
            .map_or_else(KernelSideFacts::as_is, |granted| granted.facts());
        let start = SinkStart {
            schema: String::from(SINK_SCHEMA),
            origin,
            interface: interface.clone(),
            device: String::from(opened.kind.name()),
            refused_devices: opened.refused,
            program_mode: opened.program_mode.map(|mode| String::from(mode.name())),
            is_zero_copy: opened.is_zero_copy,
            queues,
            udp_ports: match take {
                Take::Ports(ports) => Some(ports.iter().copied().collect()),
                Take::AllUdp => None,
            },
            discipline: String::from(runner.drive.name()),
            polled_side: String::from(match settings.kernel_side {
                KernelSide::Polling => "user-and-kernel",
                KernelSide::AsIs | KernelSide::Threaded => "user",
            }),
            kernel_side,
            hz: runner.hz,
            controller: String::from(runner.controller.name()),
            storm_threshold_passes: runner.storm_threshold,
            cpus: cpus.clone(),
            idle_polling: idle_polling(&engines)?,
            scheduling: String::from(engines.scheduling().name()),
            work_ns: settings.work_ns,
            check: settings.check.map(|check| String::from(check.name)),
        };
        Ok(Sink {
            knobs,
            engines,
            intake: opened.intake,
            granted,
            cpus,
            start,
            began: Instant::now(),
            last: (0.0, SinkCounts::default()),
        })
    }

    /// What was asked for and how it is carried out.
    pub fn facts(&self) -> &SinkStart {
        &self.start
    }

    /// What was received since the last call, or the start.
    ///
    /// # Errors
    /// When the engine's thread has ended.
    pub fn interval(&mut self) -> Result<SinkInterval, EngineEnded> {
        // The time is that of the counts: the caller may get the CPU much later than the engine.
        let asked = self
            .engines
            .ask(|runner| (Instant::now(), counts(runner)))?;
        let (times, counts): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let counts = added(&counts);
        let until = times.into_iter().max().unwrap_or_else(Instant::now);
        let now = (until.duration_since(self.began).as_secs_f64(), counts);
        let (start_seconds, before) = std::mem::replace(&mut self.last, now);
        Ok(SinkInterval {
            start_seconds,
            end_seconds: now.0,
            counts: since(&counts, &before),
        })
    }

    /// Stops, leaves the interface, and says what it came to.
    ///
    /// # Errors
    /// When the engine's thread has ended before, or the device's counters cannot be read.
    pub fn end(mut self) -> Result<SinkEnd, EngineError> {
        let ended = |ended: EngineEnded| EngineError::Thread {
            doing: String::from("ending the sink"),
            source: std::io::Error::other(ended),
        };
        // From here on nothing is taken, so that the account closes.
        let duration_seconds = self.began.elapsed().as_secs_f64();
        self.intake.stop();
        for _ in 0..DRAIN_LOOKS {
            let waiting = self.engines.ask(|runner| waiting(runner));
            if waiting.map_err(ended)?.iter().sum::<u64>() == 0 {
                break;
            }
            thread::sleep(DRAIN_PAUSE);
        }
        let fates = self.intake.fates()?;
        drop(self.knobs);
        let runners = self.engines.end().map_err(ended)?;
        drop(self.intake);
        if let Some(granted) = self.granted {
            let interface = self.start.interface.clone();
            let side = self.start.kernel_side.name.clone();
            granted.put_back().map_err(|source| EngineError::PutBack {
                interface,
                side,
                source,
            })?;
        }
        let totals = added(&runners.iter().map(counts).collect::<Vec<_>>());
        let waiting_packets = runners.iter().map(waiting).sum();
        let tally = |of: fn(&Tallies) -> u64| runners.iter().map(|one| of(&one.tallies())).sum();
        let ports = || runners.iter().flat_map(PortRunner::ports);
        let left = |packets: u64| i64::try_from(packets).unwrap_or(i64::MAX);
        let found = [
            totals.received_packets,
            totals.ring_full_packets,
            totals.no_memory_packets,
            waiting_packets,
        ];
        Ok(SinkEnd {
            duration_seconds,
            totals,
            account: SinkAccount {
                taken_packets: fates.taken,
                received_packets: totals.received_packets,
                ring_full_packets: totals.ring_full_packets,
                no_memory_packets: totals.no_memory_packets,
                waiting_packets,
                residual_packets: left(fates.taken) - left(found.iter().sum()),
                passed_packets: fates.passed,
                without_socket_packets: fates.without_socket,
            },
            check: Streams::total(ports().filter_map(|port| port.input().streams.as_deref())),
            link_loss_events: ports().map(Port::link_losses).sum(),
            discipline_switches: tally(|tallies| tallies.changes),
            ticks: tally(|tallies| tallies.ticks),
            polling: polling_of_all(&runners),
            polling_by_cpu: polling_by_cpu(&self.cpus, &runners),
            ended_by_signal: None,
        })
    }
}

fn idle_polling(engines: &Engines<SinkPort>) -> Result<String, EngineError> {
    let asked = engines.ask(|runner| runner.idle_polling());
    let asked = asked.map_err(|ended| EngineError::Thread {
        doing: String::from("starting the sink"),
        source: std::io::Error::other(ended),
    })?;
    let name = asked.first().map_or("", |idle_polling| idle_polling.name());
    Ok(String::from(name))
}

fn waiting(runner: &PortRunner<SinkPort>) -> u64 {
    let ports = runner.ports().iter();
    ports.map(|port| u64::from(port.waiting())).sum()
}

fn counts(runner: &PortRunner<SinkPort>) -> SinkCounts {
    let tallies = runner.tallies();
    let mut counts = SinkCounts {
        polls: tallies.polls,
        empty_polls: tallies.empty_polls,
        wake_up_events: tallies.wake_ups,
        throttled_passes: tallies.throttled,
        cpu_ns: tallies.cpu_ns,
        kernel_ns: tallies.kernel_ns,
        ..SinkCounts::default()
    };
    for port in runner.ports() {
        let (input, drops) = (port.input(), port.drops());
        counts.received_packets += input.packets;
        counts.received_bytes += input.bytes;
        counts.ring_full_packets += drops.ring_full;
        counts.no_memory_packets += drops.no_memory;
    }
    counts
}

/// The sum over all CPUs.
fn added(each: &[SinkCounts]) -> SinkCounts {
    let sum = |of: fn(&SinkCounts) -> u64| each.iter().map(of).sum();
    SinkCounts {
        received_packets: sum(|counts| counts.received_packets),
        received_bytes: sum(|counts| counts.received_bytes),
        ring_full_packets: sum(|counts| counts.ring_full_packets),
        no_memory_packets: sum(|counts| counts.no_memory_packets),
        polls: sum(|counts| counts.polls),
        empty_polls: sum(|counts| counts.empty_polls),
        wake_up_events: sum(|counts| counts.wake_up_events),
        throttled_passes: sum(|counts| counts.throttled_passes),
        cpu_ns: sum(|counts| counts.cpu_ns),
        kernel_ns: each.iter().map(|counts| counts.kernel_ns).sum(),
    }
}

fn since(now: &SinkCounts, before: &SinkCounts) -> SinkCounts {
    // The counters of an interface that was removed may be gone with it.
    let since = |now: u64, before: u64| now.saturating_sub(before);
    SinkCounts {
        received_packets: since(now.received_packets, before.received_packets),
        received_bytes: since(now.received_bytes, before.received_bytes),
        ring_full_packets: since(now.ring_full_packets, before.ring_full_packets),
        no_memory_packets: since(now.no_memory_packets, before.no_memory_packets),
        polls: since(now.polls, before.polls),
        empty_polls: since(now.empty_polls, before.empty_polls),
        wake_up_events: since(now.wake_up_events, before.wake_up_events),
        throttled_passes: since(now.throttled_passes, before.throttled_passes),
        cpu_ns: since(now.cpu_ns, before.cpu_ns),
        kernel_ns: now
            .kernel_ns
            .map(|now| since(now, before.kernel_ns.unwrap_or(0))),
    }
}
