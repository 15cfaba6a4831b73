//! `nicpoll sim`: hosts in virtual time.

mod args;
mod fit_host;
mod merge;
mod published;
mod sweep;
mod ticks;
mod trace;
mod workers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use nicpoll_model::sim::{SIM_RUN_SCHEMA, SimRun};
use nicpoll_report::{render_document, render_sim_run};
use nicpoll_sim::{Discipline, Host, Plan, Stop, bottleneck, explain, explain_work, simulate};

pub use args::SimArgs;
use args::{Length, RunArgs, SimCommand};

use crate::failure::Failure;
use crate::output;

/// A host file, a table or a plan of a fit that is longer than this is none.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a file that describes a host is called.
const HOST_FILE: &str = "host file";

/// Runs the command and returns its exit code.
pub fn run(args: &SimArgs) -> Result<u8, Failure> {
    match &args.command {
        SimCommand::Run(args) => run_plan(args),
        SimCommand::Sweep(args) => sweep::run(args),
        SimCommand::Merge(args) => merge::run(args),
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
    let trials = if args.no_explain {
        0.0
    } else {
        explain_work(&plan)
    };
    args.length.refuse_endless(plan.work(), trials, 1)?;
    args.length.refuse_vast(plan.memory_bytes())?;
    let figures = simulate(&plan).map_err(usage)?;
    let run = SimRun {
        schema: String::from(SIM_RUN_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: if args.no_explain {
            bottleneck(&plan, &figures)
        } else {
            explain(&plan, &figures).map_err(usage)?
        },
        figures,
    };
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

fn read_host(path: &Path) -> Result<Host, Failure> {
    parse_host(path, &read_text(path, HOST_FILE)?)
}

fn parse_host(path: &Path, text: &str) -> Result<Host, Failure> {
    Host::parse(text).map_err(|error| at_line(path, error.line, &error.message))
}

/// The text of a file that is to be `what`.
fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    let shown = path.display();
    let found = fs::metadata(path).and_then(|file| {
        let is_read = file.len() <= FILE_BYTES_MAX;
        is_read.then(|| fs::read_to_string(path)).transpose()
    });
    let text = found.with_context(|| format!("cannot read the {what} {shown}"))?;
    text.ok_or_else(|| {
        usage(format!(
            "{shown} is longer than {FILE_BYTES_MAX} bytes: this is no {what}"
        ))
    })
}

fn at_line(path: &Path, line: usize, message: &str) -> Failure {
    usage(format!("{}:{line}: {message}", path.display()))
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
        let settled = stops.iter().map(Stop::warmup_ns).max();
        self.warmup.map_or(settled.unwrap_or_default(), nanos)
    }

    /// Refuses what would take very long, unless that is wanted: runs, and trials of what would move a bottleneck.
    fn refuse_endless(&self, runs: f64, trials: f64, workers: usize) -> Result<(), Failure> {
        /// What a slow core simulates a second.
        const PACKETS_PER_SECOND: f64 = 5e6;
        const SECONDS_MAX: f64 = 600.0;
        let seconds = |work: f64| work / PACKETS_PER_SECOND / workers as f64;
        if self.long || seconds(runs + trials) <= SECONDS_MAX {
            return Ok(());
        }
        let minutes = |work: f64| (seconds(work) / 60.0).ceil();
        let (of_trials, remedy) = if trials > 0.0 {
            let of_trials = format!(
                ", {} of them to try what would move the bottleneck",
                minutes(trials)
            );
            (of_trials, "give --no-explain to leave the trials out, ")
        } else {
            (String::new(), "")
        };
        Err(Failure::Usage(format!(
            "this may take {:.0} minutes{of_trials}; shorten --duration or --warmup, lower the rate, {remedy}take \
             fewer points of a sweep, or give --long to run it all the same",
            minutes(runs + trials)
        )))
    }

    /// Refuses what may need very much memory, unless that is wanted.
    fn refuse_vast(&self, bytes: f64) -> Result<(), Failure> {
        const GIB: f64 = (1u64 << 30) as f64;
        const GIB_MAX: f64 = 4.0;
        if self.long || bytes <= GIB_MAX * GIB {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "the queues of this may need {:.0} GiB of memory when they fill; lower their limits in the host \
             file (socket.buffer_bytes first) or the rate, or give --long to run it all the same",
            bytes / GIB
        )))
    }
}
