//! How the commands run that go on until a time or a signal: their options, and the loop that tells of intervals.

use std::time::{Duration, Instant};

use clap::Args;
use nicpoll_engine::EngineApplication;
use nicpoll_model::time::parse_seconds;
use nicpoll_report::{PageForm, PageTexts, RunPage};
use serde::Serialize;

use crate::failure::Failure;
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
    json: bool,
    /// Print one JSON object per line: start, each interval, end
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

impl RunningArgs {
    /// Runs an application until the time is over, a signal comes or it is done, and prints what it says of itself as it
    /// comes. Returns what it came to.
    pub fn run<A: EngineApplication>(
        &self,
        mut application: A,
        texts: PageTexts<A::Start, A::Interval, A::End>,
        stop: &Stop,
    ) -> Result<A::End, Failure>
    where
        A::Start: Clone + Serialize,
        A::Interval: Clone + Serialize,
        A::End: Clone + Serialize,
    {
        let mut page = RunPage::new(PageForm::of(self.json, self.json_stream), texts);
        print(&page.start(application.facts()))?;
        let outcome = self.each_interval(&mut application, stop, |interval| {
            print(&page.interval(&interval))
        });
        // Also after a failure: it leaves its interfaces in order.
        let end = application.end(stop.signal())?;
        outcome?;
        print(&page.end(&end))?;
        print(&page.document())?;
        Ok(end)
    }

    fn each_interval<A: EngineApplication>(
        &self,
        application: &mut A,
        stop: &Stop,
        mut tell: impl FnMut(A::Interval) -> anyhow::Result<()>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let end = self.duration.map(|duration| began + duration);
        let mut due = began;
        loop {
            due += self.interval;
            let until = end.map_or(due, |end| end.min(due));
            let goes_on = wait_until(until, stop, || application.is_over());
            tell(application.interval()?)?;
            if !goes_on || end.is_some_and(|end| end <= until) {
                return Ok(());
            }
            due = last_due(due, Instant::now(), self.interval);
        }
    }
}

/// The last time at which an interval was due. Where several were missed, since a machine stood still or a reader did
/// not read, the one just told of has all of them.
fn last_due(due: Instant, now: Instant, interval: Duration) -> Instant {
    let missed = now.saturating_duration_since(due).as_nanos() / interval.as_nanos();
    due + interval * u32::try_from(missed).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_one_interval() {
        let due = Instant::now();
        let interval = Duration::from_millis(100);
        for (late_ms, passed) in [(0, 0), (99, 0), (100, 1), (1_020, 10)] {
            let now = due + Duration::from_millis(late_ms);
            assert_eq!(
                last_due(due, now, interval),
                due + interval * passed,
                "{late_ms} ms"
            );
        }
    }
}
