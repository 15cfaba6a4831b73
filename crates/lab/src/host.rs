//! A host: a machine or a network namespace at one end of a link. [`Host`] carries requests and events, all of which can
//! be serialised, so a host may be anywhere; [`HostClient`] turns them into calls. `local` is a namespace of this
//! machine, `ssh` another machine with an `agent` on it; `protocol` is what passes between these two, and
//! `deploy` brings the program there. `plain` is a machine without nicpoll, which only sends.
//!
//! No closure, clock or flag of this process crosses to a host. Times are durations, or nanoseconds of the host's own
//! monotonic clock, used only for differences. A host restores its changes on request and when it is dropped.

pub mod agent;
pub mod changes;
pub mod commands;
pub mod cpu;
pub mod deploy;
pub mod local;
pub mod plain;
pub mod protocol;
pub mod ssh;
pub mod threads;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use nicpoll_model::line::IpVersion;
use nicpoll_model::{HostFacts, Side};
use nicpoll_observe::{CpuSample, HostSnapshot, PollCounts, RunTime};
use nicpoll_switch::Request;
use nicpoll_traffic::workload::{EndBooks, EndTerms};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Doing, HostFailure, LabError};
use crate::host::changes::Changes;
use crate::receive::{EngineRequest, XdpProgram};
use crate::workload::WorkloadRequest;
use crate::workload::command::in_braces;

/// The name of both ends of the link.
pub const INTERFACE: &str = "em0";

/// The placeholder in a command for each interface of its host.
pub const EACH_INTERFACE: &str = "interface";

/// Takes requests and returns events.
pub trait Host: Send {
    /// Sends a request. Its answer is an event.
    ///
    /// # Errors
    /// When the host cannot be reached.
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure>;

    /// Returns the next event; `None` if none came within `timeout`.
    ///
    /// # Errors
    /// When the host cannot be reached.
    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure>;

    /// Measures how far the host's clocks are ahead of this machine's; `None` if it cannot tell. By default they are
    /// the same.
    ///
    /// # Errors
    /// When the host cannot be reached.
    fn clock(&mut self) -> Result<Option<ClockOffset>, HostFailure> {
        Ok(Some(ClockOffset::default()))
    }

    /// Whether the host can no longer be reached.
    fn is_lost(&self) -> bool {
        false
    }
}

/// How far a host's clocks are ahead of those of the machine that asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// The monotonic clock, which only differences use.
    pub monotonic_ns: i64,
    /// The wall clock.
    pub wall_ns: i64,
    /// Either may be off by this: half the round trip of the fastest ping.
    pub error_ns: u64,
}

/// A request, with the number that identifies its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostMessage {
    /// The number.
    pub id: u64,
    /// The request.
    pub request: HostRequest,
}

/// A program with its arguments at a host. With `{interface}` in it, it runs once for each interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCommand {
    /// The host's name.
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Commands around traffic, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Those before it.
    pub before: Vec<HostCommand>,
    /// Those that undo them: they always run.
    pub after: Vec<HostCommand>,
}

impl Commands {
    /// Returns whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Wraps others: these begin first and end last.
    #[must_use]
    pub fn around(&self, inner: &Commands) -> Commands {
        Commands {
            before: [&self.before[..], &inner.before].concat(),
            after: [&inner.after[..], &self.after].concat(),
        }
    }

    /// Replaces the names of a setting's variant in their words.
    #[must_use]
    pub fn with(mut self, variant: &BTreeMap<String, String>) -> Commands {
        for one in self.before.iter_mut().chain(&mut self.after) {
            one.command = one.with(variant);
        }
        self
    }

    /// Returns each command's host, when it runs, and its words.
    pub fn words(&self) -> impl Iterator<Item = (&str, &'static str, String)> {
        let all = [("before", &self.before), ("after", &self.after)];
        let all = all.into_iter();
        all.flat_map(|(when, own)| {
            let own = own.iter();
            own.map(move |one| (one.host.as_str(), when, one.command.join(" ")))
        })
    }
}

