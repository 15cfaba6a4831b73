//! What the commands do alike that run until a time or a signal: their options, and how they show intervals.

use std::time::{Duration, Instant};

use clap::Args;
use nicpoll_model::time::parse_seconds;
use nicpoll_report::render_event;
use serde::Serialize;

use crate::output::print;
use crate::stop::Stop;

/// How often it is looked whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long to run, and what to show meanwhile.
#[derive(Args, Clone, Debug)]
pub struct RunningArgs {
    /// End after this time, in seconds or with a unit [default: at a signal]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Length of an interval, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// Print one JSON object at the end (docs/schema.md)
    #[arg(long)]
    pub json: bool,
    /// Print one JSON object per line: start, each interval, end
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

impl RunningArgs {
    /// Shows a part of what happens: as a line of JSON, as text, or not at all where one document is to come at the end.
    pub fn show<T: Serialize>(
        &self,
        event: &'static str,
        part: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json_stream {
            print(&render_event(event, part))
        } else if self.json {
            Ok(())
        } else {
            print(&text(part))
        }
    }

    /// Calls `each` at the end of each interval, until the time is over or a signal comes.
    pub fn each_interval(
        &self,
        stop: &Stop,
        each: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.each_interval_until(stop, || false, each)
    }

    /// The same for what may be over by itself.
    pub fn each_interval_until(
        &self,
        stop: &Stop,
        is_over: impl Fn() -> bool,
        mut each: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        let end = self.duration.map(|duration| began + duration);
        let mut due = began;
        loop {
            due += self.interval;
            let until = end.map_or(due, |end| end.min(due));
            let goes_on = wait_until(until, stop, &is_over);
            each()?;
            if !goes_on || end.is_some_and(|end| end <= until) {
                return Ok(());
            }
        }
    }
}

/// Waits until a time. False when a signal came, or it is over, before.
fn wait_until(until: Instant, stop: &Stop, is_over: impl Fn() -> bool) -> bool {
    loop {
        let look = until.min(Instant::now() + LOOK_EVERY);
        if !stop.wait_until(look) || is_over() {
            return false;
        }
        if look == until {
            return true;
        }
    }
}

/// Shorter ones say nothing, and nobody waits for longer ones.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_seconds(text).map_err(|error| error.to_string())?;
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    if range.contains(&interval) {
        Ok(interval)
    } else {
        Err(String::from("0.1 s to an hour are possible"))
    }
}
