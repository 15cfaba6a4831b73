//! `nicpoll tune`: finds the best setting of an interface.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use nicpoll_ab::{LiveTuneProgress, LiveTuneRequest, parse_block, tune_live};
use nicpoll_lab::draw_seed;
use nicpoll_model::tune::{Tune, TuneGoal, TuneLimit};
use nicpoll_model::units::parse_seconds;
use nicpoll_report::render_html;
use nicpoll_store::{Ended, Store};
use nicpoll_study::{FINALS_MAX, Identity, TuneProgress, TuneRequest, tune_here};
use nicpoll_switch::{Candidate, Name, candidates, guard_of_this_program};
use nicpoll_sys::schedule::allowed_cpus;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use crate::failure::{EXIT_INCONCLUSIVE, Failure};
use crate::options::{StoreFile, number, usage};
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
#[command(
    after_help = include_str!("../help/tune-examples.txt"),
    override_usage = "nicpoll tune IF [OPTIONS]\n       nicpoll tune --study FILE [OPTIONS]"
)]
pub struct TuneArgs {
    /// Tune this interface under the traffic that it has
    #[arg(value_name = "IF", required_unless_present = "study")]
    pub name: Option<String>,
    /// Tune the studied interface of a study: a file (docs/studies.md), or the name of a ready one
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub study: Option<PathBuf>,
    /// The workload to tune for, if the study has several
    #[arg(long, value_name = "NAME", requires = "study", conflicts_with = "name")]
    pub workload: Option<String>,
    /// The setting to begin with, and to compare with [default: the first one under which a NAPI polls]
    #[arg(long, value_name = "NAME", requires = "study", conflicts_with = "name")]
    pub setting: Option<String>,
    /// Run it between the machines that this file names (docs/hosts.md)
    #[arg(long, value_name = "FILE", requires = "study", conflicts_with = "name")]
    pub hosts: Option<PathBuf>,
    /// Time of all, on live traffic
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = parse_seconds,
        default_value = "30m",
        conflicts_with = "study"
    )]
    pub duration: Duration,
    /// Mean length of a block of the race, on live traffic
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_block,
        default_value = "1s",
        conflicts_with = "study"
    )]
    pub block: Duration,
    /// Drop a candidate that loses this many times the usual, on live traffic
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = number::<u32>(..),
        conflicts_with = "study"
    )]
    pub loss_limit: u32,
    /// Network namespace of the interface, by its name for 'ip netns'
    #[arg(long, value_name = "NAME", conflicts_with = "study")]
    pub netns: Option<String>,
    /// Set what was found, as the command that is printed does
    #[arg(long, conflicts_with_all = ["study", "json"])]
    pub apply: bool,
    /// What to tune for
    #[arg(long, value_name = "GOAL", default_value = "cpu")]
    pub goal: Goal,
    /// Choose only a setting that is shown to keep these limits: p99<500us, p50<100us, loss=0, loss<0.1%, cpu<1.5cores
    #[arg(long, value_name = "LIMITS", value_delimiter = ',', value_parser = TuneLimit::parse)]
    pub keep: Vec<TuneLimit>,
    /// Try only candidates whose names begin so: 'polling 200us', interrupts, deferral, moderation (docs/tune.md)
    #[arg(long = "try", value_name = "NAMES", value_delimiter = ',')]
    pub names: Vec<String>,
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

/// What a run gives: the document, and where its final comparison is stored.
type TuneRun = Result<Ended<Tune, Failure>, Failure>;

/// Runs `nicpoll tune`, and returns the exit code and the command that is to set the choice.
pub fn tune(args: &TuneArgs) -> Result<(u8, Option<Vec<OsString>>), Failure> {
    output::require_place_for(args.report.as_deref())?;
    // A study is read before there are threads.
    let study = args.study.as_deref();
    let request = study.map(|study| request_of(args, study)).transpose()?;
    let stop = Stop::on_signals().context("catching signals")?;
    let ended = match request {
        Some(request) => under_study(args, &request, &stop)?,
        None => under_traffic(args, &stop)?,
    };
    let failed = |error| stop.signal().map_or(error, Failure::Signal);
    let tune = ended.outcome.map_err(failed)?;
    output::print_document(&tune, args.json)?;
    if let Some(place) = ended.place {
        let is_compared = tune.study.is_some() || tune.ab.is_some();
        tell!("{}", place.sentence(is_compared));
    }
    if let Some(file) = &args.report {
        let mut tune = tune.clone();
        tune.leave_out_names();
        output::write_report(file, &render_html(&tune))?;
    }
    ended.unstored.map_or(Ok(()), Err)?;
    if let Some(signal) = stop.signal() {
        return Err(Failure::Signal(signal));
    }
    let set = words_of(args, &tune).filter(|_| args.apply);
    Ok((exit_code(&tune), set))
}

