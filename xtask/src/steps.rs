//! Runs named steps one after another and says how each ended and how long it took.
//!
//! A failed step does not stop the next ones: one run shows all that is wrong. The exit status is that of
//! the first failure.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::process::Failed;

/// How a step that did not fail ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did its work.
    Passed,
    /// It did not, and this is why.
    Skipped(String),
}

/// The steps of one command, so far.
#[derive(Default)]
pub struct Steps {
    failed: Vec<&'static str>,
    first_status: u8,
}

impl Steps {
    /// Runs one step between its header and its result.
    pub fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(Outcome::Passed) => eprintln!("== {name}: passed, {seconds:.1} s"),
            Ok(Outcome::Skipped(reason)) => eprintln!("== {name}: skipped: {reason}"),
            Err(error) => {
                eprintln!("== {name}: FAILED, {seconds:.1} s: {error:#}");
                if self.failed.is_empty() {
                    self.first_status = error.downcast_ref::<Failed>().map_or(1, |f| f.status);
                }
                self.failed.push(name);
            }
        }
    }

    /// Names the failed steps and gives the command's exit status.
    pub fn finish(self) -> ExitCode {
        if !self.failed.is_empty() {
            eprintln!("== failed: {}", self.failed.join(", "));
        }
        ExitCode::from(self.first_status)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failure_is_remembered_and_the_next_step_still_runs() {
        let mut steps = Steps::default();
        let mut ran = false;
        steps.run("first", || bail!("broken"));
        steps.run("second", || {
            ran = true;
            Ok(Outcome::Passed)
        });
        assert!(ran);
        assert_eq!(steps.failed, ["first"]);
        assert_eq!(steps.first_status, 1);
    }

    #[test]
    fn the_status_is_that_of_the_first_failed_program() {
        let mut steps = Steps::default();
        steps.run("skipped", || Ok(Outcome::Skipped("not here".into())));
        assert_eq!(steps.first_status, 0);
        steps.run("tests", || Err(Failed::for_test(101).into()));
        steps.run("structure", || bail!("too long"));
        assert_eq!(steps.first_status, 101);
        assert_eq!(steps.failed, ["tests", "structure"]);
    }
}
