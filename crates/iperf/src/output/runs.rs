//! The runs of a client, told one after another (`--repeat`), and what they came to below them.
//!
//! What must hold: each run is told as it would be by itself; the runs' JSON shares the room that one run has.

use std::io;
use std::io::Write as _;
use std::sync::mpsc::{self, Receiver, Sender};

use nicpoll_model::RateUnit;
use nicpoll_model::iperf::{IperfEndOf, IperfEvent};
use nicpoll_model::repeat::{IPERF_RUNS_SCHEMA, IperfRuns};
use nicpoll_traffic::CloseAccount;
use nicpoll_traffic::repeat::Outcome;

use super::json::{Asked, JsonPrinter, KEPT_BYTES_MAX, Kept};
use super::manner::Manner;
use super::{Output, local_time, to};
use crate::Connected;
use crate::command::open_output;
use crate::options::{ClientOptions, Json};
use crate::text::{self, CsvRow, Interval, StreamId};

/// What one run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotal {
    /// Of all streams, what arrived where the server told it.
    pub bytes: u64,
    /// The longest of them.
    pub seconds: f64,
    /// The first of the client's own streams.
    pub connected: Option<Connected>,
}

/// Where the runs of a client are told.
pub struct Runs<'a> {
    options: &'a ClientOptions,
    /// The documents of runs that are to be one.
    documents: (Sender<Kept>, Receiver<Kept>),
    kept: Vec<Kept>,
    rates: Vec<Option<f64>>,
    total: RunTotal,
    is_first: bool,
}

impl<'a> Runs<'a> {
    /// Where a client with these options tells its runs.
    pub fn new(options: &'a ClientOptions) -> Self {
        Runs {
            options,
            documents: mpsc::channel(),
            kept: Vec::new(),
            rates: Vec::new(),
            total: RunTotal::default(),
            is_first: true,
        }
    }

    /// Where the next run is told; with `account` at its end.
    ///
    /// # Errors
    /// When the output file cannot be opened.
    pub fn open(&mut self, account: Option<CloseAccount>) -> io::Result<Box<dyn Output>> {
        let (asked, common) = (Asked::Client(self.options), &self.options.common);
        let out = open_output(common, self.is_first)?;
        self.is_first = false;
        Ok(match (common.json, self.options.repeat) {
            (Some(form), Some(_)) => {
                let used: u64 = self.kept.iter().map(|kept| kept.bytes).sum();
                let room = KEPT_BYTES_MAX.saturating_sub(used);
                let printer = JsonPrinter::new(form, asked, account, out);
                Box::new(printer.kept_for(self.documents.0.clone(), room))
            }
            _ => to(out, asked, account),
        })
    }

    /// Takes what a run came to; `None` when that does not count.
    pub fn add(&mut self, run: Option<RunTotal>) {
        self.kept.extend(self.documents.1.try_iter());
        let run = run.filter(|run| run.seconds > 0.0);
        self.rates
            .push(run.map(|run| 8.0 * run.bytes as f64 / run.seconds));
        if let Some(run) = run {
            self.total.bytes += run.bytes;
            self.total.seconds += run.seconds;
            self.total.connected = self.total.connected.or(run.connected);
        }
    }

    /// Tells what several runs came to, below the last one's lines.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(self) -> io::Result<()> {
        let Some(asked) = self.options.repeat else {
            return Ok(());
        };
        let common = &self.options.common;
        let mut out = open_output(common, false)?;
        let outcome = Outcome::of(asked, self.rates);
        match common.json {
            Some(Json::Whole) => {
                let document = IperfRuns {
                    schema: String::from(IPERF_RUNS_SCHEMA),
                    runs: self.kept.into_iter().map(|kept| kept.run).collect(),
                    summary: outcome.summary_of(RateUnit::BitsPerSecond),
                };
                serde_json::to_writer_pretty(&mut out, &document)?;
                writeln!(out)?;
            }
            Some(Json::Stream) => {
                let summary = outcome.summary_of(RateUnit::BitsPerSecond);
                let event = IperfEvent::End(IperfEndOf::Runs(Box::new(summary)));
                serde_json::to_writer(&mut out, &event)?;
                writeln!(out)?;
            }
            None if common.csv => {
                if let Some(row) = csv(self.options, &self.total, &outcome) {
                    writeln!(out, "{row}")?;
                }
            }
            None => {
                let line = outcome.line(|rate| {
                    let rate = text::amount(common.style, rate / 8.0, common.format);
                    format!("{}s/sec", rate.trim_start())
                });
                if let Some(line) = line {
                    writeln!(out, "{line}")?;
                }
            }
        }
        out.flush()
    }
}

/// The row of all runs; none when no run has a rate.
fn csv(options: &ClientOptions, total: &RunTotal, outcome: &Outcome) -> Option<String> {
    let connected = total.connected?;
    let manner = Manner::of(Asked::Client(options));
    let row = CsvRow {
        time: local_time(),
        has_millis: manner.enhanced,
        reporter: connected.local,
        peer: connected.peer,
        is_sender: connected.is_sender,
        id: StreamId {
            number: 0,
            is_reversed: false,
        },
        interval: Interval {
            start_seconds: 0.0,
            end_seconds: total.seconds,
            bytes: total.bytes,
        },
        receipt: None,
    };
    text::csv_runs_row(manner.format.style, &row, outcome)
}
