//! `nicpoll sysctl`: reads and writes the knobs of a running engine, with sysctl(8)'s output.

use anyhow::Context;
use clap::Args;
use nicpoll_core::Knob;
use nicpoll_engine::{KnobAnswer, RunningEngine};
use nicpoll_report::help::sysctl::{ABOUT, EXAMPLES};
use nicpoll_sys::tell;

use crate::failure::{EXIT_FAILED, Failure};
use crate::output::print;

/// Options of `nicpoll sysctl`.
#[derive(Args, Clone, Debug)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct SysctlArgs {
    /// Names to read, or NAME=VALUE to write; with or without 'kern.polling.' before them [default: all]
    #[arg(value_name = "NAME[=VALUE]")]
    knobs: Vec<String>,
    /// Print values without their names
    #[arg(short = 'n')]
    values_only: bool,
    /// Print all of them
    #[arg(short = 'a', conflicts_with = "knobs")]
    all: bool,
    /// The engine, by its process or its interface, where several run
    #[arg(long, value_name = "PID|IF")]
    engine: Option<String>,
}

/// Runs the command and returns its exit code.
pub fn run(args: &SysctlArgs) -> Result<u8, Failure> {
    let engine = engine(args)?;
    let is_tree = |name: &String| name.trim_end_matches('.') == "kern.polling";
    let requests: Vec<String> = if args.knobs.is_empty() || args.knobs.iter().any(is_tree) {
        let names = Knob::ALL.iter().map(|knob| knob.name());
        names.map(String::from).collect()
    } else {
        args.knobs.clone()
    };
    let mut code = 0;
    for request in &requests {
        let doing = || format!("asking the engine of process {}", engine.pid);
        match engine.ask(request).with_context(doing)? {
            KnobAnswer::Value(value) if args.values_only => print(&format!("{value}\n"))?,
            KnobAnswer::Value(value) => {
                let name = request
                    .split_once('=')
                    .map_or(request.as_str(), |(name, _)| name);
                let name = name.strip_prefix("kern.polling.").unwrap_or(name);
                print(&format!("kern.polling.{name}: {value}\n"))?;
            }
            KnobAnswer::Refused(why) => {
                tell!("nicpoll sysctl: {why}");
                code = EXIT_FAILED;
            }
        }
    }
    Ok(code)
}

fn engine(args: &SysctlArgs) -> Result<RunningEngine, Failure> {
    let mut engines =
        RunningEngine::all().context("looking for running engines, which takes root")?;
    if let Some(wanted) = &args.engine {
        engines.retain(|engine| engine.interface == *wanted || engine.pid.to_string() == *wanted);
    }
    let running: Vec<String> = engines
        .iter()
        .map(|engine| format!("{} at {}", engine.pid, engine.interface))
        .collect();
    match engines.len() {
        0 => Err(Failure::Failed(anyhow::anyhow!(
            "no such engine runs; 'nicpoll sink IF' starts one, and 'nicpoll show IF kern.polling' shows what stands \
             for these knobs where the kernel polls"
        ))),
        1 => Ok(engines.remove(0)),
        _ => Err(Failure::Usage(format!(
            "several engines run: process {}; choose one with --engine",
            running.join(", ")
        ))),
    }
}
