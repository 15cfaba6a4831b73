//! Hosts on other machines, reached by the system's ssh(1) with the user's own configuration.
//!
//! One connection a machine carries everything: the program, if the machine has not the same one
//! ([`deploy`](crate::host::deploy)), then the [`protocol`](crate::host::protocol). Without `ssh` the agent is a child process on this machine. Whatever a machine sends is limited in size and time; a
//! machine that sends something else, or nothing, is given up with its name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::clock::clock_ns;
use nicpoll_switch::freebsd::ssh_command;
use nicpoll_sys::schedule;
use rustix::time::ClockId;

use crate::error::HostFailure;
use crate::host::deploy::{
    AGENT_COMMAND, EXIT_NOT_REACHED, FAILED, OwnProgram, SEND, START_MAX, greeting, no_ssh,
};
use crate::host::protocol::{
    FromAgent, Heard, PING_EVERY, PROTOCOL, SILENCE_MAX, ToAgent, VERSION, line_of, message_of,
    next_line,
};
use crate::host::{ClockOffset, Host, HostEvent, HostMessage};

/// Time for the agent to answer that a host is open.
const OPEN_MAX: Duration = Duration::from_secs(15);

/// Time for the agent to restore everything and end.
const END_MAX: Duration = Duration::from_secs(5);

/// Time for ssh to end, and for its last words, once its output has ended.
const ENDING_MAX: Duration = Duration::from_secs(2);

/// What is kept of standard error.
const SAID_BYTES_MAX: usize = 4 << 10;

/// Pings for one reading of a clock; the fastest counts.
const CLOCK_PINGS: u32 = 8;

/// A machine on which an agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Its name in messages, such as `the receiver (root@box2)`.
    pub name: String,
    /// Where ssh(1) goes; `None` for this machine.
    pub ssh: Option<String>,
    /// The program for it; `None` for this one.
    pub program: Option<PathBuf>,
}

/// A connection to an agent. Dropping it ends the agent, which restores everything.
pub struct AgentConnection {
    place: AgentPlace,
    child: Mutex<Child>,
    /// `None` once the connection is closed.
    input: Mutex<Option<ChildStdin>>,
    inboxes: Mutex<BTreeMap<u32, mpsc::Sender<HostEvent>>>,
    replies: Mutex<mpsc::Receiver<Reply>>,
    /// When the agent was last heard.
    heard: Heard,
    /// Why the agent is lost.
    lost: Mutex<Option<String>>,
    said: Arc<Mutex<Vec<u8>>>,
    last_id: AtomicU64,
}

