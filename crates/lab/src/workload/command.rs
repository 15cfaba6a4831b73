//! Traffic made by a user's program, whose output is read by a named parser.
//!
//! A program runs in its host's namespace, on the CPU of its side, for a limited time and with limited output.
//! Neither it nor what it starts outlives its value or this process. An error quotes the program's last output, or
//! what the output lacks. nicpoll cannot count packets inside a program, so the account of losses stays open.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use nicpoll_import::{MeasuredQuantity, ResultFormat};
use nicpoll_model::{RoundTrip, RoundTripQuantiles, Side, WindowRates, WorkUnit};
use nicpoll_sys::program::{
    CapabilitySet, Rights, User, ask_to_end, capability_named, spawn_contained,
};
use nicpoll_traffic::workload::{
    EndBooks, EndTerms, Payload, PreparedEnd, Workload, WorkloadError,
};
use nicpoll_traffic::{Signals, SocketBuffer};
use regex_lite::Regex;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::{HostFailure, Refused};

/// Limits of a command's words, and of a word's letters.
const WORDS_MAX: usize = 64;

const WORD_MAX: usize = 4096;

/// A program on one or both sides, and how its output is read.
///
/// In its words `{receiver}` stands for the receiver's address, `{port}` for a free port, `{seconds}` for how long to
/// send in whole seconds, and a name of a setting's `variant` for its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandWorkload {
    /// The program that sends, with its arguments.
    pub sender: Vec<String>,
    /// The program that receives, ended after the sender; none if the sender needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receiver: Vec<String>,
    /// Whose output has the figures.
    #[serde(default = "sender")]
    pub output: Side,
    /// The parser of that output: a format of [`nicpoll_import`], or `regex`.
    pub parser: String,
    /// Pattern of the parser `regex`; its group is the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Unit of that number; also `transactions/s` for the parsers netperf and sockperf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<FigureUnit>,
    /// Payload bytes of a datagram or request, if the figure counts those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u16>,
    /// Who the programs run as, by name. By default the user who called sudo, else the one who runs the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The capabilities that the programs have, such as `net_raw`. By default none, as root too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

fn sender() -> Side {
    Side::Sender
}

impl CommandWorkload {
    /// Checks that it can be run.
    ///
    /// # Errors
    /// With what is missing or wrong.
    pub fn check(&self) -> Result<(), Refused> {
        check_words(&self.sender)?;
        if !self.receiver.is_empty() {
            check_words(&self.receiver)?;
        }
        let unknown = |name: &&String| capability_named(name).is_none();
        if let Some(name) = self.capabilities.iter().find(unknown) {
            return Err(Refused(format!(
                "there is no capability '{name}'; capabilities(7) lists them, such as net_raw or net_admin"
            )));
        }
        if self.output == Side::Receiver && self.receiver.is_empty() {
            let why = "output = \"receiver\" needs a receiver = [...] to read it from";
            return Err(Refused(String::from(why)));
        }
        wrong_parser(self).map_or(Ok(()), |why| Err(Refused(why)))
    }

    /// Replaces the names of a setting's variant in its words.
    #[must_use]
    pub fn with(mut self, variant: &BTreeMap<String, String>) -> Self {
        for word in self.sender.iter_mut().chain(&mut self.receiver) {
            for (name, value) in variant {
                *word = word.replace(&format!("{{{name}}}"), value);
            }
        }
        self
    }

