//! `nicpoll study run`: runs a study from a file, or resumes a stored one. `demo` runs its built-in study the same
//! way.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nicpoll_calibrate::{predict, simulated_figures};
use nicpoll_lab::{Refused, draw_seed, require_lab, require_state, still_runs};
use nicpoll_model::sim::Simulated;
use nicpoll_model::units::parse_seconds;
use nicpoll_model::{Plan, StudyKind};
use nicpoll_report::render_html;
use nicpoll_stats::order::Seed;
use nicpoll_store::Which;
use nicpoll_study::{
    Design, FailOn, Identity, Session, StudyFile, SweepRates, hosts_of, is_decided, plan_of,
};
use nicpoll_switch::{Journal, guard_of_this_program};
use nicpoll_sys::stdio::read_text;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use crate::failure::{EXIT_INCONCLUSIVE, Failure, gated};
use crate::options::{StoreFile, number, read_host};
use crate::output;
use crate::progress::StudyLine;
use crate::reading::confined;
use crate::study::stored::reading;

/// Limit of the bytes of a file with hosts.
const HOSTS_BYTES_MAX: u64 = 64 << 10;

/// Options of `nicpoll study run`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-run-examples.txt"))]
pub struct RunArgs {
    /// The study: a file with settings, workloads and comparisons (docs/studies.md), or the name of a
    /// ready one, which 'nicpoll study list' lists
    #[arg(
        value_name = "FILE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub study: Option<PathBuf>,
    /// Run it at the full length that its file states; of a ready study, that of the published experiment
    #[arg(long, conflicts_with = "resume")]
    pub full: bool,
    /// Let it take this long in place of what its file says: 5m. It stops early when all blocks are done
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, conflicts_with = "resume")]
    pub time: Option<Duration>,
    /// Run only these of its workloads
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "resume"
    )]
    pub workload: Vec<String>,
    /// Run each workload with a rate at each of these rates, in packets a second or percent of the knee, the greatest
    /// rate that every setting holds: rate=20000,40000 or rate=50%,100%,150%
    #[arg(long, value_name = "RATES", conflicts_with = "resume")]
    pub sweep: Option<SweepRates>,
    /// Run it on the machines of this file, in place of the links and hosts that the study names (docs/hosts.md)
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub hosts: Option<PathBuf>,
    /// Show what would be set, in which order and for how long, without doing it
    #[arg(long, conflicts_with_all = ["brief", "resume", "simulate"])]
    pub dry_run: bool,
    /// Refused, with the reason
    #[arg(long, value_name = "VERDICT", hide = true, value_parser = no_verdict)]
    pub continue_until: Option<Infallible>,
    /// How it runs and what it prints.
    #[command(flatten)]
    pub options: StudyRunArgs,
}

fn no_verdict(_: &str) -> Result<Infallible, String> {
    Err(String::from(
        "a study that goes on until it finds a verdict finds one by chance; let it stop by the width of its intervals \
         (docs/method.md, docs/studies.md)",
    ))
}

/// Options of the commands that run a study.
#[derive(Args, Debug)]
pub struct StudyRunArgs {
    /// Exit with 3 when a verdict proves this: worse, worse:5%, different or different:5%
    #[arg(long, value_name = "LIMIT")]
    pub fail_on: Option<FailOn>,
    /// Seed of the random order [default: random; it is printed]
    #[arg(long, value_name = "N", value_parser = number::<u64>(..))]
    pub seed: Option<u64>,
    /// Print the answer alone: one screen of 24 lines
    #[arg(long, conflicts_with = "json")]
    pub brief: bool,
    /// Print one JSON object instead of tables (docs/schema.md)
    #[arg(long)]
    pub json: bool,
    /// Also write one page with plots that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Store the simulator's prediction for a host with the figures: a file of 'nicpoll sim fit --host', or a name
    /// that 'nicpoll sim hosts' lists
    #[arg(long, value_name = "HOST", conflicts_with = "resume")]
    pub simulate: Option<PathBuf>,
    /// Resume a study that was stopped or killed: its number, or 'last' for the newest such one
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["seed", "no_store"])]
    pub resume: Option<Which>,
    /// Resume even if sysctls, governor, kernel or machine have changed
    #[arg(long, requires = "resume")]
    pub anyway: bool,
    /// Store nothing
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,
    /// Where the study is stored.
    #[command(flatten)]
    pub file: StoreFile,
    /// Keep both namespaces and give them names for 'ip netns'
    #[arg(long)]
    pub keep: bool,
}

/// Runs the study, or shows its plan, and returns the exit code.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    if let Some(never) = args.continue_until {
        match never {}
    }
    let Some(path) = &args.study else {
        return resume(&args.options);
    };
    let file = read_study(path, args.hosts.as_deref())?;
    let file = asked_of(args, file)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let seed = args.options.seed.or(file.seed);
    if args.dry_run {
        let plan = file.plan(Seed(seed.unwrap_or_else(draw_seed)))?;
        output::print_document(&plan, args.options.json)?;
        return Ok(0);
    }
    let command = format!("nicpoll study run {}", path.display());
    let kind = StudyKind::Study;
    run_planned(&args.options, kind, seed, "a study", &command, |seed| {
        let plan = plan_of(&file.design, &file.lengths, seed)?;
        Ok((file.design, plan))
    })
}

