//! `nicpoll doctor`: what this machine can do, and what would blur a measurement on it.
//!
//! What must hold: nothing is changed. A check that cannot be made says so and is no failure.

mod args;
mod interfaces;
mod kernel;
mod machine;
mod measurement;
mod privileges;
mod pulses;
mod truth;

use std::env;

use nicpoll_model::{Check, CheckGroup, CheckStatus, DOCTOR_SCHEMA, Doctor, TruthVerdict};
use nicpoll_report::{
    render_cpu_truth_json, render_cpu_truth_text, render_doctor_text, render_document,
};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

pub use self::args::{ABOUT, DoctorArgs};
use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};
use crate::output::{print, text_options};

/// The greatest priority of ordinary threads.
const NICENESS: i32 = -20;

/// Runs the checks, or the proof that is asked for, and returns the exit code.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    if args.cpu_truth {
        return cpu_truth(args);
    }
    let doctor = examine()?;
    let text = if args.json {
        render_document(&doctor)
    } else {
        render_doctor_text(&doctor, &text_options())
    };
    print(&text)?;
    Ok(if doctor.is_well() {
        0
    } else {
        EXIT_INCONCLUSIVE
    })
}

/// Holds both accounts of CPU time against a load that measures itself.
fn cpu_truth(args: &DoctorArgs) -> Result<u8, Failure> {
    let truth = truth::measure(args.fold)?;
    let text = if args.json {
        render_cpu_truth_json(&truth)
    } else {
        render_cpu_truth_text(&truth, &text_options())
    };
    print(&text)?;
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

fn examine() -> Result<Doctor, Failure> {
    let started_at = crate::demo::now();
    let host = nicpoll_study::host_facts()?;
    let mut checks = privileges::checks()?;
    checks.extend(kernel::checks());
    let found = interfaces::look()?;
    checks.extend(interfaces::checks(&found));
    let machine = machine::look(&host, &found)?;
    checks.extend(measurement::checks(&machine));
    Ok(Doctor {
        schema: String::from(DOCTOR_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at,
        kernel: host.kernel,
        checks,
    })
}

/// A check without a remedy and about no interface.
fn check(
    group: CheckGroup,
    name: impl Into<String>,
    status: CheckStatus,
    finding: impl Into<String>,
) -> Check {
    Check {
        group,
        name: name.into(),
        interface: None,
        status,
        finding: finding.into(),
        remedy: None,
    }
}

/// The same with what to do about it.
fn with_remedy(check: Check, remedy: impl Into<String>) -> Check {
    Check {
        remedy: Some(remedy.into()),
        ..check
    }
}
