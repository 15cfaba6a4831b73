//! Trying single changes.

use nicpoll_core::Knob;
use nicpoll_model::sim::SimMove;

use crate::spec::discipline::ReceiveDiscipline;
use crate::spec::host::HostModel;

/// A gain below this is none.
pub(super) const GAIN_MIN: f64 = 0.01;
/// So many are reported.
const MOVES_MAX: usize = 6;

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
    pub(super) fn best_first(mut self) -> Vec<SimMove> {
        self.moves
            .sort_by(|a, b| b.delivered_pps.total_cmp(&a.delivered_pps));
        self.moves.truncate(MOVES_MAX);
        self.moves
    }
}

/// Single changes of one host or its discipline, with what each comes to.
pub(super) fn changes(
    host: &HostModel,
    discipline: &ReceiveDiscipline,
    can_busy_poll: bool,
) -> Vec<(String, ReceiveDiscipline)> {
    let own = discipline.applied_to(host);
    let mut changes = Vec::new();
    for field in HostModel::FIELDS {
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
        | "cpu.stat_hz"
        | "card.hands_over"
        | "link.mtu_bytes"
        | "link.half_duplex"
        | "socket.packet_overhead_bytes"
        | "cpu.cpus"
        | "application.cpu"
        | "network.gro"
        | "veth.pair" => was,
        // One queue is all that a single processor can have.
        "card.queues" if was == 1 => was,
        "storm.threshold" => 0,
        _ if name.ends_with("_ns") => was * 4 / 5,
        _ => was.saturating_mul(2),
    }
}

/// The other disciplines as they come, with the host's numbers that go with this one.
fn alternatives(
    discipline: &ReceiveDiscipline,
    can_busy_poll: bool,
) -> Vec<(String, ReceiveDiscipline)> {
    let is_possible = |other: &ReceiveDiscipline| {
        other.name() != discipline.name() && (can_busy_poll || !other.method.is_program_polling())
    };
    let others = ReceiveDiscipline::all().into_iter().filter(is_possible);
    let changed = others.map(|other| {
        let change = format!("discipline {}", other.name());
        (change, other.with_changes_of(discipline))
    });
    changed.collect()
}
