//! `nicpoll sim sweep`: many runs, on all cores; `nicpoll sim merge`: the parts of a sweep or a fit as one.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nicpoll_model::sim::{
    InParts, SIM_FIT_SCHEMA, SIM_SWEEP_SCHEMA, SimPoint, SimShard, SimSweep, join,
};
use nicpoll_report::{plot_sweep, render_sim_fit, render_sim_sweep, sim_sweep_page, sweep_as_csv};
use nicpoll_sim::{
    HostModel, PathHost, ReceiveDiscipline, SimError, Simulation, SimulationCost, TrafficModel,
    simulate, workers,
};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::run::{Length, parse_workload};
use crate::failure::Failure;
use crate::options::{nanos, read_host, read_text, usage};
use crate::output;
use crate::reading::confined;

/// More points than a plot can show.
const POINTS_MAX: u64 = 1000;

/// Options of `nicpoll sim sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// The host file, or a name that `nicpoll sim hosts` lists
    #[arg(value_name = "HOSTFILE")]
    pub host: PathBuf,
    /// What varies: 'offered' (packets/s), 'clients' or a number of the host file; from, to and number of points
    #[arg(long, value_name = "NAME=FROM..TO:POINTS", default_value = "offered=10k..200k:20", value_parser = Range::parse)]
    pub over: Range,
    /// Disciplines, with their options
    #[arg(
        long,
        value_name = "NAME[:OPTION=VALUE]...",
        value_delimiter = ',',
        default_value = "freebsd-interrupt,freebsd-polling,napi,napi-timer,busy-poll",
        value_parser = ReceiveDiscipline::parse
    )]
    pub disciplines: Vec<ReceiveDiscipline>,
    /// The traffic
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "poisson", value_parser = parse_workload)]
    pub workload: TrafficModel,
    #[command(flatten)]
    pub length: Length,
    #[command(flatten)]
    pub form: Form,
    /// Run the Ith of N parts only; `nicpoll sim merge` joins their JSON. auto/N: the part that a Slurm array or a
    /// Kubernetes Indexed Job gives this task (docs/clusters.md)
    #[arg(long, value_name = "I/N", value_parser = Shard::of_task, conflicts_with_all = ["svg", "report"])]
    pub shard: Option<Shard>,
}

/// How a sweep is shown.
#[derive(Args, Debug)]
pub struct Form {
    /// Print CSV, a line a point, instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the plot to this file too
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write one page that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Values of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// `offered`, `clients`, or a number of the host.
    pub parameter: String,
    /// In ascending order, without duplicates.
    pub values: Vec<u64>,
}

impl Range {
    /// The parameter for offered packets a second, which no host file has.
    pub const OFFERED: &str = "offered";
    /// The parameter for clients of the workload, which no host file has.
    pub const CLIENTS: &str = "clients";

    fn parse(text: &str) -> Result<Range, String> {
        let expected = || {
            format!(
                "'{text}' is no range; the form is NAME=FROM..TO:POINTS, as in offered=10k..200k:20"
            )
        };
        let (parameter, range) = text.split_once('=').ok_or_else(expected)?;
        let (ends, points) = range.rsplit_once(':').ok_or_else(expected)?;
        let (from, to) = ends.split_once("..").ok_or_else(expected)?;
        let number = |text| nicpoll_sim::number(text).map_err(|error| error.to_string());
        let (from, to, points) = (number(from)?, number(to)?, number(points)?);
        if from > to {
            return Err(format!("the range {ends} ends before it begins"));
        }
        if !(2..=POINTS_MAX).contains(&points) {
            return Err(format!(
                "a sweep of {points} points; give 2 to {POINTS_MAX}"
            ));
        }
        Range::within_bounds(parameter, from, to)?;
        let steps = u128::from(points - 1);
        let at = |step: u128| from + (u128::from(to - from) * step / steps) as u64;
        let mut values: Vec<u64> = (0..=steps).map(at).collect();
        values.dedup();
        Ok(Range {
            parameter: String::from(parameter),
            values,
        })
    }

    fn within_bounds(parameter: &str, from: u64, to: u64) -> Result<(), String> {
        if parameter == Range::OFFERED {
            let is_rate = from >= 1 && to <= 1_000_000_000;
            return is_rate
                .then_some(())
                .ok_or_else(|| String::from("offered goes from 1 to 1g packets/s"));
        }
        if parameter == Range::CLIENTS {
            let is_possible = from >= 1 && to <= TrafficModel::CLIENTS_MAX;
            return is_possible
                .then_some(())
                .ok_or_else(|| format!("clients goes from 1 to {}", TrafficModel::CLIENTS_MAX));
        }
        if HostModel::field(parameter).is_none() {
            let names: Vec<_> = HostModel::FIELDS.iter().map(|field| field.name).collect();
            return Err(format!(
                "no such parameter: '{parameter}'; there are offered, clients, {}",
                names.join(", ")
            ));
        }
        let mut host = HostModel::default();
        let set = host
            .set(parameter, from)
            .and_then(|()| host.set(parameter, to));
        set.map_err(|error| error.to_string())
    }
}