/// Reads a study, with the machines of its hosts if a file names them, and checks it against this machine.
pub fn read_study(path: &Path, hosts: Option<&Path>) -> Result<StudyFile, Failure> {
    let open = || Ok((StudyFile::text_of(path)?, hosts_text(hosts)?));
    let (file, text) = confined(open, |(text, hosts)| {
        let hosts = hosts
            .map(|(path, text)| hosts_of(path, &text))
            .transpose()?;
        Ok((StudyFile::of_text(path, &text, hosts)?, text))
    })?;
    file.check_here(path, &text)?;
    Ok(file)
}

/// Reads the text of the file with the hosts' machines.
fn hosts_text(path: Option<&Path>) -> Result<Option<(&Path, String)>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let text = read_text(path, HOSTS_BYTES_MAX)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(Some((path, text)))
}

/// Applies the options to the study.
fn asked_of(args: &RunArgs, mut file: StudyFile) -> Result<StudyFile, Refused> {
    if args.full {
        file = file.at_full_length()?;
    }
    if args.time.is_some() {
        file.lengths.limit = args.time;
    }
    if !args.workload.is_empty() {
        file = file.with_workloads(&args.workload)?;
    }
    if let Some(rates) = &args.sweep {
        file = file.swept_over(rates)?;
    }
    Ok(file)
}

/// Runs the study that `planned` makes of the seed (drawn, if none is given), stores it as `kind`, and returns the
/// exit code. The simulator's prediction is computed first and stored with it.
pub fn run_planned(
    args: &StudyRunArgs,
    kind: StudyKind,
    seed: Option<u64>,
    what: &str,
    command: &str,
    planned: impl FnOnce(Seed) -> Result<(Design, Plan), Refused>,
) -> Result<u8, Failure> {
    if args.resume.is_some() {
        return resume(args);
    }
    let seed = seed.unwrap_or_else(draw_seed);
    let (design, plan) = planned(Seed(seed))?;
    let simulated = args.simulate.as_deref();
    let identity = Identity {
        simulated: simulated
            .map(|host| simulated_on(host, &design))
            .transpose()?,
        ..Identity::new(output::origin(), seed)
    };
    output::require_place_for(args.report.as_deref())?;
    // The hosts' agents require what they need.
    if design.topology.hosts.is_none() {
        require(what, command)?;
    }
    let stop = Stop::on_signals().context("catching signals")?;
    let store = (!args.no_store).then(|| args.file.to_write()).transpose()?;
    let store = store.map(|store| (store, kind));
    end(args, Session::new(design, plan, identity, store), &stop)
}

/// Simulates a study's traffic on the machine of a host file.
fn simulated_on(path: &Path, design: &Design) -> Result<Simulated, Failure> {
    let host = read_host(path)?;
    let rows = design.to_simulate()?;
    let predictions =
        predict(&host, &rows).with_context(|| format!("simulating {}", path.display()))?;
    Ok(Simulated {
        host: path.display().to_string(),
        figures: simulated_figures(&predictions),
    })
}

/// Resumes the stored study that the options name, and returns the exit code.
pub fn resume(args: &StudyRunArgs) -> Result<u8, Failure> {
    output::require_place_for(args.report.as_deref())?;
    let identity = Identity::new(output::origin(), 0);
    let which = args.resume.unwrap_or(Which::Last);
    let kept = reading(&args.file, |store| Ok(store.unfinished(which, still_runs)?))?;
    let design: Design = serde_json::from_str(&kept.design)?;
    if design.topology.hosts.is_none() {
        require("a study", "nicpoll study run")?;
    }
    let stop = Stop::on_signals().context("catching signals")?;
    let session = Session::resumed(args.file.to_write()?, kept, identity, args.anyway)?;
    end(args, session, &stop)
}

/// Requires what a lab on this machine takes.
pub fn require(what: &str, command: &str) -> Result<(), Failure> {
    require_lab(what, command)?;
    Ok(require_state(&Journal::of_this_machine())?)
}

fn end(args: &StudyRunArgs, session: Session, stop: &Stop) -> Result<u8, Failure> {
    let guard = guard_of_this_program().context("finding this program")?;
    let line = StudyLine::new(session.plan());
    let ended = session.run_here(args.keep, guard, stop.asked(), |it| line.show(it))?;
    drop(line);
    let study = ended
        .outcome
        .map_err(|error| stop.signal().map_or_else(|| error.into(), Failure::Signal));
    if let Ok(study) = &study {
        output::print_study(study, args.json, args.brief)?;
    }
    if let Some(place) = ended.place {
        let is_finished = study.is_ok() && ended.unstored.is_none();
        tell!("{}", place.sentence(is_finished));
    }
    if let (Ok(study), Some(file)) = (&study, &args.report) {
        let mut study = study.clone();
        study.leave_out_names();
        output::write_report(file, &render_html(&study))?;
    }
    ended.unstored.map_or(Ok(()), Err)?;
    let study = study?;
    Ok(match &args.fail_on {
        Some(limit) => {
            let (code, said) = gated(&limit.of_study(&study));
            if let Some(said) = said {
                tell!("{said}");
            }
            code
        }
        None if is_decided(&study) => 0,
        None => EXIT_INCONCLUSIVE,
    })
}
