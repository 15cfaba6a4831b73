//! `nicpoll study run`: a study that a file describes.

use std::error::Error;

use nicpoll_model::StudyKind;
use nicpoll_report::{render_document, render_plan_text};
use nicpoll_stats::order::Seed;
use nicpoll_study::{StudyFile, draw_seed, plan_of};

use super::args::RunArgs;
use crate::failure::Failure;
use crate::output;
use crate::sitting::{carry_out, resume};

/// Runs it, or shows what it would do, and returns the exit code.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let Some(path) = &args.study else {
        return resume(&args.sitting);
    };
    let file = asked_of(args, StudyFile::find(path)?)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let seed = args.sitting.seed.or(file.seed);
    if args.dry_run {
        let plan = file.plan(Seed(seed.unwrap_or_else(draw_seed)));
        let plan = plan.map_err(|error| Failure::Usage(error.to_string()))?;
        output::print(&match args.sitting.json {
            true => render_document(&plan),
            false => render_plan_text(&plan, &output::text_options()),
        })?;
        return Ok(0);
    }
    let command = format!("nicpoll study run {}", path.display());
    let kind = StudyKind::Study;
    carry_out(&args.sitting, kind, seed, "a study", &command, |seed| {
        let plan = plan_of(&file.design, &file.lengths, seed)?;
        Ok((file.design, plan))
    })
}

/// The study with what the options ask of it.
fn asked_of(args: &RunArgs, mut file: StudyFile) -> Result<StudyFile, Box<dyn Error>> {
    if args.full {
        file = file.at_full_length()?;
    }
    if !args.workload.is_empty() {
        file = file.with_workloads(&args.workload)?;
    }
    if let Some(rates) = &args.sweep {
        file = file.swept_over(rates)?;
    }
    Ok(file)
}
