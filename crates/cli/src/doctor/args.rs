//! The command line of `nicpoll doctor`.

use std::time::Duration;

use clap::Args;
use nicpoll_model::time::parse_time;

/// What '--help' says first.
pub const ABOUT: &str = "\
Check what this machine supports, and what would disturb measurements on it

Prints one line for each privilege, kernel feature and driver capability, and for each thing that
disturbs measurements, with a remedy. It samples the load of the machine for about a second and
changes nothing.";

const EXAMPLES: &str = "\
Examples:
  sudo nicpoll doctor
  sudo nicpoll doctor --cpu-truth              check both accounts of CPU time against a known load
  sudo nicpoll doctor --cpu-truth --fold 1ms   also CPU time by phase of a burst of datagrams
  nicpoll doctor --json | jq -r '.checks[] | select(.status == \"confounds\") | .remedy'

Exit codes: 0 all is well, 1 failed, 2 usage, 4 something that nicpoll needs is missing or a
measurement would be disturbed. With --cpu-truth: 0 the exact account is right, 1 it is wrong or
failed, 4 inconclusive: the machine was disturbed, 5 a privilege or kernel feature is missing.";

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