    /// Returns a name in braces that is neither the command's own nor among `names`.
    pub fn unknown_name<'a>(&'a self, names: &[&str]) -> Option<&'a str> {
        let own = ["receiver", "port", "seconds"];
        let words = self.sender.iter().chain(&self.receiver);
        words.flat_map(|word| in_braces(word)).find(|name| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            !name.is_empty()
                && name.chars().all(is_name)
                && !own.contains(name)
                && !names.contains(name)
        })
    }

    /// Returns the rights of the programs.
    fn rights(&self) -> Result<Rights, WorkloadError> {
        let user = match &self.user {
            Some(name) => Some(User::named(name).map_err(WorkloadError::failed)?),
            None => User::of_sudo(),
        };
        let named = self
            .capabilities
            .iter()
            .filter_map(|name| capability_named(name));
        Ok(Rights {
            user,
            capabilities: named.fold(CapabilitySet::empty(), CapabilitySet::union),
        })
    }

    /// Returns, in words, the programs' user and capabilities.
    pub fn runs_as(&self) -> String {
        let who = match (&self.user, User::of_sudo()) {
            (Some(name), _) => name.clone(),
            (None, Some(user)) => format!("user {}, who called sudo", user.uid),
            (None, None) if geteuid().is_root() => String::from("root"),
            (None, None) => String::from("the caller"),
        };
        match self.capabilities.as_slice() {
            [] => format!("as {who}, without capabilities"),
            named => format!("as {who}, with {}", named.join(", ")),
        }
    }

    /// Prepares its sender, which waits at another host.
    pub(crate) fn waiting(&self, child: Child, end: &EndTerms) -> Box<dyn PreparedEnd> {
        Box::new(PreparedCommand {
            workload: self.clone(),
            words: filled_in(&self.sender, end),
            side: Side::Sender,
            seconds: whole_seconds(end.duration),
            child: Some(child),
        })
    }
}

/// Returns words with what they stand for in place of the names in braces.
pub(crate) fn filled_in(words: &[String], end: &EndTerms) -> Vec<String> {
    let seconds = whole_seconds(end.duration).to_string();
    let words = words.iter().map(|word| {
        word.replace("{receiver}", &end.receiver.ip().to_string())
            .replace("{port}", &end.receiver.port().to_string())
            .replace("{seconds}", &seconds)
    });
    words.collect()
}

/// Rounds a duration to the whole seconds that programs take.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs_f64().ceil().max(1.0) as u64
}

/// Checks that a command can be run.
///
/// # Errors
/// With what is missing or wrong.
pub fn check_words(words: &[String]) -> Result<(), Refused> {
    let why = if words.is_empty() {
        String::from("a command needs a program and its arguments, such as [\"iperf3\", \"-s\"]")
    } else if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_MAX) {
        format!("a command has at most {WORDS_MAX} words of {WORD_MAX} letters")
    } else if words.iter().any(|word| word.contains('\0')) {
        String::from("a word of a command cannot hold a NUL")
    } else {
        return Ok(());
    };
    Err(Refused(why))
}

/// Returns the names in braces in a word.
pub(crate) fn in_braces(word: &str) -> impl Iterator<Item = &str> {
    word.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

impl Workload for CommandWorkload {
    fn unit(&self) -> WorkUnit {
        match (self.unit, self.payload_bytes) {
            (Some(FigureUnit::Transactions), _) => WorkUnit::Transactions,
            (_, Some(_)) => WorkUnit::Datagrams,
            (_, None) => WorkUnit::Bytes,
        }
    }

    fn datagram_bytes(&self) -> Option<u32> {
        let payload_bytes = self.payload_bytes.map(u32::from);
        payload_bytes.filter(|_| self.unit() == WorkUnit::Datagrams)
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        let words = filled_in(end.side.of(&self.sender, &self.receiver), end);
        let mut child = None;
        if end.side == Side::Receiver && !words.is_empty() {
            let started = child.insert(Child::start(&words, Some(self.rights()?))?);
            started.wait_for_port(end.receiver.port())?;
        }
        Ok(Box::new(PreparedCommand {
            workload: self.clone(),
            words,
            side: end.side,
            seconds: whole_seconds(end.duration),
            child,
        }))
    }
}

impl fmt::Display for CommandWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sender.join(" "))?;
        if !self.receiver.is_empty() {
            write!(f, " to {}", self.receiver.join(" "))?;
        }
        write!(f, ", read as {}", self.parser)
    }
}

/// Name of the parser that uses the user's pattern.
const REGEX: &str = "regex";

/// Time that a program may take beyond the asked duration, to connect and for the other end's report.
const BEYOND: Duration = Duration::from_millis(1500);

const LOOK_AT_CHILD_EVERY: Duration = Duration::from_millis(2);

/// Last lines of a program's output that an error shows.
const LAST_LINES: usize = 3;

