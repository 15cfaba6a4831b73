//! `nicpoll sim sweep`: many runs, on all cores.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use anyhow::Context;
use nicpoll_model::sim::{SIM_SWEEP_SCHEMA, SimPoint, SimShard, SimSweep};
use nicpoll_report::{
    plot_sweep, render_document, render_sim_sweep, render_sim_sweep_html, sweep_as_csv,
};
use nicpoll_sim::{Need, Plan, PlanError, Stop, simulate, workers};

use super::args::{Form, Range, Shard, SweepArgs};
use super::{nanos, read_host, usage};
use crate::failure::Failure;
use crate::output;

/// A run that is to be made.
struct Job {
    value: u64,
    plan: Plan,
}

pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let all = jobs(args)?;
    let shard = args.shard.map(|shard| shard.of_jobs(&all));
    let jobs = own(all, args.shard);
    let workers = workers::count();
    args.length.refuse_too_large(&Need {
        runs: jobs.iter().map(|job| job.plan.work()).sum(),
        trials: None,
        memory_bytes: memory_bytes(&jobs, workers),
        workers,
    })?;
    let points = workers::map(&jobs, workers, point).into_iter();
    let sweep = SimSweep {
        schema: String::from(SIM_SWEEP_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        parameter: args.over.parameter.clone(),
        workload: args.workload.to_string(),
        shard,
        points: points.collect::<Result<_, _>>().map_err(usage)?,
    };
    print(&sweep, &args.form)?;
    Ok(0)
}

/// Prints a sweep in the form that is asked for, and draws it when that is.
pub fn print(sweep: &SimSweep, form: &Form) -> Result<(), Failure> {
    if let Some(path) = &form.svg {
        let written = fs::write(path, plot_sweep(sweep));
        written.with_context(|| format!("cannot write the plot to {}", path.display()))?;
    }
    if let Some(file) = &form.report {
        output::write_report(file, &render_sim_sweep_html(sweep, &output::origin().argv))?;
    }
    output::print(&if form.json {
        render_document(sweep)
    } else if form.csv {
        sweep_as_csv(sweep)
    } else {
        render_sim_sweep(sweep)
    })?;
    Ok(())
}

/// Every run of the sweep. All are seen to be possible first.
fn jobs(args: &SweepArgs) -> Result<Vec<Job>, Failure> {
    let host = read_host(&args.host)?;
    let mut jobs = Vec::new();
    for discipline in &args.disciplines {
        for &value in &args.over.values {
            let mut job = Job {
                value,
                plan: Plan {
                    stops: vec![Stop {
                        host: host.clone(),
                        discipline: discipline.clone(),
                    }],
                    workload: args.workload.clone(),
                    duration_ns: nanos(args.length.duration.unwrap_or(Duration::from_secs(1))),
                    warmup_ns: 0,
                    seed: args.length.seed,
                    slices: 0,
                },
            };
            if args.over.parameter == Range::OFFERED {
                job.plan.workload = args.workload.clone().at(value).map_err(usage)?;
            } else if args.over.parameter == Range::CLIENTS {
                job.plan.workload = args.workload.clone().with_clients(value).map_err(usage)?;
            } else {
                job.plan.stops[0]
                    .host
                    .set(&args.over.parameter, value)
                    .map_err(usage)?;
            }
            job.plan.check().map_err(usage)?;
            // The value may be one that it depends on.
            job.plan.warmup_ns = args.length.warmup_ns(&job.plan.stops);
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// The runs of a part: every `of`th.
fn own(jobs: Vec<Job>, shard: Option<Shard>) -> Vec<Job> {
    let Some(shard) = shard else {
        return jobs;
    };
    let all = jobs.into_iter().enumerate();
    let own = all.filter(|(index, _)| index % shard.of == shard.index);
    own.map(|(_, job)| job).collect()
}

impl Shard {
    /// The part of these runs, which are all of the sweep.
    fn of_jobs(self, jobs: &[Job]) -> SimShard {
        let mut sweep = DefaultHasher::new();
        for job in jobs {
            job.value.hash(&mut sweep);
            format!("{:?}", job.plan).hash(&mut sweep);
        }
        SimShard {
            number: self.index as u64 + 1,
            of: self.of as u64,
            points_of_all: jobs.len() as u64,
            sweep: format!("{:016x}", sweep.finish()),
        }
    }
}

/// What the runs need at a time: the largest ones at once, and the results of all.
fn memory_bytes(jobs: &[Job], workers: usize) -> f64 {
    /// A point with its lists and names.
    const POINT_BYTES: f64 = 8192.0;
    let each = jobs.iter().map(|job| job.plan.memory_bytes());
    let mut each: Vec<f64> = each.collect();
    each.sort_by(|a, b| b.total_cmp(a));
    let running: f64 = each.iter().take(workers).sum();
    running + POINT_BYTES * jobs.len() as f64
}

fn point(job: &Job) -> Result<SimPoint, PlanError> {
    Ok(SimPoint {
        value: job.value as f64,
        plan: job.plan.facts(),
        figures: simulate(&job.plan)?,
    })
}
