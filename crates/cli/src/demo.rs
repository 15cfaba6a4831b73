//! `nicpoll demo`: a built-in study on this machine.

use nicpoll_model::StudyKind;
use nicpoll_study::{DemoOptions, plan};

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::sitting::carry_out;

/// Runs the demo and returns its exit code.
pub fn demo(args: &DemoArgs) -> Result<u8, Failure> {
    let options = options(args);
    carry_out(
        &args.sitting,
        StudyKind::Demo,
        args.sitting.seed,
        "the demo",
        "nicpoll demo",
        |seed| plan(&options, seed),
    )
}

fn options(args: &DemoArgs) -> DemoOptions {
    DemoOptions {
        quick: args.quick,
        blocks: args.repeats,
        trial: args.duration,
        period: args.period,
        workloads: args.workload.clone(),
        null: args.null.clone(),
    }
}
