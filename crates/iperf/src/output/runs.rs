//! The runs of a client, printed one after another (`--repeat`), and what they came to below them. Each run
//! is printed as it would be by itself; the runs' JSON shares the room that one run has.

use std::fs::File;
use std::io::{self, Write};

use nicpoll_model::RateUnit;
use nicpoll_model::traffic::{IPERF_RUNS_SCHEMA, IperfEndOf, IperfEvent, IperfRuns};
use nicpoll_sys::stdio::StandardOutput;
use nicpoll_traffic::CloseAccount;
use nicpoll_traffic::repeat::Outcome;

use super::json::JsonPrinter;
use super::lines::{self, Row};
use super::text::TextPrinter;
use crate::events::{Kept, Output, Room};
use crate::options::{Json, Options};
use crate::records::{Connected, IntervalRecord};

fn open_output(options: &Options, is_new: bool) -> io::Result<Box<dyn Write + Send>> {
    let Some(path) = &options.output else {
        return Ok(Box::new(StandardOutput));
    };
    if is_new {
        File::create(path)?;
    }
    // A daemon's errors go to the same file, and neither may write over the other.
    Ok(Box::new(File::options().append(true).open(path)?))
}

/// The output that a server's command line asks for, to where it asks for it.
///
/// # Errors
/// When the output file cannot be made.
pub fn open<'a>(
    options: &'a Options,
    account: Option<CloseAccount>,
) -> io::Result<Box<dyn Output + 'a>> {
    let out = open_output(options, true)?;
    Ok(printer(out, options, account))
}

pub fn printer<'a>(
    out: Box<dyn Write + Send>,
    options: &'a Options,
    account: Option<CloseAccount>,
) -> Box<dyn Output + 'a> {
    match options.json {
        Some(form) => Box::new(JsonPrinter::new(form, options, account, out)),
        None => Box::new(TextPrinter::new(options, account, out)),
    }
}

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
    options: &'a Options,
    /// The documents of runs that are to be one.
    kept: Vec<Kept>,
    rates: Vec<Option<f64>>,
    total: RunTotal,
    is_first: bool,
}

impl<'a> Runs<'a> {
    /// Where a client with these options tells its runs.
    pub fn new(options: &'a Options) -> Self {
        Runs {
            options,
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
    pub fn open(&mut self, account: Option<CloseAccount>) -> io::Result<Box<dyn Output + 'a>> {
        let options = self.options;
        let out = open_output(options, self.is_first)?;
        self.is_first = false;
        Ok(match (options.json, options.repeat) {
            (Some(form), Some(_)) => {
                let room = self
                    .kept
                    .last()
                    .map_or_else(Room::default, |kept| kept.room);
                let printer = JsonPrinter::new(form, options, account, out);
                Box::new(printer.kept(room))
            }
            _ => printer(out, options, account),
        })
    }

    /// Takes what a run came to; `None` when that does not count.
    pub fn add(&mut self, run: Option<RunTotal>, kept: Option<Kept>) {
        self.kept.extend(kept);
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
        let options = self.options;
        let mut out = open_output(options, false)?;
        let outcome = Outcome::of(asked, self.rates);
        match options.json {
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
            None if options.csv => {
                if let (Some(connected), Some(rest)) =
                    (self.total.connected, lines::csv_of_runs(&outcome))
                {
                    let record = IntervalRecord {
                        bytes: self.total.bytes,
                        end: self.total.seconds,
                        ..IntervalRecord::default()
                    };
                    let now = jiff::Zoned::now().datetime();
                    let row = lines::csv(&now, options, Row::Runs, &connected, &record);
                    writeln!(out, "{row},{rest}")?;
                }
            }
            None => {
                let line = outcome.line(|rate| {
                    let rate = lines::amount(lines::format_of(options), rate / 8.0);
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
