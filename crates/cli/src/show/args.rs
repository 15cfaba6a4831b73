//! The command line of `nicpoll show`.

use std::time::Duration;

use clap::Args;
use nicpoll_inspect::{STORM_THRESHOLD, ShowOptions};
use nicpoll_model::time::parse_seconds;
pub use nicpoll_report::help::show::ABOUT;
use nicpoll_report::help::show::EXAMPLES;

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
