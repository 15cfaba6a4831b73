//! The command line of `nicpoll doctor`.

use std::time::Duration;

use clap::Args;
use nicpoll_model::time::parse_time;

/// What '--help' says first.
pub const ABOUT: &str = "\
Check what this machine can do, and what would blur a measurement on it

One line for each privilege, kernel feature and ability of a driver, and for each thing that would
blur a measurement, with what to do about it. It takes about a second, in which it looks at how
busy the machine is, and changes nothing.";

const EXAMPLES: &str = "\
Examples:
  sudo nicpoll doctor
  sudo nicpoll doctor --cpu-truth              a known load against both accounts of CPU time
  sudo nicpoll doctor --cpu-truth --fold 1ms   and CPU time by the phase of a pulse of datagrams
  nicpoll doctor --json | jq -r '.checks[] | select(.status == \"confounds\") | .remedy'

Exit codes: 0 all is well, 1 failed, 2 usage, 4 something that nicpoll needs is missing or a
measurement would be blurred. With --cpu-truth: 0 the exact account is right, 1 it is wrong or
failed, 4 inconclusive: the machine was disturbed, 5 a privilege or kernel feature is missing.";

/// Options of `nicpoll doctor`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Hold the exact account of CPU time and /proc/stat against a load that measures itself, instead
    #[arg(long)]
    pub cpu_truth: bool,
    /// Also show CPU time by the phase of a pulse of datagrams, 200us to 100ms from pulse to pulse
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
