//! `nicpoll doctor`: whether this machine can be measured, and whether what measures it is right.

mod pulses;
mod truth;

use std::env;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use nicpoll_model::TruthVerdict;
use nicpoll_report::{TextOptions, render_cpu_truth_json, render_cpu_truth_text};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::args::DoctorArgs;
use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};

/// The greatest priority of ordinary threads.
const NICENESS: i32 = -20;

/// Runs the doctor and returns its exit code.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let truth = truth::measure(args.fold)?;
    let text = if args.json {
        render_cpu_truth_json(&truth)
    } else {
        let is_terminal = io::stdout().is_terminal();
        render_cpu_truth_text(
            &truth,
            &TextOptions {
                width: 100,
                color: is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            },
        )
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.context("writing to standard output")?,
    }
    Ok(match truth.verdict {
        TruthVerdict::Holds => 0,
        TruthVerdict::Fails => EXIT_FAILED,
        TruthVerdict::Inconclusive => EXIT_INCONCLUSIVE,
    })
}

/// Has the calling thread run before others, so that its pulses keep their phase.
fn run_before_others() {
    // Without the privilege it runs like others, which may be enough.
    let _ = setpriority_process(Some(gettid()), NICENESS);
}
