//! `nicpoll demo`: a built-in study on this machine.

use std::path::Path;

use anyhow::Context;
use nicpoll_calibrate::{predict, simulated_figures};
use nicpoll_model::StudyKind;
use nicpoll_model::sim_fit_host::Simulated;
use nicpoll_study::{DEFAULT_PERIOD, Options, plan};

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::host_file::read_host;
use crate::sitting::carry_out;

/// Runs the demo and returns its exit code.
pub fn demo(args: &DemoArgs) -> Result<u8, Failure> {
    let options = options(args);
    carry_out(
        &args.sitting,
        StudyKind::Demo,
        args.sitting.seed,
        "the demo",
        "nicpoll demo",
        args.simulate
            .as_deref()
            .map(|host| simulated(host, &options))
            .transpose()?,
        |seed| plan(&options, seed),
    )
}

/// What a host file's machine would do with the demo's traffic.
fn simulated(path: &Path, options: &Options) -> Result<Simulated, Failure> {
    let host = read_host(path)?;
    let period = options.period.unwrap_or(DEFAULT_PERIOD);
    let predictions = predict(&host, period.as_nanos() as u64)
        .with_context(|| format!("simulating the demo on {}", path.display()))?;
    let is_run = |workload: &str| {
        options.workloads.is_empty() || options.workloads.iter().any(|it| it == workload)
    };
    let mut figures = simulated_figures(&predictions);
    figures.retain(|figure| is_run(&figure.workload));
    Ok(Simulated {
        host: path.display().to_string(),
        figures,
    })
}

fn options(args: &DemoArgs) -> Options {
    Options {
        quick: args.quick,
        blocks: args.repeats,
        trial: args.duration,
        period: args.period,
        workloads: args.workload.clone(),
        null: args.null.clone(),
    }
}
