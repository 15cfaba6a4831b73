//! The command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use nicpoll_iperf::options::help_text;
use nicpoll_traffic::netrate::command::help_text as netrate_help;
use nicpoll_traffic::netrate::options::NetrateTool;

use crate::engine::blast::BlastArgs;
use crate::engine::forward::ForwardArgs;
use crate::engine::sink::SinkArgs;
use crate::engine::sysctl::SysctlArgs;
use crate::interface::ab::AbArgs;
use crate::interface::doctor::DoctorArgs;
use crate::interface::restore::{GuardArgs, RestoreArgs};
use crate::interface::set::SetArgs;
use crate::interface::show::ShowArgs;
use crate::interface::watch::WatchArgs;
use crate::man::ManArgs;
use crate::sim::SimArgs;
use crate::study::StudyArgs;
use crate::study::agent::AgentArgs;
use crate::study::demo::DemoArgs;
use crate::study::serve::ServeArgs;
use crate::study::tune::TuneArgs;
use crate::traffic::linerate::LinerateArgs;
use crate::traffic::rr::RrArgs;

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
    pub command: NicpollCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum NicpollCommand {
    /// Measure interrupts against polling on this machine, in namespaces of its own
    #[command(long_about = nicpoll_study::demo::ABOUT)]
    Demo(DemoArgs),
    /// Compare two settings of an interface under its current traffic
    #[command(long_about = nicpoll_ab::ABOUT)]
    Ab(Box<AbArgs>),
    /// Find the polling setting for an interface: candidates raced, the winner compared
    #[command(long_about = include_str!("help/tune-about.txt"))]
    Tune(Box<TuneArgs>),
    /// Run studies of your own, and list, show, compare and export stored ones
    #[command(long_about = include_str!("help/study-about.txt"))]
    Study(StudyArgs),
    /// Show stored studies in a browser
    #[command(long_about = include_str!("help/serve-about.txt"))]
    Serve(ServeArgs),
    /// Show how interfaces learn of packets: by interrupts or by polling, with the evidence
    #[command(long_about = include_str!("help/show-about.txt"))]
    Show(ShowArgs),
    /// Watch rates, CPU time, interrupts, polls and drops live
    #[command(long_about = include_str!("help/watch-about.txt"))]
    Watch(WatchArgs),
    /// Check what this machine supports, and what would disturb measurements on it
    #[command(long_about = include_str!("help/doctor-about.txt"))]
    Doctor(DoctorArgs),
    /// Switch interfaces to polling and back
    #[command(long_about = include_str!("help/set-about.txt"))]
    Set(Box<SetArgs>),
    /// Restore everything that nicpoll changed
    #[command(long_about = include_str!("help/restore-about.txt"))]
    Restore(RestoreArgs),
    /// Undo a change that is not confirmed in time
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Serve the controller of a study at standard input
    #[command(hide = true)]
    Agent(AgentArgs),
    /// Send or receive traffic, with the options of iperf 2
    #[command(disable_help_flag = true, override_help = help_text())]
    Iperf(OwnArgs),
    /// Send datagrams as fast as possible, as FreeBSD's netblast does
    #[command(disable_help_flag = true, override_help = netrate_help(NetrateTool::Netblast))]
    Netblast(OwnArgs),
    /// Receive and count datagrams, as FreeBSD's netreceive does
    #[command(disable_help_flag = true, override_help = netrate_help(NetrateTool::Netreceive))]
    Netreceive(OwnArgs),
    /// Send datagrams at a steady rate, as FreeBSD's netsend does
    #[command(disable_help_flag = true, override_help = netrate_help(NetrateTool::Netsend))]
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
    #[command(after_help = include_str!("help/man-examples.txt"))]
    Man(ManArgs),
}

impl NicpollCommand {
    /// The machine on which the command is to run, if it is another one.
    pub fn elsewhere(&self) -> Option<&str> {
        let there = match self {
            NicpollCommand::Ab(args) => &args.there,
            NicpollCommand::Show(args) => &args.there,
            NicpollCommand::Doctor(args) => &args.there,
            NicpollCommand::Set(args) => &args.there,
            NicpollCommand::Restore(args) => &args.there,
            _ => return None,
        };
        there.host.as_deref()
    }
}

/// Arguments of a command that parses them itself, as the program that it replaces does.
#[derive(Debug, Args)]
pub struct OwnArgs {
    /// Arguments of the original program; '--help' lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub args: Vec<String>,
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
