//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use nicpoll_iperf::options::help_text;
use nicpoll_model::time::{parse_seconds, parse_time};
use nicpoll_store::{Place, StoreError, Which};
use nicpoll_study::FailOn;
use nicpoll_study::demo::{self, POLLING, setting_name, workload_name};
use nicpoll_traffic::netrate::command::help_text as netrate_help;
use nicpoll_traffic::netrate::options::Tool;

use crate::ab::AbArgs;
use crate::blast::BlastArgs;
use crate::doctor::{self, DoctorArgs};
use crate::forward::ForwardArgs;
use crate::guard::GuardArgs;
use crate::linerate::LinerateArgs;
use crate::man::{self, ManArgs};
use crate::rr::RrArgs;
use crate::serve::ServeArgs;
use crate::set::args::{RESTORE_ABOUT, RestoreArgs, SET_ABOUT, SetArgs};
use crate::show::{self, ShowArgs};
use crate::sim::SimArgs;
use crate::sink::SinkArgs;
use crate::study::{self, args::StudyArgs};
use crate::sysctl::SysctlArgs;
use crate::watch::{self, WatchArgs};

/// Measure interrupts against polling, switch network interfaces, and simulate hosts
#[derive(Debug, Parser)]
#[command(
    name = "nicpoll",
    version = env!("NICPOLL_VERSION"),
    long_version = concat!(env!("NICPOLL_VERSION"), "\nfeatures: ", env!("NICPOLL_FEATURES")),
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure interrupts against polling on this machine, in namespaces of its own
    #[command(long_about = demo::ABOUT)]
    Demo(DemoArgs),
    /// Compare two settings of an interface with the traffic that it has now
    #[command(long_about = nicpoll_study::ab::ABOUT)]
    Ab(Box<AbArgs>),
    /// Run studies of your own, and list, show, compare and export stored ones
    #[command(long_about = study::args::ABOUT)]
    Study(StudyArgs),
    /// Show stored studies in a browser
    #[command(long_about = nicpoll_report::help::serve::ABOUT)]
    Serve(ServeArgs),
    /// Show how interfaces learn of packets: by interrupts or by polling, with the evidence
    #[command(long_about = show::ABOUT)]
    Show(ShowArgs),
    /// Watch rates, CPU time, interrupts, polls and drops live
    #[command(long_about = watch::ABOUT)]
    Watch(WatchArgs),
    /// Check what this machine supports, and what would disturb measurements on it
    #[command(long_about = doctor::ABOUT)]
    Doctor(DoctorArgs),
    /// Switch interfaces to polling and back
    #[command(long_about = SET_ABOUT)]
    Set(Box<SetArgs>),
    /// Restore everything that nicpoll changed
    #[command(long_about = RESTORE_ABOUT)]
    Restore(RestoreArgs),
    /// Undo a change that is not confirmed in time
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Send or receive traffic, with the options of iperf 2
    #[command(disable_help_flag = true, override_help = help_text())]
    Iperf(OwnArgs),
    /// Send datagrams as fast as possible, as FreeBSD's netblast does
    #[command(disable_help_flag = true, override_help = netrate_help(Tool::Netblast))]
    Netblast(OwnArgs),
    /// Receive and count datagrams, as FreeBSD's netreceive does
    #[command(disable_help_flag = true, override_help = netrate_help(Tool::Netreceive))]
    Netreceive(OwnArgs),
    /// Send datagrams at a steady rate, as FreeBSD's netsend does
    #[command(disable_help_flag = true, override_help = netrate_help(Tool::Netsend))]
    Netsend(OwnArgs),
    /// Measure request/response latency over UDP or TCP
    Rr(RrArgs),
    /// Send frames as fast as they go, or at a rate, past the kernel's stack
    Blast(Box<BlastArgs>),
    /// Receive packets by polling, past the kernel's stack, and count them
    Sink(Box<SinkArgs>),
    /// Forward packets between interfaces past the kernel's stack, by the kernel's routes
    Forward(ForwardArgs),
    /// Read and write the knobs of a running engine, as FreeBSD's sysctl(8) does
    Sysctl(SysctlArgs),
    /// Simulate hosts that receive packets under interrupts, polling and NAPI
    Sim(SimArgs),
    /// Show what an Ethernet line carries, and what share of it a rate takes
    Linerate(LinerateArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  nicpoll completions bash > \
        /usr/share/bash-completion/completions/nicpoll")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of a command, or write those of all
    #[command(after_help = man::EXAMPLES)]
    Man(ManArgs),
}

/// Arguments of a command that parses them as the program it stands in for.
#[derive(Debug, Args)]
pub struct OwnArgs {
    /// Arguments of that program; '--help' lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub args: Vec<String>,
}

/// Where studies are stored.
#[derive(Args, Debug)]
pub struct StoreFile {
    /// File of the studies, or a team's server: postgres://HOST/DATABASE [default: studies.db in the data
    /// folder, see docs/store.md]
    #[arg(long, value_name = "FILE")]
    pub store: Option<Place>,
}

impl StoreFile {
    /// The one that was named, or that of the user.
    pub fn place(&self) -> Result<Place, StoreError> {
        self.store.clone().map_or_else(Place::of_user, Ok)
    }
}

/// Options of `nicpoll demo`.
#[derive(Args, Debug)]
#[command(after_help = demo::EXAMPLES)]
pub struct DemoArgs {
    /// Compare polling with interrupt only, under udp64 and rr, in 11 blocks
    #[arg(long, conflicts_with = "resume")]
    pub quick: bool,
    /// Compare a setting with itself: a difference would be the instrument's. SETTING is default,
    /// interrupt or polling [default: polling]
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
    #[arg(long, value_name = "N", conflicts_with = "resume")]
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
    /// How it is carried out and printed.
    #[command(flatten)]
    pub sitting: SittingArgs,
}

/// Options of what carries out a study.
#[derive(Args, Debug)]
pub struct SittingArgs {
    /// Exit with 3 when a verdict proves this: worse, worse:5%, different or different:5%
    #[arg(long, value_name = "LIMIT")]
    pub fail_on: Option<FailOn>,
    /// Seed of the random order [default: random; it is printed]
    #[arg(long, value_name = "N")]
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
    /// Keep beside the figures what the simulator says of a host: a file of 'nicpoll sim fit --host', or a name
    /// that 'nicpoll sim hosts' lists
    #[arg(long, value_name = "HOST", conflicts_with = "resume")]
    pub simulate: Option<PathBuf>,
    /// Go on with a study that was stopped or killed: its number, or 'last' for the newest such one
    #[arg(long, value_name = "STUDY", conflicts_with_all = ["seed", "no_store"])]
    pub resume: Option<Which>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
