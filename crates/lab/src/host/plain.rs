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
use nicpoll_model::{HostFacts, Side, SwitchWrite};
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
use crate::host::deploy::{greeting, no_ssh, quoted};
use crate::host::protocol::MARK;
use crate::host::threads::RunningEnds;
use crate::host::{ClockOffset, Facts, Host, HostEvent, HostInterface, HostMessage, HostRequest};
use crate::workload::WorkloadRequest;
use crate::workload::command::{Child, failed, filled_in, whole_seconds};

/// Its MTU is unknown: that of the other end counts.
const MTU_BYTES: u32 = u32::MAX;

/// What is kept of the name of its system.
const SYSTEM_LETTERS_MAX: usize = 200;

/// For any POSIX shell, which the login shell need not be: says that it is ready, and waits for a line.
const WAIT_SCRIPT: &str = "exec /bin/sh -c 'echo READY; read go; exec \"$@\"' nicpoll";

/// Why the account of losses stays open.
const ITS_OWN_COUNT: &str = "the sender has no nicpoll: what it sent is what its program says";

/// Why a workload cannot be sent.
pub const NOT_SENT: &str = "a sender without nicpoll sends tcp and udp by iperf, netrate by netblast, and commands, one way and nothing else";

const IPERF: &str = "iperf";

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
        let asked = asked.map_err(|error| failed(no_ssh(&error)))?;
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
            HostRequest::Ways(to) => answer(to),
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
            HostRequest::BeginCommands(after) if after.is_empty() => answer(()),
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
            HostRequest::Start(end) => answer(self.ends.start(end)?),
            HostRequest::SenderDone(end) => answer(self.ends.sender_done(end)?),
            _ => Err(HostFailure::new(
                "it has no nicpoll: nothing can be set or counted there",
            )),
        }
    }
}

