//! A program's run and what is read from its output.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_import::{Quantity, ResultFormat};
use nicpoll_model::{RoundTrip, RoundTripQuantiles, Side, WindowRates, WorkUnit};
use nicpoll_traffic::workload::{EndBooks, Payload, PreparedEnd, Workload, WorkloadError};
use nicpoll_traffic::{Signals, SocketBuffer};
use regex::Regex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::child::{Child, Ended};
use super::{CommandRefused, CommandWorkload};

/// The parser that a pattern of the user's is.
const REGEX: &str = "regex";
/// How much longer than it is told a program may take: connecting, and the other end's report.
const BEYOND: Duration = Duration::from_millis(1500);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Letters of an output that an error shows.
const SHOWN: usize = 200;
/// Parsers that read transactions as well.
const RESPONDERS: [&str; 2] = ["netperf", "sockperf"];
/// No buffer is known of a socket inside another program.
const NO_BUFFER: SocketBuffer = SocketBuffer {
    asked_bytes: None,
    granted_bytes: 0,
};
const NO_ACCOUNT: &str = "a program of its own made the traffic, and its packets cannot be counted";

/// What a number is that a pattern finds.
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

/// Why a program's run has no figure.
#[derive(Debug, Error)]
pub enum CommandOutputError {
    /// It did not start.
    #[error("'{program}' cannot be run: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("'{program}' ended with {status}, and said: {said}")]
    Ended {
        /// The program.
        program: String,
        /// How.
        status: String,
        /// Its last line.
        said: String,
    },
    /// It did not end.
    #[error(
        "'{program}' was to send for {seconds} s and had not ended {beyond:?} later; it was ended"
    )]
    Slow {
        /// The program.
        program: String,
        /// What it was told.
        seconds: u64,
        /// What it was given beyond.
        beyond: Duration,
    },
    /// What was looked for is not in its output.
    #[error("{why}; the output of '{program}', {bytes} bytes, begins with: {shown}")]
    NotFound {
        /// The program.
        program: String,
        /// What was looked for.
        why: String,
        /// Length of the output.
        bytes: usize,
        /// Its beginning.
        shown: String,
    },
}

/// Whether the parser of a command is one, and has what it needs.
pub(super) fn check(command: &CommandWorkload) -> Result<(), CommandRefused> {
    wrong(command).map_or(Ok(()), |why| Err(CommandRefused(why)))
}

/// What is wrong with the parser of a command.
fn wrong(command: &CommandWorkload) -> Option<String> {
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

/// What is not in an output.
#[derive(Debug, Error)]
#[error("{0}")]
struct Absent(String);

impl<T: Into<String>> From<T> for Absent {
    fn from(what: T) -> Self {
        Absent(what.into())
    }
}

/// A figure that was read.
struct Figure {
    /// Payload.
    bits_per_second: f64,
    packets_per_second: Option<f64>,
    /// Whether it is what was sent.
    is_sent: bool,
    jitter_seconds: Option<f64>,
    /// Answered requests a second, with what is known of their round trips.
    transactions: Option<(f64, RoundTripQuantiles)>,
}

impl CommandWorkload {
    /// What an output says.
    fn figure(&self, output: &str) -> Result<Figure, Absent> {
        let payload_bits = 8.0 * f64::from(self.payload_bytes.unwrap_or(0));
        let of_packets = |rate: f64| (rate * payload_bits, Some(rate));
        if let (Some(pattern), Some(unit)) = (&self.pattern, self.unit) {
            let pattern_of = Regex::new(pattern).map_err(|error| error.to_string())?;
            let found = pattern_of.captures(output).and_then(|found| found.get(1));
            let found = found.ok_or_else(|| format!("the pattern '{pattern}' is nowhere in it"))?;
            let number: f64 = found
                .as_str()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite() && *number >= 0.0)
                .ok_or_else(|| {
                    format!(
                        "the pattern '{pattern}' found '{}', which is no rate",
                        found.as_str()
                    )
                })?;
            let (bits_per_second, packets_per_second) = match unit {
                FigureUnit::Bits => (number, None),
                FigureUnit::Kilobits => (1e3 * number, None),
                FigureUnit::Megabits => (1e6 * number, None),
                FigureUnit::Gigabits => (1e9 * number, None),
                FigureUnit::Packets => of_packets(number),
                FigureUnit::Transactions => (number * payload_bits, None),
            };
            let has_transactions = unit == FigureUnit::Transactions;
            return Ok(Figure {
                bits_per_second,
                packets_per_second,
                is_sent: false,
                jitter_seconds: None,
                transactions: has_transactions.then(|| (number, RoundTripQuantiles::default())),
            });
        }
        let format = ResultFormat::named(&self.parser).ok_or("there is no such parser")?;
        let runs = format
            .read(output, 1)
            .map_err(|error| format!("read as {}: {error}", format.name))?;
        let run = runs.last().ok_or("there is no result in it")?;
        let value = run
            .value
            .ok_or_else(|| format!("its run at line {} was cut off", run.line))?;
        let has_transactions = run.quantity == Quantity::TransactionsPerSecond;
        if has_transactions != (self.unit == Some(FigureUnit::Transactions)) {
            let why = match has_transactions {
                true => "it counts transactions: give unit = \"transactions/s\" and payload_bytes",
                false => {
                    "it counts no transactions: leave out unit, or have the program ask and answer"
                }
            };
            return Err(why.into());
        }
        let (bits_per_second, packets_per_second) = match run.quantity {
            Quantity::PacketsPerSecond if self.payload_bytes.is_none() => {
                return Err("it counts datagrams: give payload_bytes".into());
            }
            Quantity::PacketsPerSecond => of_packets(value),
            Quantity::TransactionsPerSecond => (value * payload_bits, None),
            Quantity::BitsPerSecond | Quantity::Number => (value, None),
        };
        Ok(Figure {
            bits_per_second,
            packets_per_second,
            is_sent: run.is_sent,
            jitter_seconds: run.jitter_seconds,
            transactions: has_transactions.then_some((value, run.round_trip)),
        })
    }
}

