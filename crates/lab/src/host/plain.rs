//! A sending host without nicpoll: programs of its own send from there, started by ssh(1).
//!
//! Nothing is copied there, set there or counted there. What it sends is what its program says, and what the other end
//! receives is counted as ever. A connection is up before the traffic begins, and the program ends with it, or
//! after its own time.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind};
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use nicpoll_import::ResultFormat;
use nicpoll_model::{HostFacts, Side, SwitchWrite, WorkUnit};
use nicpoll_observe::{CpuSample, FlowReading, HostSnapshot};
use nicpoll_switch::freebsd::ssh_command;
use nicpoll_sys::netns::{NetNamespace, NetnsThread};
use nicpoll_sys::program::spawn_contained;
use nicpoll_sys::schedule::last_allowed_cpu;
use nicpoll_traffic::workload::{EndBooks, EndTerms, Payload, PreparedEnd, WorkloadError};
use nicpoll_traffic::{Signals, SocketBuffer};
use regex_lite::Regex;
use serde::Serialize;
use serde_json::Value;

use crate::error::HostFailure;
use crate::host::changes::Changes;
use crate::host::deploy::{greeting, quoted};
use crate::host::protocol::MARK;
use crate::host::threads::RunningEnds;
use crate::host::{ClockOffset, Facts, Host, HostEvent, HostInterface, HostMessage, HostRequest};
use crate::workload::WorkloadRequest;
use crate::workload::command::{Child, failed, filled_in, whole_seconds};

/// MTU of Ethernet, for want of a reading.
const MTU_BYTES: u32 = 1500;

/// What is kept of the name of its system.
const SYSTEM_LETTERS_MAX: usize = 200;

/// For any POSIX shell, which the login shell need not be: says that it is ready, and waits for a line.
const WAIT_SCRIPT: &str = "exec /bin/sh -c 'echo READY; read go; exec \"$@\"' nicpoll";

/// Why the account of losses stays open.
const ITS_OWN_COUNT: &str = "the sender has no nicpoll: what it sent is what its program says";

/// Why a workload cannot be sent.
pub const NOT_SENT: &str = "a sender without nicpoll sends tcp and udp by iperf, netrate by netblast, and commands, one way and nothing else";

/// A rate that no host reaches, for traffic without one: iperf 2 takes no other word for that in all its versions.
const UNLIMITED_BITS_PER_SECOND: u64 = 100_000_000_000;

/// A host that is reached by ssh and has no agent.
pub struct PlainHost {
    // Dropped first: programs end before the thread.
    ends: RunningEnds,
    /// Where ssh runs, and its core.
    place: (NetnsThread<()>, u32),
    ssh: String,
    facts: Facts,
    interface: HostInterface,
    outbox: mpsc::Sender<HostEvent>,
    inbox: mpsc::Receiver<HostEvent>,
}

impl PlainHost {
    /// Asks a host for the name of its system. `name` is the host's in messages.
    ///
    /// # Errors
    /// When ssh does not reach it.
    pub fn open(
        name: &str,
        ssh: &str,
        interface: String,
        address: (IpAddr, u8),
    ) -> Result<Self, HostFailure> {
        let failed = |why: String| HostFailure::new(format!("{name}: {why}"));
        let mut command = ssh_command(ssh);
        let asked = command.arg("uname -srm").stdin(Stdio::null()).output();
        let asked =
            asked.map_err(|error| failed(format!("running ssh; is it installed? {error}")))?;
        if !asked.status.success() {
            let said = String::from_utf8_lossy(&asked.stderr);
            let said = said.trim().replace('\n', "; ");
            let command = format!("ssh -o BatchMode=yes {ssh} uname -srm");
            return Err(failed(format!("{command}: {}, {said}", asked.status)));
        }
        let system = String::from_utf8_lossy(&asked.stdout);
        let system = system.trim().chars().take(SYSTEM_LETTERS_MAX).collect();
        let place = || {
            let thread = NetnsThread::enter(NetNamespace::current()?, || ())?;
            Ok((thread, last_allowed_cpu()?))
        };
        let place = place().map_err(|error: std::io::Error| failed(error.to_string()))?;
        let (outbox, inbox) = mpsc::channel();
        Ok(PlainHost {
            ends: RunningEnds::new(outbox.clone()),
            place,
            ssh: String::from(ssh),
            facts: Facts {
                machine: HostFacts {
                    kernel: system,
                    ..HostFacts::default()
                },
                netns_inode: 0,
                driver: String::new(),
            },
            interface: HostInterface {
                name: interface,
                is_up: true,
                driver: String::new(),
                addresses: vec![address],
                mtu_bytes: MTU_BYTES,
                ring_slots: None,
                bits_per_second: None,
                carries_ssh: false,
                netns_inode: 0,
            },
            outbox,
            inbox,
        })
    }