/// Letters of an output that an error shows.
const SHOWN: usize = 200;

/// Parsers that read transactions as well.
const RESPONDERS: [&str; 2] = ["netperf", "sockperf"];

const NO_ACCOUNT: &str = "a program of its own made the traffic, and its packets cannot be counted";

/// Unit of the number that a pattern finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FigureUnit {
    /// Payload, bits a second.
    #[serde(rename = "bit/s")]
    Bits,
    /// 10^3 bits a second.
    #[serde(rename = "kbit/s")]
    Kilobits,
    /// 10^6 bits a second.
    #[serde(rename = "Mbit/s")]
    Megabits,
    /// 10^9 bits a second.
    #[serde(rename = "Gbit/s")]
    Gigabits,
    /// Datagrams a second.
    #[serde(rename = "packets/s")]
    Packets,
    /// Requests that were answered, a second.
    #[serde(rename = "transactions/s")]
    Transactions,
}

/// Returns what is wrong with the parser of a command, if anything.
fn wrong_parser(command: &CommandWorkload) -> Option<String> {
    let parser = command.parser.as_str();
    let is_regex = parser == REGEX;
    let has_transactions = command.unit == Some(FigureUnit::Transactions);
    let may_have_unit = is_regex || has_transactions && RESPONDERS.contains(&parser);
    if !is_regex && command.pattern.is_some() || command.unit.is_some() && !may_have_unit {
        return Some(format!(
            "pattern and unit are of the parser {REGEX}, and this one is {parser}; {} take unit = \"transactions/s\"",
            RESPONDERS.join(" and ")
        ));
    }
    let counts_packets = match (is_regex, ResultFormat::named(parser)) {
        (true, _) => {
            let (Some(pattern), Some(unit)) = (&command.pattern, command.unit) else {
                return Some(String::from(
                    "the parser regex needs a pattern with one group, such as pattern = \"rate ([0-9.]+)\", and a unit: \
                     bit/s, kbit/s, Mbit/s, Gbit/s, packets/s or transactions/s",
                ));
            };
            let pattern = match Regex::new(pattern) {
                Ok(pattern) => pattern,
                Err(error) => return Some(format!("pattern: {error}")),
            };
            if pattern.captures_len() != 2 {
                return Some(format!(
                    "pattern has {} groups; the one group of a pattern is the number, and (?:...) groups without being one",
                    pattern.captures_len() - 1
                ));
            }
            [FigureUnit::Packets, FigureUnit::Transactions].contains(&unit)
        }
        (false, Some(_)) if has_transactions => true,
        (false, Some(format)) if format.word != "numbers" => {
            format.word.starts_with("net") && format.word != "netperf"
        }
        (false, _) => {
            let known = nicpoll_import::RESULT_FORMATS
                .iter()
                .map(|format| format.word);
            let known: Vec<&str> = known.filter(|word| *word != "numbers").collect();
            return Some(format!(
                "there is no parser '{parser}'; there are {} and {REGEX}",
                known.join(", ")
            ));
        }
    };
    match (counts_packets, command.payload_bytes) {
        (true, None) => Some(format!(
            "the parser {parser} reads {} a second here: give their payload, such as payload_bytes = 64",
            match has_transactions {
                true => "requests",
                false => "datagrams",
            }
        )),
        (false, Some(_)) => Some(format!(
            "payload_bytes is for figures in datagrams, and the parser {parser} reads bits a second here"
        )),
        _ => None,
    }
}

/// A figure that was read.
struct CommandFigure {
    number: f64,
    unit: FigureUnit,
    /// Whether it counts sent, not received, data.
    is_sent: bool,
    jitter_seconds: Option<f64>,
    /// Known quantiles of round trips.
    round_trip: RoundTripQuantiles,
}

