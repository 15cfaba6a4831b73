//! A study that this program carries out: its lab, the line of progress, its store, its page and the exit code.

use std::path::Path;

use anyhow::Context;
use nicpoll_calibrate::{predict, simulated_figures};
use nicpoll_model::sim_fit_host::Simulated;
use nicpoll_model::{Plan, StudyKind};
use nicpoll_report::render_html;
use nicpoll_stats::order::Seed;
use nicpoll_store::{Store, Which};
use nicpoll_study::{
    Design, Identity, PlanError, Sitting, draw_seed, is_decided, require_lab, require_state,
};
use nicpoll_switch::{Journal, guard_of_this_program};
use nicpoll_sys::tell;

use crate::args::SittingArgs;
use crate::failure::{EXIT_INCONCLUSIVE, Failure, gated};
use crate::host_file::read_host;
use crate::output;
use crate::progress::Line;
use crate::stop::Stop;

/// Runs the study that `planned` makes of a seed and returns the exit code. It is stored as `kind`. `what` is to run,
/// as `command`. Without a `seed` one is drawn. What the simulator says of it is reckoned beforehand and kept with it.
pub fn carry_out(
    args: &SittingArgs,
    kind: StudyKind,
    seed: Option<u64>,
    what: &str,
    command: &str,
    planned: impl FnOnce(Seed) -> Result<(Design, Plan), PlanError>,
) -> Result<u8, Failure> {
    if args.resume.is_some() {
        return resume(args);
    }
    let seed = seed.unwrap_or_else(draw_seed);
    let (design, plan) = planned(Seed(seed)).map_err(|error| Failure::Usage(error.to_string()))?;
    let simulated = args.simulate.as_deref();
    let identity = Identity {
        simulated: simulated
            .map(|host| simulated_on(host, &design))
            .transpose()?,
        ..Identity::new(output::origin(), seed)
    };
    output::require_place_for(args.report.as_deref())?;
    require(what, command)?;
    let stop = Stop::on_signals().context("catching signals")?;
    let file = (!args.no_store).then(|| args.file.place()).transpose()?;
    let store = file.map(Store::to_write).transpose()?;
    let store = store.map(|store| (store, kind));
    end(args, Sitting::new(design, plan, identity, store), &stop)
}

/// What a host file's machine would do with a study's traffic.
fn simulated_on(path: &Path, design: &Design) -> Result<Simulated, Failure> {
    let host = read_host(path)?;
    let rows = design
        .to_simulate()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let predictions =
        predict(&host, &rows).with_context(|| format!("simulating {}", path.display()))?;
    Ok(Simulated {
        host: path.display().to_string(),
        figures: simulated_figures(&predictions),
    })
}

/// Goes on with the stored study that the options name, and returns the exit code.
pub fn resume(args: &SittingArgs) -> Result<u8, Failure> {
    output::require_place_for(args.report.as_deref())?;
    require("a study", "nicpoll study run")?;
    let identity = Identity::new(output::origin(), 0);
    let stop = Stop::on_signals().context("catching signals")?;
    let store = Store::to_write(args.file.place()?)?;
    let which = args.resume.unwrap_or(Which::Last);
    end(args, Sitting::resumed(store, which, &identity)?, &stop)
}

fn require(what: &str, command: &str) -> Result<(), Failure> {
    require_lab(what, command)?;
    Ok(require_state(&Journal::of_this_machine())?)
}

fn end(args: &SittingArgs, sitting: Sitting, stop: &Stop) -> Result<u8, Failure> {
    let guard = guard_of_this_program().context("finding this program")?;
    let line = Line::new(sitting.plan());
    let ended = sitting.run_here(args.keep, guard, stop.asked(), |it| line.show(it))?;
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
        output::write_report(file, &render_html(study))?;
    }
    ended.unstored.map_or(Ok(()), Err)?;
    let study = study?;
    Ok(match &args.fail_on {
        Some(limit) => gated(limit.of_study(&study)),
        None if is_decided(&study) => 0,
        None => EXIT_INCONCLUSIVE,
    })
}
