//! `nicpoll sim`: hosts in virtual time.

mod args;
mod fit_host;
mod hosts;
mod merge;
mod published;
mod sweep;
mod ticks;
mod trace;

use std::path::PathBuf;
use std::time::Duration;

use nicpoll_model::sim::{SIM_RUN_SCHEMA, SimRun};
use nicpoll_report::{render_document, render_sim_run, render_sim_run_html};
use nicpoll_sim::{
    Discipline, Need, Plan, Stop, bottleneck, explain, explain_work, simulate, warmup_ns,
};

pub use args::SimArgs;
use args::{Length, RunArgs, SimCommand};

use crate::failure::Failure;
use crate::host_file::{FILE_BYTES_MAX, HOST_FILE, at_line, parse_host, read_host, read_text};
use crate::output;

/// Runs the command and returns its exit code.
pub fn run(args: &SimArgs) -> Result<u8, Failure> {
    match &args.command {
        SimCommand::Run(args) => run_plan(args),
        SimCommand::Sweep(args) => sweep::run(args),
        SimCommand::Merge(args) => merge::run(args),
        SimCommand::Hosts(args) => hosts::run(args),
        SimCommand::Ticks(args) => ticks::run(args),
        SimCommand::Published(args) => published::published(args),
        SimCommand::Fit(args) if args.host => fit_host::run(&args.this_machine),
        SimCommand::Fit(args) => published::fit_hosts(&args.published),
    }
}

fn run_plan(args: &RunArgs) -> Result<u8, Failure> {
    let stops = stops(args)?;
    let plan = Plan {
        warmup_ns: args.length.warmup_ns(&stops),
        stops,
        workload: args.workload.clone(),
        duration_ns: nanos(args.length.duration.unwrap_or(Duration::from_secs(10))),
        seed: args.length.seed,
        slices: args.slices,
    };
    plan.check().map_err(usage)?;
    args.length.refuse_too_large(&Need {
        runs: plan.work(),
        trials: (!args.no_explain).then(|| explain_work(&plan)),
        memory_bytes: plan.memory_bytes(),
        workers: 1,
    })?;
    let figures = simulate(&plan).map_err(usage)?;
    let run = SimRun {
        schema: String::from(SIM_RUN_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: match args.no_explain {
            true => bottleneck(&plan, &figures),
            false => explain(&plan, &figures).map_err(usage)?,
        },
        figures,
    };
    if let Some(file) = &args.report {
        output::write_report(file, &render_sim_run_html(&run, &output::origin().argv))?;
    }
    output::print(&if args.json {
        render_document(&run)
    } else {
        render_sim_run(&run)
    })?;
    Ok(0)
}

/// The host, and with `--peer` the routers and the peer.
fn stops(args: &RunArgs) -> Result<Vec<Stop>, Failure> {
    let own = &args.discipline;
    let routers = args.through.iter().map(|router| {
        let discipline = args.router_discipline.as_ref().unwrap_or(own);
        (router, discipline)
    });
    let peer = args.peer.iter().map(|peer| {
        let discipline = args.peer_discipline.as_ref().unwrap_or(own);
        (peer, discipline)
    });
    let all = [(&args.host, own)].into_iter().chain(routers).chain(peer);
    let stop = |(path, discipline): (&PathBuf, &Discipline)| {
        Ok(Stop {
            host: read_host(path)?,
            discipline: discipline.clone(),
        })
    };
    all.map(stop).collect()
}

fn usage(error: impl ToString) -> Failure {
    Failure::Usage(error.to_string())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Length {
    /// The warm-up that was asked for, or one that all hosts settle in.
    fn warmup_ns(&self, stops: &[Stop]) -> u64 {
        self.warmup.map_or_else(|| warmup_ns(stops), nanos)
    }

    /// Refuses what would take very long or very much memory, unless that is wanted.
    fn refuse_too_large(&self, need: &Need) -> Result<(), Failure> {
        need.check()
            .or_else(|error| self.long.then_some(()).ok_or(usage(error)))
    }
}
