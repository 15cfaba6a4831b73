//! One run of any tool.

use nicpoll_model::{FileError, Measure, RoundTripQuantiles};

/// The quantity that a run measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasuredQuantity {
    /// Payload in bit/s.
    BitsPerSecond,
    /// Datagrams per second.
    PacketsPerSecond,
    /// Answered requests per second.
    TransactionsPerSecond,
    /// A number that the text does not explain.
    #[default]
    Number,
}

impl MeasuredQuantity {
    /// All quantities.
    pub const ALL: [MeasuredQuantity; 4] = [
        MeasuredQuantity::BitsPerSecond,
        MeasuredQuantity::PacketsPerSecond,
        MeasuredQuantity::TransactionsPerSecond,
        MeasuredQuantity::Number,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MeasuredQuantity::BitsPerSecond => "bits_per_second",
            MeasuredQuantity::PacketsPerSecond => "packets_per_second",
            MeasuredQuantity::TransactionsPerSecond => "transactions_per_second",
            MeasuredQuantity::Number => "number",
        }
    }

    /// What it measures; `None` for an unexplained number.
    pub fn measure(self) -> Option<Measure> {
        (self != MeasuredQuantity::Number).then_some(Measure::Rate)
    }
}

/// One run of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRun {
    /// The line of the text where it begins, from 1.
    pub line: usize,
    /// The quantity of `value` and `series`.
    pub quantity: MeasuredQuantity,
    /// The figure of the whole run; `None` when the text does not state it.
    pub value: Option<f64>,
    /// The figures of its intervals, without a final partial one.
    pub series: Vec<f64>,
    /// Whether only the sender counted; less may have arrived.
    pub is_sent: bool,
    /// Share of datagrams lost, 0 to 1.
    pub loss_ratio: Option<f64>,
    /// Interarrival jitter.
    pub jitter_seconds: Option<f64>,
    /// Round trips, as far as the text states them.
    pub round_trip: RoundTripQuantiles,
}

impl ToolRun {
    pub(crate) fn new(line: usize, quantity: MeasuredQuantity) -> Self {
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

/// Parses a figure; `None` if it is negative or not finite.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}
