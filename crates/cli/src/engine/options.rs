//! Options that all engine commands share (discipline, CPUs, the kernel's side, duration), and the loop that prints
//! the intervals.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    Drive, EngineApplication, EngineSettings, GonePolicy, Helpers, KernelSide, Named,
    RunnerSettings, parse_knob_setting,
};
use nicpoll_lab::{EngineSupport, HZ_DEFAULT};
use nicpoll_model::engine::LinkEvent;
use nicpoll_report::{PageForm, PageTexts, RunPage};
use nicpoll_sys::{schedule, tell};
use nicpoll_traffic::signals::Stop;
use serde::Serialize;

use crate::failure::{EXIT_GONE, Failure, over};
use crate::options::{number, parse_interval, time_within};
use crate::output::print;

/// How an engine runs.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// How to learn of packets: polling, interrupt, busy-poll or adaptive [default: polling]
    #[arg(long, value_name = "NAME", value_parser = Drive::by_name)]
    discipline: Option<Drive>,
    /// Ticks a second [default: 1000]
    #[arg(long, value_name = "N", value_parser = number::<u32>(100..=10_000))]
    hz: Option<u32>,
    /// How the burst follows the load: freebsd (a packet more or less each tick) or share (by the clock) [default:
    /// freebsd]
    #[arg(long, value_name = "NAME", value_parser = parse_controller)]
    controller: Option<Controller>,
    /// Set a knob of kern.polling at the start, such as burst_max=1000; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_knob_setting)]
    set: Vec<(Knob, u32)>,
    /// Throttle an interrupt after N passes back to back (hw.intr_storm_threshold), not with polling; 0: never
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = number::<u32>(..))]
    storm_threshold: Option<u32>,
    /// CPUs of the engine's threads, such as 0,1; queues are dealt out to them [default: the last allowed one]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number::<u32>(..))]
    cpu: Vec<u32>,
    /// How the kernel receives meanwhile: as-is, threaded (in kernel threads) or polling (a timer begins its rounds)
    #[arg(long, value_name = "NAME", default_value = "as-is", value_parser = KernelSide::by_name)]
    pub kernel_side: KernelSide,
    /// CPUs of the kernel's threads with '--kernel-side threaded' [default: those that the engine leaves free]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number::<u32>(..))]
    pub kernel_cpu: Vec<u32>,
}

fn parse_controller(text: &str) -> Result<Controller, String> {
    Controller::from_name(text).ok_or_else(|| String::from("freebsd or share was expected"))
}

impl EngineArgs {
    /// Returns the engine's settings.
    ///
    /// # Errors
    /// If there is a storm threshold without interrupts, or a CPU that this program may not use.
    pub fn settings(&self) -> Result<EngineSettings, Failure> {
        let cpus = cpus_allowed("--cpu", &self.cpu)?;
        cpus_allowed("--kernel-cpu", &self.kernel_cpu)?;
        let storm_threshold = self.storm_threshold.unwrap_or(0);
        let has_interrupts = matches!(self.drive(), Drive::Interrupt | Drive::Adaptive);
        if storm_threshold > 0 && !has_interrupts {
            return Err(Failure::Usage(String::from(
                "--storm-threshold counts interrupts, and there are none with polling; add --discipline interrupt or \
                 adaptive, or leave it out",
            )));
        }
        let cpus = match &cpus[..] {
            [] => vec![schedule::last_allowed_cpu().context("reading which CPUs are allowed")?],
            cpus => cpus.to_vec(),
        };
        Ok(EngineSettings {
            cpus,
            runner: RunnerSettings {
                drive: self.drive(),
                hz: self.hz.unwrap_or(HZ_DEFAULT),
                controller: self.controller.unwrap_or_default(),
                storm_threshold,
            },
            knobs: self.set.clone(),
        })
    }

    /// Returns what an engine at these interfaces is given besides its settings.
    pub fn support(&self, interfaces: &[&str]) -> EngineSupport {
        EngineSupport::of(interfaces, self.drive(), self.kernel_side)
    }

