//! `nicpoll forward`: a router's fast path between interfaces.

use anyhow::Context;
use clap::Args;
use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    Drive, EngineSettings, Forward, ForwardPath, ForwardSettings, RunnerSettings,
    parse_knob_setting,
};
use nicpoll_report::FORWARD_TEXTS;
use nicpoll_report::help::forward::{ABOUT, EXAMPLES};
use nicpoll_sys::affinity;

use crate::failure::{Failure, over};
use crate::output::origin;
use crate::running::RunningArgs;
use crate::stop::Stop;

/// Options of `nicpoll forward`.
#[derive(Args, Clone, Debug)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct ForwardArgs {
    /// The interfaces, two at least
    #[arg(value_name = "IF", num_args = 2.., required = true)]
    interfaces: Vec<String>,
    /// Who forwards: auto (the fastest that works here), xdp (the XDP program itself) or user (the polled engine)
    #[arg(long, value_name = "NAME", default_value = "auto")]
    path: ForwardPath,
    /// How the engine learns of packets: polling, interrupt, busy-poll or adaptive
    #[arg(long, value_name = "NAME", default_value = "polling")]
    discipline: Drive,
    /// Ticks a second of the engine
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    hz: u32,
    /// Write a knob of kern.polling before the engine begins, such as burst_max=1000; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_knob_setting)]
    set: Vec<(Knob, u32)>,
    /// CPU of the engine [default: the last one that is allowed]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    #[command(flatten)]
    running: RunningArgs,
}

/// Runs the command and returns its exit code.
pub fn run(args: &ForwardArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let settings = ForwardSettings {
        interfaces: args.interfaces.clone(),
        path: args.path,
        engine: EngineSettings {
            cpus: vec![match args.cpu {
                Some(cpu) => cpu,
                None => affinity::last_allowed_cpu().context("reading which CPUs are allowed")?,
            }],
            runner: RunnerSettings {
                drive: args.discipline,
                hz: args.hz,
                controller: Controller::default(),
                storm_threshold: 0,
            },
            knobs: args.set.clone(),
        },
    };
    let forward = Forward::start(&settings, origin())?;
    args.running.run(forward, FORWARD_TEXTS, &stop)?;
    Ok(over(&stop))
}
