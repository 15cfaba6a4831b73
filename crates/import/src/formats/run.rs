//! One run of a tool, whatever the tool.

use nicpoll_model::{FileError, Measure, RoundTripQuantiles};

/// What a figure of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Payload, bits a second.
    BitsPerSecond,
    /// Datagrams a second.
    PacketsPerSecond,
    /// Requests that were answered, a second.
    TransactionsPerSecond,
    /// A number of which the text does not say what it is.
    #[default]
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

    /// What it measures; `None` of a number of which the text says nothing.
    pub fn measure(self) -> Option<Measure> {
        (self != Quantity::Number).then_some(Measure::Rate)
    }
}

/// One run of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
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
            ..ToolRun::default()
        }
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