    fn answer(&mut self, request: HostRequest) -> Result<Value, HostFailure> {
        match request {
            HostRequest::Facts => answer(&self.facts),
            HostRequest::Interface => answer(&self.interface),
            HostRequest::Ways { to } => answer(to),
            HostRequest::Changes => answer(Changes::default()),
            HostRequest::CpuTime => answer(CpuSample::default()),
            HostRequest::Counters => answer(HostSnapshot::default()),
            HostRequest::Waiting => answer(0),
            HostRequest::Values | HostRequest::ValuesBefore => {
                answer(BTreeMap::<String, String>::new())
            }
            HostRequest::Writes => answer(Vec::<SwitchWrite>::new()),
            HostRequest::CloseSeries => answer(Vec::<FlowReading>::new()),
            HostRequest::OpenSeries { .. } => answer(()),
            HostRequest::BeginCommands { after } if after.is_empty() => answer(()),
            HostRequest::Restore => {
                self.ends.cancel();
                answer(Vec::<String>::new())
            }
            HostRequest::Prepare {
                end,
                workload,
                terms,
                at,
                ..
            } => {
                let ssh = self.ssh.clone();
                let prepared = move |terms: &EndTerms| prepared(&ssh, workload, terms);
                let (thread, cpu) = &self.place;
                answer(
                    self.ends
                        .prepare(thread, end, prepared, terms, (at, *cpu))?,
                )
            }
            HostRequest::Start { end } => answer(self.ends.start(end)?),
            HostRequest::SenderDone { end } => answer(self.ends.sender_done(end)?),
            _ => Err(HostFailure::new(
                "it has no nicpoll: nothing can be set or counted there",
            )),
        }
    }
}

fn answer(value: impl Serialize) -> Result<Value, HostFailure> {
    serde_json::to_value(value).map_err(|error| HostFailure::of(&error))
}

impl Host for PlainHost {
    fn send(&mut self, HostMessage { id, request }: HostMessage) -> Result<(), HostFailure> {
        let answer = self.answer(request);
        // This value owns the other end of the channel.
        let _ = self.outbox.send(HostEvent::Answered { id, answer });
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        Ok(self.inbox.recv_timeout(timeout).ok())
    }

    fn clock(&mut self) -> Result<Option<ClockOffset>, HostFailure> {
        Ok(None)
    }
}

/// A program that sends a workload's traffic, and how many datagrams it says that it sent.
struct SendingTool {
    words: Vec<String>,
    payload_bytes: Option<u16>,
    /// Pattern of the number of datagrams; without one its last run has a rate.
    sent: Option<&'static str>,
}

/// Returns the program for a workload; `None` if no usual one sends such traffic.
fn tool_of(workload: &WorkloadRequest) -> Option<SendingTool> {
    let words = |text: &str| text.split(' ').map(String::from).collect();
    Some(match workload {
        WorkloadRequest::Tcp(_) => SendingTool {
            words: words("iperf -c {receiver} -p {port} -t {seconds} -f b"),
            payload_bytes: None,
            sent: None,
        },
        WorkloadRequest::Udp(udp) => {
            let rate = udp.packets_per_second.map(|rate| rate.get());
            let bits = rate.map(|rate| rate.saturating_mul(8 * u64::from(udp.payload_bytes)));
            let bits = bits.unwrap_or(UNLIMITED_BITS_PER_SECOND);
            let bytes = udp.payload_bytes;
            let text =
                format!("iperf -u -c {{receiver}} -p {{port}} -l {bytes} -b {bits} -t {{seconds}}");
            SendingTool {
                words: words(&text),
                payload_bytes: Some(bytes),
                sent: Some(r"Sent (\d+) datagrams"),
            }
        }
        WorkloadRequest::Netrate(netrate) => {
            let bytes = netrate.payload_bytes;
            SendingTool {
                words: words(&format!(
                    "netblast {{receiver}} {{port}} {bytes} {{seconds}}"
                )),
                payload_bytes: Some(bytes),
                sent: Some(r"send calls: +(\d+)"),
            }
        }
        _ => return None,
    })
}

