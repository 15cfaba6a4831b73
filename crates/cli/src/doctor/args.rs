//! The command line of `nicpoll doctor`.

use std::time::Duration;

use clap::Args;
use nicpoll_model::time::parse_time;
pub use nicpoll_report::help::doctor::ABOUT;
use nicpoll_report::help::doctor::EXAMPLES;

/// Options of `nicpoll doctor`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Instead, check the exact CPU time and /proc/stat against a load that measures itself
    #[arg(long)]
    pub cpu_truth: bool,
    /// Also show CPU time by phase of a periodic burst of datagrams; PERIOD is 200us to 100ms
    #[arg(long, value_name = "PERIOD", value_parser = parse_fold, requires = "cpu_truth")]
    pub fold: Option<Duration>,
    /// Print one JSON object instead of text (docs/schema.md)
    #[arg(long)]
    pub json: bool,
}

fn parse_fold(text: &str) -> Result<Duration, String> {
    let period = parse_time(text).map_err(|error| error.to_string())?;
    if (Duration::from_micros(200)..=Duration::from_millis(100)).contains(&period) {
        Ok(period)
    } else {
        Err(String::from("a period from 200us to 100ms was expected"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_has_time_for_its_datagrams() {
        assert_eq!(parse_fold("1ms"), Ok(Duration::from_millis(1)));
        for wrong in ["199us", "101ms", "1"] {
            assert!(parse_fold(wrong).is_err(), "{wrong}");
        }
    }
}
