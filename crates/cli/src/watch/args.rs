//! The command line of `nicpoll watch`.

use std::time::Duration;

use clap::Args;
use nicpoll_inspect::{STORM_THRESHOLD, WatchOptions};
use nicpoll_model::time::parse_seconds;
use nicpoll_report::WatchScale;
pub use nicpoll_report::help::watch::ABOUT;
use nicpoll_report::help::watch::EXAMPLES;

/// Options of `nicpoll watch`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Print a block of text per interval; the default without a terminal
    #[arg(long, conflicts_with = "json_stream")]
    pub plain: bool,
    /// Print one JSON object per line: start, each interval, end (docs/schema.md)
    #[arg(long)]
    pub json_stream: bool,
    /// Length of an interval, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Exit after N intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Unit of rates: bits, bytes or packets
    #[arg(long, value_name = "SCALE", default_value = "bits", value_parser = parse_scale)]
    pub scale: WatchScale,
    /// Back-to-back handler entries that count as a storm (hw.intr_storm_threshold); 0: off
    #[arg(long, value_name = "N", default_value_t = STORM_THRESHOLD)]
    pub storm_threshold: u64,
    /// Network namespace to watch: a name from 'ip netns', or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
}

impl WatchArgs {
    /// What to watch.
    pub fn options(&self) -> WatchOptions {
        WatchOptions {
            interfaces: self.interfaces.clone(),
            interval: self.interval,
            storm_threshold: self.storm_threshold,
        }
    }
}

/// Below this, watching would be most of what is seen.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Nobody waits longer.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_seconds(text).map_err(|error| error.to_string())?;
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return Err(String::from("an interval is 100ms to an hour"));
    }
    Ok(interval)
}

fn parse_scale(text: &str) -> Result<WatchScale, String> {
    WatchScale::ALL
        .into_iter()
        .find(|scale| scale.name() == text)
        .ok_or_else(|| String::from("a scale is bits, bytes or packets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_bounds() {
        assert_eq!(parse_interval("2"), Ok(Duration::from_secs(2)));
        assert!(parse_interval("50ms").is_err());
        assert!(parse_interval("2h").is_err());
        assert!(parse_scale("bit").is_err());
    }
}