fn answer(value: impl Serialize) -> Result<Value, HostFailure> {
    serde_json::to_value(value).map_err(HostFailure::of)
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

/// A program that sends a workload's traffic.
struct SendingTool {
    words: Vec<String>,
    sent: SentReader,
}

/// Reads what a program sent from what it printed in so many seconds.
type SentReader = Box<dyn Fn(&str, f64) -> Option<Payload> + Send>;

impl SendingTool {
    fn new(
        words: &str,
        sent: impl Fn(&str, f64) -> Option<Payload> + Send + 'static,
    ) -> Option<Self> {
        Some(SendingTool {
            words: words.split(' ').map(String::from).collect(),
            sent: Box::new(sent),
        })
    }
}

/// Returns the program for a workload; `None` if no usual one sends such traffic.
fn tool_of(workload: &WorkloadRequest) -> Option<SendingTool> {
    let to = "{receiver} -p {port} -t {seconds}";
    match workload {
        WorkloadRequest::Tcp(_) => {
            SendingTool::new(&format!("{IPERF} -c {to} -f b"), |text, seconds| {
                let runs = ResultFormat::named("iperf2")?.read(text, 1).ok()?;
                let bytes = (runs.last()?.value? / 8.0 * seconds) as u64;
                Some(Payload {
                    packets: None,
                    bytes,
                })
            })
        }
        WorkloadRequest::Udp(udp) => {
            let bytes = udp.payload_bytes;
            let rate = udp.packets_per_second.map(|rate| rate.get());
            let bits = rate.map(|rate| rate.saturating_mul(8 * u64::from(bytes)));
            let bits = bits.unwrap_or(UNLIMITED_BITS_PER_SECOND);
            SendingTool::new(
                &format!("{IPERF} -u -c {to} -l {bytes} -b {bits}"),
                move |text, _| Some(datagrams(number(text, r"Sent (\d+) datagrams")?, bytes)),
            )
        }
        WorkloadRequest::Netrate(netrate) => {
            let bytes = netrate.payload_bytes;
            let words = format!("netblast {{receiver}} {{port}} {bytes} {{seconds}}");
            SendingTool::new(&words, move |text, _| {
                let calls = number(text, r"send calls: +(\d+)")?;
                let refused = number(text, r"send errors: +(\d+)")?;
                Some(datagrams(calls.saturating_sub(refused), bytes))
            })
        }
        _ => None,
    }
}

fn datagrams(packets: u64, payload_bytes: u16) -> Payload {
    Payload {
        packets: Some(packets),
        bytes: packets.saturating_mul(payload_bytes.into()),
    }
}

/// Returns the number that a pattern finds.
fn number(text: &str, pattern: &str) -> Option<u64> {
    let found = Regex::new(pattern).ok()?.captures(text)?;
    found.get(1)?.as_str().parse().ok()
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
    let mut words = filled_in(&tool.words, terms);
    if terms.receiver.is_ipv6() && words[0] == IPERF {
        words.push(String::from("-V"));
    }
    Ok(Box::new(PlainSender {
        child: waiting_at(ssh, &words)?,
        seconds: whole_seconds(terms.duration),
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
    let mut process = started.map_err(|error| failed(no_ssh(&error)))?;
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
    seconds: u64,
}

impl PreparedEnd for PlainSender {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        self.child.go()?;
        let printed = self.child.sends_for(self.seconds, signals)?.output;
        let seconds = self.seconds as f64;
        let sent = (self.tool.sent)(&printed, seconds).ok_or_else(|| {
            let program = &self.tool.words[0];
            failed(format!(
                "what {program} printed does not say what was sent: {printed}"
            ))
        })?;
        Ok(EndBooks {
            undrained: Some(String::from(ITS_OWN_COUNT)),
            ..EndBooks::of_sender(sent, seconds, SocketBuffer::default())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    /// In the form of FreeBSD's netblast.
    const NETBLAST: &str = "
start:             1700000000.000000000
finish:            1700000010.000012345
send calls:        12345678
send errors:       345678
approx send rate:  1200000
approx error rate: 0
";

    /// In the form of iperf 2.0.
    const IPERF_UDP: &str = "------------------------------------------------------------
Client connecting to 198.18.0.2, UDP port 5001
Sending 1470 byte datagrams, IPG target: 11215.21 us (kalman adjust)
UDP buffer size: 9.00 KByte (default)
------------------------------------------------------------
[  3] local 198.18.0.1 port 15473 connected with 198.18.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec
[  3] Sent 893 datagrams
";

    const IPERF_TCP: &str = "------------------------------------------------------------
Client connecting to 198.18.0.2, TCP port 5001
TCP window size: 32.5 KByte (default)
------------------------------------------------------------
[  3] local 198.18.0.1 port 15473 connected with 198.18.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0-10.0 sec  1177550848 bytes  941955072 bits/sec
";

    #[test]
    fn what_other_systems_programs_say_that_they_sent_is_read() {
        let udp = WorkloadRequest::Udp(nicpoll_iperf::UdpWorkload {
            payload_bytes: 1470,
            packets_per_second: NonZeroU64::new(1000),
            receive_buffer_bytes: None,
        });
        let tool = tool_of(&udp).unwrap();
        let words = "iperf -u -c {receiver} -p {port} -t {seconds} -l 1470 -b 11760000";
        assert_eq!(tool.words.join(" "), words);
        assert_eq!((tool.sent)(IPERF_UDP, 10.0), Some(datagrams(893, 1470)));
        assert_eq!((tool.sent)(IPERF_TCP, 10.0), None);
        let netrate = r#"{ kind = "netrate", payload_bytes = 64 }"#;
        let tcp = r#"{ kind = "tcp" }"#;
        let tool = |text: &str| {
            #[derive(serde::Deserialize)]
            struct File {
                traffic: WorkloadRequest,
            }
            let file: File = toml::from_str(&format!("traffic = {text}")).unwrap();
            tool_of(&file.traffic).unwrap()
        };
        let netblast = tool(netrate);
        assert_eq!(
            (netblast.sent)(NETBLAST, 10.0),
            Some(datagrams(12_000_000, 64))
        );
        assert_eq!((netblast.sent)("netblast: not found", 10.0), None);
        let sent = (tool(tcp).sent)(IPERF_TCP, 10.0).unwrap();
        assert_eq!((sent.packets, sent.bytes), (None, 1_177_443_840));
    }
}