impl HostCommand {
    fn with(&self, words: &BTreeMap<String, String>) -> Vec<String> {
        let own = self.command.iter().map(|word| {
            let all = words.iter();
            all.fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), value)
            })
        });
        own.collect()
    }

    /// Returns a name in braces that is not among the known `names`.
    pub fn unknown_name<'a>(&'a self, names: &[&str]) -> Option<&'a str> {
        let mut found = self.command.iter().flat_map(|word| in_braces(word));
        found.find(|name| *name != EACH_INTERFACE && !names.contains(name))
    }
}

/// Requests to a host. Those that have an answer name its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRequest {
    /// Describe the host: [`Facts`].
    Facts,
    /// Describe its interface: a `HostInterface`.
    Interface,
    /// Return those addresses of another host that traffic of this one reaches through its interfaces, with their
    /// prefix lengths.
    Ways(Vec<(IpAddr, u8)>),
    /// Read every value of the interface that affects receiving: a map of texts by name.
    Values,
    /// Report changes to the interface or its namespace since the last request: [`Changes`].
    Changes,
    /// List the NAPI instances of the interface: their numbers.
    Napis,
    /// Change settings of the interface, in one transaction with what is in force already.
    Apply(Request),
    /// Report these changes and those of commands, with the values before them: a list of
    /// [`nicpoll_model::SwitchWrite`].
    Writes,
    /// Attach an XDP program to every interface while settings are in force.
    AttachXdp(XdpProgram),
    /// Have the engine receive the datagrams of workloads while settings are in force.
    ReceiveBy {
        /// The engine's options.
        engine: EngineRequest,
        /// The core of its thread.
        cpu: u32,
    },
    /// Note the values as they are, and run these commands when settings are restored.
    BeginCommands(Vec<HostCommand>),
    /// Begin a command of the user's. It ends when settings are restored, if not before.
    StartCommand(HostCommand),
    /// Tell whether the command has ended: a boolean, or its last output if it failed.
    CommandEnded,
    /// Report the values that commands have changed, as they were before: a map of texts by name.
    ValuesBefore,
    /// End traffic that still runs, and restore every setting. The answer is a list of what commands changed and
    /// nobody undid, in words.
    Restore,
    /// Add a permanent neighbour entry for an address of the link.
    Neighbour {
        /// The address.
        address: IpAddr,
        /// The hardware address.
        mac: [u8; 6],
    },
    /// Load the BPF programs that count: [`RefusedCounters`].
    LoadCounters,
    /// Attach or detach a counter's programs.
    Count {
        /// The counter.
        counter: Counter,
        /// Whether it counts from now on.
        is_on: bool,
    },
    /// Count the polls of one NAPI instance from now on, or of every one when null.
    WatchPolls(Option<u32>),
    /// Read the polls: [`Polls`].
    Polls,
    /// Read the counters of an edge of the measured window: [`Edge`].
    Edge,
    /// Read the CPU time so far: [`CpuSample`].
    CpuTime,
    /// Read the counters of the interface, its queues and protocols: [`HostSnapshot`].
    Counters,
    /// Count the packets that wait in the queueing disciplines of the interfaces.
    Waiting,
    /// Start periodic readings of what passes.
    OpenSeries {
        /// Time between readings.
        step: Duration,
        /// The protocol of the datagrams that count.
        ip: IpVersion,
        /// Cores whose time is read as well; if empty, nothing of the machine is read.
        cores: Vec<u32>,
    },
    /// End it: a list of [`nicpoll_observe::FlowReading`].
    CloseSeries,
    /// Begin a window of exact CPU time.
    OpenCpuWindow,
    /// End it: a list of [`cpu::CoreTime`].
    CloseCpuWindow {
        /// The cores to report.
        cpus: Vec<u32>,
        /// The core of the host's sending threads, if it has any, and that of its receiving ones.
        bound: [Option<u32>; 2],
    },
    /// Compute while the traffic runs.
    StartSpinner {
        /// On which core.
        cpu: u32,
        /// For how long.
        duration: Duration,
    },
    /// Wait for its end, and report its share of the core, 0 to 1.
    EndSpinner,
    /// Have the kernel time a counter's programs.
    OpenTiming(Counter),
    /// End it: [`Timed`].
    CloseTiming(Counter),
    /// Make one end of a workload ready, on a thread bound to a core.
    Prepare {
        /// Its number in later requests.
        end: u32,
        /// The traffic.
        workload: WorkloadRequest,
        /// Which end, where and for how long.
        terms: EndTerms,
        /// Which host this is. The sender's host receives traffic of the other direction.
        at: Side,
        /// The core.
        cpu: u32,
    },
    /// Run the end with this number, which is ready.
    Start(u32),
    /// Tell the receiving end with this number that the sender is done: it ends when its socket is empty.
    SenderDone(u32),
}

