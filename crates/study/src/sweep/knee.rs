//! The knee that a sweep's shares are of: the greatest rate that the reference setting holds, sought in short runs.
//!
//! What must hold: it is a yardstick for what to ask for and no result; trials decide what each setting holds.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nicpoll_model::WorkUnit;
use nicpoll_traffic::workload::Books;

use super::{HELD_SHARE, RATE_MAX};
use crate::design::{Design, NamedWorkload};
use crate::error::{Doing, StudyError};
use crate::lab::Lab;
use crate::run::Running;
use crate::trial::apply;

/// Traffic of one run: at the lowest rate it still sends some hundred datagrams.
const RUN: Duration = Duration::from_millis(200);
/// For stragglers of a run to be read.
const QUIET: Duration = Duration::from_millis(5);
/// The first rate that is tried, a second of each sender.
const FIRST: u64 = 1000;
/// The knee is known to this share of itself.
const RESOLUTION: f64 = 0.05;

/// Share of what is asked for that a short run has to offer: a sender that is held up for a moment makes up for it in
/// a trial.
const OFFERED_SHARE: f64 = 0.9;

/// What the search for one knee is reckoned to take: some doublings and halvings, each of a run or two.
pub(crate) const SEARCH: Duration = Duration::from_secs(8);

/// The design with the rates that its shares of a knee come to, which is sought on the lab.
///
/// # Errors
/// When no rate is held, or the traffic cannot be made.
pub(crate) fn resolved(
    lab: &mut Lab,
    mut design: Design,
    cancel: &AtomicBool,
) -> Result<Design, StudyError> {
    let mut known: Option<(String, u64)> = None;
    for index in 0..design.workloads.len() {
        let workload = &design.workloads[index];
        let Some((load, share)) = workload.load.as_ref().and_then(|load| {
            let is_open = load.asked_per_second.is_none();
            Some((load, load.knee_ratio.filter(|_| is_open)?))
        }) else {
            continue;
        };
        let knee = match &known {
            Some((sweep, knee)) if *sweep == load.sweep => *knee,
            _ => {
                let outcome = seek(lab, &design, workload, cancel);
                lab.restore()?;
                let knee = outcome.doing(|| format!("seeking the knee of {}", load.sweep))?;
                known = Some((load.sweep.clone(), knee));
                knee
            }
        };
        let streams = lab.link.paths() as u64 * workload.extent.ways();
        let workload = &mut design.workloads[index];
        let per_second = ((knee as f64 * share) as u64).clamp(1, RATE_MAX);
        if let Some(request) = workload.request.clone().at_rate(per_second) {
            workload.request = request;
        }
        let asked = workload.request.asked_per_second();
        let asked = asked.map(|rate| rate * streams);
        if let (Some(load), Some(asked)) = (&mut workload.load, asked) {
            load.asked_per_second = Some(asked);
            workload.description += &format!(", {asked} a second");
        }
    }
    Ok(design)
}

/// The greatest rate of each sender that is held under the reference of the first comparison: doubled until it is
/// not, then halved in between.
fn seek(
    lab: &mut Lab,
    design: &Design,
    workload: &NamedWorkload,
    cancel: &AtomicBool,
) -> Result<u64, StudyError> {
    let reference = design.contrasts.first().map(|versus| &*versus.reference);
    let reference = reference.and_then(|name| design.setting(name));
    let reference = reference
        .ok_or_else(|| StudyError::Unexpected(String::from("the study compares nothing")))?;
    apply(lab, reference, None)?;
    let mut holds = |rate: u64| -> Result<bool, StudyError> {
        // What disturbs one run for a moment is not the system's limit.
        Ok(is_held(lab, workload, rate, cancel)? || is_held(lab, workload, rate, cancel)?)
    };
    let (mut held, mut lost) = (0, FIRST);
    while lost < RATE_MAX && holds(lost)? {
        (held, lost) = (lost, 2 * lost);
    }
    while lost - held > 1 && (lost - held) as f64 > RESOLUTION * lost as f64 {
        let between = held.midpoint(lost);
        match holds(between)? {
            true => held = between,
            false => lost = between,
        }
        // Nothing is held by the time this is so low.
        if lost < FIRST / 50 {
            break;
        }
    }
    match held {
        0 => Err(StudyError::Unexpected(format!(
            "not even {lost} a second are held under {}: there is no knee to take shares of; give rates a second",
            reference.name()
        ))),
        held => Ok(held),
    }
}

fn is_held(
    lab: &mut Lab,
    workload: &NamedWorkload,
    rate: u64,
    cancel: &AtomicBool,
) -> Result<bool, StudyError> {
    let mut rated = workload.clone();
    if let Some(request) = workload.request.clone().at_rate(rate) {
        rated.request = request;
    }
    let streams = lab.link.paths() as u64 * workload.extent.ways();
    let asked = rated.request.asked_per_second().unwrap_or(rate) * streams;
    let mut running = Running::start(lab, &rated, RUN)?;
    running.wait_for_sender(lab, cancel)?;
    let books = running.drain(lab, QUIET)?;
    Ok(holds(&books, asked, rated.request.workload().unit()))
}

fn holds(books: &Books, asked: u64, unit: WorkUnit) -> bool {
    let asked = OFFERED_SHARE * asked as f64;
    if unit == WorkUnit::Transactions {
        return books.round_trip.is_some_and(|trips| {
            let requests = (trips.transactions + trips.timeouts) as f64;
            trips.transactions_per_second >= asked
                && trips.transactions as f64 >= HELD_SHARE * requests
        });
    }
    let (Some(sent), Some(received)) = (books.sender.packets, books.receiver.packets) else {
        return false;
    };
    books
        .sender
        .packets_per_second
        .is_some_and(|rate| rate >= asked)
        && received as f64 >= HELD_SHARE * sent as f64
}
