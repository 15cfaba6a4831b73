//! What the commands that run an engine are told alike: how it learns of packets, where it runs, and what the kernel does
//! meanwhile.

use anyhow::Context;
use clap::Args;
use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{Drive, EngineSettings, KernelSide, RunnerSettings, parse_knob_setting};
use nicpoll_study::EngineSupport;
use nicpoll_sys::affinity;

/// How an engine runs.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// How to learn of packets: polling, interrupt, busy-poll or adaptive
    #[arg(long, value_name = "NAME", default_value = "polling")]
    discipline: Drive,
    /// Ticks a second
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    hz: u32,
    /// How the burst follows the load: freebsd (a packet more or less each tick) or share (by the clock)
    #[arg(long, value_name = "NAME", default_value = "freebsd", value_parser = parse_controller)]
    controller: Controller,
    /// Write a knob of kern.polling before it begins, such as burst_max=1000; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_knob_setting)]
    set: Vec<(Knob, u32)>,
    /// Throttle an interrupt after N passes back to back (hw.intr_storm_threshold); 0: never
    #[arg(long, value_name = "N", default_value_t = 0)]
    storm_threshold: u32,
    /// CPUs of the engine's threads, such as 0,1; queues go round them [default: the last one that is allowed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpu: Vec<u32>,
    /// What to ask of the kernel's side while it runs: as-is, threaded (kernel threads receive) or polling (a timer
    /// begins the kernel's rounds)
    #[arg(long, value_name = "NAME", default_value = "as-is")]
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
                drive: self.discipline,
                hz: self.hz,
                controller: self.controller,
                storm_threshold: self.storm_threshold,
            },
            knobs: self.set.clone(),
        })
    }

    /// What an engine at these interfaces gets.
    pub fn support(&self, interfaces: &[&str]) -> EngineSupport {
        EngineSupport::of(interfaces, self.discipline, self.kernel_side)
    }
}
