//! The options of `nicpoll sim`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use nicpoll_model::time::parse_seconds;
use nicpoll_report::help::sim::{ABOUT, RUN_EXAMPLES, SWEEP_EXAMPLES};
use nicpoll_sim::{Discipline, Host, Workload};

use super::fit_host::{self, HostFitArgs};
use super::hosts::{self, HostsArgs};
use super::merge::{self, MergeArgs};
use super::published::{self, PublishedArgs, PublishedFitArgs};
use super::ticks::{self, TicksArgs};
use super::trace::parse_workload;

/// More points than a plot can show.
const POINTS_MAX: u64 = 1000;

/// Options of `nicpoll sim`.
#[derive(Args, Debug)]
#[command(long_about = ABOUT)]
pub struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run one load under one discipline, and say what held it back
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Run a range of loads, or of any number of the host, under several disciplines
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepArgs>),
    /// List the hosts that the program carries and the presets of host files, or print one
    #[command(after_help = hosts::EXAMPLES)]
    Hosts(HostsArgs),
    /// Put the parts of a sweep together
    #[command(after_help = merge::EXAMPLES)]
    Merge(MergeArgs),
    /// Sample pulses of work at clock ticks, beside the exact figure
    #[command(after_help = ticks::EXAMPLES)]
    Ticks(TicksArgs),
    /// Simulate published measurements, and show both side by side
    #[command(after_help = published::PUBLISHED_EXAMPLES)]
    Published(PublishedArgs),
    /// Fit the costs of published hosts to what was measured under interrupts; or measure those of this machine
    #[command(after_help = format!("{}\n\nWith --host:\n{}", published::FIT_EXAMPLES, fit_host::EXAMPLES))]
    Fit(FitArgs),
}

/// Options of `nicpoll sim fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    #[command(flatten)]
    pub published: PublishedFitArgs,
    /// Measure this machine instead: two namespaces that a veth pair joins, made for it and gone afterwards
    #[arg(long, conflicts_with_all = ["directory", "write"])]
    pub host: bool,
    #[command(flatten)]
    pub this_machine: HostFitArgs,
}

/// How long runs are, and their chance.
#[derive(Args, Debug)]
pub struct Length {
    /// Virtual time that is counted [default: 10s, in a sweep 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Virtual time before it that is not counted [default: 0.5s, or what a poller's burst takes to climb]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub warmup: Option<Duration>,
    /// Seed of all chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run even if that may take more than ten minutes, or more than 4 GiB of memory
    #[arg(long)]
    pub long: bool,
}

