//! What held back a host with ideal hosts at the far end of its lines.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimFigures, SimMove};

use super::moves::{self, GAIN_MIN, Moves};
use super::{
    Evidence, FULL, Finding, LOSS_MIN, binding, busy, headroom, line, percent, processor, sending,
};
use crate::spec::options::SimError;
use crate::spec::simulation::Simulation;
use crate::spec::traffic::Pattern;
use crate::world::run::simulate;

/// A gain of this part of what was lost is one, however small.
const LOSS_PART: f64 = 0.25;
/// Length of a trial: as long as these many packets take, within bounds.
const TRIAL_PACKETS: f64 = 100_000.0;
const TRIAL_MIN_S: f64 = 0.1;
const TRIAL_MAX_S: f64 = 0.5;
/// The plan's warm-up, within bounds. The original's burst climbs from 5 to 150 in 145 cycles.
const WARMUP_MIN_NS: u64 = 200_000_000;
const WARMUP_MAX_NS: u64 = 5_000_000_000;

/// What held a run back, and whether it held back packets.
pub(super) fn found(plan: &Simulation, figures: &SimFigures) -> (bool, Finding) {
    let own = plan.stops[0].applied();
    let loses = figures.loss_ratio.is_some_and(|ratio| ratio >= LOSS_MIN);
    let evidence = Evidence::of(figures, 0);
    // Who sends when something is done goes as fast as it can.
    match (&plan.workload.pattern, worst_place(figures)) {
        (Pattern::Blast, place) => (true, sending(evidence, place.is_some())),
        (_, Some(place)) if loses => (true, binding(&own, evidence, place)),
        (Pattern::RequestResponse, _) => (true, answering(evidence, plan.workload.clients)),
        _ => (false, headroom(evidence)),
    }
}

/// No request is lost, and clients send the next when they have the reply.
fn answering(evidence: Evidence<'_>, clients: u16) -> Finding {
    let line_ratio = evidence.line_ratio.unwrap_or_default();
    if line_ratio >= FULL {
        return line(line_ratio);
    }
    let on_their_way = match clients {
        1 => String::from("One request is on its way at a time"),
        _ => format!("{clients} requests are on their way at a time"),
    };
    if busy(evidence) >= FULL {
        let why = format!("{on_their_way}, and the processor cannot answer faster");
        return processor(evidence, &why);
    }
    Finding {
        resource: "waiting",
        fullness: 1.0 - busy(evidence),
        explanation: format!(
            "{on_their_way}, and for {} of the time nobody works on any: on a line, or waiting for an interrupt, \
             a tick or a timer.",
            percent(1.0 - busy(evidence))
        ),
    }
}

/// The place of the most losses, the last of those that are alike.
fn worst_place(figures: &SimFigures) -> Option<LossPlace> {
    let losses = figures.ledger.losses.iter();
    losses
        .max_by_key(|loss| loss.datagrams)
        .map(|loss| loss.place)
}

/// The changes that gain something, the greatest gain first.
pub(super) fn tried(plan: &Simulation, figures: &SimFigures) -> Result<Vec<SimMove>, SimError> {
    let gain_min = figures
        .loss_ratio
        .map_or(GAIN_MIN, |lost| GAIN_MIN.min(LOSS_PART * lost));
    let trial = trial(plan, Some(figures.offered_pps));
    let before_pps = simulate(&trial)?.delivered_pps;
    let mut moves = Moves::from(before_pps, gain_min);
    for (change, changed) in trials(&trial) {
        // A change can make a plan impossible; then it moves nothing.
        if let Ok(figures) = simulate(&changed) {
            moves.consider(change, figures.delivered_pps);
        }
    }
    Ok(moves.best_first())
}

/// The run that changes are tried on: a shorter one, by the packets that are offered a second, if that is known.
pub(super) fn trial(plan: &Simulation, offered_pps: Option<f64>) -> Simulation {
    let seconds = offered_pps.map_or(TRIAL_MAX_S, |pps| TRIAL_PACKETS / pps.max(1.0));
    Simulation {
        duration_ns: (seconds.clamp(TRIAL_MIN_S, TRIAL_MAX_S) * 1e9) as u64,
        warmup_ns: plan.warmup_ns.clamp(WARMUP_MIN_NS, WARMUP_MAX_NS),
        slices: 0,
        ..plan.clone()
    }
}

/// The runs to try, with what each changes.
pub(super) fn trials(trial: &Simulation) -> Vec<(String, Simulation)> {
    let stop = &trial.stops[0];
    let can_busy_poll = trial.workload.pattern != Pattern::Blast;
    let changes = moves::changes(&stop.host, &stop.discipline, can_busy_poll).into_iter();
    let changed = changes.map(|(change, discipline)| {
        let mut changed = trial.clone();
        changed.stops[0].discipline = discipline;
        (change, changed)
    });
    changed.collect()
}