    /// Returns the given options that only an engine has; `--kernel-side` works without one.
    pub fn given(&self) -> Vec<&'static str> {
        let options = [
            ("--discipline", self.discipline.is_some()),
            ("--hz", self.hz.is_some()),
            ("--controller", self.controller.is_some()),
            ("--set", !self.set.is_empty()),
            ("--storm-threshold", self.storm_threshold.is_some()),
            ("--cpu", !self.cpu.is_empty()),
        ];
        let given = options.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(option, _)| option).collect()
    }

    fn drive(&self) -> Drive {
        self.discipline.unwrap_or_default()
    }
}

/// How often the loop checks for the end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Duration and output of a run.
#[derive(Args, Clone, Debug)]
pub struct RunningArgs {
    /// End after this time, in seconds or with a unit [default: at a signal]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Length of an interval, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// If an interface is removed, leaves the network namespace or changes (MTU, queues) and cannot be used: wait for one of
    /// its name, or exit
    #[arg(long, value_name = "NAME", default_value = "wait", value_parser = ["wait", "exit"])]
    gone: String,
    /// Wait for the interface of the same index only, and not for another one of its name
    #[arg(long)]
    ifindex_only: bool,
    /// Print one JSON object at the end (docs/schema.md)
    #[arg(long)]
    json: bool,
    /// Print one JSON object per line: start, each interval, link when an interface goes, is back or changes, end
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

impl RunningArgs {
    /// Runs an application until its time is over, a signal comes or it is done, and prints its intervals and events.
    /// Returns its final account and the exit code.
    pub fn run<A: EngineApplication>(
        &self,
        mut application: A,
        texts: PageTexts<A::Start, A::Interval, A::End>,
        stop: &Stop,
        helpers: &dyn Helpers,
    ) -> Result<(A::End, u8), Failure>
    where
        A::Start: Clone + Serialize,
        A::Interval: Clone + Serialize,
        A::End: Clone + Serialize,
    {
        let mut page = RunPage::new(PageForm::of(self.json, self.json_stream), texts);
        print(&page.start(application.facts()))?;
        let outcome = self.each_interval(&mut application, stop, helpers, &mut page);
        // Also after a failure: `end` restores the interfaces.
        let end = application.end(stop.signal())?;
        let is_gone = outcome?;
        print(&page.end(&end))?;
        print(&page.document())?;
        let code = if is_gone { EXIT_GONE } else { over(stop) };
        Ok((end, code))
    }

    /// Returns true if the run ended because an interface is gone.
    fn each_interval<A: EngineApplication>(
        &self,
        application: &mut A,
        stop: &Stop,
        helpers: &dyn Helpers,
        page: &mut RunPage<A::Start, A::Interval, A::End>,
    ) -> Result<bool, Failure>
    where
        A::Start: Clone + Serialize,
        A::Interval: Clone + Serialize,
        A::End: Clone + Serialize,
    {
        let began = Instant::now();
        let end = self.duration.map(|duration| began + duration);
        let (mut due, mut is_gone) = (began, false);
        loop {
            due += self.interval;
            let until = end.map_or(due, |end| end.min(due));
            let goes_on = loop {
                let look = until.min(Instant::now() + LOOK_EVERY);
                let is_over = !stop.wait_until(look) || application.is_over();
                for event in application.attend(helpers)? {
                    is_gone |= self.gone == "exit" && ["gone", "refused"].contains(&&*event.what);
                    tell!("{}", self.line_of(&event));
                    print(&page.link(&event))?;
                }
                if is_over || look == until {
                    break !is_over;
                }
            };
            print(&page.interval(&application.interval()?))?;
            if !goes_on || end.is_some_and(|end| end <= until) {
                return Ok(is_gone);
            }
            due = last_due(due, Instant::now(), self.interval);
        }
    }

    /// Returns the line for an interface that is gone, back or has changed.
    fn line_of(&self, event: &LinkEvent) -> String {
        let (seconds, name) = (event.seconds, &event.interface);
        let why = event.why.as_deref().unwrap_or("");
        let what = match &*event.what {
            "gone" if self.gone == "exit" => format!("{name} is gone; the end"),
            "gone" if self.ifindex_only => format!("{name} is gone; waiting until it is back"),
            "gone" => format!("{name} is gone; waiting for an interface of that name"),
            "attached" => format!("{name} is back, and in use again"),
            "changed" => format!("{name} has changed: {why}"),
            _ => format!("{name} is there, but cannot be used yet: {why}"),
        };
        format!("{seconds:.2} s: {what}")
    }

