//! What other tools print, as figures: their text in, runs out.
//!
//! What must hold: everything here is a pure function of a text, and no text makes it panic. What a text does not
//! say is `None`, never 0. A text that cannot be read is refused with its line and what was expected there; nothing
//! is skipped silently but lines that the tool prints beside its figures.
//!
//! Each form of a line has one reader, in the recognisers of `transcript`. A [`ResultFormat`] reads what one program printed just
//! now: a line is read as it stands, or refused. [`read_transcripts`] looks for the same forms anywhere in a text, however
//! broken.

#![forbid(unsafe_code)]

mod columns;
mod iperf2;
mod iperf3;
mod lines;
mod netblast;
mod netperf;
mod netreceive;
mod sockperf;
mod transcript;
mod units;

use nicpoll_model::{FileError, RoundTripQuantiles};

pub use transcript::iperf::{IperfLine, iperf_line};
pub use transcript::netrate::{BlastField, netblast_line};
pub use transcript::{
    Correction, NoCorrection, TRANSCRIPT_MAX_BYTES, TranscriptError, read_transcripts,
};

/// What a figure of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Payload, bits a second.
    BitsPerSecond,
    /// Datagrams a second.
    PacketsPerSecond,
    /// Requests that were answered, a second.
    TransactionsPerSecond,
    /// A number of which the text does not say what it is.
    Number,
}

impl Quantity {
    /// Every one.
    pub const ALL: [Quantity; 4] = [
        Quantity::BitsPerSecond,
        Quantity::PacketsPerSecond,
        Quantity::TransactionsPerSecond,
        Quantity::Number,
    ];

    /// The name that JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::BitsPerSecond => "bits_per_second",
            Quantity::PacketsPerSecond => "packets_per_second",
            Quantity::TransactionsPerSecond => "transactions_per_second",
            Quantity::Number => "number",
        }
    }
}

/// One run of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRun {
    /// The line of the text at which it begins, from 1.
    pub line: usize,
    /// What `value` and `series` are.
    pub quantity: Quantity,
    /// The figure of the whole run; `None` when it was cut off.
    pub value: Option<f64>,
    /// The figures of its intervals, without a last one that is cut short.
    pub series: Vec<f64>,
    /// Whether only the sender counted: what arrived may be less.
    pub is_sent: bool,
    /// Share of the datagrams that was lost, 0 to 1.
    pub loss_ratio: Option<f64>,
    /// Interarrival jitter.
    pub jitter_seconds: Option<f64>,
    /// Round trips, as far as the text tells of them.
    pub round_trip: RoundTripQuantiles,
}

impl ToolRun {
    pub(crate) fn new(line: usize, quantity: Quantity) -> Self {
        ToolRun {
            line,
            quantity,
            value: None,
            series: Vec::new(),
            is_sent: false,
            loss_ratio: None,
            jitter_seconds: None,
            round_trip: RoundTripQuantiles::default(),
        }
    }
}

/// A kind of text that can be read. A new one is a row of [`RESULT_FORMATS`].
#[derive(Debug)]
pub struct ResultFormat {
    /// The word that options and study files have for it.
    pub word: &'static str,
    /// What a sentence calls it.
    pub name: &'static str,
    looks_so: fn(&str) -> bool,
    parse: fn(&str, usize) -> Result<Vec<ToolRun>, FileError>,
}

/// Everything that can be read. A text is of the first that it looks like.
pub static RESULT_FORMATS: [ResultFormat; 7] = [
    ResultFormat {
        word: "iperf3",
        name: "iperf3 -J",
        looks_so: iperf3::looks_so,
        parse: |text, _| iperf3::parse(text),
    },
    ResultFormat {
        word: "iperf2",
        name: "iperf 2 text",
        looks_so: iperf2::looks_so,
        parse: |text, _| iperf2::parse(text),
    },
    ResultFormat {
        word: "netblast",
        name: "netblast or netsend text",
        looks_so: netblast::looks_so,
        parse: |text, _| netblast::parse(text),
    },
    ResultFormat {
        word: "netreceive",
        name: "netreceive text",
        looks_so: netreceive::looks_so,
        parse: |text, _| netreceive::parse(text),
    },
    ResultFormat {
        word: "netperf",
        name: "netperf's table of a stream or request/response test",
        looks_so: netperf::looks_so,
        parse: |text, _| netperf::parse(text),
    },
    ResultFormat {
        word: "sockperf",
        name: "the summary of sockperf throughput or ping-pong",
        looks_so: sockperf::looks_so,
        parse: |text, _| sockperf::parse(text),
    },
    ResultFormat {
        word: "numbers",
        name: "a column of numbers",
        looks_so: |_| true,
        parse: columns::parse,
    },
];

impl ResultFormat {
    /// The format with this word.
    pub fn named(word: &str) -> Option<&'static ResultFormat> {
        RESULT_FORMATS.iter().find(|format| format.word == word)
    }

    /// The format that a text looks like. What looks like none is taken for numbers, whose errors say what else
    /// could have been there.
    pub fn of(text: &str) -> &'static ResultFormat {
        let mut formats = RESULT_FORMATS.iter();
        let found = formats.find(|format| (format.looks_so)(text));
        found.unwrap_or(&RESULT_FORMATS[RESULT_FORMATS.len() - 1])
    }

    /// The runs that a text holds, at least one. `column`, from 1, is the one of a table of numbers; other formats
    /// do without.
    ///
    /// # Errors
    /// [`FileError`] with the line, and what was expected there.
    pub fn read(&self, text: &str, column: usize) -> Result<Vec<ToolRun>, FileError> {
        let runs = (self.parse)(text, column)?;
        if runs.is_empty() {
            return Err(FileError {
                line: 1,
                message: format!(
                    "there is no result in this text, which was read as {}",
                    self.name
                ),
            });
        }
        Ok(runs)
    }
}

pub(crate) fn error(line: usize, message: impl Into<String>) -> FileError {
    FileError {
        line,
        message: message.into(),
    }
}

/// A figure that can be one: finite, and not negative.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}
