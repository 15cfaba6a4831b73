//! The output of a program, line by line with its time.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nicpoll_model::engine::{SinkDocument, SinkInterval};
use nicpoll_model::traffic::Latency;
use serde::Deserialize;

/// The longest interval: a line within this time of the window's start may cover time before it.
const INTERVAL_MAX: Duration = Duration::from_millis(110);

/// Everything that a program printed.
pub struct Said(Vec<(Instant, String)>);

/// Reads a program's output until it ends.
pub struct Listener {
    /// Output until it was ready, and whether it is.
    first: Vec<(Instant, String)>,
    is_ready: bool,
    rest: JoinHandle<Vec<(Instant, String)>>,
}

impl Listener {
    /// Starts reading, and waits for the `ready` words, if any.
    pub fn start(output: ChildStdout, ready: Option<&str>) -> Result<Self> {
        let mut output = BufReader::new(output);
        let (mut first, mut is_ready) = (Vec::new(), false);
        while let (Some(words), false) = (ready, is_ready) {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                break;
            }
            is_ready = line.contains(words);
            first.push((Instant::now(), line));
        }
        let rest = thread::spawn(move || {
            let lines = output.lines().map_while(std::io::Result::ok);
            lines.map(|line| (Instant::now(), line)).collect()
        });
        Ok(Listener {
            first,
            is_ready,
            rest,
        })
    }

    /// Returns whether the words came.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns the whole output, once the program has ended.
    pub fn end(self) -> Result<Said> {
        let rest = self.rest.join();
        let rest = rest.map_err(|_| anyhow!("the listening thread panicked"))?;
        Ok(Said(self.first.into_iter().chain(rest).collect()))
    }
}

impl Said {
    /// Returns the output as one text.
    pub fn text(&self) -> String {
        let lines = self.0.iter().map(|(_, line)| line.trim_end());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the number after the last occurrence of these words.
    pub fn last_number(&self, words: &str) -> Option<f64> {
        let text = self.text();
        let (_, rest) = text.rsplit_once(words)?;
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    }

    /// Returns packets a second of the intervals within a window.
    pub fn received_per_second(&self, (begin, end): (Instant, Instant)) -> Option<f64> {
        #[derive(Deserialize)]
        struct Event {
            event: String,
            data: serde_json::Value,
        }
        let within = self.0.iter();
        let within = within.filter(|(at, _)| *at >= begin + INTERVAL_MAX && *at <= end);
        let intervals = within.filter_map(|(_, line)| {
            let event: Event = serde_json::from_str(line).ok()?;
            let is_interval = event.event == "interval";
            is_interval.then(|| serde_json::from_value::<SinkInterval>(event.data).ok())?
        });
        let (packets, seconds) = intervals.fold((0, 0.0), |(packets, seconds), one| {
            (
                packets + one.counts.received_packets,
                seconds + (one.end_seconds - one.start_seconds),
            )
        });
        (seconds > 0.0).then(|| packets as f64 / seconds)
    }

    /// Returns the delays, from a sink's document or the helper's line.
    pub fn delay(&self) -> Option<Latency> {
        let text = self.text();
        let of_sink = serde_json::from_str::<SinkDocument>(&text).ok();
        let (_, line) = self.0.last()?;
        match of_sink {
            Some(document) => document.end.check?.latency,
            None => serde_json::from_str(line).ok(),
        }
    }
}