/// Reads the study, and requires what tuning under it takes.
fn request_of(args: &TuneArgs, study: &Path) -> Result<TuneRequest, Failure> {
    let mut file = read_study(study, args.hosts.as_deref())?;
    if let Some(workload) = &args.workload {
        file = file.with_workloads(std::slice::from_ref(workload))?;
    }
    let topology = &file.design.topology;
    let (is_apart, is_made) = (topology.hosts.is_some(), topology.kind.is_made());
    let request = TuneRequest::new(
        file.design,
        file.lengths,
        args.setting.as_deref(),
        args.goal.into(),
        args.keep.clone(),
        tried(args, !is_made)?,
    )?;
    if !is_apart {
        require("tuning", "nicpoll tune")?;
    }
    Ok(request)
}

/// Tunes under a workload of a study.
fn under_study(args: &TuneArgs, request: &TuneRequest, stop: &Stop) -> TuneRun {
    let guard = guard_of_this_program().context("finding this program")?;
    let identity = Identity::new(output::origin(), args.seed());
    let line = Spinner::new();
    let stores: Result<Vec<_>, _> = (0..FINALS_MAX).map(|_| args.store()).collect();
    let stores = stores?.into_iter().flatten().collect();
    let ended = tune_here(request, identity, stores, guard, stop.asked(), |it| {
        show(&line, it)
    })?;
    Ok(Ended {
        outcome: ended.outcome.map_err(Failure::from),
        place: ended.place,
        unstored: ended.unstored,
    })
}

/// Tunes an interface under its own traffic.
fn under_traffic(args: &TuneArgs, stop: &Stop) -> TuneRun {
    let request = LiveTuneRequest {
        name: Name::parse(args.name.as_deref().unwrap_or_default()).map_err(usage)?,
        netns: args.netns.clone(),
        candidates: tried(args, true)?,
        goal: args.goal.into(),
        limits: args.keep.clone(),
        duration: args.duration,
        block: args.block,
        seed: args.seed(),
        loss_factor: f64::from(args.loss_limit),
    };
    let (line, store) = (Spinner::new(), args.store()?);
    let ended = tune_live(
        &request,
        output::origin(),
        &guard_of_this_program,
        store,
        stop.asked(),
        &mut |it| show_live(&line, &it),
    )?;
    Ok(Ended {
        outcome: ended.outcome.map_err(Failure::from),
        place: ended.place,
        unstored: ended.unstored,
    })
}

/// Returns the settings to try; threads may be bound to the first two CPUs that this program may use.
fn tried(args: &TuneArgs, is_card: bool) -> Result<Vec<Candidate>, Failure> {
    let cpus = allowed_cpus().context("asking for the allowed CPUs")?;
    let mut all = candidates(is_card, &cpus[..cpus.len().min(2)]);
    let mut known: Vec<String> = all.iter().map(|it| it.name.clone()).collect();
    known.dedup();
    let is_known = |name: &&String| !known.iter().any(|it| it.starts_with(&***name));
    if let Some(name) = args.names.iter().find(is_known) {
        return Err(usage(format!(
            "--try {name}: no candidate is called so; there are {}",
            known.join("; ")
        )));
    }
    let begins = |it: &Candidate| args.names.iter().any(|name| it.name.starts_with(&**name));
    all.retain(|it| args.names.is_empty() || begins(it));
    Ok(all)
}

/// Returns the words of the command that sets the choice.
fn words_of(args: &TuneArgs, tune: &Tune) -> Option<Vec<OsString>> {
    let choice = tune.candidate(tune.choice.as_ref()?)?;
    let name = args.name.as_deref().unwrap_or_default();
    let words = choice.command.split(' ');
    let words = words.map(|word| if word == "IF" { name } else { word });
    let netns = args.netns.iter().flat_map(|it| ["--netns", it]);
    Some(words.chain(netns).map(OsString::from).collect())
}

impl TuneArgs {
    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(draw_seed)
    }

    fn store(&self) -> Result<Option<Store>, Failure> {
        (!self.no_store).then(|| self.file.to_write()).transpose()
    }
}

fn show_live(line: &Spinner, progress: &LiveTuneProgress<'_>) {
    match progress {
        LiveTuneProgress::Begins(all) => line.say(format!("{all} candidates are tried in turn.")),
        LiveTuneProgress::Turn {
            block,
            left,
            candidate,
            progress,
        } => {
            line.show(format!(
                "block {block}, {left} left: {candidate}: {progress}"
            ));
        }
        LiveTuneProgress::Final(it) => line.show(it.to_string()),
    }
}

fn show(line: &Spinner, progress: TuneProgress<'_>) {
    match progress {
        TuneProgress::Begins(budget) => {
            let most = budget.race_trials;
            line.say(format!(
                "The race takes at most {most} trials, up to four times as many if they scatter."
            ));
        }
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
