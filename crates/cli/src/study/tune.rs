//! `nicpoll tune`: finds the best setting of an interface.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use nicpoll_lab::draw_seed;
use nicpoll_model::tune::{Tune, TuneGoal, TuneLimit};
use nicpoll_report::render_html;
use nicpoll_study::{Identity, TuneProgress, TuneRequest, tune_here};
use nicpoll_switch::guard_of_this_program;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use crate::failure::{EXIT_INCONCLUSIVE, Failure};
use crate::options::{StoreFile, number};
use crate::output;
use crate::progress::Spinner;
use crate::study::run::{read_study, require};

/// What to tune for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// The most that arrives
    Throughput,
    /// The shortest median delay
    Latency,
    /// The least CPU time for the same traffic
    Cpu,
}

impl From<Goal> for TuneGoal {
    fn from(goal: Goal) -> Self {
        match goal {
            Goal::Throughput => TuneGoal::Throughput,
            Goal::Latency => TuneGoal::Latency,
            Goal::Cpu => TuneGoal::Cpu,
        }
    }
}

/// Options of `nicpoll tune`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/tune-examples.txt"))]
pub struct TuneArgs {
    /// Tune the studied interface of a study: a file (docs/studies.md), or the name of a ready one
    #[arg(long, value_name = "FILE")]
    pub study: PathBuf,
    /// The workload to tune for, if the study has several
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The setting to begin with, and to compare with [default: the first one under which a NAPI polls]
    #[arg(long, value_name = "NAME")]
    pub setting: Option<String>,
    /// Run it between the machines that this file names (docs/hosts.md)
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// What to tune for
    #[arg(long, value_name = "GOAL", default_value = "cpu")]
    pub goal: Goal,
    /// Choose only a setting that is shown to keep these limits: p99<500us, p50<100us, loss=0, loss<0.1%, cpu<1.5cores
    #[arg(long, value_name = "LIMITS", value_delimiter = ',', value_parser = TuneLimit::parse)]
    pub keep: Vec<TuneLimit>,
    /// Seed of the random order [default: random; it is printed]
    #[arg(long, value_name = "N", value_parser = number::<u64>(..))]
    pub seed: Option<u64>,
    /// Print one JSON object instead of text (docs/tune.md)
    #[arg(long)]
    pub json: bool,
    /// Also write one page with plots that a browser shows; what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Store nothing
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,
    /// Where the final comparison is stored.
    #[command(flatten)]
    pub file: StoreFile,
}

/// Runs `nicpoll tune`, and returns the exit code.
pub fn tune(args: &TuneArgs) -> Result<u8, Failure> {
    let mut file = read_study(&args.study, args.hosts.as_deref())?;
    if let Some(workload) = &args.workload {
        file = file.with_workloads(std::slice::from_ref(workload))?;
    }
    let is_apart = file.design.topology.hosts.is_some();
    let request = TuneRequest::new(
        file.design,
        file.lengths,
        args.setting.as_deref(),
        args.goal.into(),
        args.keep.clone(),
    )?;
    output::require_place_for(args.report.as_deref())?;
    if !is_apart {
        require("tuning", "nicpoll tune")?;
    }
    let stop = Stop::on_signals().context("catching signals")?;
    let guard = guard_of_this_program().context("finding this program")?;
    let store = (!args.no_store).then(|| args.file.to_write()).transpose()?;
    let identity = Identity::new(output::origin(), args.seed.unwrap_or_else(draw_seed));
    let line = Spinner::new();
    let ended = tune_here(&request, identity, store, guard, stop.asked(), |it| {
        show(&line, it)
    })?;
    drop(line);
    let tune = ended
        .outcome
        .map_err(|error| stop.signal().map_or_else(|| error.into(), Failure::Signal))?;
    output::print_document(&tune, args.json)?;
    if let Some(place) = ended.place {
        tell!("{}", place.sentence(tune.study.is_some()));
    }
    if let Some(file) = &args.report {
        let mut tune = tune.clone();
        tune.leave_out_names();
        output::write_report(file, &render_html(&tune))?;
    }
    ended.unstored.map_or(Ok(()), Err)?;
    stop.signal()
        .map_or(Ok(exit_code(&tune)), |signal| Err(Failure::Signal(signal)))
}

fn show(line: &Spinner, progress: TuneProgress<'_>) {
    match progress {
        TuneProgress::Begins(most) => line.say(format!("The race takes at most {most} trials.")),
        TuneProgress::Trying(candidate) => line.show(format!("can {candidate} be set?")),
        TuneProgress::Trial {
            number,
            left,
            candidate,
        } => {
            line.show(format!("trial {number}, {left} left: {candidate}"));
        }
        TuneProgress::Final(it) => line.show(it.to_string()),
    }
}

fn exit_code(tune: &Tune) -> u8 {
    match tune.is_finished && tune.winner.is_some() {
        true => 0,
        false => EXIT_INCONCLUSIVE,
    }
}
