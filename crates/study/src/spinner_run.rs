//! What a program beside the receiver gets, in a run of its own.
//!
//! A program that computes on the receiver's core takes time that the receiver would have: a rate or a delay measured
//! with it would be another one. So each trial of a workload that asks for it has a further, short run of the same
//! traffic under the same setting, and only that one has the program beside it.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use nicpoll_model::SpinnerShare;

use crate::design::NamedWorkload;
use crate::error::StudyError;
use crate::lab::Lab;
use crate::run::Running;

/// Length of the traffic that has a program beside it: many turns of the kernel's scheduler.
pub const SPINNER_RUN: Duration = Duration::from_millis(150);

/// Runs the traffic with a program on the receiver's core, and waits until all is quiet.
pub fn spinner_run(
    lab: &mut Lab,
    workload: &NamedWorkload,
    quiet: Duration,
    cancel: &AtomicBool,
) -> Result<SpinnerShare, StudyError> {
    let mut running = Running::start(lab, workload, SPINNER_RUN)?;
    let [_, cpu] = lab.cpus();
    lab.receiver.start_spinner(cpu, SPINNER_RUN)?;
    let cpu_ratio = lab.receiver.end_spinner()?;
    running.wait_for_sender(lab, cancel)?;
    let books = running.drain(lab, quiet)?;
    thread::sleep(quiet);
    Ok(SpinnerShare {
        seconds: SPINNER_RUN.as_secs_f64(),
        cpu_ratio,
        delivered_packets_per_second: books.receiver.packets_per_second,
    })
}