/// Whether a host without nicpoll can send such traffic.
pub fn sends_without_nicpoll(workload: &WorkloadRequest) -> bool {
    matches!(workload, WorkloadRequest::Command(_)) || tool_of(workload).is_some()
}

/// Logs in, and prepares what sends.
fn prepared(
    ssh: &str,
    workload: WorkloadRequest,
    terms: &EndTerms,
) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
    if let WorkloadRequest::Command(command) = &workload {
        let child = waiting_at(ssh, &filled_in(&command.sender, terms))?;
        return Ok(command.waiting(child, terms));
    }
    let tool = tool_of(&workload).filter(|_| terms.side == Side::Sender);
    let tool = tool.ok_or_else(|| failed(String::from(NOT_SENT)))?;
    Ok(Box::new(PlainSender {
        child: waiting_at(ssh, &filled_in(&tool.words, terms))?,
        seconds: whole_seconds(terms.duration),
        unit: workload.workload().unit(),
        tool,
    }))
}

/// Logs in at a host. Its shell runs the command once it is told to.
fn waiting_at(ssh: &str, words: &[String]) -> Result<Child, WorkloadError> {
    let mut command = ssh_command(ssh);
    let script = WAIT_SCRIPT.replace("READY", MARK);
    command.arg(script + &quoted(words)).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = spawn_contained(&mut command, None);
    let mut process =
        started.map_err(|error| failed(format!("running ssh; is it installed? {error}")))?;
    let mut stdout = process.stdout.take().map(BufReader::new);
    let is_ready = stdout.as_mut().map(|pipe| greeting(pipe, |_| Ok(())));
    let name = format!("ssh {ssh} {}", words[0]);
    let mut child = Child::read_from(&name, process, stdout);
    match is_ready {
        Some(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(child.end()?.failed(&name))
        }
        Some(Err(error)) => Err(failed(format!("'{name}': {error}"))),
        _ => Ok(child),
    }
}

/// A program that is ready to send.
struct PlainSender {
    child: Child,
    tool: SendingTool,
    unit: WorkUnit,
    seconds: u64,
}

impl PreparedEnd for PlainSender {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        self.child.go()?;
        let printed = self.child.sends_for(self.seconds, signals)?.output;
        let seconds = self.seconds as f64;
        let unread = |why: &str| {
            let program = &self.tool.words[0];
            failed(format!("{why} in what {program} printed: {printed}"))
        };
        let (packets, bytes) = match (self.tool.sent, self.tool.payload_bytes) {
            (Some(pattern), Some(payload_bytes)) => {
                let pattern = Regex::new(pattern).map_err(WorkloadError::failed)?;
                let found = pattern.captures(&printed).and_then(|it| it.get(1));
                let sent = found.and_then(|number| number.as_str().parse::<u64>().ok());
                let sent = sent.ok_or_else(|| unread("there is no number of datagrams"))?;
                (Some(sent), sent.saturating_mul(payload_bytes.into()))
            }
            _ => {
                let format = ResultFormat::named("iperf2");
                let runs = format.and_then(|format| format.read(&printed, 1).ok());
                let bits = runs.and_then(|runs| runs.last()?.value);
                let bits = bits.ok_or_else(|| unread("there is no rate"))?;
                (None, (bits / 8.0 * seconds) as u64)
            }
        };
        let packets = packets.filter(|_| self.unit == WorkUnit::Datagrams);
        Ok(EndBooks {
            undrained: Some(String::from(ITS_OWN_COUNT)),
            ..EndBooks::of_sender(Payload { packets, bytes }, seconds, SocketBuffer::default())
        })
    }
}
