//! `nicpoll sim published` and `nicpoll sim fit`: simulates published measurements, and fits hosts to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, iter};

use anyhow::Context;
use clap::Args;
use nicpoll_calibrate::{
    FitPlan, Library, PublishedTable, RunLength, SimulationJob, fit, rows_of, score_of, with_fitted,
};
use nicpoll_model::FileError;
use nicpoll_model::sim::{
    PublishedRow, SIM_FIT_SCHEMA, SIM_PUBLISHED_SCHEMA, SimFit, SimPublished,
};
use nicpoll_report::{render_sim_fit, render_sim_published};
use nicpoll_sim::workers;

use super::sweep::{self, Shard};
use crate::failure::{EXIT_FAILED, Failure};
use crate::options::{FILE_BYTES_MAX, HOST_FILE, at_line, parse_host, read_text, usage};
use crate::output;
use crate::progress::Spinner;
use crate::reading::confined;

/// Options of `nicpoll sim published`.
#[derive(Args, Debug)]
pub struct PublishedArgs {
    /// The directory of hosts, published tables and fit.toml
    #[arg(value_name = "DIR", default_value = "sim")]
    pub directory: PathBuf,
    /// Only these tables
    #[arg(long = "table", value_name = "LETTER", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Simulate each run again with each parameter 20 % greater and smaller
    #[arg(long)]
    pub sensitivity: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `nicpoll sim fit` without `--host`.
#[derive(Args, Debug)]
pub struct PublishedFitArgs {
    /// The directory of hosts, published tables and fit.toml
    #[arg(value_name = "DIR", default_value = "sim")]
    pub directory: PathBuf,
    /// Write the fitted numbers into the host files
    #[arg(long)]
    pub write: bool,
    /// Fit the Ith of N parts only, and print its JSON; `nicpoll sim merge` joins them. auto/N: the part that a Slurm
    /// array or a Kubernetes Indexed Job gives this task (docs/clusters.md)
    #[arg(long, value_name = "I/N", value_parser = Shard::of_task, requires = "json", conflicts_with_all = ["write", "host", "fitted"])]
    pub shard: Option<Shard>,
    /// Take the numbers from this JSON of a whole fit instead of fitting
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    pub fitted: Option<PathBuf>,
}

/// A directory such as `sim`: its library, and the texts of its host files by host name.
struct Files {
    library: Library,
    hosts: BTreeMap<String, (PathBuf, String)>,
}

/// Prints every row.
pub fn published(args: &PublishedArgs) -> Result<u8, Failure> {
    let mut library = read(&args.directory)?.library;
    if !args.tables.is_empty() {
        let known: Vec<_> = library.tables.iter().map(|table| &table.name).collect();
        if let Some(name) = args.tables.iter().find(|name| !known.contains(name)) {
            let known = known.iter().map(|name| name.as_str()).collect::<Vec<_>>();
            let message = format!("there is no table '{name}'; there are {}", known.join(", "));
            return Err(Failure::Usage(message));
        }
    }
    let (free_parameters, fitted_figures) =
        (library.parameters().count(), library.fitted_figures());
    if !args.tables.is_empty() {
        library
            .tables
            .retain(|table| args.tables.contains(&table.name));
    }
    let rows = rows(&library, args.sensitivity)?;
    let published = SimPublished {
        schema: String::from(SIM_PUBLISHED_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        free_parameters: free_parameters as u64,
        fitted_figures: fitted_figures as u64,
        seconds: RunLength::COMPARISON.duration_ns as f64 / 1e9,
        warmup_seconds: RunLength::COMPARISON.warmup_ns as f64 / 1e9,
        score: score_of(&rows),
        rows,
    };
    output::print_either(&published, args.json, render_sim_published)?;
    Ok(0)
}

/// Simulates all runs, each on a free core, and returns their rows.
fn rows(library: &Library, has_sensitivity: bool) -> Result<Vec<PublishedRow>, Failure> {
    let runs = library.runs();
    let jobs: Vec<_> = runs
        .flat_map(|(table, run)| SimulationJob::of_run(library, table, run, has_sensitivity))
        .collect();
    let spinner = Spinner::new();
    let begun = AtomicUsize::new(0);
    let done = workers::map(&jobs, workers::count(), |job| {
        let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
        spinner.show(format!("simulation {number} of {}", jobs.len()));
        job.simulate()
    });
    let done: Result<Vec<_>, _> = done.into_iter().collect();
    Ok(rows_of(&jobs, &done.map_err(usage)?))
}

/// Fits, and checks the host files against the result, or writes it to them.
pub fn fit_hosts(args: &PublishedFitArgs, has_json: bool) -> Result<u8, Failure> {
    let files = read(&args.directory)?;
    let fit = match &args.fitted {
        Some(path) => sweep::read_part::<SimFit, SimFit>(path)?,
        None => fitted(&files.library, args.shard)?,
    };
    if fit.shard.is_some() && args.fitted.is_some() {
        return Err(usage(
            "--fitted: that is a part of a fit; join all of them with `nicpoll sim merge --json` first",
        ));
    }
    if fit.shard.is_some() {
        output::print_either(&fit, true, render_sim_fit)?;
        return Ok(0);
    }
    let library = files
        .library
        .fitted(fit.sets.iter().flatten())
        .map_err(usage)?;
    let mut text = String::from("\n");
    let mut is_same = true;
    for (name, (path, before)) in &files.hosts {
        let Some(host) = library.hosts.get(name) else {
            continue;
        };
        let after = with_fitted(before, host).map_err(|error| at(path, &error))?;
        if after == *before {
            continue;
        }
        is_same = false;
        if args.write {
            fs::write(path, after).with_context(|| format!("cannot write {}", path.display()))?;
            text.push_str(&format!("{}: written\n", path.display()));
        } else {
            text.push_str(&format!("{}: holds other numbers\n", path.display()));
        }
    }
    if is_same {
        text.push_str("The host files hold these numbers.\n");
    }
    output::print_either(&fit, has_json, |fit| render_sim_fit(fit) + &text)?;
    Ok(if is_same || args.write {
        0
    } else {
        EXIT_FAILED
    })
}

/// Fits all sets of groups, or those of a part.
fn fitted(library: &Library, shard: Option<Shard>) -> Result<SimFit, Failure> {
    let all = library.sets();
    let of_all = |it: Shard| it.of_all(all.len(), iter::once(format!("{:?}", library.at_start())));
    let part = shard.map(of_all);
    let own = Shard::own(shard, all).into_iter();
    let sets: Result<Vec<_>, _> = own.map(|set| fit(library, &set)).collect();
    Ok(SimFit {
        schema: String::from(SIM_FIT_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        shard: part,
        sets: sets.map_err(usage)?,
    })
}

fn read(directory: &Path) -> Result<Files, Failure> {
    let mut hosts = BTreeMap::new();
    let mut read_hosts = BTreeMap::new();
    for (path, text) in texts(&directory.join("hosts"), HOST_FILE)? {
        let host = parse_host(&path, &text)?;
        let name = host.name.clone();
        if read_hosts.insert(name.clone(), host).is_some() {
            let message = format!("{}: there is another host '{name}'", path.display());
            return Err(Failure::Usage(message));
        }
        hosts.insert(name, (path, text));
    }
    let path = directory.join("fit.toml");
    let open = || {
        let tables = texts(&directory.join("published"), "table")?;
        Ok((tables, read_text(&path, "plan of a fit", FILE_BYTES_MAX)?))
    };
    let (tables, plan) = confined(open, |(tables, plan)| {
        let parse = |(path, text): &(PathBuf, String)| {
            PublishedTable::parse(text).map_err(|error| at(path, &error))
        };
        let tables = tables.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok((
            tables,
            FitPlan::parse(&plan).map_err(|error| at(&path, &error))?,
        ))
    })?;
    let library = Library {
        hosts: read_hosts,
        tables,
        plan,
    };
    library.check().map_err(usage)?;
    let check_marks = |()| {
        hosts.iter().try_for_each(|(name, (path, text))| {
            let wrong = |wrong| Failure::Usage(format!("{}: {wrong}", path.display()));
            library.check_marks(name, text).map_err(wrong)
        })
    };
    confined(|| Ok(()), check_marks)?;
    Ok(Files { library, hosts })
}

fn at(path: &Path, error: &FileError) -> Failure {
    at_line(path, error.line, &error.message)
}

/// Reads the TOML files of a directory, sorted by name; messages call each `what`.
fn texts(directory: &Path, what: &str) -> Result<Vec<(PathBuf, String)>, Failure> {
    let listed = fs::read_dir(directory).map_err(|error| {
        Failure::Usage(format!(
            "cannot read {}: {error}; run this in the project's directory, or name the directory that holds hosts, \
             published and fit.toml",
            directory.display()
        ))
    })?;
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry.context("cannot read a directory")?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = paths
        .into_iter()
        .map(|path| Ok((path.clone(), read_text(&path, what, FILE_BYTES_MAX)?)));
    read.collect()
}