impl CommandWorkload {
    /// Finds the figure in an output; the error says what is missing.
    fn figure(&self, output: &str) -> Result<CommandFigure, Refused> {
        let absent = |why: &str| Refused(String::from(why));
        if let (Some(pattern), Some(unit)) = (&self.pattern, self.unit) {
            let pattern_of = Regex::new(pattern).map_err(|error| Refused(error.to_string()))?;
            let found = pattern_of.captures(output).and_then(|found| found.get(1));
            let found = found
                .ok_or_else(|| Refused(format!("the pattern '{pattern}' is nowhere in it")))?;
            let found = found.as_str();
            let number = found.parse().ok();
            let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
            let no_rate = || {
                let why = format!("the pattern '{pattern}' found '{found}', which is not a rate");
                Refused(why)
            };
            return Ok(CommandFigure {
                number: number.ok_or_else(no_rate)?,
                unit,
                is_sent: false,
                jitter_seconds: None,
                round_trip: RoundTripQuantiles::default(),
            });
        }
        let format =
            ResultFormat::named(&self.parser).ok_or_else(|| absent("there is no such parser"))?;
        let runs = format
            .read(output, 1)
            .map_err(|error| Refused(format!("read as {}: {error}", format.name)))?;
        let run = runs
            .last()
            .ok_or_else(|| absent("there is no result in it"))?;
        let lacks = || absent("its last run has no figure of the whole run");
        let number = run.value.ok_or_else(lacks)?;
        let is_asked = self.unit == Some(FigureUnit::Transactions);
        let unit = match run.quantity {
            MeasuredQuantity::TransactionsPerSecond if !is_asked => {
                let why =
                    "it counts transactions: give unit = \"transactions/s\" and payload_bytes";
                return Err(absent(why));
            }
            MeasuredQuantity::TransactionsPerSecond => FigureUnit::Transactions,
            _ if is_asked => {
                let why =
                    "it counts no transactions: leave out unit, or have the program ask and answer";
                return Err(absent(why));
            }
            MeasuredQuantity::PacketsPerSecond if self.payload_bytes.is_none() => {
                return Err(absent("it counts datagrams: give payload_bytes"));
            }
            MeasuredQuantity::PacketsPerSecond => FigureUnit::Packets,
            MeasuredQuantity::BitsPerSecond | MeasuredQuantity::Number => FigureUnit::Bits,
        };
        Ok(CommandFigure {
            number,
            unit,
            is_sent: run.is_sent,
            jitter_seconds: run.jitter_seconds,
            round_trip: run.round_trip,
        })
    }
}

/// One end of a command, ready to run.
struct PreparedCommand {
    workload: CommandWorkload,
    words: Vec<String>,
    side: Side,
    seconds: u64,
    /// The process of a receiver, which runs already, or of a sender at another host, which waits there.
    child: Option<Child>,
}

impl PreparedEnd for PreparedCommand {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        let ended = match self.side {
            Side::Sender => Some(self.send(signals)?),
            Side::Receiver => self.receive(signals)?,
        };
        let is_read = self.workload.output == self.side;
        match ended.filter(|_| is_read) {
            Some(ended) => self.books(&ended.output),
            None => Ok(EndBooks {
                undrained: Some(String::from(NO_ACCOUNT)),
                ..self.empty()
            }),
        }
    }
}

impl PreparedCommand {
    fn send(&mut self, signals: &Signals) -> Result<EndedProgram, WorkloadError> {
        let child = match self.child.take() {
            Some(mut waiting) => {
                waiting.go()?;
                waiting
            }
            None => Child::start(&self.words, Some(self.workload.rights()?))?,
        };
        child.sends_for(self.seconds, signals)
    }

    /// Lets the receiver run until the sender is done, then ends it. Its exit status does not matter.
    fn receive(&mut self, signals: &Signals) -> Result<Option<EndedProgram>, WorkloadError> {
        while !signals.sender_done.load(Ordering::Acquire) {
            signals.check()?;
            thread::sleep(LOOK_AT_CHILD_EVERY);
        }
        self.child.take().map(|mut child| child.end()).transpose()
    }

    fn empty(&self) -> EndBooks {
        let nothing = Payload {
            packets: (self.workload.unit() == WorkUnit::Datagrams).then_some(0),
            bytes: 0,
        };
        // The buffer of another program's socket is unknown.
        EndBooks::of_sender(nothing, self.seconds as f64, SocketBuffer::default())
    }

