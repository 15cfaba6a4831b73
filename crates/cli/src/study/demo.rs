//! `nicpoll demo`: a built-in study on this machine.

use std::time::Duration;

use clap::Args;
use nicpoll_model::StudyKind;
use nicpoll_model::units::{parse_seconds, parse_time};
use nicpoll_study::demo::{self, POLLING, setting_name, workload_name};
use nicpoll_study::{DemoOptions, plan};

use super::run::{StudyRunArgs, run_planned};
use crate::failure::Failure;
use crate::options::number;

/// Options of `nicpoll demo`.
#[derive(Args, Debug)]
#[command(after_help = demo::EXAMPLES)]
pub struct DemoArgs {
    /// Compare polling with interrupt only, under udp64 and rr, in 11 blocks
    #[arg(long, conflicts_with = "resume")]
    pub quick: bool,
    /// Compare a setting with itself: any difference is chance or the method's error. SETTING is default, interrupt
    /// or polling [default: polling]
    #[arg(
        long,
        value_name = "SETTING",
        value_parser = setting_name,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = POLLING,
        conflicts_with = "resume"
    )]
    pub null: Option<String>,
    /// Time from one round of polls to the next under 'polling' [default: 200us]
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "resume")]
    pub period: Option<Duration>,
    /// Length of a trial, in seconds or with a unit [default: 0.25s]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, conflicts_with = "resume")]
    pub duration: Option<Duration>,
    /// Blocks: how often every workload runs under every setting [default: 16, quick 11]
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::<u32>(1..=1_000))]
    pub repeats: Option<u32>,
    /// Workloads: tcp, udp1470, udp64, rr [default: all, quick: udp64, rr]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = workload_name,
        conflicts_with = "resume"
    )]
    pub workload: Vec<String>,
    /// How it runs and what it prints.
    #[command(flatten)]
    pub study: StudyRunArgs,
}

/// Runs the demo and returns its exit code.
pub fn demo(args: &DemoArgs) -> Result<u8, Failure> {
    let options = DemoOptions {
        quick: args.quick,
        blocks: args.repeats,
        trial: args.duration,
        period: args.period,
        workloads: args.workload.clone(),
        null: args.null.clone(),
    };
    run_planned(
        &args.study,
        StudyKind::Demo,
        args.study.seed,
        "the demo",
        "nicpoll demo",
        |seed| plan(&options, seed),
    )
}