/// What the reader hands to whoever waits.
enum Reply {
    /// A line before the agent's first one.
    Greeting(String),
    /// The agent's message that is no event, and when it came.
    Message(FromAgent, Instant),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl AgentConnection {
    /// Starts an agent and waits until it is ready.
    ///
    /// # Errors
    /// When the machine cannot be reached or cannot run the program, with what to do.
    pub fn open(place: AgentPlace) -> Result<Arc<Self>, HostFailure> {
        let name = place.name.clone();
        let failed = |why: String| HostFailure::new(format!("{name}: {why}"));
        let program = OwnProgram::read(place.program.as_deref())
            .map_err(|error| failed(format!("reading the program: {error}")))?;
        let mut command = match &place.ssh {
            Some(ssh) => {
                let mut command = ssh_command(ssh);
                command.arg(program.start_script(&[]));
                command
            }
            None => {
                let mut command = Command::new(&program.path);
                command.arg(AGENT_COMMAND);
                command
            }
        };
        // A signal of the terminal is this program's to handle.
        command.process_group(0);
        let pipes = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = pipes.spawn();
        let mut child = child.map_err(|error| failed(no_ssh(&error)))?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (replies, inbox) = mpsc::channel();
        let connection = Arc::new(AgentConnection {
            place,
            child: Mutex::new(child),
            input: Mutex::new(input),
            inboxes: Mutex::new(BTreeMap::new()),
            replies: Mutex::new(inbox),
            heard: Heard::now(),
            lost: Mutex::new(None),
            said: Arc::new(Mutex::new(Vec::new())),
            last_id: AtomicU64::new(0),
        });
        connection
            .begin_threads(output, errors, replies)
            .map_err(|error| failed(error.to_string()))?;
        connection.greet(&program)?;
        Ok(connection)
    }

    fn begin_threads(
        self: &Arc<Self>,
        output: Option<ChildStdout>,
        errors: Option<ChildStderr>,
        replies: mpsc::Sender<Reply>,
    ) -> io::Result<()> {
        let said = Arc::clone(&self.said);
        schedule::spawn("nicpoll-ssh-err", move || keep_last(errors, &said))?;
        let weak = Arc::downgrade(self);
        schedule::spawn("nicpoll-ssh-out", move || read(output, &weak, &replies))?;
        let weak = Arc::downgrade(self);
        schedule::spawn("nicpoll-ping", move || ping(&weak))?;
        Ok(())
    }

    /// Waits for the agent's first message, and sends the program if the machine asks for it.
    fn greet(&self, program: &OwnProgram) -> Result<(), HostFailure> {
        let deadline = Instant::now() + START_MAX;
        loop {
            match self.reply(deadline, "the agent did not start")? {
                Reply::Greeting(line) => {
                    if let Some(system) = line.strip_prefix(SEND) {
                        program
                            .check(system.trim())
                            .map_err(|why| self.failure(&why.message))?;
                        self.send_bytes(&program.bytes)?;
                    } else if let Some(why) = line.strip_prefix(FAILED) {
                        return Err(self.failure(why.trim()));
                    }
                }
                Reply::Message(FromAgent::Hello { protocol, .. }, _) if protocol == PROTOCOL => {
                    return self.say(&ToAgent::Hello {
                        protocol: PROTOCOL,
                        version: String::from(VERSION),
                    });
                }
                Reply::Message(FromAgent::Hello { protocol, version }, _) => {
                    return Err(self.failure(&format!(
                        "its agent, nicpoll {version}, speaks version {protocol} of the protocol, and this program \
                         {PROTOCOL}; use the same nicpoll on both"
                    )));
                }
                Reply::Message(..) => {}
            }
        }
    }

    /// Opens a host in a namespace of the machine.
    ///
    /// # Errors
    /// When the agent cannot open it.
    pub fn host(
        self: &Arc<Self>,
        number: u32,
        netns: Option<String>,
        interfaces: Vec<String>,
    ) -> Result<RemoteHost, HostFailure> {
        let (outbox, inbox) = mpsc::channel();
        locked(&self.inboxes).insert(number, outbox);
        self.say(&ToAgent::Open {
            host: number,
            netns,
            interfaces,
        })?;
        let deadline = Instant::now() + OPEN_MAX;
        loop {
            let reply = self.reply(deadline, "the agent did not open the interface")?;
            if let Reply::Message(FromAgent::Opened { host, failure }, _) = reply
                && host == number
            {
                return match failure {
                    Some(failure) => Err(self.failure(&failure.message)),
                    None => Ok(RemoteHost {
                        connection: Arc::clone(self),
                        number,
                        inbox,
                    }),
                };
            }
        }
    }

    /// Measures how far the machine's clocks are ahead of this one's: of several pings, the fastest counts.
    fn clock(&self) -> Result<ClockOffset, HostFailure> {
        let mut best: Option<(Duration, ClockOffset)> = None;
        for _ in 0..CLOCK_PINGS {
            let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
            let (sent, own) = (Instant::now(), own_clocks());
            self.say(&ToAgent::Ping { id })?;
            let deadline = sent + OPEN_MAX;
            let (monotonic_ns, wall_ns, came) = loop {
                match self.reply(deadline, "the agent did not tell the time")? {
                    Reply::Message(
                        FromAgent::Pong {
                            id: of,
                            monotonic_ns,
                            wall_ns,
                        },
                        came,
                    ) if of == id => break (monotonic_ns, wall_ns, came),
                    _ => {}
                }
            };
            let took = came.saturating_duration_since(sent);
            let half_ns = took.as_nanos() as i64 / 2;
            let offset = ClockOffset {
                monotonic_ns: monotonic_ns - (own[0] + half_ns),
                wall_ns: wall_ns - (own[1] + half_ns),
                error_ns: half_ns as u64,
            };
            if best.is_none_or(|(fastest, _)| took < fastest) {
                best = Some((took, offset));
            }
        }
        best.map(|(_, offset)| offset)
            .ok_or_else(|| self.failure("the agent did not tell the time"))
    }

    /// Returns the next message that is no event.
    fn reply(&self, deadline: Instant, otherwise: &str) -> Result<Reply, HostFailure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let reply = locked(&self.replies).recv_timeout(left);
        reply.map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                self.lose(&format!("{otherwise}: nothing came"));
                self.loss()
            }
            RecvTimeoutError::Disconnected => self.loss(),
        })
    }

    fn say(&self, message: &ToAgent) -> Result<(), HostFailure> {
        let line = line_of(message).map_err(|error| self.failure(&error.to_string()))?;
        self.send_bytes(line.as_bytes())
    }

    fn send_bytes(&self, bytes: &[u8]) -> Result<(), HostFailure> {
        let mut input = locked(&self.input);
        let written = match input.as_mut() {
            Some(input) => input.write_all(bytes).and_then(|()| input.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        drop(input);
        written.map_err(|_| {
            // What it printed says more than a broken pipe: the reader waits for it.
            let deadline = Instant::now() + END_MAX;
            while locked(&self.lost).is_none() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            self.lose("its end of the connection is closed");
            self.loss()
        })
    }

    /// Gives the agent up, for the first reason that is found.
    fn lose(&self, why: &str) {
        let mut lost = locked(&self.lost);
        if lost.is_none() {
            *lost = Some(String::from(why));
        }
        drop(lost);
        // First: whoever writes to a connection that takes nothing holds the lock.
        let _ = locked(&self.child).kill();
        *locked(&self.input) = None;
        locked(&self.inboxes).clear();
    }

    fn failure(&self, why: &str) -> HostFailure {
        HostFailure::new(format!("{}: {why}", self.place.name))
    }

    /// Why the agent is lost, with the last words of its machine.
    fn loss(&self) -> HostFailure {
        let why = locked(&self.lost).clone();
        let why = why.unwrap_or_else(|| String::from("the connection ended"));
        let mut message = format!("the agent at {} was lost: {why}", self.place.name);
        let said = String::from_utf8_lossy(&locked(&self.said)).into_owned();
        let said = said.trim().replace('\n', "; ");
        if !said.is_empty() {
            let _ = write!(message, " ({said})");
        }
        HostFailure {
            is_lost: true,
            ..HostFailure::new(message)
        }
    }

    /// Returns why the reader found the stream's end, once the machine's last words are read, too.
    fn ended(&self) -> String {
        let deadline = Instant::now() + ENDING_MAX;
        let code = loop {
            let status = locked(&self.child).try_wait();
            let is_late = Instant::now() > deadline;
            match status {
                // The reader of standard error holds the other reference until its end.
                Ok(Some(status)) if Arc::strong_count(&self.said) == 1 || is_late => {
                    break status.code();
                }
                _ if is_late => break None,
                _ => thread::sleep(Duration::from_millis(5)),
            }
        };
        match (code, &self.place.ssh) {
            (Some(EXIT_NOT_REACHED), Some(ssh)) => format!(
                "ssh could not reach it or lost it; it must log in without a password: ssh -o BatchMode=yes {ssh} true"
            ),
            (Some(code), _) if code != 0 => format!("it ended with exit code {code}"),
            _ => String::from("the connection ended"),
        }
    }
}

impl Drop for AgentConnection {
    /// Closes the connection and waits until the agent has restored everything.
    fn drop(&mut self) {
        *locked(&self.input) = None;
        let deadline = Instant::now() + END_MAX;
        let child = self
            .child
            .get_mut()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        while Instant::now() < deadline {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The monotonic and the wall clock of this machine, ns.
fn own_clocks() -> [i64; 2] {
    [ClockId::Monotonic, ClockId::Realtime].map(clock_ns)
}

/// Reads an agent's output until it ends, and gives the agent up then.
fn read(output: Option<ChildStdout>, to: &Weak<AgentConnection>, replies: &mpsc::Sender<Reply>) {
    let Some(output) = output else {
        return;
    };
    let mut reader = BufReader::new(output);
    let greeted = greeting(&mut reader, |line| {
        // Nobody may wait any more.
        let _ = replies.send(Reply::Greeting(String::from(line)));
        Ok(())
    });
    let outcome = greeted.and_then(|()| messages(&mut reader, to, replies));
    if let Some(connection) = to.upgrade() {
        let why = match outcome {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => error.to_string(),
            _ => connection.ended(),
        };
        connection.lose(&why);
    }
}

fn messages(
    reader: &mut impl BufRead,
    to: &Weak<AgentConnection>,
    replies: &mpsc::Sender<Reply>,
) -> io::Result<()> {
    while let Some(line) = next_line(reader)? {
        let came = Instant::now();
        let message: FromAgent = message_of(&line).map_err(io::Error::other)?;
        let Some(connection) = to.upgrade() else {
            return Ok(());
        };
        connection.heard.again();
        match message {
            FromAgent::Event { host, event } => {
                if let Some(outbox) = locked(&connection.inboxes).get(&host) {
                    let _ = outbox.send(event);
                }
            }
            FromAgent::Refused { why } => return Err(io::Error::other(why)),
            // Of the pinger: it only shows that the agent runs.
            FromAgent::Pong { id: 0, .. } => {}
            message => {
                let _ = replies.send(Reply::Message(message, came));
            }
        }
    }
    Ok(())
}

/// Tells the agent that its controller runs, and gives the agent up after too long a silence.
fn ping(to: &Weak<AgentConnection>) {
    loop {
        thread::sleep(PING_EVERY);
        let Some(connection) = to.upgrade() else {
            return;
        };
        if locked(&connection.lost).is_some() {
            return;
        }
        if !connection.heard.is_any() {
            // It has not said its first word: whoever waits for that has a limit of its own.
            continue;
        }
        if connection.heard.silence() > SILENCE_MAX {
            let why = format!("nothing was heard of it for {} s", SILENCE_MAX.as_secs());
            connection.lose(&why);
            return;
        }
        // A long message on its way is a sign of life, too.
        if let Ok(mut input) = connection.input.try_lock()
            && let (Some(input), Ok(line)) = (input.as_mut(), line_of(&ToAgent::Ping { id: 0 }))
        {
            // The reader finds out what is wrong.
            let _ = input.write_all(line.as_bytes());
        }
    }
}

/// Keeps the last of what a machine says on standard error.
fn keep_last(errors: Option<ChildStderr>, said: &Mutex<Vec<u8>>) {
    let Some(mut errors) = errors else {
        return;
    };
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        let mut said = locked(said);
        said.extend_from_slice(&buffer[..read]);
        let beyond = said.len().saturating_sub(SAID_BYTES_MAX);
        said.drain(..beyond);
    }
}

/// A host of an agent.
pub struct RemoteHost {
    connection: Arc<AgentConnection>,
    number: u32,
    inbox: mpsc::Receiver<HostEvent>,
}

impl Host for RemoteHost {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        let asked = ToAgent::ask(self.number, &message);
        let asked = asked.map_err(|error| self.connection.failure(&error.to_string()))?;
        self.connection.say(&asked)
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        match self.inbox.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.connection.loss()),
        }
    }

    fn clock(&mut self) -> Result<Option<ClockOffset>, HostFailure> {
        self.connection.clock().map(Some)
    }

    fn is_lost(&self) -> bool {
        locked(&self.connection.lost).is_some()
    }
}
