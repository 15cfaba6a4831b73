//! `nicpoll sysctl`: reads and writes the knobs of a running engine, with sysctl(8)'s output, or shows their
//! equivalents where the kernel polls.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nicpoll_engine::{RunningEngine, parse_knob};
use nicpoll_inspect::{STORM_THRESHOLD, ShowOptions, asked_variables, inside};
use nicpoll_report::render_polling_values;
use nicpoll_sys::tell;

use crate::failure::{EXIT_FAILED, Failure};
use crate::output::{origin, print};

/// How long the kernel's polls are watched.
const LOOK: Duration = Duration::from_secs(1);

/// Options of `nicpoll sysctl`.
#[derive(Args, Clone, Debug)]
#[command(long_about = include_str!("../help/sysctl-about.txt"), after_help = include_str!("../help/sysctl-examples.txt"))]
pub struct SysctlArgs {
    /// Names to read, or NAME=VALUE to write; 'kern.polling.' before them is optional; cpu1.NAME is CPU 1's [default:
    /// all]
    #[arg(value_name = "NAME[=VALUE]")]
    knobs: Vec<String>,
    /// Print values without their names
    #[arg(short = 'n')]
    values_only: bool,
    /// Print all of them
    #[arg(short = 'a', conflicts_with = "knobs")]
    all: bool,
    /// Process or interface of the engine, if several run; or an interface that the kernel polls
    #[arg(long, value_name = "PID|IF")]
    engine: Option<String>,
    /// Network namespace of the interface that '--engine' names: a name from 'ip netns', or a path
    #[arg(long, value_name = "NAME", requires = "engine")]
    netns: Option<String>,
}

/// Runs the command and returns its exit code.
pub fn run(args: &SysctlArgs) -> Result<u8, Failure> {
    match args.netns.clone() {
        None => run_here(args),
        Some(name) => {
            let args = args.clone();
            inside(&name, move || run_here(&args))
        }
    }
}

fn run_here(args: &SysctlArgs) -> Result<u8, Failure> {
    let is_tree = |name: &String| name.trim_end_matches('.') == "kern.polling";
    let is_all = args.knobs.is_empty() || args.knobs.iter().any(is_tree);
    // Unknown names are refused, whether or not an engine runs.
    let engines = RunningEngine::named(args.engine.as_deref())
        .context("looking for running engines, which takes root")?;
    if engines.is_empty() && !is_all {
        let written = args.knobs.iter().filter_map(|word| word.split_once('='));
        for (name, _) in written {
            parse_knob(name)?;
        }
    }
    let Some(engine) = one_of(&engines)? else {
        return of_kernel(args, is_all);
    };
    let doing = || format!("asking the engine of process {}", engine.pid);
    let requests = if is_all {
        engine.names().with_context(doing)?
    } else {
        args.knobs.clone()
    };
    let mut code = 0;
    for request in &requests {
        match engine.ask(request).with_context(doing)? {
            Ok(value) if args.values_only => print(&format!("{value}\n"))?,
            Ok(value) => {
                let name = request
                    .split_once('=')
                    .map_or(request.as_str(), |(name, _)| name);
                let name = name.strip_prefix("kern.polling.").unwrap_or(name);
                print(&format!("kern.polling.{name}: {value}\n"))?;
            }
            Err(why) => {
                tell!("nicpoll sysctl: {why}");
                code = EXIT_FAILED;
            }
        }
    }
    Ok(code)
}

/// Shows the equivalents of the knobs at an interface that the kernel polls.
fn of_kernel(args: &SysctlArgs, is_all: bool) -> Result<u8, Failure> {
    let interface = match &args.engine {
        Some(interface) if interface.parse::<u32>().is_err() => interface.clone(),
        _ => {
            return Err(Failure::Failed(anyhow::anyhow!(
                "no such engine runs; 'nicpoll sink IF' starts one, and --engine IF shows the equivalents of these knobs \
                 at an interface that the kernel polls"
            )));
        }
    };
    if let Some(written) = args.knobs.iter().find(|name| name.contains('=')) {
        return Err(Failure::Failed(anyhow::anyhow!(
            "{written}: no engine runs at {interface}, and the kernel has no such knob; 'nicpoll set {interface} \
             polling' sets what it has"
        )));
    }
    let named = match is_all {
        true => &[String::from("kern.polling")][..],
        false => &args.knobs,
    };
    let asked = asked_variables(named)?;
    let options = ShowOptions {
        interfaces: vec![interface],
        look: LOOK,
        storm_threshold: STORM_THRESHOLD,
    };
    let show = nicpoll_inspect::show(&options, origin(), args.netns.as_deref())?;
    let names = asked.map(|asked| asked.names).unwrap_or_default();
    print(&render_polling_values(&show, &names, !args.values_only).text)?;
    Ok(0)
}

fn one_of(engines: &[RunningEngine]) -> Result<Option<&RunningEngine>, Failure> {
    let running: Vec<String> = engines
        .iter()
        .map(|engine| format!("{} at {}", engine.pid, engine.interface))
        .collect();
    match engines {
        [] => Ok(None),
        [engine] => Ok(Some(engine)),
        _ => Err(Failure::Usage(format!(
            "several engines run: process {}; choose one with --engine",
            running.join(", ")
        ))),
    }
}
