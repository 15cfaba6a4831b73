//! Receivers before or in place of the kernel's sockets: XDP programs and the engine.
//!
//! A setting carries both as data, checked when the file is read. While such a setting is in force the engine takes
//! the study's own ports at the interface, bypassing the kernel's stack, and hands datagrams to the receiving end of
//! the workload. Its XDP program stays attached as long as the setting: it never changes during a trial's traffic.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use nicpoll_core::{Controller, Knob, Poller};
use nicpoll_engine::{
    DeviceChoice, DeviceKind, Drive, Engine, FRAMES_MAX, Intake, Named, PacketInput, PortRunner,
    Reception, RunnerSettings, Take, parse_knob, write_knob,
};
use nicpoll_observe::{AttachedXdp, BpfError, XdpMode};
use nicpoll_traffic::workload::{Arrival, DatagramReceiver};
use nicpoll_traffic::workload::{EndBooks, EndTerms, PreparedEnd, Workload, WorkloadError};
use nicpoll_traffic::{LOOK_EVERY, Signals};
use nicpoll_wire::frame::Frame;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Refused};

/// iperf 2's port. A hung end may hold its port forever; later runs use the next one.
pub const PORT: u16 = 5001;

/// Distance between the ports of runs: no two streams of two runs share a port.
pub const PORTS_A_RUN: u16 = 64;

/// Number of hung runs after which ports are reused.
pub const HUNG_RUNS: u16 = 512;

/// Returns every port at which the receiver of a run's single stream may listen.
pub fn receiver_ports() -> impl Iterator<Item = u16> {
    (0..HUNG_RUNS).map(|hung| PORT + hung * PORTS_A_RUN)
}

/// Ticks a second, as `nicpoll sink` takes them.
const HZ: std::ops::RangeInclusive<u32> = 100..=10_000;

/// Default ticks a second.
pub const HZ_DEFAULT: u32 = 1000;

/// How the engine receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRequest {
    /// Name of the discipline.
    pub discipline: String,
    /// Ticks a second.
    #[serde(default = "hz_default")]
    pub hz: u32,
    /// Name of the controller.
    #[serde(default = "controller_default")]
    pub controller: String,
    /// Passes back to back after which an interrupt is throttled; 0: never.
    #[serde(default)]
    pub storm_threshold: u32,
    /// Knobs of `kern.polling` that are written before it begins.
    #[serde(default)]
    pub knobs: BTreeMap<String, u32>,
}

fn hz_default() -> u32 {
    HZ_DEFAULT
}

fn controller_default() -> String {
    String::from(Controller::default().name())
}

/// A file's entry: a discipline, or a table with all options.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a discipline such as \"polling\", or { discipline = \"polling\" } with any of hz, controller, \
                 storm_threshold and knobs = { burst_max = 1000 }"
)]
pub enum EngineEntry {
    /// The discipline alone.
    Name(String),
    /// All options.
    Table(EngineRequest),
}

impl From<EngineEntry> for EngineRequest {
    fn from(entry: EngineEntry) -> Self {
        match entry {
            EngineEntry::Table(request) => request,
            EngineEntry::Name(discipline) => EngineRequest {
                discipline,
                hz: HZ_DEFAULT,
                controller: controller_default(),
                storm_threshold: 0,
                knobs: BTreeMap::new(),
            },
        }
    }
}

impl EngineRequest {
    /// The engine's settings and knobs.
    ///
    /// # Errors
    /// With what is out of range, and what is possible.
    pub fn settings(&self) -> Result<(RunnerSettings, Vec<(Knob, u32)>), Refused> {
        let drive = Drive::by_name(&self.discipline).map_err(|unknown| {
            let name = &self.discipline;
            Refused(format!("the engine has no discipline '{name}'; {unknown}"))
        })?;
        let controller = Controller::from_name(&self.controller).ok_or_else(|| {
            let (name, names) = (&self.controller, Controller::ALL.map(Controller::name));
            let names = names.join(", ");
            Refused(format!(
                "the engine has no controller '{name}'; it has {names}"
            ))
        })?;
        let poller = HZ.contains(&self.hz).then(|| Poller::new(self.hz).ok());
        let mut poller = poller.flatten().ok_or_else(|| {
            let (hz, least, most) = (self.hz, HZ.start(), HZ.end());
            Refused(format!("hz = {hz} is out of range; give {least} to {most}"))
        })?;
        let mut knobs = Vec::new();
        // In alphabetical order burst_max comes first, which bounds the others.
        for (name, value) in &self.knobs {
            let knob = parse_knob(name).map_err(|error| Refused(error.to_string()))?;
            let written = write_knob(&mut poller, knob, *value);
            written.map_err(|error| Refused(error.to_string()))?;
            knobs.push((knob, *value));
        }
        let settings = RunnerSettings {
            drive,
            hz: self.hz,
            controller,
            storm_threshold: self.storm_threshold,
        };
        Ok((settings, knobs))
    }

