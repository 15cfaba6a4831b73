//! Receiving and counting: an application on the engine that does with each packet what it is told to, which may be
//! nothing.
//!
//! What must hold: every frame that the device took is received, lost at a named place, or still in a ring.

mod look;

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Origin;
use nicpoll_model::engine::KernelSideFacts;
use nicpoll_model::sink::{SINK_SCHEMA, SinkAccount, SinkEnd, SinkInterval, SinkStart};

use crate::application::EngineApplication;
use crate::check::{CheckedStreams, PacketCheck};
use crate::clock::now_ns;
use crate::device::{DeviceChoice, Intake, Opened, Reception};
use crate::engine::EngineEnded;
use crate::engines::{EngineSettings, Engines, polling_by_cpu};
use crate::error::EngineError;
use crate::knob_socket::KnobServer;
use crate::names::Named;
use crate::port::{AnyPort, PacketInput, Port};
use crate::receive_setup::{GrantedSetup, Helpers, KernelSide, ReceiveWish};
use crate::runner::PortRunner;
use crate::take::Take;
use crate::work::Work;
use look::{Look, OfCpu};

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
    pub check: Option<PacketCheck>,
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
    streams: Option<Box<CheckedStreams>>,
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
            streams: check.map(|check| Box::new(CheckedStreams::new(check))),
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
    knobs: Option<KnobServer>,
    // The engines' threads end before the device leaves the interface.
    engines: Engines<SinkPort>,
    intake: Box<dyn Intake>,
    // Put back last: taking the program off may take NAPI instances along.
    granted: Option<Box<dyn GrantedSetup>>,
    cpus: Vec<u32>,
    start: SinkStart,
    began: Instant,
    last: Look,
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
        let kernel_side = granted
            .as_ref()
            .map_or_else(KernelSideFacts::as_is, |granted| granted.facts());
        let start = SinkStart {
            kernel_side,
            ..asked_for(settings, origin, &opened)
        };
        let engines = Engines::start(&settings.engine, opened.ports, helpers.accounts)?;
        let (knobs, knobs_refused) = engines.serve_knobs_where_allowed(interface)?;
        let cpus: Vec<u32> = engines.iter().map(|(cpu, _)| cpu).collect();
        let start = SinkStart {
            cpus: cpus.clone(),
            idle_polling: idle_polling(&engines)?,
            scheduling: String::from(engines.scheduling().name()),
            knobs_refused,
            ..start
        };
        Ok(Sink {
            knobs,
            engines,
            intake: opened.intake,
            granted,
            cpus,
            start,
            began: Instant::now(),
            last: Look::default(),
        })
    }
}

impl EngineApplication for Sink {
    type Start = SinkStart;
    type Interval = SinkInterval;
    type End = SinkEnd;

    fn facts(&self) -> &SinkStart {
        &self.start
    }

    fn interval(&mut self) -> Result<SinkInterval, EngineError> {
        let engines = self.engines.ask(|runner| OfCpu::of(runner));
        let engines = engines.map_err(ended("looking at the sink"))?;
        let now = Look::over(&engines, &self.intake.fates()?, self.began);
        let interval = now.since(&self.last);
        self.last = now;
        Ok(interval)
    }

    fn end(mut self, signal: Option<i32>) -> Result<SinkEnd, EngineError> {
        let ended = || ended("ending the sink");
        // From here on nothing is taken, so that the account closes.
        let duration_seconds = self.began.elapsed().as_secs_f64();
        self.intake.stop();
        for _ in 0..DRAIN_LOOKS {
            let waiting = self.engines.ask(|runner| waiting(runner));
            if waiting.map_err(ended())?.iter().sum::<u64>() == 0 {
                break;
            }
            thread::sleep(DRAIN_PAUSE);
        }
        let fates = self.intake.fates()?;
        drop(self.knobs);
        let runners = self.engines.end().map_err(ended())?;
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
        let engines: Vec<OfCpu> = runners.iter().map(OfCpu::of).collect();
        let look = Look::over(&engines, &fates, self.began);
        let ports = || runners.iter().flat_map(PortRunner::ports);
        Ok(SinkEnd {
            duration_seconds,
            totals: look.counts,
            account: account_of(&look, runners.iter().map(waiting).sum()),
            check: CheckedStreams::total(
                ports().filter_map(|port| port.input().streams.as_deref()),
            ),
            events: look.events,
            kernel_busy_poll: ports()
                .filter_map(Port::busy_polling)
                .min()
                .map(|outcome| String::from(outcome.name())),
            other_end_left: Vec::new(),
            polling: look.polling,
            polling_by_cpu: polling_by_cpu(&self.cpus, &runners),
            ended_by_signal: signal,
        })
    }
}

/// What can be said before the engines run.
fn asked_for<I>(settings: &SinkSettings, origin: Origin, opened: &Opened<I>) -> SinkStart {
    let runner = settings.engine.runner;
    SinkStart {
        schema: String::from(SINK_SCHEMA),
        origin,
        interface: settings.interface.clone(),
        device: String::from(opened.kind.name()),
        refused_devices: opened.refused.clone(),
        program_mode: opened.program_mode.map(|mode| String::from(mode.name())),
        is_zero_copy: opened.is_zero_copy,
        queues: opened.ports.len() as u32,
        udp_ports: match &settings.take {
            Take::Ports(ports) => Some(ports.iter().copied().collect()),
            Take::AllUdp => None,
        },
        discipline: String::from(runner.drive.name()),
        polled_side: String::from(match settings.kernel_side {
            KernelSide::Polling => "user-and-kernel",
            KernelSide::AsIs | KernelSide::Threaded => "user",
        }),
        kernel_side: KernelSideFacts::as_is(),
        hz: runner.hz,
        controller: String::from(runner.controller.name()),
        storm_threshold_passes: runner.storm_threshold,
        cpus: Vec::new(),
        idle_polling: String::new(),
        scheduling: String::new(),
        work_ns: settings.work_ns,
        check: settings.check.map(|check| String::from(check.name)),
        other_end_changes: Vec::new(),
        knobs_refused: None,
    }
}

fn account_of(look: &Look, waiting_packets: u64) -> SinkAccount {
    let (counts, fates) = (&look.counts, look.fates);
    let left = |packets: u64| i64::try_from(packets).unwrap_or(i64::MAX);
    let found = [
        counts.received_packets,
        counts.ring_full_packets,
        counts.no_memory_packets,
        waiting_packets,
    ];
    SinkAccount {
        fates,
        received_packets: counts.received_packets,
        ring_full_packets: counts.ring_full_packets,
        no_memory_packets: counts.no_memory_packets,
        waiting_packets,
        residual_packets: left(fates.taken_packets) - left(found.iter().sum()),
    }
}

/// The engine's thread ended by itself.
fn ended(doing: &'static str) -> impl Fn(EngineEnded) -> EngineError {
    move |ended| EngineError::Thread {
        doing: String::from(doing),
        source: std::io::Error::other(ended),
    }
}

fn idle_polling(engines: &Engines<SinkPort>) -> Result<String, EngineError> {
    let asked = engines.ask(|runner| runner.idle_polling());
    let asked = asked.map_err(ended("starting the sink"))?;
    let name = asked.first().map_or("", |idle_polling| idle_polling.name());
    Ok(String::from(name))
}

fn waiting(runner: &PortRunner<SinkPort>) -> u64 {
    let ports = runner.ports().iter();
    ports.map(|port| u64::from(port.waiting())).sum()
}
