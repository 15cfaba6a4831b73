//! The command line of `nicpoll show`.

use std::time::Duration;

use clap::Args;
use nicpoll_inspect::{STORM_THRESHOLD, ShowOptions};
use nicpoll_model::time::parse_seconds;

/// What '--help' says first.
pub const ABOUT: &str = "\
Show what interfaces can do and do: polling or interrupts, by evidence

Looks at the polls of the interfaces for a moment, and says how each one learns of packets:
whether arrivals or a timer begin its rounds of polls (discipline), and what its values mean
(setting). It shows drivers, queues, NAPI instances and interrupts beside it, and FreeBSD's
kern.polling variables as far as Linux has them. It changes nothing.

Settings and interrupts are shown to everybody. Watching polls takes root (CAP_BPF and
CAP_PERFMON).";

const EXAMPLES: &str = "\
Examples:
  nicpoll show                            every interface but the loopback
  nicpoll show eth0 --for 10s             a longer look
  nicpoll show --for 0                    settings only
  nicpoll show --netns red em0            in a namespace of 'ip netns'
  nicpoll show eth0 -n kern.polling.hz    the value alone
  nicpoll show root@bsd:em0               kern.polling of a FreeBSD host, by ssh
  nicpoll show --json | jq '.interfaces[].evidence'

Exit codes: 0 done, 1 failed, 2 usage, 5 a value was asked for that takes a privilege or kernel
feature which is missing.";

/// Options of `nicpoll show`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// How long to look, in seconds or with a unit; 0: settings only
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = parse_look)]
    pub look: Duration,
    /// Print the value of a variable alone, as 'sysctl -n' does; '-' for none. May be repeated
    #[arg(
        short = 'n',
        long = "value",
        value_name = "NAME",
        conflicts_with = "json"
    )]
    pub values: Vec<String>,
    /// Handler entries back to back that are a storm, as hw.intr_storm_threshold; 0: none is
    #[arg(long, value_name = "N", default_value_t = STORM_THRESHOLD)]
    pub storm_threshold: u64,
    /// Look into another network namespace: a name of 'ip netns', or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Print one JSON object instead of text (docs/schema.md)
    #[arg(long)]
    pub json: bool,
}

impl ShowArgs {
    /// What is to be looked at.
    pub fn options(&self) -> ShowOptions {
        ShowOptions {
            interfaces: self.interfaces.clone(),
            look: self.look,
            storm_threshold: self.storm_threshold,
        }
    }
}

/// Nobody waits longer for a look.
const LOOK_MAX: Duration = Duration::from_secs(3600);

fn parse_look(text: &str) -> Result<Duration, String> {
    let look = parse_seconds(text).map_err(|error| error.to_string())?;
    if look > LOOK_MAX {
        return Err(String::from("a look takes an hour at the most"));
    }
    Ok(look)
}
