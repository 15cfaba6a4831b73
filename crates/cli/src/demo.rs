//! `nicpoll demo`: a built-in study on this machine.

use std::env;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use nicpoll_model::{Plan, Study, Verdict};
use nicpoll_report::{render_brief_text, render_json, render_text};
use nicpoll_stats::order::Seed;
use nicpoll_study::{
    Design, Identity, Lab, Options, Veth, draw_seed, plan, require_lab, require_state, run_study,
};
use nicpoll_switch::{Journal, guard_of_this_program};

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
    let study = match run(args.keep, &design, plan, identity, &stop) {
        Ok(study) => study,
        Err(error) => return Err(stop.signal().map_or_else(|| error.into(), Failure::Signal)),
    };
    print(&study, args)?;
    let verdicts = study.comparisons.iter().filter_map(|one| one.verdict);
    Ok(exit_code(&study.plan, args.null.is_some(), verdicts))
}

fn run(
    keep: bool,
    design: &Design,
    plan: Plan,
    identity: Identity,
    stop: &Stop,
) -> anyhow::Result<Study> {
    let veth = Arc::new(Veth::build().context("building the lab")?);
    let guard = guard_of_this_program().context("finding this program")?;
    let (_guard, mut lab) =
        Lab::guarded(&veth, &Journal::of_this_machine(), guard).context("building the lab")?;
    if keep {
        lab.kept_as = veth.keep()?;
    }
    let line = Line::new(&plan);
    let study = run_study(&mut lab, design, plan, identity, stop.asked(), |progress| {
        line.show(progress);
    });
    Ok(study?)
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

fn print(study: &Study, args: &DemoArgs) -> Result<(), Failure> {
    let options = output::text_options();
    let text = match (args.json, args.brief) {
        (true, _) => render_json(study),
        (false, true) => render_brief_text(study, &options),
        (false, false) => render_text(study, &options),
    };
    Ok(output::print(&text)?)
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