    /// Returns what to do when an interface is gone.
    pub fn policy(&self) -> GonePolicy {
        GonePolicy {
            exits: self.gone == "exit",
            by_index_only: self.ifindex_only,
        }
    }
}

/// Returns the last time at which an interval was due. Intervals missed by a stopped machine or a slow reader are
/// part of the one just printed.
fn last_due(due: Instant, now: Instant, interval: Duration) -> Instant {
    let missed = now.saturating_duration_since(due).as_nanos() / interval.as_nanos();
    due + interval * u32::try_from(missed).unwrap_or(u32::MAX)
}

/// Refuses 0: such a run would switch settings for nothing.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_nanos(1)..=Duration::MAX;
    time_within(text, bounds, "a time above 0 was expected")
}

/// Returns the CPUs that an option names; refuses those on which this program may not run.
pub fn cpus_allowed(option: &str, cpus: &[u32]) -> Result<Vec<u32>, Failure> {
    let allowed = schedule::allowed_cpus().context("reading which CPUs are allowed")?;
    let Some(other) = cpus.iter().find(|cpu| !allowed.contains(cpu)) else {
        return Ok(cpus.to_vec());
    };
    let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
    Err(Failure::Usage(format!(
        "{option} {other}: there is no such CPU, or this program may not run on it; these are: {}",
        allowed.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Parser};

    use super::*;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Only {
        #[command(flatten)]
        engine: EngineArgs,
    }

    fn parsed(words: &[&str]) -> EngineArgs {
        Only::parse_from(words).engine
    }

    fn options() -> Vec<Arg> {
        let command = EngineArgs::augment_args(clap::Command::new(""));
        command.get_arguments().cloned().collect()
    }

    #[test]
    fn whatever_is_not_the_kernels_is_named_as_the_engines() {
        assert!(
            parsed(&["--kernel-side", "threaded", "--kernel-cpu", "0"])
                .given()
                .is_empty()
        );
        let given = [
            ["--discipline", "interrupt"],
            ["--hz", "2000"],
            ["--controller", "share"],
            ["--set", "burst_max=1000"],
            ["--storm-threshold", "0"],
            ["--cpu", "0"],
        ];
        assert_eq!(
            parsed(&given.concat()).given(),
            given.map(|[option, _]| option)
        );
        assert_eq!(options().len(), given.len() + 2);
    }

    #[test]
    fn what_help_calls_the_default_is_what_there_is_without_the_option() {
        let mut defaults = 0;
        for option in options() {
            let help = option
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let named = help
                .split_once("[default: ")
                .map(|(_, named)| named.trim_end_matches(']'));
            // Defaults in words are not values.
            let Some(value) = named.filter(|named| !named.contains(' ')) else {
                continue;
            };
            let name = format!("--{}", option.get_long().unwrap());
            let given = parsed(&[&name, value]);
            assert!(!given.given().is_empty(), "{name}");
            assert_eq!(
                given.settings().unwrap(),
                parsed(&[]).settings().unwrap(),
                "{name}"
            );
            defaults += 1;
        }
        assert_eq!(defaults, 4);
    }

    #[test]
    fn a_threshold_of_interrupts_is_for_interrupts() {
        let refused = |words: &[&str]| parsed(words).settings().err().map(|it| it.code());
        assert_eq!(refused(&["--storm-threshold", "1000"]), Some(2));
        assert_eq!(refused(&["--storm-threshold", "0"]), None);
        let interrupts = ["--storm-threshold", "1000", "--discipline", "interrupt"];
        assert_eq!(refused(&interrupts), None);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_told_with_those_that_are() {
        for option in ["--cpu", "--kernel-cpu"] {
            let refused = parsed(&[option, "1023"]).settings().unwrap_err();
            assert_eq!(refused.code(), 2);
            let last = schedule::last_allowed_cpu().unwrap();
            let told = refused.to_string();
            assert!(
                told.contains(option) && told.ends_with(&last.to_string()),
                "{told}"
            );
        }
    }

    #[test]
    fn no_time_is_no_run() {
        assert!(parse_duration("0").is_err());
        assert!(parse_duration("0ms").is_err());
        assert_eq!(parse_duration("1"), Ok(Duration::from_secs(1)));
    }

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
