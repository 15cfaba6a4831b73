//! `nicpoll doctor`: what this machine can do, and what disturbs measurements on it.

mod args;

use nicpoll_model::TruthVerdict;
use nicpoll_report::{
    render_cpu_truth_json, render_cpu_truth_text, render_doctor_text, render_document,
};

pub use self::args::{ABOUT, DoctorArgs};
use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};
use crate::output::{origin, print, text_options};

/// Runs the checks, or the test of the CPU account with --cpu-truth, and returns the exit code.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    if args.cpu_truth {
        return cpu_truth(args);
    }
    let doctor = nicpoll_inspect::doctor(origin())?;
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
    let truth = nicpoll_inspect::cpu_truth(args.fold)?;
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
