//! Prints the runs of a client one after another (`--repeat`), then their summary. Each run is printed as a
//! single one would be; their JSON together is limited to the size of one run.

use std::fs::File;
use std::io::{self, Write};

use nicpoll_model::RateUnit;
use nicpoll_model::traffic::{IPERF_RUNS_SCHEMA, IperfEndOf, IperfEvent, IperfRuns};
use nicpoll_sys::stdio::StandardOutput;
use nicpoll_traffic::CloseAccount;
use nicpoll_traffic::repeat::RepeatedRuns;

use super::json::JsonPrinter;
use super::lines::{self, CsvRow};
use super::text::TextPrinter;
use crate::events::{Output, Room, RunObject};
use crate::options::{Json, Options};
use crate::records::{Connected, IntervalRecord};

fn open_output(options: &Options, is_new: bool) -> io::Result<Box<dyn Write + Send>> {
    let Some(path) = &options.output else {
        return Ok(Box::new(StandardOutput));
    };
    if is_new {
        File::create(path)?;
    }
    // A daemon's errors go to the same file; appending keeps both.
    Ok(Box::new(File::options().append(true).open(path)?))
}

/// Opens the output that a server's options ask for.
///
/// # Errors
/// When the output file cannot be created.
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

/// The total of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotal {
    /// Over all streams: what the server reports as received, otherwise what was sent.
    pub bytes: u64,
    /// Duration of the longest stream.
    pub seconds: f64,
    /// The first of the client's own streams.
    pub connected: Option<Connected>,
}

/// The output of a client's runs.
pub struct Runs<'a> {
    options: &'a Options,
    /// The runs that will form one document.
    kept: Vec<RunObject>,
    rates: Vec<Option<f64>>,
    total: RunTotal,
    is_first: bool,
}

impl<'a> Runs<'a> {
    /// The output of a client with these options.
    pub fn new(options: &'a Options) -> Self {
        Runs {
            options,
            kept: Vec::new(),
            rates: Vec::new(),
            total: RunTotal::default(),
            is_first: true,
        }
    }

    /// Opens the output of the next run, which closes `account` at its end.
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
                Box::new(printer.collected(room))
            }
            _ => printer(out, options, account),
        })
    }

    /// Adds the total of a run; `None` when the run does not count.
    pub fn add(&mut self, run: Option<RunTotal>, kept: Option<RunObject>) {
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

    /// Prints the summary of several runs after the last one.
    ///
    /// # Errors
    /// When writing fails.
    pub fn end(self) -> io::Result<()> {
        let Some(asked) = self.options.repeat else {
            return Ok(());
        };
        let options = self.options;
        let mut out = open_output(options, false)?;
        let outcome = RepeatedRuns::of(asked, self.rates);
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
                    let row = lines::csv(&now, options, CsvRow::Runs, &connected, &record);
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