/// A part of a sweep or a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its index, from 0.
    pub index: usize,
    /// The number of parts.
    pub of: usize,
}

/// Variables with a task's number among those of its job, and the number of the first. The number of tasks is in none
/// that is the same for a task that runs again alone.
const TASKS: [(&str, usize); 2] = [("SLURM_ARRAY_TASK_ID", 1), ("JOB_COMPLETION_INDEX", 0)];

impl Shard {
    /// Parses the part that is named, or that of this task.
    pub fn of_task(text: &str) -> Result<Shard, String> {
        Shard::parse(text, |name| env::var(name).ok())
    }

    /// Parses `I/N` or `auto/N`, for which `variable` reads the environment.
    fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
        let wrong = || {
            format!(
                "'{text}' is no part; the form is I/N with I from 1 to N, as in 1/4, or auto/N in a Slurm array or a \
                 Kubernetes Indexed Job"
            )
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let of = of.parse().ok().filter(|of| *of > 0).ok_or_else(wrong)?;
        if number != "auto" {
            let number = number.parse().map_err(|_| wrong())?;
            return Shard::numbered(number, 1, of).ok_or_else(wrong);
        }
        let mut tasks = TASKS.into_iter();
        let task = tasks.find_map(|(name, first)| Some((name, variable(name)?, first)));
        let Some((name, number, first)) = task else {
            return Err(String::from(
                "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set: this is no task of an array; name the \
                 part, as in 1/4",
            ));
        };
        let shard = number
            .parse()
            .ok()
            .and_then(|number| Shard::numbered(number, first, of));
        shard.ok_or_else(|| {
            let last = first.saturating_add(of - 1);
            format!("{name} is {number}, and {of} parts have the tasks {first} to {last}")
        })
    }

    /// Returns the part with this number, of which the first part has `first`.
    fn numbered(number: usize, first: usize, of: usize) -> Option<Shard> {
        let index = number.checked_sub(first)?;
        (index < of).then_some(Shard { index, of })
    }
}

/// A run to make.
struct SweepJob {
    value: u64,
    plan: Simulation,
}

pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let all = jobs(args)?;
    let made_of = || {
        all.iter()
            .map(|job| format!("{} {:?}", job.value, job.plan))
    };
    let shard = args.shard.map(|it| it.of_all(all.len(), made_of()));
    let jobs = Shard::own(args.shard, all);
    let workers = workers::count();
    args.length.refuse_too_large(&SimulationCost {
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

/// Prints a sweep in its form, and draws it if asked.
pub fn print(sweep: &SimSweep, form: &Form) -> Result<(), Failure> {
    output::write_plot(form.svg.as_deref(), || plot_sweep(sweep))?;
    output::write_page(form.report.as_deref(), |argv| sim_sweep_page(sweep, argv))?;
    let text = if form.csv {
        sweep_as_csv
    } else {
        render_sim_sweep
    };
    output::print_either(sweep, form.json, text)
}

/// Returns every run of the sweep; refuses the sweep if one run is impossible.
fn jobs(args: &SweepArgs) -> Result<Vec<SweepJob>, Failure> {
    let host = read_host(&args.host)?;
    let mut jobs = Vec::new();
    for discipline in &args.disciplines {
        for &value in &args.over.values {
            let mut job = SweepJob {
                value,
                plan: Simulation {
                    stops: vec![PathHost {
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
            // The warm-up may depend on the value.
            job.plan.warmup_ns = args.length.warmup_ns(&job.plan.stops);
            jobs.push(job);
        }
    }
    Ok(jobs)
}

impl Shard {
    /// Returns what a part has of all points: every `of`th.
    pub fn own<T>(shard: Option<Shard>, all: Vec<T>) -> Vec<T> {
        let Some(shard) = shard else {
            return all;
        };
        let all = all.into_iter().enumerate();
        let own = all.filter(|(index, _)| index % shard.of == shard.index);
        own.map(|(_, it)| it).collect()
    }

    /// Returns the part's identity among so many points, which are made of these.
    pub fn of_all(self, points: usize, made_of: impl Iterator<Item = String>) -> SimShard {
        let mut whole = DefaultHasher::new();
        made_of.for_each(|it| it.hash(&mut whole));
        SimShard {
            number: self.index as u64 + 1,
            of: self.of as u64,
            points_of_all: points as u64,
            sweep: format!("{:016x}", whole.finish()),
        }
    }
}

/// Estimates the peak memory: the largest runs at once, and the results of all.
fn memory_bytes(jobs: &[SweepJob], workers: usize) -> f64 {
    /// Bytes of a point with its lists and names.
    const POINT_BYTES: f64 = 8192.0;
    let each = jobs.iter().map(|job| job.plan.memory_bytes());
    let mut each: Vec<f64> = each.collect();
    each.sort_by(|a, b| b.total_cmp(a));
    let running: f64 = each.iter().take(workers).sum();
    running + POINT_BYTES * jobs.len() as f64
}

fn point(job: &SweepJob) -> Result<SimPoint, SimError> {
    Ok(SimPoint {
        value: job.value as f64,
        plan: job.plan.facts(),
        figures: simulate(&job.plan)?,
    })
}

/// Limit for a part's file, far above what a sweep's points take.
const PART_BYTES_MAX: u64 = 256 << 20;

/// Options of `nicpoll sim merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// JSON files of the parts
    #[arg(value_name = "FILE", required = true)]
    parts: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// What every part begins with.
#[derive(Serialize, Deserialize)]
struct Named {
    #[serde(default)]
    schema: String,
}

pub fn merge(args: &MergeArgs) -> Result<u8, Failure> {
    let first: Named = read_part::<SimSweep, _>(&args.parts[0])?;
    if first.schema != SIM_FIT_SCHEMA {
        print(&joined(&args.parts)?, &args.form)?;
        return Ok(0);
    }
    let Form {
        csv, svg, report, ..
    } = &args.form;
    if *csv || svg.is_some() || report.is_some() {
        return Err(usage("a fit has no points to plot; give --json"));
    }
    output::print_either(&joined(&args.parts)?, args.form.json, render_sim_fit)?;
    Ok(0)
}

fn joined<P: InParts + Serialize + DeserializeOwned>(files: &[PathBuf]) -> Result<P, Failure> {
    let parts: Result<Vec<P>, Failure> = files.iter().map(|it| read_part::<P, P>(it)).collect();
    join(parts?).map_err(|error| {
        let file = error.part.and_then(|place| files.get(place));
        Failure::Usage(match file {
            Some(file) => format!("{}: {error}", file.display()),
            None => error.to_string(),
        })
    })
}

/// Reads something of a part of this kind.
pub fn read_part<P: InParts, T: Serialize + DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let open = || read_text(path, "part of a sweep or a fit", PART_BYTES_MAX);
    confined(open, |text: String| {
        serde_json::from_str(&text).map_err(|error| {
            Failure::Usage(format!(
                "{}: this is not what `{} --json` of this version prints, whole or with --shard I/N: {error}",
                path.display(),
                P::COMMAND
            ))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends() {
        let range = Range::parse("offered=10k..200k:20").unwrap();
        assert_eq!(range.values.len(), 20);
        assert_eq!((range.values[0], range.values[19]), (10_000, 200_000));
        let moderation = Range::parse("card.moderation_ns=0..100us:3").unwrap();
        assert_eq!(moderation.values, [0, 50_000, 100_000]);
        assert_eq!(Range::parse("cpu.hz=1..2:10").unwrap().values, [1, 2]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_remedy() {
        for (text, words) in [
            ("offered", "NAME=FROM..TO:POINTS"),
            ("offered=1..2", "NAME=FROM..TO:POINTS"),
            ("offered=2k..1k:5", "ends before"),
            ("offered=1k..2k:1", "give 2 to 1000"),
            ("offered=0..2k:5", "1 to 1g"),
            ("clients=0..5:5", "1 to 10000"),
            ("clients=1..20k:5", "1 to 10000"),
            ("cpu.speed=1..2:2", "there are offered, clients, cpu.hz"),
            ("cpu.hz=0..10:2", "from 1 to 10000"),
        ] {
            let error = Range::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_part_is_named_or_that_of_the_task() {
        let parse = |text: &str, set: &[(&str, &str)]| {
            let value = |name: &str| Some(String::from(set.iter().find(|it| it.0 == name)?.1));
            Shard::parse(text, value)
        };
        let part = |index, of| Ok(Shard { index, of });
        let (slurm, kubernetes) = ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX");
        assert_eq!(parse("2/4", &[(slurm, "3")]), part(1, 4));
        assert_eq!(parse("auto/4", &[(slurm, "1")]), part(0, 4));
        assert_eq!(parse("auto/4", &[(slurm, "4")]), part(3, 4));
        assert_eq!(parse("auto/4", &[(kubernetes, "0")]), part(0, 4));
        assert_eq!(parse("auto/4", &[(kubernetes, "3")]), part(3, 4));
        for (text, set, words) in [
            ("auto/4", [].as_slice(), "name the part"),
            (
                "auto/4",
                &[(slurm, "0")],
                "SLURM_ARRAY_TASK_ID is 0, and 4 parts have the tasks 1 to 4",
            ),
            ("auto/4", &[(slurm, "5")], "1 to 4"),
            ("auto/4", &[(kubernetes, "4")], "0 to 3"),
            ("auto/0", &[(kubernetes, "0")], "is no part"),
            ("auto", &[(slurm, "1")], "auto/N"),
        ] {
            let error = parse(text, set).unwrap_err();
            assert!(error.contains(words), "{text} {set:?}: {error}");
        }
        for wrong in ["", "0/4", "5/4", "1", "1/0", "a/b"] {
            assert!(parse(wrong, &[]).is_err(), "{wrong}");
        }
    }
}
