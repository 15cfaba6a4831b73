//! `nicpoll watch`: interfaces, CPUs, interrupts, polls and drops as they go.
//!
//! What must hold: the screen, the text and the JSON lines are made of the same samples.

mod args;
mod cost;
mod draw;
mod read;
mod sample;
mod screen;

use std::env;
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nicpoll_model::{WATCH_SCHEMA, WatchCost, WatchEnd, WatchSample, WatchStart};
use nicpoll_report::{render_event, render_watch_start, render_watch_text};

pub use self::args::{ABOUT, WatchArgs};
use self::read::Reader;
use self::sample::History;
use crate::failure::Failure;
use crate::namespace;
use crate::output::print_while_read;
use crate::stop::Stop;

/// How often it is looked whether a signal came.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The kernel times the BPF programs in the first part of an interval, one interval in so many: timing
/// costs, too.
const TIMED_EVERY: u64 = 10;
/// How long it times them at the most.
const TIMED: Duration = Duration::from_millis(100);

/// Runs the command and returns its exit code.
pub fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let run = || run(args, &stop);
    match &args.netns {
        None => run()?,
        Some(name) => namespace::inside(name, run)?,
    }
    Ok(stop.signal().map_or(0, |signal| 128 + signal as u8))
}

fn run(args: &WatchArgs, stop: &Stop) -> Result<(), Failure> {
    let mut watch = Watch::begin(args)?;
    let is_screen = !args.plain && !args.json_stream && io::stdout().is_terminal();
    if is_screen {
        screen::run(args, &mut watch, stop)
    } else {
        lines(args, &mut watch, stop)
    }
}

/// Prints each interval as text or JSON.
fn lines(args: &WatchArgs, watch: &mut Watch, stop: &Stop) -> Result<(), Failure> {
    let print =
        |text: &str, json: String| print_while_read(if args.json_stream { &json } else { text });
    let start = watch.start.clone();
    let mut is_read = print(&render_watch_start(&start), render_event("start", &start))?;
    while is_read && watch.is_wanted(args) {
        let Some(sample) = watch.interval(|until| wait(until, stop))? else {
            break;
        };
        let text = render_watch_text(&sample, args.scale, start.storm_threshold);
        is_read = print(&text, render_event("interval", &sample))?;
    }
    if is_read && args.json_stream {
        print_while_read(&render_event("end", &watch.end()))?;
    }
    Ok(())
}

/// Waits, and returns whether it was to the end.
fn wait(until: Instant, stop: &Stop) -> bool {
    loop {
        if stop.asked().load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

/// A watch that goes on.
struct Watch {
    start: WatchStart,
    reader: Reader,
    history: History,
    interval: Duration,
    /// When the interval ends that goes on.
    due: Instant,
    intervals: u64,
    elapsed_seconds: f64,
    bpf_cpu_ratio: Option<f64>,
    process_cpu_seconds: f64,
}

impl Watch {
    fn begin(args: &WatchArgs) -> Result<Self, Failure> {
        let started_at = crate::demo::now();
        let mut reader = Reader::new(&args.interfaces, args.storm_threshold)?;
        let history = History::new(reader.read()?);
        Ok(Watch {
            start: WatchStart {
                schema: String::from(WATCH_SCHEMA),
                nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
                argv: env::args().collect(),
                started_at,
                netns: args.netns.clone(),
                interval_seconds: args.interval.as_secs_f64(),
                storm_threshold: args.storm_threshold,
                unseen: reader.unseen().to_vec(),
            },
            reader,
            history,
            interval: args.interval,
            due: Instant::now() + args.interval,
            intervals: 0,
            elapsed_seconds: 0.0,
            bpf_cpu_ratio: None,
            process_cpu_seconds: 0.0,
        })
    }

    fn is_wanted(&self, args: &WatchArgs) -> bool {
        args.count.is_none_or(|count| self.intervals < count)
    }

    /// Waits for the end of an interval and returns what happened in it; `None` when `wait` says that the
    /// watch is over. It is called with the time until which to wait.
    fn interval(
        &mut self,
        mut wait: impl FnMut(Instant) -> bool,
    ) -> Result<Option<WatchSample>, Failure> {
        if self.intervals.is_multiple_of(TIMED_EVERY) {
            self.time_programs();
        }
        if !wait(self.due) {
            return Ok(None);
        }
        // Intervals that were slept through, as on a laptop, are not caught up with.
        self.due = (self.due + self.interval).max(Instant::now());
        let sample = self.history.sample(self.reader.read()?, self.bpf_cpu_ratio);
        self.intervals += 1;
        self.elapsed_seconds = sample.elapsed_seconds;
        self.process_cpu_seconds += sample.cost.process_cpu_ratio * sample.seconds;
        Ok(Some(sample))
    }

    /// Has the kernel time the programs for a moment.
    fn time_programs(&mut self) {
        let time = TIMED.min(self.interval / 10);
        // What cannot be timed now leaves what was found last.
        if let Ok(ratio @ Some(_)) = self.reader.bpf_cpu_ratio(time) {
            self.bpf_cpu_ratio = ratio;
        }
    }

    fn end(&self) -> WatchEnd {
        WatchEnd {
            elapsed_seconds: self.elapsed_seconds,
            intervals: self.intervals,
            cost: (self.intervals > 0).then(|| WatchCost {
                process_cpu_ratio: self.process_cpu_seconds / self.elapsed_seconds,
                bpf_cpu_ratio: self.bpf_cpu_ratio,
            }),
        }
    }
}