/// Events of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEvent {
    /// A request is done, or failed.
    Answered {
        /// The request's number.
        id: u64,
        /// The answer, which [`HostRequest`] names.
        answer: Result<Value, HostFailure>,
    },
    /// An end of a workload has finished, or failed.
    Ended {
        /// Its number.
        end: u32,
        /// What it counted.
        books: Result<Box<EndBooks>, HostFailure>,
    },
}

/// One of a host's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Counts polls.
    Polls,
    /// Accounts for CPU time.
    Cpu,
}

/// Description of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The machine.
    pub machine: HostFacts,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
    /// Driver of the interface.
    pub driver: String,
}

/// Description of a host's studied interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostInterface {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub is_up: bool,
    /// Its driver; empty for a card's queue without one.
    pub driver: String,
    /// The addresses of the host's interfaces with their prefix lengths, without link-local ones.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its MTU.
    pub mtu_bytes: u32,
    /// Slots of its receive ring; null when the driver does not say.
    pub ring_slots: Option<u32>,
    /// The speed of its line; null when the driver does not say.
    pub bits_per_second: Option<u64>,
    /// Whether one of the interfaces carries the ssh connection by which the host is reached.
    pub carries_ssh: bool,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
}

/// Why counters of a host do not count; `None` where they do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCounters {
    /// Polls.
    pub polls: Option<String>,
    /// Exact CPU time.
    pub exact_cpu: Option<String>,
}

/// Polls so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polls {
    /// When, by the host's monotonic clock.
    pub at_ns: u64,
    /// How many; `None` if they cannot be counted.
    pub counts: Option<PollCounts>,
}

impl Polls {
    /// Returns the polls since an earlier reading; `None` if they cannot be counted.
    pub fn since(&self, earlier: &Polls) -> Option<PollCounts> {
        Some(self.counts.as_ref()?.since(earlier.counts.as_ref()?))
    }
}

/// Counters at an edge of the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Polls so far, and when.
    pub polls: Polls,
    /// CPU time so far.
    pub cpu: CpuSample,
    /// How far the host's wall clock is ahead of its monotonic one.
    pub wall_ahead_ns: i64,
    /// The kernel's load average over the last minute.
    pub load_average_1min: Option<f64>,
}

/// Run time of a counter's programs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// The runs; null without any.
    pub runs: Option<RunTime>,
    /// How long they were timed.
    pub seconds: f64,
}

/// A host that does not answer within this time counts as dead.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A named host, with its events that nobody has asked for yet.
pub struct HostClient {
    name: String,
    /// Its name in errors.
    shown: String,
    host: Box<dyn Host>,
    last_id: u64,
    ended: BTreeMap<u32, Result<Box<EndBooks>, HostFailure>>,
}

impl HostClient {
    /// A host by its name in settings.
    pub fn new(name: &str, host: Box<dyn Host>) -> Self {
        HostClient {
            name: String::from(name),
            shown: String::from(name),
            host,
            last_id: 0,
            ended: BTreeMap::new(),
        }
    }

    /// Its name in errors.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The host, with where it is in errors: `sender (root@box1)`.
    #[must_use]
    pub(crate) fn shown_as(self, shown: String) -> Self {
        HostClient { shown, ..self }
    }

    /// Replaces a host that is lost.
    pub(crate) fn replace(&mut self, host: Box<dyn Host>) {
        self.host = host;
        self.ended.clear();
    }

    /// Whether it can no longer be reached.
    pub(crate) fn is_lost(&self) -> bool {
        self.host.is_lost()
    }

