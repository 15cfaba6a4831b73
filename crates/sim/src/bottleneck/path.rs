//! What held back hosts in a row: which host, and which of its resources.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimFigures, SimMove, SimPathLoss};

use super::moves::{self, GAIN_MIN, Moves};
use super::tcp;
use super::{Evidence, FULL, Finding, LOSS_MIN, binding, headroom, processor, sending};
use crate::spec::options::SimError;
use crate::spec::simulation::Simulation;
use crate::spec::traffic::Pattern;
use crate::world::run::simulate;

/// Length of a trial, and of its warm-up: shorter than of one host, since there are more changes to try.
const TRIAL_NS: u64 = 100_000_000;
const WARMUP_MAX_NS: u64 = 5_000_000_000;

/// The worst loss on the way, what the sender itself was refused left out: that follows from it.
fn worst_on_the_way(figures: &SimFigures) -> Option<&SimPathLoss> {
    let flow = figures.flows.first()?;
    let sent = (flow.calls - flow.send_errors.min(flow.calls)) as f64;
    let on_the_way = figures.ledger.losses.iter().filter(|loss| {
        let is_refusal = Some(loss.host) == flow.from && loss.place == LossPlace::SendQueue;
        !is_refusal && loss.datagrams as f64 >= LOSS_MIN * sent
    });
    on_the_way.max_by_key(|loss| loss.datagrams)
}

pub(super) fn is_binding(plan: &Simulation, figures: &SimFigures) -> bool {
    let is_short = match plan.workload.pattern {
        Pattern::IperfUdp { bits_per_second } => {
            let asked = bits_per_second as f64;
            let called = figures.flows.first().map_or(0.0, |flow| {
                let seconds = plan.duration_ns as f64 / 1e9;
                8.0 * f64::from(flow.payload_bytes) * flow.calls as f64 / seconds
            });
            called < FULL * asked
        }
        // Both go as fast as they can.
        _ => true,
    };
    is_short || worst_on_the_way(figures).is_some()
}

pub(super) fn found(plan: &Simulation, figures: &SimFigures) -> (usize, Finding) {
    if !figures.connections.is_empty() {
        return tcp::found(plan, figures);
    }
    if let Some(loss) = worst_on_the_way(figures) {
        let stop = &plan.stops[loss.host];
        let evidence = Evidence::of(figures, loss.host);
        let finding = match loss.place {
            LossPlace::SendQueue => sending(evidence, true),
            place => binding(&stop.applied(), evidence, place),
        };
        return (loss.host, finding);
    }
    if plan.workload.pattern == Pattern::RequestResponse {
        return waiting(figures);
    }
    if is_binding(plan, figures) {
        let has_failures = figures
            .ledger
            .losses
            .iter()
            .any(|loss| loss.host == 0 && loss.place == LossPlace::SendQueue);
        return (0, sending(Evidence::of(figures, 0), has_failures));
    }
    let busiest = (0..figures.hosts.len())
        .max_by(|a, b| {
            let idle = |host: usize| figures.hosts[host].cpu.idle;
            idle(*b).total_cmp(&idle(*a))
        })
        .unwrap_or(0);
    (busiest, headroom(Evidence::of(figures, busiest)))
}

/// One request at a time: what takes most of its time is what holds it back.
fn waiting(figures: &SimFigures) -> (usize, Finding) {
    let busy = |host: &usize| 1.0 - figures.hosts[*host].cpu.idle;
    let busiest = (0..figures.hosts.len())
        .max_by(|a, b| busy(a).total_cmp(&busy(b)))
        .unwrap_or(0);
    let evidence = Evidence::of(figures, busiest);
    if busy(&busiest) >= 0.5 {
        let why =
            "One request is on its way at a time, and this host's work takes most of that time";
        return (busiest, processor(evidence, why));
    }
    let finding = Finding {
        resource: "waiting",
        fullness: 1.0 - busy(&busiest),
        explanation: String::from(
            "One request is on its way at a time, and most of that time nobody works on it: it is on a \
             line, or waits for an interrupt, a tick or a timer.",
        ),
    };
    (busiest, finding)
}

/// Packets a second of the first flow; segments a second of all connections.
fn delivered_pps_of(figures: &SimFigures) -> f64 {
    let flows = &figures.flows;
    let step = if figures.connections.is_empty() {
        flows.len().max(1)
    } else {
        // Each connection has one flow of segments and one of acknowledgements.
        2
    };
    let counted = flows.iter().step_by(step);
    counted.map(|flow| flow.delivered_pps).sum()
}

pub(super) fn tried(plan: &Simulation) -> Result<Vec<SimMove>, SimError> {
    let trial = trial(plan);
    let mut moves = Moves::from(delivered_pps_of(&simulate(&trial)?), GAIN_MIN);
    for (change, changed) in trials(&trial) {
        // A change can make a plan impossible; then it moves nothing.
        if let Ok(figures) = simulate(&changed) {
            moves.consider(change, delivered_pps_of(&figures));
        }
    }
    Ok(moves.best_first())
}

/// The run that changes are tried on: a shorter one.
pub(super) fn trial(plan: &Simulation) -> Simulation {
    Simulation {
        duration_ns: TRIAL_NS,
        warmup_ns: plan.warmup_ns.min(WARMUP_MAX_NS),
        slices: 0,
        ..plan.clone()
    }
}

/// The runs to try, with what each changes.
pub(super) fn trials(trial: &Simulation) -> Vec<(String, Simulation)> {
    let mut trials = Vec::new();
    for (number, stop) in trial.stops.iter().enumerate() {
        let can_busy_poll = number + 1 == trial.stops.len();
        for (change, discipline) in moves::changes(&stop.host, &stop.discipline, can_busy_poll) {
            let mut changed = trial.clone();
            changed.stops[number].discipline = discipline;
            trials.push((format!("host {}: {change}", number + 1), changed));
        }
    }
    trials
}