    fn books(&self, output: &str) -> Result<EndBooks, WorkloadError> {
        let figure = self.workload.figure(output).map_err(|why| {
            let (program, bytes) = (&self.words[0], output.len());
            let shown: String = output.chars().take(SHOWN).collect();
            failed(format!(
                "{why}; the output of '{program}', {bytes} bytes, begins with: {shown}"
            ))
        })?;
        let (number, seconds) = (figure.number, self.seconds as f64);
        let payload_bits = 8.0 * f64::from(self.workload.payload_bytes.unwrap_or(0));
        let bits_per_second = match figure.unit {
            FigureUnit::Bits => number,
            FigureUnit::Kilobits => 1e3 * number,
            FigureUnit::Megabits => 1e6 * number,
            FigureUnit::Gigabits => 1e9 * number,
            FigureUnit::Packets | FigureUnit::Transactions => number * payload_bits,
        };
        let count = (number * seconds) as u64;
        let payload = Payload {
            packets: (figure.unit == FigureUnit::Packets).then_some(count),
            bytes: (bits_per_second / 8.0 * seconds) as u64,
        };
        let why = match figure.is_sent {
            true => format!("{NO_ACCOUNT}; its figure is what it sent"),
            false => String::from(NO_ACCOUNT),
        };
        let round_trip = RoundTrip {
            transactions: count,
            transactions_per_second: number,
            timeouts: 0,
            quantiles: figure.round_trip,
        };
        Ok(EndBooks {
            received: payload,
            receiver_rates: Some(WindowRates::new(payload.packets, payload.bytes, seconds)),
            jitter_seconds: figure.jitter_seconds,
            round_trip: (figure.unit == FigureUnit::Transactions).then_some(round_trip),
            undrained: Some(why),
            ..self.empty()
        })
    }
}

/// Bytes that a program may write to each of its outputs.
const OUTPUT_MAX: u64 = 8 << 20;

/// Time in which a receiver must listen.
const LISTEN_MAX: Duration = Duration::from_secs(1);

/// Time for a receiver whose port cannot be seen.
const LISTEN_BLIND: Duration = Duration::from_millis(100);

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);

/// A program that runs.
pub(crate) struct Child {
    name: String,
    process: std::process::Child,
    /// Of one that waits.
    input: Option<ChildStdin>,
    output: Option<[JoinHandle<Vec<u8>>; 2]>,
}

/// Exit status and output of a program.
pub(crate) struct EndedProgram {
    status: ExitStatus,
    /// What it printed.
    pub(crate) output: String,
    errors: String,
}

