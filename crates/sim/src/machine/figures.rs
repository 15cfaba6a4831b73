//! What came out on a machine.

use nicpoll_core::Knob;
use nicpoll_model::sim::{
    SIM_PLACES, SimCard, SimCpu, SimHostFigures, SimHostLedger, SimKnob, SimLoss, SimQueue,
};

use super::{Card, Discipline, Link, Machine};
use crate::cpu::{State, Times};
use crate::queue::Queue;
use crate::tally::{CardTally, Tally};

/// What there was when the counted time began.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    times: Times,
    samples: Times,
    switches: u64,
    /// Packets that were somewhere in the machine.
    in_flight: u64,
    /// Knobs and counters of the poller, in the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// The warm-up is over.
    pub(super) fn begin_counting(&mut self) -> Start {
        self.tally = Tally::new(self.cards.len());
        self.cards.iter_mut().for_each(Card::begin_counting);
        self.input.begin_counting();
        for program in &mut self.programs.list {
            program.socket.begin_counting();
        }
        Start {
            times: self.cpu.times,
            samples: self.sampling.seen(),
            switches: self.cpu.switches,
            in_flight: self.packets(),
            knobs: self.discipline.knobs(),
        }
    }

    pub(super) fn host_figures(&self, start: &Start) -> SimHostFigures {
        SimHostFigures {
            host: self.host.name.clone(),
            cpu: shares(&self.cpu.times, &start.times).unwrap_or_default(),
            cpus: Vec::new(),
            cpu_sampled: shares(&self.sampling.seen(), &start.samples),
            context_switches: self.cpu.switches - start.switches,
            interrupts: self.tally.interrupts(),
            ledger: self.ledger(start),
            cards: self.tally.cards.iter().map(card).collect(),
            queues: self.queue_figures(),
            storm: D::storm(self),
            polling: D::polling(self, start),
            napi: D::napi(self),
        }
    }

    fn ledger(&self, start: &Start) -> SimHostLedger {
        let tally = &self.tally;
        let loss = |place| SimLoss {
            place,
            packets: tally.lost(place),
        };
        SimHostLedger {
            in_flight_at_start: start.in_flight,
            received: tally.cards.iter().map(|card| card.received).sum(),
            made: tally.made,
            transmitted: tally.transmitted,
            taken: tally.taken,
            merged: tally.merged,
            losses: SIM_PLACES.map(loss).to_vec(),
            in_flight_at_end: self.packets(),
        }
    }

    /// Every queue with a limit, in the order of a packet's way in, then its way out. Those of a second card
    /// or program have its number, counted from 1.
    fn queue_figures(&self) -> Vec<SimQueue> {
        let card = |of: fn(&Card) -> &Queue| self.cards.iter().map(of).collect::<Vec<_>>();
        let sockets = self.programs.list.iter().map(|program| &program.socket);
        let all = [
            (
                "queue at the far end",
                self.cards.iter().filter_map(Card::far_queue).collect(),
            ),
            ("receive ring", card(Card::rx_ring)),
            ("IP input queue", vec![self.input.queue()]),
            ("socket buffer", sockets.collect()),
            ("send queue", card(Card::send_queue)),
            ("transmit ring", card(Card::tx_ring)),
        ];
        let mut figures = Vec::new();
        for (name, queues) in all {
            for (index, queue) in queues.iter().enumerate().filter(|(_, of)| of.limit() > 0) {
                let number = match index {
                    0 => String::new(),
                    _ => format!(" {}", index + 1),
                };
                figures.push(SimQueue {
                    name: format!("{name}{number}"),
                    limit: queue.limit(),
                    most: queue.most(),
                });
            }
        }
        figures
    }

    pub(super) fn knob_figures(&self, start: &Start) -> Vec<SimKnob> {
        let now = self.discipline.knobs();
        let knobs = Knob::ALL.iter().zip(now).zip(&start.knobs);
        let figures = knobs.map(|((knob, value), before)| SimKnob {
            name: String::from(knob.name()),
            value: if is_counter(*knob) {
                value.wrapping_sub(*before)
            } else {
                value
            },
        });
        figures.collect()
    }
}

/// What is known of a card without its line.
fn card(card: &CardTally) -> SimCard {
    SimCard {
        received: card.received,
        ring_lost: card.ring_lost,
        interrupts: card.interrupts,
        line_ratio: None,
    }
}

fn is_counter(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::ShortTicks | Knob::LostPolls | Knob::Suspect | Knob::Stalled
    )
}

pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Where the time between two readings went; `None` when there was none.
fn shares(end: &Times, start: &Times) -> Option<SimCpu> {
    let whole = end.sum() - start.sum();
    let share = |state| (end.of(state) - start.of(state)) as f64 / whole as f64;
    (whole > 0).then(|| SimCpu {
        user: share(State::User),
        system: share(State::System),
        interrupt: share(State::Interrupt),
        soft_interrupt: share(State::SoftInterrupt),
        idle: share(State::Idle),
    })
}
