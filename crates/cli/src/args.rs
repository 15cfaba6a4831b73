//! The command line.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use nicpoll_model::time::{parse_seconds, parse_time};
use nicpoll_study::demo::workload_name;

use crate::doctor::{self, DoctorArgs};
use crate::guard::GuardArgs;
use crate::linerate::LinerateArgs;
use crate::rr::RrArgs;
use crate::set::args::{RESTORE_ABOUT, RestoreArgs, SET_ABOUT, SetArgs};
use crate::show::{self, ShowArgs};
use crate::sim::SimArgs;
use crate::watch::{self, WatchArgs};

/// Interrupts or polling? Measures it on this machine, and switches.
#[derive(Debug, Parser)]
#[command(name = "nicpoll", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure interrupts against polling on this machine, in namespaces of its own
    #[command(long_about = DEMO_ABOUT)]
    Demo(DemoArgs),
    /// Show what interfaces can do and do: polling or interrupts, by evidence
    #[command(long_about = show::ABOUT)]
    Show(ShowArgs),
    /// Watch interfaces, CPUs, interrupts, polls and drops as they go
    #[command(long_about = watch::ABOUT)]
    Watch(WatchArgs),
    /// Check what this machine can do, and what would blur a measurement on it
    #[command(long_about = doctor::ABOUT)]
    Doctor(DoctorArgs),
    /// Switch interfaces to polling and back
    #[command(long_about = SET_ABOUT)]
    Set(Box<SetArgs>),
    /// Put back everything that nicpoll changed
    #[command(long_about = RESTORE_ABOUT)]
    Restore(RestoreArgs),
    /// Undo a change that nobody confirms
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Send or receive traffic as iperf 2 does, with its options
    #[command(disable_help_flag = true)]
    Iperf(OwnArgs),
    /// Send datagrams as fast as it goes, as FreeBSD's netblast does
    #[command(disable_help_flag = true)]
    Netblast(OwnArgs),
    /// Receive and count datagrams, as FreeBSD's netreceive does
    #[command(disable_help_flag = true)]
    Netreceive(OwnArgs),
    /// Send datagrams at a steady rate, as FreeBSD's netsend does
    #[command(disable_help_flag = true)]
    Netsend(OwnArgs),
    /// Ask and answer over UDP or TCP, and tell how long the answers take
    Rr(RrArgs),
    /// Simulate hosts that receive packets: what would interrupts, polling and their like do?
    Sim(SimArgs),
    /// Say what an Ethernet line carries, and what share of it a rate is
    Linerate(LinerateArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  nicpoll completions bash > \
        /usr/share/bash-completion/completions/nicpoll")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = "Example:\n  nicpoll man > /usr/local/share/man/man1/nicpoll.1")]
    Man,
}

/// Arguments of a command that reads them by the rules of the program whose part it takes.
#[derive(Debug, Args)]
pub struct OwnArgs {
    /// That program's own arguments; '--help' among them lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub args: Vec<String>,
}

const DEMO_ABOUT: &str = "\
Measure interrupts against polling on this machine, in namespaces of its own

Builds two network namespaces joined by a veth pair, drives TCP, large and small UDP packets and
request/response through the kernel's receive path as it comes (default), with its NAPI woken by
arrivals (interrupt) and with its NAPI woken by a timer (polling), and says what changed: rates,
loss and where it happened, latency, CPU time.

It needs root, two CPUs and Linux 6.13 or later. It touches no interface of this machine and leaves
nothing behind. The link is virtual: it shows the kernel's receive path, not a card's interrupts.";

const DEMO_EXAMPLES: &str = "\
Examples:
  nicpoll demo                            all workloads, 6 blocks, about three minutes
  nicpoll demo --quick                    large effects only, about 40 seconds
  nicpoll demo --period 100us --workload udp64,rr
  nicpoll demo --repeats 20 --json > study.json
  nicpoll demo --quick --seed 7           the same order of trials again

Exit codes: 0 done, 1 failed, 2 usage, 4 too many trials were void to conclude, 5 a privilege or
kernel feature is missing, 130 and 143 ended by a signal.";

/// Options of `nicpoll demo`.
#[derive(Args, Debug)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// 3 blocks of 0.4 s trials: shows large effects only
    #[arg(long)]
    pub quick: bool,
    /// Time from poll to poll under 'polling', such as 200us [default: 200us]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub period: Option<Duration>,
    /// Length of a trial, in seconds or with a unit [default: 1.5s, quick 0.4s]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Blocks: how often every workload runs under every setting [default: 6, quick 3]
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Workloads: tcp, udp1470, udp64, rr [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = workload_name)]
    pub workload: Vec<String>,
    /// Seed of the random order [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print one JSON object instead of tables (docs/schema.md)
    #[arg(long)]
    pub json: bool,
    /// Keep both namespaces, by name, for a look with 'ip netns'
    #[arg(long)]
    pub keep: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