impl Child {
    /// Starts a program in the calling thread's namespace and on its core. It ends with that thread.
    pub(crate) fn start(words: &[String], rights: Option<Rights>) -> Result<Self, WorkloadError> {
        let [program, arguments @ ..] = words else {
            return Err(failed(String::from("there is no program to run")));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = spawn_contained(&mut command, rights);
        let started =
            started.map_err(|error| failed(format!("'{program}' cannot be run: {error}")));
        let mut process = started?;
        let stdout = process.stdout.take();
        Ok(Child::read_from(program, process, stdout))
    }

    /// Lets the command of one that waits begin.
    pub(crate) fn go(&mut self) -> Result<(), WorkloadError> {
        let mut input = self.input.take();
        let written = input.as_mut().map(|input| input.write_all(b"go\n"));
        written.transpose().map_err(WorkloadError::failed)?;
        // Closed only at its end: ssh would tell the command.
        self.input = input;
        Ok(())
    }

    /// A program whose output is read from now on.
    pub(crate) fn read_from(
        name: &str,
        mut process: std::process::Child,
        stdout: Option<impl Read + Send + 'static>,
    ) -> Self {
        let stderr = process.stderr.take();
        Child {
            name: String::from(name),
            input: process.stdin.take(),
            process,
            output: Some([
                thread::spawn(|| read_to_limit(stdout)),
                thread::spawn(|| read_to_limit(stderr)),
            ]),
        }
    }

    /// Waits for the end of a program that sends for this time, and returns its output.
    pub(crate) fn sends_for(
        mut self,
        seconds: u64,
        signals: &Signals,
    ) -> Result<EndedProgram, WorkloadError> {
        let longest = Duration::from_secs(seconds) + BEYOND;
        if !self.ends_within(longest, || signals.is_cancelled())? {
            return Err(failed(format!(
                "'{}' was to send for {seconds} s and had not ended {BEYOND:?} later; it was ended",
                self.name
            )));
        }
        self.succeeded()
    }

    /// Waits until something listens at a port of this namespace, or the time for that is over.
    fn wait_for_port(&mut self, port: u16) -> Result<(), WorkloadError> {
        let begin = Instant::now();
        while begin.elapsed() < LISTEN_MAX {
            if self.has_ended()? {
                let ended = self.end()?;
                return Err(ended.failed(&self.name));
            }
            if is_bound(port) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        // It may listen at a port of its own.
        thread::sleep(LISTEN_BLIND);
        Ok(())
    }

    /// Returns whether it ends by itself within this time.
    fn ends_within(
        &mut self,
        longest: Duration,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<bool, WorkloadError> {
        let deadline = Instant::now() + longest;
        while !self.has_ended()? {
            if is_cancelled() {
                return Err(WorkloadError::Cancelled);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            thread::sleep(LOOK_AT_CHILD_EVERY);
        }
        Ok(true)
    }

    /// Returns its output, if it ended without an error.
    pub(crate) fn succeeded(&mut self) -> Result<EndedProgram, WorkloadError> {
        let ended = self.end()?;
        match ended.status.success() {
            true => Ok(ended),
            false => Err(ended.failed(&self.name)),
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> Result<bool, WorkloadError> {
        let status = self.process.try_wait().map_err(WorkloadError::failed)?;
        Ok(status.is_some())
    }

    /// Asks it to end, ends it if it does not, and returns its output.
    pub(crate) fn end(&mut self) -> Result<EndedProgram, WorkloadError> {
        let begin = Instant::now();
        if !self.has_ended()? {
            let _ = ask_to_end(&self.process);
        }
        while !self.has_ended()? {
            if begin.elapsed() > GRACE {
                let _ = self.process.kill();
            }
            thread::sleep(LOOK_EVERY);
        }
        let status = self.process.wait().map_err(WorkloadError::failed)?;
        let [output, errors] = match self.output.take() {
            Some(readers) => readers.map(|reader| reader.join().unwrap_or_default()),
            None => Default::default(),
        };
        if [&output, &errors]
            .iter()
            .any(|it| it.len() as u64 > OUTPUT_MAX)
        {
            return Err(failed(format!(
                "'{}' wrote more than {} MiB; have it print less",
                self.name,
                OUTPUT_MAX >> 20
            )));
        }
        Ok(EndedProgram {
            status,
            output: String::from_utf8_lossy(&output).into_owned(),
            errors: String::from_utf8_lossy(&errors).into_owned(),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl EndedProgram {
    /// Makes the error of a failed program, with its last output.
    pub(crate) fn failed(&self, name: &str) -> WorkloadError {
        let said = [&self.errors, &self.output];
        let last = said.iter().find_map(|text| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines: Vec<&str> = lines.collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
            (!last.is_empty()).then_some(last)
        });
        failed(format!(
            "'{name}' ended with {}, and said: {}; run it by hand first, and give it in the file what it needs: its \
             arguments, user = \"...\" or capabilities = [\"...\"]",
            self.status,
            last.as_deref().unwrap_or("nothing")
        ))
    }
}

/// Makes the error of a run without a figure.
pub(crate) fn failed(why: String) -> WorkloadError {
    WorkloadError::failed(HostFailure::new(why))
}

/// Reads to the end; keeps one byte beyond the limit to show that it was exceeded.
fn read_to_limit(pipe: Option<impl Read>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        // Unreadable output counts as empty.
        let _ = (&mut pipe).take(OUTPUT_MAX + 1).read_to_end(&mut kept);
        let _ = io::copy(&mut pipe, &mut io::sink());
    }
    kept
}

/// Returns whether a socket of this namespace has a port, the end of the second column in the kernel's tables.
fn is_bound(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .any(|address| address.ends_with(&wanted))
    })
}
