//! The command line of `nicpoll show`.

use std::time::Duration;

use clap::Args;
use nicpoll_inspect::{STORM_THRESHOLD, ShowOptions};
use nicpoll_model::time::parse_seconds;

/// What '--help' says first.
pub const ABOUT: &str = "\
Show how interfaces learn of packets: by interrupts or by polling, with the evidence

Samples the polls of each interface and reports what starts them: arriving packets or a timer
(discipline), and what the settings say (setting). Also shows the driver, queues, NAPI instances,
interrupts, and FreeBSD's kern.polling variables where Linux has a counterpart. It changes nothing.

Settings and interrupts need no privilege. Sampling polls needs root (CAP_BPF and CAP_PERFMON).";

const EXAMPLES: &str = "\
Examples:
  nicpoll show                            all interfaces but the loopback
  nicpoll show eth0 --for 10s             sample for 10 seconds
  nicpoll show --for 0                    settings only
  nicpoll show --netns red em0            in a network namespace
  nicpoll show eth0 -n kern.polling.hz    print the value only
  nicpoll show root@bsd:em0               kern.polling of a FreeBSD host, over ssh
  nicpoll show --json | jq '.interfaces[].evidence'

Exit codes: 0 done, 1 failed, 2 usage, 5 -n named a value that needs a missing privilege or kernel
feature.";

/// Options of `nicpoll show`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Time to sample, in seconds or with a unit; 0: settings only
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = parse_look)]
    pub look: Duration,
    /// Print only the value of a variable, as 'sysctl -n' does; '-' if it has none. Repeatable.
    /// kern.polling prints all of them with their names
    #[arg(
        short = 'n',
        long = "value",
        value_name = "NAME",
        conflicts_with = "json"
    )]
    pub values: Vec<String>,
    /// Back-to-back handler entries that count as a storm (hw.intr_storm_threshold); 0: off
    #[arg(long, value_name = "N", default_value_t = STORM_THRESHOLD)]
    pub storm_threshold: u64,
    /// Network namespace to show: a name from 'ip netns', or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Print one JSON object instead of text (docs/schema.md)
    #[arg(long)]
    pub json: bool,
}

impl ShowArgs {
    /// What to show.
    pub fn options(&self) -> ShowOptions {
        ShowOptions {
            interfaces: self.interfaces.clone(),
            look: self.look,
            storm_threshold: self.storm_threshold,
        }
    }
}

/// Nobody waits longer.
const LOOK_MAX: Duration = Duration::from_secs(3600);

fn parse_look(text: &str) -> Result<Duration, String> {
    let look = parse_seconds(text).map_err(|error| error.to_string())?;
    if look > LOOK_MAX {
        return Err(String::from("the time to sample is an hour at most"));
    }
    Ok(look)
}
