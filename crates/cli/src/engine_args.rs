//! What the commands that run an engine are told alike: how it learns of packets, where it runs, and what the kernel does
//! meanwhile.

use anyhow::Context;
use clap::Args;
use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    Drive, EngineSettings, KernelSide, Named, RunnerSettings, parse_knob_setting,
};
use nicpoll_study::{EngineSupport, HZ_DEFAULT};
use nicpoll_sys::affinity;

/// How an engine runs.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// How to learn of packets: polling, interrupt, busy-poll or adaptive [default: polling]
    #[arg(long, value_name = "NAME", value_parser = Drive::by_name)]
    discipline: Option<Drive>,
    /// Ticks a second [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000))]
    hz: Option<u32>,
    /// How the burst follows the load: freebsd (a packet more or less each tick) or share (by the clock) [default:
    /// freebsd]
    #[arg(long, value_name = "NAME", value_parser = parse_controller)]
    controller: Option<Controller>,
    /// Write a knob of kern.polling before it begins, such as burst_max=1000; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_knob_setting)]
    set: Vec<(Knob, u32)>,
    /// Throttle an interrupt after N passes back to back (hw.intr_storm_threshold); 0: never [default: 0]
    #[arg(long, value_name = "N")]
    storm_threshold: Option<u32>,
    /// CPUs of the engine's threads, such as 0,1; queues go round them [default: the last one that is allowed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpu: Vec<u32>,
    /// What to ask of the kernel's side while it runs: as-is, threaded (kernel threads receive) or polling (a timer
    /// begins the kernel's rounds)
    #[arg(long, value_name = "NAME", default_value = "as-is", value_parser = KernelSide::by_name)]
    pub kernel_side: KernelSide,
    /// CPUs of the kernel's threads with '--kernel-side threaded' [default: those that the engine leaves free]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel_cpu: Vec<u32>,
}

fn parse_controller(text: &str) -> Result<Controller, String> {
    Controller::from_name(text).ok_or_else(|| String::from("freebsd or share was expected"))
}

impl EngineArgs {
    /// The settings that these options mean.
    pub fn settings(&self) -> anyhow::Result<EngineSettings> {
        let cpus = match &self.cpu[..] {
            [] => vec![affinity::last_allowed_cpu().context("reading which CPUs are allowed")?],
            cpus => cpus.to_vec(),
        };
        Ok(EngineSettings {
            cpus,
            runner: RunnerSettings {
                drive: self.drive(),
                hz: self.hz.unwrap_or(HZ_DEFAULT),
                controller: self.controller.unwrap_or_default(),
                storm_threshold: self.storm_threshold.unwrap_or(0),
            },
            knobs: self.set.clone(),
        })
    }

    /// What an engine at these interfaces gets.
    pub fn support(&self, interfaces: &[&str]) -> EngineSupport {
        EngineSupport::of(interfaces, self.drive(), self.kernel_side)
    }

    /// Which of them were given that only an engine has: without one the kernel's side is there all the same.
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
            // Others are told in words.
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
}
