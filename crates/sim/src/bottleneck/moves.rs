//! Trying single changes.

use nicpoll_core::Knob;
use nicpoll_model::sim::{SimFigures, SimMove};

use crate::alone::simulate;
use crate::discipline::Discipline;
use crate::host::Host;
use crate::plan::{Plan, PlanError};
use crate::workload::Pattern;

/// A gain below this is none, unless it is a good part of what was lost.
pub(super) const GAIN_MIN: f64 = 0.01;
const LOSS_PART: f64 = 0.25;
/// So many are told.
const TOLD_MAX: usize = 6;
/// Length of a trial: as long as these many packets take, within bounds.
const TRIAL_PACKETS: f64 = 100_000.0;
const TRIAL_MIN_S: f64 = 0.1;
const TRIAL_MAX_S: f64 = 0.5;
/// The plan's warm-up, within bounds. The original's burst climbs from 5 to 150 in 145 cycles.
const WARMUP_MIN_NS: u64 = 200_000_000;
const WARMUP_MAX_NS: u64 = 5_000_000_000;

/// The changes that gain something, the greatest gain first.
pub(super) fn tried(
    host: &Host,
    plan: &Plan,
    figures: &SimFigures,
) -> Result<Vec<SimMove>, PlanError> {
    let gain_min = figures
        .loss_ratio
        .map_or(GAIN_MIN, |lost| GAIN_MIN.min(LOSS_PART * lost));
    let seconds = (TRIAL_PACKETS / figures.offered_pps.max(1.0)).clamp(TRIAL_MIN_S, TRIAL_MAX_S);
    let trial = Plan {
        duration_ns: (seconds * 1e9) as u64,
        warmup_ns: plan.warmup_ns.clamp(WARMUP_MIN_NS, WARMUP_MAX_NS),
        slices: 0,
        ..plan.clone()
    };
    let before_pps = simulate(host, &trial)?.delivered_pps;
    let can_busy_poll = plan.workload.pattern != Pattern::Blast;
    let mut moves = Moves::from(before_pps, gain_min);
    for (change, discipline) in changes(host, &plan.discipline, can_busy_poll) {
        let changed = Plan {
            discipline,
            ..trial.clone()
        };
        // A change can make a plan impossible; then it moves nothing.
        if let Ok(figures) = simulate(host, &changed) {
            moves.consider(change, figures.delivered_pps);
        }
    }
    Ok(moves.told())
}

/// Changes that gain something.
pub(super) struct Moves {
    before_pps: f64,
    /// Gains below this share are none.
    gain_min: f64,
    moves: Vec<SimMove>,
}

impl Moves {
    pub(super) fn from(before_pps: f64, gain_min: f64) -> Self {
        Moves {
            before_pps,
            gain_min,
            moves: Vec::new(),
        }
    }

    pub(super) fn consider(&mut self, change: String, delivered_pps: f64) {
        if delivered_pps > self.before_pps * (1.0 + self.gain_min) {
            self.moves.push(SimMove {
                change,
                delivered_pps,
                ratio: (self.before_pps > 0.0).then(|| delivered_pps / self.before_pps),
            });
        }
    }

    /// Those that gain most, the greatest gain first.
    pub(super) fn told(mut self) -> Vec<SimMove> {
        self.moves
            .sort_by(|a, b| b.delivered_pps.total_cmp(&a.delivered_pps));
        self.moves.truncate(TOLD_MAX);
        self.moves
    }
}

/// Single changes of one host or its discipline, with what each comes to.
pub(super) fn changes(
    host: &Host,
    discipline: &Discipline,
    can_busy_poll: bool,
) -> Vec<(String, Discipline)> {
    let own = discipline.applied_to(host);
    let mut changes = Vec::new();
    for field in Host::FIELDS {
        let was = own.get(field.name).unwrap_or_default();
        let value = moved(field.name, was).clamp(field.min, field.max);
        if value != was {
            let change = format!("{} = {value} (was {was})", field.name);
            changes.push((change, discipline.with(field.name, value)));
        }
    }
    if let Ok(Some(poller)) = discipline.method.poller(&own, 1) {
        let state = poller.state();
        for (knob, was, value) in [
            (Knob::UserFrac, state.user_frac, state.user_frac / 2),
            (
                Knob::BurstMax,
                state.burst_max,
                state.burst_max.saturating_mul(2),
            ),
            (
                Knob::EachBurst,
                state.each_burst,
                state.each_burst.saturating_mul(2),
            ),
        ] {
            let change = format!("{} = {value} (was {was})", knob.name());
            changes.push((change, discipline.with_knob(knob, value)));
        }
    }
    changes.extend(alternatives(discipline, can_busy_poll));
    changes
}

/// Work a fifth cheaper, room and speed twice as great, moderation of a tenth of a millisecond.
fn moved(name: &str, was: u64) -> u64 {
    match name {
        "card.moderation_ns" if was == 0 => 100_000,
        "card.moderation_ns" => was.saturating_mul(2),
        // Neither is room or speed.
        "cpu.tick_slow_ppm"
        | "link.mtu_bytes"
        | "link.half_duplex"
        | "socket.packet_overhead_bytes"
        | "veth.pair" => was,
        "storm.threshold" => 0,
        _ if name.ends_with("_ns") => was * 4 / 5,
        _ => was.saturating_mul(2),
    }
}

/// The other disciplines as they come, with the host's numbers that go with this one.
fn alternatives(discipline: &Discipline, can_busy_poll: bool) -> Vec<(String, Discipline)> {
    let is_possible = |other: &Discipline| {
        other.name() != discipline.name() && (can_busy_poll || !other.method.is_program_polling())
    };
    let others = Discipline::all().into_iter().filter(is_possible);
    let changed = others.map(|other| {
        let change = format!("discipline {}", other.name());
        (change, other.with_changes_of(discipline))
    });
    changed.collect()
}