/// One end of a command that can run at once.
pub(super) struct Prepared {
    pub workload: CommandWorkload,
    pub words: Vec<String>,
    pub side: Side,
    pub seconds: u64,
    /// Of a receiver: it runs already.
    pub child: Option<Child>,
}

impl PreparedEnd for Prepared {
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

impl Prepared {
    fn program(&self) -> String {
        self.words.first().cloned().unwrap_or_default()
    }

    fn send(&self, signals: &Signals) -> Result<Ended, WorkloadError> {
        let deadline = Instant::now() + Duration::from_secs(self.seconds) + BEYOND;
        let mut child = Child::start(&self.words)?;
        while !child.has_ended()? {
            if signals.is_cancelled() {
                return Err(WorkloadError::Cancelled);
            }
            if Instant::now() > deadline {
                return Err(WorkloadError::failed(CommandOutputError::Slow {
                    program: self.program(),
                    seconds: self.seconds,
                    beyond: BEYOND,
                }));
            }
            thread::sleep(LOOK_EVERY);
        }
        let ended = child.end()?;
        match ended.status.success() {
            true => Ok(ended),
            false => Err(ended.failed(&self.program())),
        }
    }

    /// Lets the receiver go on until the sender is done. How it ends does not matter: it is ended.
    fn receive(&mut self, signals: &Signals) -> Result<Option<Ended>, WorkloadError> {
        while !signals.sender_done.load(Ordering::Acquire) {
            if signals.is_cancelled() {
                return Err(WorkloadError::Cancelled);
            }
            thread::sleep(LOOK_EVERY);
        }
        self.child.take().map(|mut child| child.end()).transpose()
    }

    fn empty(&self) -> EndBooks {
        let nothing = Payload {
            packets: (self.workload.unit() == WorkUnit::Datagrams).then_some(0),
            bytes: 0,
        };
        EndBooks::of_sender(nothing, self.seconds as f64, NO_BUFFER)
    }

    fn books(&self, output: &str) -> Result<EndBooks, WorkloadError> {
        let figure = self.workload.figure(output).map_err(|Absent(why)| {
            WorkloadError::failed(CommandOutputError::NotFound {
                program: self.program(),
                why,
                bytes: output.len(),
                shown: output.chars().take(SHOWN).collect(),
            })
        })?;
        let seconds = self.seconds as f64;
        let payload = Payload {
            packets: figure
                .packets_per_second
                .map(|rate| (rate * seconds) as u64),
            bytes: (figure.bits_per_second / 8.0 * seconds) as u64,
        };
        let rates = WindowRates::new(payload.packets, payload.bytes, seconds);
        let why = match figure.is_sent {
            true => format!("{NO_ACCOUNT}; its figure is what it sent"),
            false => String::from(NO_ACCOUNT),
        };
        Ok(EndBooks {
            received: payload,
            receiver_rates: Some(rates),
            jitter_seconds: figure.jitter_seconds,
            round_trip: figure.transactions.map(|(rate, quantiles)| RoundTrip {
                transactions: (rate * seconds) as u64,
                transactions_per_second: rate,
                timeouts: 0,
                quantiles,
            }),
            undrained: Some(why),
            ..self.empty()
        })
    }
}