    /// How far its clocks are ahead of this machine's; `None` if it cannot tell.
    pub fn clock(&mut self) -> Result<Option<ClockOffset>, LabError> {
        Ok(self.host.clock()?)
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name in settings, which all senders share, and all receivers.
    pub fn role(&self) -> &str {
        self.name
            .trim_end_matches(|letter: char| letter.is_ascii_digit())
    }

    /// Its description.
    pub fn facts(&mut self) -> Result<Facts, LabError> {
        self.ask(HostRequest::Facts)
    }

    /// Changes there since the last call.
    pub fn changes(&mut self) -> Result<Changes, LabError> {
        self.ask(HostRequest::Changes)
    }

    /// The NAPI instances of its interface.
    pub fn napis(&mut self) -> Result<Vec<u32>, LabError> {
        self.ask(HostRequest::Napis)
    }

    /// Polls so far.
    pub fn polls(&mut self) -> Result<Polls, LabError> {
        self.ask(HostRequest::Polls)
    }

    /// Counters at an edge of the measured window.
    pub fn edge(&mut self) -> Result<Edge, LabError> {
        self.ask(HostRequest::Edge)
    }

    /// The counters of its interface, queues and protocols.
    pub fn counters(&mut self) -> Result<HostSnapshot, LabError> {
        self.ask(HostRequest::Counters)
    }

    /// Ends its traffic and restores its settings. Returns what its commands changed and nobody undid, in words.
    pub fn restore(&mut self) -> Result<Vec<String>, LabError> {
        self.ended.clear();
        self.ask(HostRequest::Restore)
    }

    /// Returns what an end counted; `None` if it still runs after `timeout`.
    pub fn ended(&mut self, end: u32, timeout: Duration) -> Result<Option<EndBooks>, LabError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(books) = self.ended.remove(&end) {
                return books.map(|books| Some(*books)).map_err(|failure| {
                    LabError::Traffic(format!("the {}: {failure}", self.shown))
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.host.next_event(left)? {
                Some(event) => self.keep(event),
                None => return Ok(None),
            }
        }
    }

    /// Makes a request without an answer and waits until it is done.
    pub fn tell(&mut self, request: HostRequest) -> Result<(), LabError> {
        self.ask(request)
    }

    /// Makes a request; its answer is of the type that [`HostRequest`] names.
    pub fn ask<T: DeserializeOwned>(&mut self, request: HostRequest) -> Result<T, LabError> {
        let answer = self
            .answer(request)
            .and_then(|answer| serde_json::from_value(answer).map_err(HostFailure::of));
        answer.doing(|| format!("at the {}", self.shown))
    }

    fn answer(&mut self, request: HostRequest) -> Result<Value, HostFailure> {
        self.last_id += 1;
        let asked = self.last_id;
        self.host.send(HostMessage { id: asked, request })?;
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.host.next_event(left)? {
                Some(HostEvent::Answered { id, answer }) if id == asked => return answer,
                Some(event) => self.keep(event),
                None => return Err(HostFailure::new("no answer came")),
            }
        }
    }

    /// A late answer to an abandoned request is dropped.
    fn keep(&mut self, event: HostEvent) {
        if let HostEvent::Ended { end, books } = event {
            self.ended.insert(end, books);
        }
    }
}

/// The name of the sending host in settings, as [`Side`] writes it.
pub const SENDER: &str = "sender";

/// The name of the router.
pub const ROUTER: &str = "router";

/// The name of the receiving host.
pub const RECEIVER: &str = "receiver";

/// The name of the machine on which all hosts run.
pub const MACHINE: &str = "machine";

/// The interface under which the machine's sysctls are recorded: every machine has it, and the interface itself is
/// never changed.
pub const MACHINE_INTERFACE: &str = "lo";

/// The cores that a setting assigns to traffic. A side without one keeps the lab's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// Of the sending thread.
    #[serde(default)]
    pub sender: Option<u32>,
    /// Of the receiving thread.
    #[serde(default)]
    pub receiver: Option<u32>,
}

impl Cpus {
    /// Returns the core of a side, if it is assigned.
    pub fn of(self, side: Side) -> Option<u32> {
        side.of(self.sender, self.receiver)
    }

    /// These cores, overridden by others.
    #[must_use]
    pub fn under(self, over: Cpus) -> Cpus {
        Cpus {
            sender: over.sender.or(self.sender),
            receiver: over.receiver.or(self.receiver),
        }
    }

    /// Returns a side whose core both assign.
    pub fn common_with(self, other: Cpus) -> Option<Side> {
        let is_twice = |side: &Side| self.of(*side).is_some() && other.of(*side).is_some();
        Side::ALL.into_iter().find(is_twice)
    }
}
