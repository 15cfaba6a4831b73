//! The agent: a process at a host that fulfils a controller's requests.
//!
//! Requests come by standard input, events go to standard output ([`protocol`](crate::host::protocol)); no port is
//! opened for control. When the controller is gone, or silent for [`SILENCE_MAX`], the agent stops all traffic, restores
//! every setting and returns. A guard restores them if the agent is killed. A copy of the program that was made for the
//! agent is removed before the first request: nothing of it can be left.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nicpoll_observe::clock::clock_ns;
use nicpoll_switch::{Guard, Journal, namespace_named};
use nicpoll_sys::{schedule, stdio};
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::ClockId;
use serde_json::Value;

use crate::error::{Doing, HostFailure, LabError};
use crate::host::local::ServedHost;
use crate::host::protocol::{
    FromAgent, Heard, MARK, PROTOCOL, SILENCE_MAX, ToAgent, VERSION, line_of, message_of,
    next_line, request_of,
};
use crate::host::{HostEvent, HostMessage};
use crate::machine::recover;

/// Interval of checks for silence and signals.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time to restore everything before the process ends and leaves the rest to its guard.
const RESTORE_MAX: Duration = Duration::from_secs(5);

/// Hosts that one agent opens.
const HOSTS_MAX: u32 = 16;

/// Serves the controller at standard input until it is gone or `stop` becomes true. `guard` calls
/// [`nicpoll_switch::watch_over`]. `copy` is a folder that was made for this program, and is removed.
///
/// # Errors
/// When the guard does not start, or an earlier change cannot be restored; when the controller speaks another version,
/// or was silent for too long.
pub fn serve_controller(
    guard: Command,
    copy: Option<&Path>,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let journal = Journal::of_this_machine();
    let guard = Guard::start(guard, &journal, None)?;
    if let Some(folder) = copy {
        fs::remove_dir_all(folder).doing(|| format!("removing {}", folder.display()))?;
    }
    recover(&journal)?;
    stdio::print(&format!("{MARK} {PROTOCOL}\n"))?;
    say(&FromAgent::Hello {
        protocol: PROTOCOL,
        version: String::from(VERSION),
    })?;
    let heard = Arc::new(Heard::now());
    let (messages, inbox) = mpsc::channel();
    let listening = Arc::clone(&heard);
    schedule::spawn("nicpoll-listen", move || listen(&listening, &messages))?;
    let watched = Arc::clone(&heard);
    schedule::spawn("nicpoll-silence", move || end_if_stuck(&watched))?;
    let mut agent = Agent {
        hosts: BTreeMap::new(),
        guard,
        journal,
    };
    while !stop.load(Ordering::Relaxed) {
        match inbox.recv_timeout(LOOK_EVERY) {
            Ok(message) => agent.heed(message)?,
            Err(RecvTimeoutError::Timeout) => {}
            // The controller closed its end.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if heard.silence() > SILENCE_MAX {
            return Err(LabError::Unexpected(format!(
                "nothing was heard of the controller for {} s: all traffic is stopped and every setting restored",
                SILENCE_MAX.as_secs()
            )));
        }
    }
    Ok(())
}

/// Has a command that this process is about to run end with its controller, whose signs of life come by standard input:
/// as by SIGTERM when the controller is gone or silent for ten seconds. `copy` is a folder that was made for this
/// program, and is removed.
///
/// # Errors
/// When there can be no further thread.
pub fn obey_controller(copy: Option<&Path>) -> Result<(), LabError> {
    if let Some(folder) = copy {
        fs::remove_dir_all(folder).doing(|| format!("removing {}", folder.display()))?;
    }
    stdio::print(&format!("{MARK} {PROTOCOL}\n"))?;
    let heard = Arc::new(Heard::now());
    let listening = Arc::clone(&heard);
    schedule::spawn("nicpoll-listen", move || {
        let mut input = io::stdin().lock();
        while let Ok(1..) = input.read(&mut [0; 64]) {
            listening.again();
        }
        end_by_signal();
    })?;
    schedule::spawn("nicpoll-silence", move || {
        while heard.silence() <= SILENCE_MAX {
            thread::sleep(LOOK_EVERY);
        }
        end_by_signal();
        end_if_stuck(&heard);
    })?;
    Ok(())
}