    /// Description for the document.
    pub fn words(&self) -> String {
        let mut words = format!("{} at {} Hz", self.discipline, self.hz);
        if self.controller != Controller::default().name() {
            words += &format!(", controller {}", self.controller);
        }
        if self.storm_threshold > 0 {
            words += &format!(", storm threshold {}", self.storm_threshold);
        }
        for (name, value) in &self.knobs {
            words += &format!(", {name}={value}");
        }
        words
    }
}

/// An XDP program: the user's, or one that passes every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XdpProgram {
    /// The mode.
    #[serde(default)]
    pub mode: XdpMode,
    /// The user's object file; null for the program that passes every frame.
    #[serde(default)]
    pub object: Option<PathBuf>,
    /// The program's name in the object.
    #[serde(default)]
    pub program: Option<String>,
}

impl XdpProgram {
    /// Checks that object and program are given together.
    ///
    /// # Errors
    /// When the file is given without the program's name, or the name without the file.
    pub fn check(&self) -> Result<(), Refused> {
        match self.object.is_some() == self.program.is_some() {
            true => Ok(()),
            false => Err(Refused(String::from(
                "object and program belong together, such as { mode = \"native\", object = \"filter.bpf.o\", program = \
                 \"filter\" }; without both, a program that lets every frame pass is attached",
            ))),
        }
    }

    /// Attaches it to an interface of the caller's namespace.
    pub fn attach(&self, ifindex: u32) -> Result<AttachedXdp, BpfError> {
        match (&self.object, &self.program) {
            (Some(object), Some(name)) => AttachedXdp::of_file(object, name, ifindex, self.mode),
            _ => AttachedXdp::pass(ifindex, self.mode),
        }
    }

    /// Description for the document.
    pub fn words(&self) -> String {
        let mode = match self.mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        };
        match (&self.object, &self.program) {
            (Some(object), Some(name)) => format!("{name} of {}, {mode}", object.display()),
            _ => format!("passes every frame, {mode}"),
        }
    }
}

/// Ticks without a datagram after which the ring counts as empty.
const QUIET_TICKS: u32 = 3;

/// Minimum of that time.
const QUIET_MIN: Duration = Duration::from_millis(5);

/// The longest time to empty the ring after the sender is done.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The engine at an interface.
pub struct EngineReceiver {
    // Dropped first: the engine's thread ends before the program leaves the interface.
    _engine: Engine<Inlet>,
    _intake: Box<dyn Intake>,
    inlet: Inlet,
}

impl EngineReceiver {
    /// Starts receiving at an interface of the calling thread's network namespace, on `cpu`.
    ///
    /// # Errors
    /// When the interface cannot be had.
    pub fn start(interface: &str, request: &EngineRequest, cpu: u32) -> Result<Self, LabError> {
        let (settings, knobs) = request.settings()?;
        let take = Take::Ports(receiver_ports().collect());
        let tick = Duration::from_secs(1) / request.hz;
        let inlet = Inlet(Arc::new(EngineShared {
            quiet: QUIET_MIN.max(tick * QUIET_TICKS),
            ..EngineShared::default()
        }));
        let reception = Reception {
            interface,
            take: &take,
            frames: FRAMES_MAX,
            transmit_frames: 0,
        };
        let opened = DeviceChoice::Only(DeviceKind::AfXdp).receive(&reception, || inlet.clone())?;
        let mut runner = PortRunner::new(settings, opened.ports)?;
        for (knob, value) in knobs {
            let written = write_knob(runner.poller_mut(), knob, value);
            written.map_err(|error| Refused(error.to_string()))?;
        }
        Ok(EngineReceiver {
            _engine: Engine::start(runner, cpu)?,
            _intake: opened.intake,
            inlet,
        })
    }

    /// Returns where it delivers datagrams.
    pub fn inlet(&self) -> Inlet {
        self.inlet.clone()
    }
}

/// Hands datagrams from the engine to a workload's end.
#[derive(Clone, Default)]
pub struct Inlet(Arc<EngineShared>);

#[derive(Default)]
struct EngineShared {
    /// Received frames.
    frames: AtomicU64,
    /// Time without a frame after which the ring is empty.
    quiet: Duration,
    /// The current receiver, if any.
    receiver: Mutex<Option<AnsweringReceiver>>,
}

struct AnsweringReceiver {
    datagrams: Box<dyn DatagramReceiver>,
    /// Sends answers. It receives nothing: the engine takes the datagrams to its port.
    socket: UdpSocket,
}

impl Inlet {
    /// Makes the receiving end of a workload ready.
    ///
    /// # Errors
    /// When the workload needs a socket to receive, or its address is not here.
    pub fn prepare(
        self,
        workload: &dyn Workload,
        end: &EndTerms,
    ) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        let unfit = || io::Error::other("the engine cannot receive this traffic");
        let datagrams = workload.datagram_receiver();
        let datagrams = datagrams.ok_or_else(|| WorkloadError::failed(unfit()))?;
        let socket = UdpSocket::bind(end.receiver).and_then(|socket| {
            // The engine's thread never blocks.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket.map_err(WorkloadError::failed)?;
        *self.receiver() = Some(AnsweringReceiver { datagrams, socket });
        Ok(Box::new(EngineEnd(self)))
    }

    fn receiver(&self) -> MutexGuard<'_, Option<AnsweringReceiver>> {
        let receiver = self.0.receiver.lock();
        receiver.unwrap_or_else(PoisonError::into_inner)
    }

