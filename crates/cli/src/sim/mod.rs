//! `nicpoll sim`: hosts in virtual time.

mod fit_host;
mod published;
mod run;
mod sweep;
mod ticks;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::fit_host::HostFitArgs;
use self::published::{PublishedArgs, PublishedFitArgs};
use self::run::{HostsArgs, SimRunArgs};
use self::sweep::{MergeArgs, SweepArgs};
use self::ticks::TicksArgs;
use crate::failure::Failure;
use crate::output;

/// The simulator in one page, as `cargo xtask page` makes it.
const PAGE: &str = include_str!("../../../../docs/simulator.html");

/// Options of `nicpoll sim`.
#[derive(Args, Debug)]
#[command(long_about = include_str!("../help/sim-about.txt"))]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct SimArgs {
    /// Write the simulator as one page that a browser shows, without a network; what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<SimCommand>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run one load under one discipline, and name the bottleneck
    #[command(after_help = include_str!("../help/sim-run-examples.txt"))]
    Run(Box<SimRunArgs>),
    /// Run a range of loads, or of any number of the host file, under several disciplines
    #[command(after_help = include_str!("../help/sim-sweep-examples.txt"))]
    Sweep(Box<SweepArgs>),
    /// List the built-in hosts and the presets of host files, or print one
    #[command(after_help = include_str!("../help/sim-hosts-examples.txt"))]
    Hosts(HostsArgs),
    /// Join the parts of a sweep or a fit
    #[command(after_help = include_str!("../help/sim-merge-examples.txt"))]
    Merge(MergeArgs),
    /// Sample pulses of work at clock ticks, next to the exact CPU time
    #[command(after_help = include_str!("../help/sim-ticks-examples.txt"))]
    Ticks(TicksArgs),
    /// Simulate published measurements, and show both side by side
    #[command(after_help = include_str!("../help/sim-published-examples.txt"))]
    Published(PublishedArgs),
    /// Fit the costs of published hosts to figures under interrupts, or measure those of this machine
    #[command(after_help = format!("{}\nWith --host:\n{}", include_str!("../help/sim-fit-examples.txt"), include_str!("../help/sim-fit-host-examples.txt")))]
    Fit(FitArgs),
}

/// Options of `nicpoll sim fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    #[command(flatten)]
    pub published: PublishedFitArgs,
    /// Measure this machine instead, in two namespaces joined by a veth pair and removed afterwards
    #[arg(long, conflicts_with_all = ["directory", "write"])]
    pub host: bool,
    #[command(flatten)]
    pub this_machine: HostFitArgs,
}

/// Runs the command and returns its exit code.
pub fn run(args: &SimArgs) -> Result<u8, Failure> {
    if let Some(file) = &args.page {
        output::write_file(file, "The simulator", PAGE)?;
    }
    let Some(command) = &args.command else {
        return Ok(0);
    };
    match command {
        SimCommand::Run(args) => run::run(args),
        SimCommand::Sweep(args) => sweep::run(args),
        SimCommand::Merge(args) => sweep::merge(args),
        SimCommand::Hosts(args) => run::hosts(args),
        SimCommand::Ticks(args) => ticks::run(args),
        SimCommand::Published(args) => published::published(args),
        SimCommand::Fit(args) if args.host => fit_host::run(&args.this_machine),
        SimCommand::Fit(args) => published::fit_hosts(&args.published, args.this_machine.json),
    }
}
