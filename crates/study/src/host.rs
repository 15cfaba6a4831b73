//! A host: a machine, or a namespace of one, at an end of the link.
//!
//! What must hold: a host takes requests and returns events that can all be serialised, so that it may be
//! anywhere. Nothing of this process crosses: no closure, no clock, no flag. Times are durations, or
//! nanoseconds of the host's own monotonic clock, which only differences are taken of. A host's counters
//! are its own. What it has changed, it puts back when it is told to, or when it goes.

mod changes;
mod client;
mod ends;
mod engine;
mod local;
mod sampling;
mod spinner;
mod values;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use nicpoll_model::line::IpVersion;
use nicpoll_model::{HostFacts, Side, SwitchWrite};
use nicpoll_observe::{CpuSample, FlowReading, HostSnapshot, PollCounts, RunTime};
use nicpoll_switch::Request;
use nicpoll_traffic::workload::{End, EndBooks};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::EngineRequest;
use crate::foreign::CoreTime;
use crate::workload::WorkloadRequest;
use crate::xdp::XdpProgram;

pub(crate) use ends::{RECEIVER, SENDER};

pub use changes::Changes;
pub use client::HostClient;
pub use engine::ReceiveError;
pub use local::LocalHost;

/// Where requests go and events come from.
pub trait Host: Send {
    /// Hands over a request. What comes of it is an event.
    ///
    /// # Errors
    /// When the host cannot be reached.
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure>;

    /// The next event; `None` when none came within `timeout`.
    ///
    /// # Errors
    /// When the host cannot be reached.
    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure>;
}

/// A request, with the number by which its answer is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostMessage {
    /// The number.
    pub id: u64,
    /// The request.
    pub request: HostRequest,
}

/// What a host can be told to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRequest {
    /// Say what you are.
    Facts,
    /// Read every value of the interface that bears on receiving.
    Values,
    /// Say what was changed on the interface or in its namespace since the last time.
    Changes,
    /// List the NAPI instances of the interface.
    Napis,
    /// Change settings of the interface, in one transaction with what is in force already.
    Apply(Request),
    /// Say what was changed so, with what was there before.
    Writes,
    /// Put an XDP program on every interface, for as long as settings are in force.
    AttachXdp(XdpProgram),
    /// Receive the datagrams of workloads by the engine, for as long as settings are in force.
    ReceiveBy {
        /// How.
        engine: EngineRequest,
        /// The core of its thread.
        cpu: u32,
    },
    /// End what traffic still runs, and put back every setting.
    Restore,
    /// Believe for good that an address of the link has a hardware address.
    Neighbour {
        /// The address.
        address: IpAddr,
        /// The hardware address.
        mac: [u8; 6],
    },
    /// Load the counters that the kernel keeps by BPF.
    LoadCounters,
    /// Let a counter count, or take it out of the kernel's way.
    Count {
        /// Which.
        counter: Counter,
        /// Whether it counts from now on.
        is_on: bool,
    },
    /// Count the polls of one NAPI instance from now on, or of every one when null.
    WatchPolls {
        /// The instance.
        napi_id: Option<u32>,
    },
    /// Read the polls.
    Polls,
    /// Read what is read at the edges of a measured window.
    Edge,
    /// Read the counters of the interface, its queues and protocols.
    Counters,
    /// Read again and again what passes, from now on.
    OpenSeries {
        /// From reading to reading.
        step: Duration,
        /// The protocol of the datagrams that count.
        ip: IpVersion,
        /// The cores whose time is read, too; none: nothing of the machine is.
        cores: Vec<u32>,
    },
    /// End that.
    CloseSeries,
    /// Begin a window of exact CPU time.
    OpenCpuWindow,
    /// End it.
    CloseCpuWindow {
        /// The cores that are asked about: the sender's and the receiver's.
        cpus: Vec<u32>,
        /// Programs beside this one whose time is the study's, by name.
        programs: Vec<String>,
    },
    /// Compute beside the traffic.
    StartSpinner {
        /// On which core.
        cpu: u32,
        /// For how long.
        duration: Duration,
    },
    /// Wait for the end of that, and say what share of the core it got.
    EndSpinner,
    /// Let the kernel time the runs of a counter's programs.
    OpenTiming {
        /// The counter.
        counter: Counter,
    },
    /// End that.
    CloseTiming {
        /// The counter.
        counter: Counter,
    },
    /// Make one end of a workload ready, on a thread bound to a core.
    Prepare {
        /// The number by which it is known from then on.
        end: u32,
        /// The traffic.
        workload: WorkloadRequest,
        /// Which end, where and for how long.
        terms: End,
        /// Which host this is: the sender's receives what goes the other way.
        at: Side,
        /// The core.
        cpu: u32,
    },
    /// Run an end that is ready.
    Start {
        /// Its number.
        end: u32,
    },
    /// The other end has sent everything: end when the socket is empty.
    SenderDone {
        /// The end's number.
        end: u32,
    },
}

/// What a host has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEvent {
    /// A request is done, or failed.
    Answered {
        /// The request's number.
        id: u64,
        /// What came of it.
        answer: Result<Answer, HostFailure>,
    },
    /// An end of a workload has run, or failed.
    Ended {
        /// Its number.
        end: u32,
        /// What it counted.
        books: Result<Box<EndBooks>, HostFailure>,
    },
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done.
    Done,
    /// Of [`HostRequest::Facts`].
    Facts(Box<Facts>),
    /// Of [`HostRequest::Values`], by name.
    Values(BTreeMap<String, String>),
    /// Of [`HostRequest::Writes`].
    Writes(Vec<SwitchWrite>),
    /// Of [`HostRequest::Napis`].
    Napis(Vec<u32>),
    /// Of [`HostRequest::LoadCounters`]: why CPU time cannot be accounted for exactly; null when it can.
    Loaded {
        /// The kernel's reason.
        exact_cpu_refused: Option<String>,
    },
    /// Of [`HostRequest::Polls`].
    Polls(Polls),
    /// Of [`HostRequest::Edge`].
    Edge(Box<Edge>),
    /// Of [`HostRequest::Counters`].
    Counters(Box<HostSnapshot>),
    /// Of [`HostRequest::Changes`].
    Changes(Changes),
    /// Of [`HostRequest::CloseSeries`].
    Series(Vec<FlowReading>),
    /// Of [`HostRequest::CloseCpuWindow`].
    CpuTimes(Vec<CoreTime>),
    /// Of [`HostRequest::EndSpinner`], 0 to 1.
    Spun(f64),
    /// Of [`HostRequest::CloseTiming`].
    Timed(Timed),
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

/// What a host is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The machine.
    pub machine: HostFacts,
    /// Inode number of its network namespace.
    pub netns_inode: u64,
    /// Driver of the interface.
    pub driver: String,
}

/// Polls so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polls {
    /// When, by the host's monotonic clock.
    pub at_ns: u64,
    /// How many.
    pub counts: PollCounts,
}

/// What is read at the very edges of the measured window.
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

/// What the runs of a counter's programs took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// The runs; null without any.
    pub runs: Option<RunTime>,
    /// How long they were timed.
    pub seconds: f64,
}

/// What a host could not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct HostFailure {
    /// What failed, and why.
    pub message: String,
}

impl HostFailure {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        HostFailure {
            message: message.into(),
        }
    }

    /// An error with its causes.
    pub fn of(error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        HostFailure::new(causes.join(": "))
    }
}
