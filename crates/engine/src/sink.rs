//! Receiving and counting: an application on the engine that does with each packet what it is told to, which may be
//! nothing.
//!
//! What must hold: every frame that the XDP program took is received, lost at a named place, or still in a ring.

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_core::Knob;
use nicpoll_model::Origin;
use nicpoll_model::sink::{
    SINK_SCHEMA, SinkAccount, SinkCounts, SinkEnd, SinkInterval, SinkStart, SinkVariable,
};
use nicpoll_sys::xdp::AttachMode;

use crate::engine::{Asker, Engine, EngineEnded};
use crate::error::EngineError;
use crate::knob_socket::{self, KnobServer};
use crate::knobs::write_knob;
use crate::port::{PacketInput, Port};
use crate::runner::{PortRunner, RunnerSettings};
use crate::take::{Take, Taker};
use crate::work::Work;
use crate::xdp_port::XdpPort;

/// How often it is looked whether the rings are empty at the end, and the pause between.
const DRAIN_LOOKS: u32 = 20;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// What is received, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// The interface, in the network namespace of the calling thread.
    pub interface: String,
    /// Which packets.
    pub take: Take,
    /// Frames that each queue keeps until they are polled for; a power of two.
    pub frames: u32,
    /// The CPU of the engine's thread.
    pub cpu: u32,
    /// CPU time to spend on each packet.
    pub work_ns: u64,
    /// How the engine runs.
    pub runner: RunnerSettings,
    /// Knobs to write before it starts, in this order.
    pub knobs: Vec<(Knob, u32)>,
}

/// Counts the packets of one queue.
#[derive(Clone, Copy, Debug)]
struct Counter {
    work: Work,
    packets: u64,
    bytes: u64,
}

impl PacketInput for Counter {
    fn packet(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        self.work.spend();
    }
}

/// A sink that runs.
pub struct Sink {
    // Declared first: nobody asks an engine that has ended.
    knobs: KnobServer,
    // The engine's thread ends before the program leaves the interface.
    engine: Engine<XdpPort<Counter>>,
    taker: Taker,
    start: SinkStart,
    began: Instant,
    last: (f64, SinkCounts),
}

impl Sink {
    /// Starts to receive.
    ///
    /// # Errors
    /// When the interface cannot be had, or a setting is out of range. Nothing is left at the interface then.
    pub fn start(settings: &SinkSettings, origin: Origin) -> Result<Self, EngineError> {
        let counter = Counter {
            work: Work::of_ns(settings.work_ns),
            packets: 0,
            bytes: 0,
        };
        let (interface, take) = (&settings.interface, &settings.take);
        let (taker, ports) = XdpPort::open(interface, take, settings.frames, || counter)?;
        let queues = ports.len() as u32;
        let is_zero_copy = ports.iter().all(XdpPort::is_zero_copy);
        let mut runner = PortRunner::new(settings.runner, ports)?;
        for (knob, value) in &settings.knobs {
            write_knob(runner.poller_mut(), *knob, *value)?;
        }
        let engine = Engine::start(runner, settings.cpu)?;
        let knobs = serve_knobs(interface, engine.asker())?;
        let runner = settings.runner;
        let start = SinkStart {
            schema: String::from(SINK_SCHEMA),
            origin,
            interface: interface.clone(),
            device: String::from("af_xdp"),
            program_mode: String::from(match taker.mode() {
                Some(AttachMode::Generic) => "generic",
                Some(AttachMode::Driver) | None => "driver",
            }),
            is_zero_copy,
            queues,
            udp_ports: match take {
                Take::Ports(ports) => Some(ports.iter().copied().collect()),
                Take::AllUdp => None,
            },
            discipline: String::from(runner.drive.name()),
            polled_side: String::from("user"),
            hz: runner.hz,
            controller: String::from(runner.controller.name()),
            storm_threshold_passes: runner.storm_threshold,
            cpu: settings.cpu,
            scheduling: String::from(engine.scheduling().name()),
            work_ns: settings.work_ns,
        };
        Ok(Sink {
            knobs,
            engine,
            taker,
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
        let counts = self.engine.ask(|runner| counts(runner))?;
        let now = (self.began.elapsed().as_secs_f64(), counts);
        let (start_seconds, before) = std::mem::replace(&mut self.last, now);
        Ok(SinkInterval {
            start_seconds,
            end_seconds: now.0,
            counts: since(&counts, &before),
        })
    }

    /// Stops, takes the program off the interface, and says what it came to.
    ///
    /// # Errors
    /// When the engine's thread has ended before, or the program's counters cannot be read.
    pub fn end(mut self) -> Result<SinkEnd, EngineError> {
        let ended = |ended: EngineEnded| EngineError::Thread {
            doing: String::from("ending the sink"),
            source: std::io::Error::other(ended),
        };
        // From here on nothing is taken, so that the account closes.
        let duration_seconds = self.began.elapsed().as_secs_f64();
        self.taker.detach();
        for _ in 0..DRAIN_LOOKS {
            if self.engine.ask(|runner| waiting(runner)).map_err(ended)? == 0 {
                break;
            }
            thread::sleep(DRAIN_PAUSE);
        }
        let fates = self.taker.fates()?;
        drop(self.knobs);
        let runner = self.engine.end().map_err(ended)?;
        let (totals, tallies) = (counts(&runner), runner.tallies());
        let waiting_packets = waiting(&runner);
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
            link_loss_events: runner.ports().iter().map(Port::link_losses).sum(),
            discipline_switches: tallies.changes,
            ticks: tallies.ticks,
            polling: variables(&runner),
            ended_by_signal: None,
        })
    }
}

fn serve_knobs(interface: &str, asker: Asker<XdpPort<Counter>>) -> Result<KnobServer, EngineError> {
    let ask = move |request: String| {
        let answer = asker.ask(move |runner| knob_socket::answer(runner.poller_mut(), &request));
        answer.unwrap_or_else(|ended| format!("error {ended}"))
    };
    KnobServer::start(interface, ask).map_err(|source| EngineError::Thread {
        doing: String::from("serving the knobs to 'nicpoll sysctl'"),
        source,
    })
}

fn waiting(runner: &PortRunner<XdpPort<Counter>>) -> u64 {
    let ports = runner.ports().iter();
    ports.map(|port| u64::from(port.waiting())).sum()
}

fn counts(runner: &PortRunner<XdpPort<Counter>>) -> SinkCounts {
    let tallies = runner.tallies();
    let mut counts = SinkCounts {
        polls: tallies.polls,
        empty_polls: tallies.empty_polls,
        wake_up_events: tallies.wake_ups,
        throttled_passes: tallies.throttled,
        cpu_ns: tallies.cpu_ns,
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
    }
}

fn variables(runner: &PortRunner<XdpPort<Counter>>) -> Vec<SinkVariable> {
    let poller = runner.poller();
    let variable = |knob: &Knob| SinkVariable {
        name: String::from(knob.name()),
        value: poller.read(*knob),
    };
    Knob::ALL.iter().map(variable).collect()
}
