//! The command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use nicpoll_iperf::options::help_text;
use nicpoll_traffic::netrate::command::help_text as netrate_help;
use nicpoll_traffic::netrate::options::Tool;

use crate::engine::blast::BlastArgs;
use crate::engine::forward::ForwardArgs;
use crate::engine::sink::SinkArgs;
use crate::engine::sysctl::SysctlArgs;
use crate::interface::ab::AbArgs;
use crate::interface::doctor::{self, DoctorArgs};
use crate::interface::restore::{GuardArgs, RESTORE_ABOUT, RestoreArgs};
use crate::interface::set::{SET_ABOUT, SetArgs};
use crate::interface::show::{self, ShowArgs};
use crate::interface::watch::{self, WatchArgs};
use crate::man::{self, ManArgs};
use crate::sim::SimArgs;
use crate::study::demo::DemoArgs;
use crate::study::serve::ServeArgs;
use crate::study::{self, StudyArgs};
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
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure interrupts against polling on this machine, in namespaces of its own
    #[command(long_about = nicpoll_study::demo::ABOUT)]
    Demo(DemoArgs),
    /// Compare two settings of an interface with the traffic that it has now
    #[command(long_about = nicpoll_ab::ABOUT)]
    Ab(Box<AbArgs>),
    /// Run studies of your own, and list, show, compare and export stored ones
    #[command(long_about = study::ABOUT)]
    Study(StudyArgs),
    /// Show stored studies in a browser
    #[command(long_about = include_str!("help/serve-about.txt"))]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