/// Options of `nicpoll sim run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The host file, or a name that `nicpoll sim hosts` lists
    #[arg(value_name = "HOSTFILE")]
    pub host: PathBuf,
    /// How the host learns of packets
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "freebsd-interrupt", value_parser = Discipline::parse)]
    pub discipline: Discipline,
    /// What is sent
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "poisson:rate=50k", value_parser = parse_workload)]
    pub workload: Workload,
    /// The host file of the host that receives what this one sends
    #[arg(long, value_name = "HOSTFILE")]
    pub peer: Option<PathBuf>,
    /// How the peer learns of packets [default: as the host]
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", requires = "peer", value_parser = Discipline::parse)]
    pub peer_discipline: Option<Discipline>,
    /// The host file of a router between the two; several stand in the order of the path
    #[arg(long, value_name = "HOSTFILE", requires = "peer")]
    pub through: Vec<PathBuf>,
    /// How routers learn of packets [default: as the host]
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", requires = "through", value_parser = Discipline::parse)]
    pub router_discipline: Option<Discipline>,
    #[command(flatten)]
    pub length: Length,
    /// Tell of the counted time in N parts of equal length too, with every knob at the end of each; with --peer
    /// of each TCP connection
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub slices: u32,
    /// Also write one page that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Name the bottleneck, but do not try what would move it
    #[arg(long)]
    pub no_explain: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `nicpoll sim sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// The host file, or a name that `nicpoll sim hosts` lists
    #[arg(value_name = "HOSTFILE")]
    pub host: PathBuf,
    /// What varies: 'offered' (packets/s), 'clients' or a number of the host file, from, to and how many points
    #[arg(long, value_name = "NAME=FROM..TO:POINTS", default_value = "offered=10k..200k:20", value_parser = Range::parse)]
    pub over: Range,
    /// Disciplines, with their options
    #[arg(
        long,
        value_name = "NAME[:OPTION=VALUE]...",
        value_delimiter = ',',
        default_value = "freebsd-interrupt,freebsd-polling,napi,napi-timer,busy-poll",
        value_parser = Discipline::parse
    )]
    pub disciplines: Vec<Discipline>,
    /// What is sent
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "poisson", value_parser = parse_workload)]
    pub workload: Workload,
    #[command(flatten)]
    pub length: Length,
    #[command(flatten)]
    pub form: Form,
    /// Run the Ith of N parts only; `nicpoll sim merge` puts their JSON together
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, conflicts_with_all = ["svg", "report"])]
    pub shard: Option<Shard>,
}

/// How a sweep is shown.
#[derive(Args, Debug)]
pub struct Form {
    /// Print CSV, a line a point, instead of a table
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the plot to this file too
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write one page that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Values of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// `offered`, `clients`, or a number of the host.
    pub parameter: String,
    /// Each once, the least first.
    pub values: Vec<u64>,
}

impl Range {
    /// A parameter that is no number of the host: packets offered a second.
    pub const OFFERED: &str = "offered";
    /// The other one: clients of the workload.
    pub const CLIENTS: &str = "clients";

    fn parse(text: &str) -> Result<Range, String> {
        let expected = || {
            format!(
                "'{text}' is no range; the form is NAME=FROM..TO:POINTS, as in offered=10k..200k:20"
            )
        };
        let (parameter, range) = text.split_once('=').ok_or_else(expected)?;
        let (ends, points) = range.rsplit_once(':').ok_or_else(expected)?;
        let (from, to) = ends.split_once("..").ok_or_else(expected)?;
        let number = |text| nicpoll_sim::number(text).map_err(|error| error.to_string());
        let (from, to, points) = (number(from)?, number(to)?, number(points)?);
        if from > to {
            return Err(format!("the range {ends} ends before it begins"));
        }
        if !(2..=POINTS_MAX).contains(&points) {
            return Err(format!(
                "a sweep of {points} points; give 2 to {POINTS_MAX}"
            ));
        }
        Range::within_bounds(parameter, from, to)?;
        let steps = u128::from(points - 1);
        let at = |step: u128| from + (u128::from(to - from) * step / steps) as u64;
        let mut values: Vec<u64> = (0..=steps).map(at).collect();
        values.dedup();
        Ok(Range {
            parameter: String::from(parameter),
            values,
        })
    }

    fn within_bounds(parameter: &str, from: u64, to: u64) -> Result<(), String> {
        if parameter == Range::OFFERED {
            let is_rate = from >= 1 && to <= 1_000_000_000;
            return is_rate
                .then_some(())
                .ok_or_else(|| String::from("offered goes from 1 to 1g packets/s"));
        }
        if parameter == Range::CLIENTS {
            let is_possible = from >= 1 && to <= Workload::CLIENTS_MAX;
            return is_possible
                .then_some(())
                .ok_or_else(|| format!("clients goes from 1 to {}", Workload::CLIENTS_MAX));
        }
        if Host::field(parameter).is_none() {
            let names: Vec<_> = Host::FIELDS.iter().map(|field| field.name).collect();
            return Err(format!(
                "no such parameter: '{parameter}'; there are offered, clients, {}",
                names.join(", ")
            ));
        }
        let mut host = Host::default();
        let set = host
            .set(parameter, from)
            .and_then(|()| host.set(parameter, to));
        set.map_err(|error| error.to_string())
    }
}

/// A part of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    fn parse(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/');
        let numbers =
            parts.and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse::<usize>().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard {
                index: number - 1,
                of,
            }),
            _ => Err(format!(
                "'{text}' is no part; the form is I/N with I from 1 to N, as in 1/4"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends() {
        let range = Range::parse("offered=10k..200k:20").unwrap();
        assert_eq!(range.values.len(), 20);
        assert_eq!((range.values[0], range.values[19]), (10_000, 200_000));
        let moderation = Range::parse("card.moderation_ns=0..100us:3").unwrap();
        assert_eq!(moderation.values, [0, 50_000, 100_000]);
        assert_eq!(Range::parse("cpu.hz=1..2:10").unwrap().values, [1, 2]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_remedy() {
        for (text, words) in [
            ("offered", "NAME=FROM..TO:POINTS"),
            ("offered=1..2", "NAME=FROM..TO:POINTS"),
            ("offered=2k..1k:5", "ends before"),
            ("offered=1k..2k:1", "give 2 to 1000"),
            ("offered=0..2k:5", "1 to 1g"),
            ("clients=0..5:5", "1 to 10000"),
            ("clients=1..20k:5", "1 to 10000"),
            ("cpu.speed=1..2:2", "there are offered, clients, cpu.hz"),
            ("cpu.hz=0..10:2", "from 1 to 10000"),
        ] {
            let error = Range::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!(Shard::parse("2/4"), Ok(Shard { index: 1, of: 4 }));
        for wrong in ["", "0/4", "5/4", "1", "1/0", "a/b"] {
            assert!(Shard::parse(wrong).is_err(), "{wrong}");
        }
    }
}