fn end_by_signal() {
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Reads messages until the controller is gone. Pings are answered here: a long request does not delay them.
fn listen(heard: &Heard, messages: &mpsc::Sender<ToAgent>) {
    let mut input = BufReader::new(io::stdin().lock());
    while let Ok(Some(line)) = next_line(&mut input) {
        heard.again();
        let said = match message_of(&line) {
            Ok(ToAgent::Ping { id }) => say(&FromAgent::Pong {
                id,
                monotonic_ns: clock_ns(ClockId::Monotonic),
                wall_ns: clock_ns(ClockId::Realtime),
            }),
            Ok(message) => messages.send(message).map_err(io::Error::other),
            Err(failure) => say(&FromAgent::Refused {
                why: failure.message,
            }),
        };
        if said.is_err() {
            return;
        }
    }
}

/// Ends the process if a silent controller's settings could not be restored in time: the guard restores them.
fn end_if_stuck(heard: &Heard) {
    while heard.silence() < SILENCE_MAX + RESTORE_MAX {
        thread::sleep(LOOK_EVERY);
    }
    std::process::exit(1);
}

fn say(message: &FromAgent) -> io::Result<()> {
    stdio::print(&line_of(message)?)
}

/// An agent's hosts.
struct Agent {
    // Restored before the guard ends.
    hosts: BTreeMap<u32, ServedHost>,
    guard: Guard,
    journal: Journal,
}

impl Agent {
    /// # Errors
    /// When nobody hears the answer, or the controller speaks another version.
    fn heed(&mut self, message: ToAgent) -> Result<(), LabError> {
        match message {
            ToAgent::Hello { protocol, .. } if protocol == PROTOCOL => Ok(()),
            ToAgent::Hello { protocol, version } => Err(LabError::Unexpected(format!(
                "the controller, nicpoll {version}, speaks version {protocol} of the protocol, and this agent {PROTOCOL}"
            ))),
            ToAgent::Open {
                host,
                netns,
                interfaces,
            } => {
                let opened = self.open(host, netns.as_deref(), interfaces);
                let failure = opened.err().map(HostFailure::of);
                Ok(say(&FromAgent::Opened { host, failure })?)
            }
            ToAgent::Ask { host, id, request } => self.ask(host, id, request),
            // Answered by the listener.
            ToAgent::Ping { .. } => Ok(()),
        }
    }

    fn open(
        &mut self,
        number: u32,
        netns: Option<&str>,
        interfaces: Vec<String>,
    ) -> Result<(), LabError> {
        if number >= HOSTS_MAX || interfaces.is_empty() || self.hosts.contains_key(&number) {
            let what = format!("host {number} cannot be opened");
            return Err(LabError::Unexpected(what));
        }
        let namespace = namespace_named(netns)?;
        let (outbox, events) = mpsc::channel();
        let host = ServedHost::new(
            namespace,
            interfaces,
            &self.journal,
            self.guard.owner(),
            outbox,
        );
        let host = host.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LabError::Missing(String::from(
                "the agent needs root there, to enter namespaces, count polls and change settings; log in as root: ssh = \
                 \"root@HOST\"",
            )),
            _ => error.into(),
        })?;
        schedule::spawn("nicpoll-events", move || tell_events(number, &events))?;
        self.hosts.insert(number, host);
        Ok(())
    }

    fn ask(&mut self, number: u32, id: u64, request: Value) -> Result<(), LabError> {
        let failure = match (self.hosts.get_mut(&number), request_of(request)) {
            (Some(host), Ok(request)) => {
                host.handle(HostMessage { id, request });
                return Ok(());
            }
            (None, _) => HostFailure::new(format!("the agent has no host {number}")),
            (_, Err(failure)) => failure,
        };
        let answer = Err(failure);
        Ok(say(&FromAgent::Event {
            host: number,
            event: HostEvent::Answered { id, answer },
        })?)
    }
}

/// Tells a host's events until the host is gone.
fn tell_events(host: u32, events: &mpsc::Receiver<HostEvent>) {
    while let Ok(event) = events.recv() {
        if say(&FromAgent::Event { host, event }).is_err() {
            return;
        }
    }
}
