//! `nicpoll doctor`: what this machine can do, and what disturbs measurements on it.

use std::time::Duration;

use clap::Args;
use nicpoll_model::TruthVerdict;
use nicpoll_model::units::parse_time;

use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};
use crate::options::There;
use crate::output::{origin, print_document};

/// Runs the checks, or the test of the CPU account with --cpu-truth, and returns the exit code.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    if args.cpu_truth {
        return cpu_truth(args);
    }
    let doctor = nicpoll_inspect::doctor(origin())?;
    print_document(&doctor, args.json)?;
    Ok(if doctor.is_well() {
        0
    } else {
        EXIT_INCONCLUSIVE
    })
}

/// Checks the exact and the sampled CPU time against a load that measures itself.
fn cpu_truth(args: &DoctorArgs) -> Result<u8, Failure> {
    let truth = nicpoll_inspect::cpu_truth(args.fold)?;
    print_document(&truth, args.json)?;
    Ok(match truth.verdict {
        TruthVerdict::Holds => 0,
        TruthVerdict::Fails => EXIT_FAILED,
        TruthVerdict::Inconclusive => EXIT_INCONCLUSIVE,
    })
}

/// Options of `nicpoll doctor`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/doctor-examples.txt"))]
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
    #[command(flatten)]
    pub there: There,
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
