//! Traffic that a program of the user's makes, and its output read by a named parser.
//!
//! What must hold: a program runs in its host's namespace, on the core of its side, no longer than its time; its
//! output is read to a bounded length; what it ends with, and what was not found in its output, is said in its own
//! words. Its figures are its own: nicpoll cannot count a packet inside it, so the account of losses stays open.

mod child;
mod output;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use nicpoll_model::{Side, WorkUnit};
use nicpoll_traffic::workload::{End, PreparedEnd, Workload, WorkloadError};
use serde::{Deserialize, Serialize};

use self::child::Child;
pub use self::output::{CommandOutputError, FigureUnit};

/// Words of a command, and letters of one.
const WORDS_MAX: usize = 64;
const WORD_MAX: usize = 4096;
/// Letters of a name by which the kernel shows a program.
const COMM_MAX: usize = 15;

/// A program on one or both sides, and how its output is read.
///
/// In its words `{receiver}` stands for the receiver's address, `{port}` for a free port, `{seconds}` for how long to
/// send in whole seconds, and a name of a setting's `variant` for its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandWorkload {
    /// The program that sends, with its arguments.
    pub sender: Vec<String>,
    /// The program that receives, which is ended once the sender has; none where the sender needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receiver: Vec<String>,
    /// Whose output has the figures.
    #[serde(default = "sender")]
    pub output: Side,
    /// The parser of that output: a format of [`nicpoll_import`], or `regex`.
    pub parser: String,
    /// What finds the figure, of the parser `regex`: its first group is the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What that number is; `transactions/s` of the parsers netperf and sockperf, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<FigureUnit>,
    /// Bytes of payload of each datagram or request, where the figure counts those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u16>,
}

fn sender() -> Side {
    Side::Sender
}

/// Why a command cannot be a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandRefused(String);

impl CommandWorkload {
    /// Whether it can be made.
    ///
    /// # Errors
    /// With what is missing or wrong.
    pub fn check(&self) -> Result<(), CommandRefused> {
        let refused = |why: String| Err(CommandRefused(why));
        if self.sender.is_empty() {
            return refused(String::from(
                "sender = [...] needs a program and its arguments",
            ));
        }
        for words in [&self.sender, &self.receiver] {
            if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_MAX) {
                return refused(format!(
                    "a command has at most {WORDS_MAX} words of {WORD_MAX} letters"
                ));
            }
            if words.iter().any(|word| word.contains('\0')) {
                return refused(String::from("a word of a command cannot hold a NUL"));
            }
        }
        if self.output == Side::Receiver && self.receiver.is_empty() {
            let why = "output = \"receiver\" needs a receiver = [...] to read it from";
            return refused(String::from(why));
        }
        output::check(self)
    }

    /// The command with a setting's variant in its words.
    #[must_use]
    pub fn with(mut self, variant: &BTreeMap<String, String>) -> Self {
        for word in self.sender.iter_mut().chain(&mut self.receiver) {
            for (name, value) in variant {
                *word = word.replace(&format!("{{{name}}}"), value);
            }
        }
        self
    }

    /// A name in braces that nothing stands for: neither the command's own nor of `names`.
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

    /// The names by which the kernel shows the programs.
    pub fn programs(&self) -> Vec<String> {
        let of = |words: &Vec<String>| {
            let name = Path::new(words.first()?).file_name()?;
            Some(name.to_string_lossy().chars().take(COMM_MAX).collect())
        };
        [&self.sender, &self.receiver]
            .into_iter()
            .filter_map(of)
            .collect()
    }

    fn words(&self, end: &End) -> Vec<String> {
        let seconds = whole_seconds(end.duration).to_string();
        let words = match end.side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        };
        let words = words.iter().map(|word| {
            word.replace("{receiver}", &end.receiver.ip().to_string())
                .replace("{port}", &end.receiver.port().to_string())
                .replace("{seconds}", &seconds)
        });
        words.collect()
    }
}

/// Programs are told whole seconds.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs_f64().ceil().max(1.0) as u64
}

/// What stands in braces in a word.
fn in_braces(word: &str) -> impl Iterator<Item = &str> {
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

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        let words = self.words(end);
        let child = match (end.side, &words[..]) {
            (Side::Receiver, []) => None,
            (Side::Receiver, words) => {
                let mut child = Child::start(words)?;
                child.wait_for_port(end.receiver.port())?;
                Some(child)
            }
            (Side::Sender, _) => None,
        };
        Ok(Box::new(output::Prepared {
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
