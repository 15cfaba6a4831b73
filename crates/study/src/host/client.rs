//! Talks with a host: one request at a time, while its traffic may go on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nicpoll_model::line::IpVersion;
use nicpoll_model::{Side, SwitchWrite};
use nicpoll_observe::{FlowReading, HostSnapshot};
use nicpoll_switch::Request;
use nicpoll_traffic::workload::{End, EndBooks};

use super::{
    Answer, Changes, Counter, Edge, Facts, Host, HostEvent, HostFailure, HostMessage, HostRequest,
    Polls, Timed,
};
use crate::engine::EngineRequest;
use crate::error::{Doing, StudyError};
use crate::foreign::CoreTime;
use crate::workload::WorkloadRequest;
use crate::xdp::XdpProgram;

/// A host that takes longer than this for an answer is taken for dead.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A host by its name, and what it has said that nobody has asked for yet.
pub struct HostClient {
    name: String,
    host: Box<dyn Host>,
    last_id: u64,
    ended: BTreeMap<u32, Result<Box<EndBooks>, HostFailure>>,
}

impl HostClient {
    /// A host, by the name that settings know it by.
    pub fn new(name: &str, host: Box<dyn Host>) -> Self {
        HostClient {
            name: String::from(name),
            host,
            last_id: 0,
            ended: BTreeMap::new(),
        }
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn facts(&mut self) -> Result<Facts, StudyError> {
        self.ask(HostRequest::Facts, |answer| match answer {
            Answer::Facts(facts) => Some(*facts),
            _ => None,
        })
    }

    /// Every value of its interface that bears on receiving, by name.
    pub fn values(&mut self) -> Result<BTreeMap<String, String>, StudyError> {
        self.ask(HostRequest::Values, |answer| match answer {
            Answer::Values(values) => Some(values),
            _ => None,
        })
    }

    /// What was changed there since the last time.
    pub fn changes(&mut self) -> Result<Changes, StudyError> {
        self.ask(HostRequest::Changes, |answer| match answer {
            Answer::Changes(changes) => Some(changes),
            _ => None,
        })
    }

    /// The NAPI instances of its interface.
    pub fn napis(&mut self) -> Result<Vec<u32>, StudyError> {
        self.ask(HostRequest::Napis, |answer| match answer {
            Answer::Napis(ids) => Some(ids),
            _ => None,
        })
    }

    /// Changes settings of its interface.
    pub fn apply(&mut self, request: Request) -> Result<(), StudyError> {
        self.tell(HostRequest::Apply(request))
    }

    /// What that changed, with what was there before.
    pub fn writes(&mut self) -> Result<Vec<SwitchWrite>, StudyError> {
        self.ask(HostRequest::Writes, |answer| match answer {
            Answer::Writes(writes) => Some(writes),
            _ => None,
        })
    }

    /// Puts an XDP program on its interfaces until its settings are put back.
    pub fn attach_xdp(&mut self, program: XdpProgram) -> Result<(), StudyError> {
        self.tell(HostRequest::AttachXdp(program))
    }

    /// Has the engine receive the datagrams of workloads until its settings are put back.
    pub fn receive_by(&mut self, engine: EngineRequest, cpu: u32) -> Result<(), StudyError> {
        self.tell(HostRequest::ReceiveBy { engine, cpu })
    }

    /// Ends its traffic and puts back its settings.
    pub fn restore(&mut self) -> Result<(), StudyError> {
        self.ended.clear();
        self.tell(HostRequest::Restore)
    }

    /// Loads its counters; returns why CPU time cannot be accounted for exactly, if it cannot.
    pub fn load_counters(&mut self) -> Result<Option<String>, StudyError> {
        self.ask(HostRequest::LoadCounters, |answer| match answer {
            Answer::Loaded { exact_cpu_refused } => Some(exact_cpu_refused),
            _ => None,
        })
    }

    /// Lets a counter count or not.
    pub fn count(&mut self, counter: Counter, is_on: bool) -> Result<(), StudyError> {
        self.tell(HostRequest::Count { counter, is_on })
    }

    /// Counts the polls of one NAPI instance from now on, or of all.
    pub fn watch_polls(&mut self, napi_id: Option<u32>) -> Result<(), StudyError> {
        self.tell(HostRequest::WatchPolls { napi_id })
    }

    /// Polls so far.
    pub fn polls(&mut self) -> Result<Polls, StudyError> {
        self.ask(HostRequest::Polls, |answer| match answer {
            Answer::Polls(polls) => Some(polls),
            _ => None,
        })
    }

    /// What is read at an edge of the measured window.
    pub fn edge(&mut self) -> Result<Edge, StudyError> {
        self.ask(HostRequest::Edge, |answer| match answer {
            Answer::Edge(edge) => Some(*edge),
            _ => None,
        })
    }

    /// The counters of its interface, queues and protocols.
    pub fn counters(&mut self) -> Result<HostSnapshot, StudyError> {
        self.ask(HostRequest::Counters, |answer| match answer {
            Answer::Counters(counters) => Some(*counters),
            _ => None,
        })
    }

    /// Has it read what passes, and what these cores do, again and again.
    pub fn open_series(
        &mut self,
        step: Duration,
        ip: IpVersion,
        cores: Vec<u32>,
    ) -> Result<(), StudyError> {
        self.tell(HostRequest::OpenSeries { step, ip, cores })
    }

    /// Ends that: what it read.
    pub fn close_series(&mut self) -> Result<Vec<FlowReading>, StudyError> {
        self.ask(HostRequest::CloseSeries, |answer| match answer {
            Answer::Series(readings) => Some(readings),
            _ => None,
        })
    }

    /// Begins a window of exact CPU time.
    pub fn open_cpu_window(&mut self) -> Result<(), StudyError> {
        self.tell(HostRequest::OpenCpuWindow)
    }

    /// Ends it: what `cpus` did, of which the time of `programs` is the study's.
    pub fn close_cpu_window(
        &mut self,
        cpus: Vec<u32>,
        programs: Vec<String>,
    ) -> Result<Vec<CoreTime>, StudyError> {
        self.ask(
            HostRequest::CloseCpuWindow { cpus, programs },
            |answer| match answer {
                Answer::CpuTimes(times) => Some(times),
                _ => None,
            },
        )
    }

    /// Has a program compute beside the traffic, for so long.
    pub fn start_spinner(&mut self, cpu: u32, duration: Duration) -> Result<(), StudyError> {
        self.tell(HostRequest::StartSpinner { cpu, duration })
    }

    /// The share of the core that it got, 0 to 1.
    pub fn end_spinner(&mut self) -> Result<f64, StudyError> {
        self.ask(HostRequest::EndSpinner, |answer| match answer {
            Answer::Spun(share) => Some(share),
            _ => None,
        })
    }

    /// Has the kernel time a counter's programs.
    pub fn open_timing(&mut self, counter: Counter) -> Result<(), StudyError> {
        self.tell(HostRequest::OpenTiming { counter })
    }

    /// Ends that: what they took.
    pub fn close_timing(&mut self, counter: Counter) -> Result<Timed, StudyError> {
        self.ask(
            HostRequest::CloseTiming { counter },
            |answer| match answer {
                Answer::Timed(timed) => Some(timed),
                _ => None,
            },
        )
    }

    /// Makes an end of a workload ready.
    pub fn prepare(
        &mut self,
        end: u32,
        workload: WorkloadRequest,
        terms: End,
        at: Side,
        cpu: u32,
    ) -> Result<(), StudyError> {
        self.tell(HostRequest::Prepare {
            end,
            workload,
            terms,
            at,
            cpu,
        })
    }

    /// Runs an end that is ready.
    pub fn start(&mut self, end: u32) -> Result<(), StudyError> {
        self.tell(HostRequest::Start { end })
    }

    /// Tells an end that the other one has sent everything.
    pub fn sender_done(&mut self, end: u32) -> Result<(), StudyError> {
        self.tell(HostRequest::SenderDone { end })
    }

    /// What an end counted; `None` when it goes on for `timeout` yet.
    pub fn ended(&mut self, end: u32, timeout: Duration) -> Result<Option<EndBooks>, StudyError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(books) = self.ended.remove(&end) {
                return books.map(|books| Some(*books)).map_err(|failure| {
                    StudyError::Traffic(format!("the {}: {failure}", self.name))
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.host.next_event(left)? {
                Some(event) => self.keep(event),
                None => return Ok(None),
            }
        }
    }

    /// Sends a request that is answered by its being done.
    pub(crate) fn tell(&mut self, request: HostRequest) -> Result<(), StudyError> {
        self.ask(request, |answer| (answer == Answer::Done).then_some(()))
    }

    fn ask<T>(
        &mut self,
        request: HostRequest,
        pick: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, StudyError> {
        let answer = self
            .answer(request)
            .doing(|| format!("at the {}", self.name))?;
        pick(answer).ok_or_else(|| {
            let what = format!("the {} answered another question", self.name);
            StudyError::Host(HostFailure::new(what))
        })
    }

    fn answer(&mut self, request: HostRequest) -> Result<Answer, HostFailure> {
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

    /// An answer to a question that was given up is of no use any more.
    fn keep(&mut self, event: HostEvent) {
        if let HostEvent::Ended { end, books } = event {
            self.ended.insert(end, books);
        }
    }
}
