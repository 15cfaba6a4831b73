//! `nicpoll demo`: a built-in study on this machine.

use std::env;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use nicpoll_model::{Plan, Study, Verdict};
use nicpoll_stats::order::Seed;
use nicpoll_store::Store;
use nicpoll_study::{
    Ended, Identity, Lab, Options, Sitting, Veth, draw_seed, plan, require_lab, require_state,
};
use nicpoll_switch::{Journal, guard_of_this_program};
use nicpoll_sys::tell;

use crate::args::DemoArgs;
use crate::failure::{EXIT_INCONCLUSIVE, Failure};
use crate::output;
use crate::progress::Line;
use crate::stop::Stop;

/// Blocks that an interval takes: with fewer planned, being inconclusive is what was asked for.
const BLOCKS_FOR_INTERVALS: u32 = 3;

/// Runs the demo and returns its exit code.
pub fn demo(args: &DemoArgs) -> Result<u8, Failure> {
    let begin = Instant::now();
    let seed = args.seed.unwrap_or_else(draw_seed);
    let (design, plan) =
        plan(&options(args), Seed(seed)).map_err(|error| Failure::Usage(error.to_string()))?;
    require_lab("the demo", "nicpoll demo")?;
    require_state(&Journal::of_this_machine())?;

    let stop = Stop::on_signals().context("catching signals")?;
    let identity = Identity {
        version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at: output::now(),
        begin,
        seed,
    };
    let file = (!args.no_store).then(|| args.file.path()).transpose()?;
    let store = file.map(|file| Store::to_write(&file)).transpose()?;
    let sitting = match (args.resume, store) {
        (Some(which), Some(store)) => Sitting::resumed(store, which, &identity)?,
        (_, store) => Sitting::new(design, plan, identity, store),
    };
    let Ended {
        outcome,
        place,
        unstored,
    } = run(args.keep, sitting, &stop)?;
    let study =
        outcome.map_err(|error| stop.signal().map_or_else(|| error.into(), Failure::Signal));
    if let Ok(study) = &study {
        output::print_study(study, args.json, args.brief)?;
    }
    if let Some(place) = place {
        let is_finished = study.is_ok() && unstored.is_none();
        tell!("{}", place.sentence(is_finished));
    }
    unstored.map_or(Ok(()), Err)?;
    let study = study?;
    let verdicts = study.comparisons.iter().filter_map(|one| one.verdict);
    Ok(exit_code(&study.plan, is_null(&study), verdicts))
}

fn run(keep: bool, sitting: Sitting, stop: &Stop) -> Result<Ended, Failure> {
    let veth = Arc::new(Veth::build().context("building the lab")?);
    let guard = guard_of_this_program().context("finding this program")?;
    let (_guard, mut lab) =
        Lab::guarded(&veth, &Journal::of_this_machine(), guard).context("building the lab")?;
    if keep {
        lab.kept_as = veth.keep().map_err(anyhow::Error::from)?;
    }
    let line = Line::new(sitting.plan());
    Ok(sitting.run(&mut lab, stop.asked(), |progress| line.show(progress)))
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

/// Whether a study compares a setting with itself; one that was resumed has no options to tell.
fn is_null(study: &Study) -> bool {
    matches!(&study.settings[..], [one, other] if one.writes == other.writes)
}

/// 4 where nothing was decided. A setting that is compared with itself passes by not being told apart.
fn exit_code(plan: &Plan, is_null: bool, mut verdicts: impl Iterator<Item = Verdict>) -> u8 {
    let is_answer =
        |word: Verdict| word.is_decided() || (is_null && word == Verdict::NoDifferenceProven);
    if plan.blocks < BLOCKS_FOR_INTERVALS || verdicts.any(is_answer) {
        0
    } else {
        EXIT_INCONCLUSIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    fn code(blocks: u32, is_null: bool, words: &[Verdict]) -> u8 {
        let options = Options {
            blocks: Some(blocks),
            ..Options::default()
        };
        let (_, plan) = plan(&options, Seed(1)).unwrap();
        exit_code(&plan, is_null, words.iter().copied())
    }

    #[test]
    fn a_study_that_decides_nothing_ends_with_4() {
        for word in [NoDifferenceProven, DependsOnWhatCounts, Inconclusive] {
            assert_eq!(code(10, false, &[word, word]), 4, "{word}");
            assert_eq!(code(10, false, &[word, Equivalent]), 0, "{word}");
        }
        // All comparisons were given up.
        assert_eq!(code(10, false, &[]), 4);
        // So few blocks have no intervals: that is what was asked for.
        assert_eq!(code(1, false, &[Inconclusive]), 0);
    }

    #[test]
    fn a_setting_that_is_not_told_from_itself_is_no_failure() {
        assert_eq!(code(10, true, &[NoDifferenceProven]), 0);
        assert_eq!(code(10, true, &[DependsOnWhatCounts]), 4);
        assert_eq!(code(10, true, &[Inconclusive]), 4);
    }
}