    fn frames(&self) -> u64 {
        self.0.frames.load(Ordering::Relaxed)
    }
}

impl PacketInput for Inlet {
    fn packet(&mut self, frame: &[u8]) {
        self.0.frames.fetch_add(1, Ordering::Relaxed);
        let Some((source, payload)) = datagram(frame) else {
            return;
        };
        let at = Instant::now();
        if let Some(receiver) = &mut *self.receiver() {
            let arrival = Arrival {
                source,
                payload,
                at,
            };
            if let Some(answer) = receiver.datagrams.take(&arrival) {
                // The peer asks again for a lost answer.
                let _ = receiver.socket.send_to(&answer, source);
            }
        }
    }
}

/// The receiving end of a workload whose datagrams the engine takes.
struct EngineEnd(Inlet);

impl PreparedEnd for EngineEnd {
    fn run(self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        while !signals.is_sender_done() {
            signals.check()?;
            thread::sleep(LOOK_EVERY.min(self.0.0.quiet));
        }
        let deadline = Instant::now() + DRAIN_MAX;
        let mut frames = None;
        while frames != Some(self.0.frames()) && Instant::now() < deadline {
            frames = Some(self.0.frames());
            thread::sleep(self.0.0.quiet);
        }
        let books = self.0.receiver().as_ref().map(|it| it.datagrams.books());
        books.ok_or(WorkloadError::Cancelled)
    }
}

impl Drop for EngineEnd {
    fn drop(&mut self) {
        *self.0.receiver() = None;
    }
}

/// Returns the sender and the payload of a frame's UDP datagram.
fn datagram(frame: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let frame = Frame::parse(frame).ok()?;
    let (ip, udp) = frame.udp()?;
    Some((SocketAddr::new(ip.source, udp.source), udp.payload))
}

#[cfg(test)]
mod engine_tests {
    use super::*;

    fn parsed(text: &str) -> EngineRequest {
        #[derive(Deserialize)]
        struct File {
            engine: EngineEntry,
        }
        let file: File = toml::from_str(&format!("engine = {text}")).unwrap();
        file.engine.into()
    }

    #[test]
    fn a_name_stands_for_a_discipline_with_what_the_sink_has_without_options() {
        let short = parsed("\"adaptive\"");
        assert_eq!(short, parsed("{ discipline = \"adaptive\" }"));
        let (settings, knobs) = short.settings().unwrap();
        assert_eq!((settings.drive, settings.hz), (Drive::Adaptive, 1000));
        assert!(knobs.is_empty());
        assert_eq!(short.words(), "adaptive at 1000 Hz");
        // It survives serialisation to another host.
        let json = serde_json::to_string(&short).unwrap();
        assert_eq!(serde_json::from_str::<EngineRequest>(&json).unwrap(), short);
    }

    #[test]
    fn knobs_are_written_in_an_order_in_which_they_are_allowed() {
        let request = parsed(
            "{ discipline = \"polling\", hz = 2000, knobs = { each_burst = 400, burst_max = 500 } }",
        );
        let (_, knobs) = request.settings().unwrap();
        assert_eq!(knobs, [(Knob::BurstMax, 500), (Knob::EachBurst, 400)]);
        assert_eq!(
            request.words(),
            "polling at 2000 Hz, burst_max=500, each_burst=400"
        );
    }

    #[test]
    fn what_the_engine_would_refuse_is_refused_in_its_words() {
        let refused = |text: &str| parsed(text).settings().unwrap_err().to_string();
        assert!(refused("\"poll\"").contains("polling, interrupt, busy-poll, adaptive"));
        assert!(refused("{ discipline = \"polling\", hz = 50 }").contains("100 to 10000"));
        let controller = refused("{ discipline = \"polling\", controller = \"pid\" }");
        assert!(controller.contains("freebsd, share"), "{controller}");
        let knob = refused("{ discipline = \"polling\", knobs = { burst_max = 5 } }");
        assert!(knob.contains("10 to 20000"), "{knob}");
        let name = refused("{ discipline = \"polling\", knobs = { bust_max = 5 } }");
        assert!(name.contains("unknown oid"), "{name}");
    }
}

#[cfg(test)]
mod receiver_tests {
    use super::*;
    use nicpoll_wire::frame::FRAME_BYTES_MIN;
    use nicpoll_wire::frame::Mac;
    use nicpoll_wire::frame::UdpPath;

    #[test]
    fn a_datagram_is_read_without_the_padding_of_its_frame() {
        let path = UdpPath {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            source: "198.18.0.1:4000".parse().unwrap(),
            destination: "198.18.0.2:5001".parse().unwrap(),
        };
        let mut frame = [0; 128];
        path.write(b"abc", &mut frame).unwrap();
        let read = datagram(&frame[..FRAME_BYTES_MIN]).unwrap();
        assert_eq!(read, (path.source, &b"abc"[..]));
        // A truncated frame is none.
        assert_eq!(datagram(&frame[..44]), None);
    }
}
