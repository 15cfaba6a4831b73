//! What came out on a machine.

use nicpoll_core::{Knob, Poller};
use nicpoll_model::sim::{
    SIM_PLACES, SimCpu, SimHostFigures, SimHostLedger, SimKnob, SimLoss, SimPolling, SimQueue,
};

use super::card::Card;
use super::cpu::{State, Times};
use super::state::Machine;
use crate::account::Tally;
use crate::link::Queue;
use crate::spec::discipline::Kernel;

/// What there was when the counted time began.
#[derive(Clone, Debug)]
pub struct Start {
    times: Times,
    samples: Times,
    switches: u64,
    /// Packets that were somewhere in the machine.
    in_flight: u64,
    /// Knobs and counters of the poller, in the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

impl Machine {
    /// The warm-up is over.
    pub fn begin_counting(&mut self) -> Start {
        self.tally = Tally::new(self.cards.len());
        self.cards.iter_mut().for_each(Card::begin_counting);
        self.input.ip_queue.begin_counting();
        for program in &mut self.programs.list {
            program.socket.begin_counting();
        }
        Start {
            times: self.cpu.times,
            samples: self.sampling.seen,
            switches: self.cpu.switches,
            in_flight: self.packets(),
            knobs: self.knobs(),
        }
    }

    pub fn host_figures(&self, start: &Start) -> SimHostFigures {
        let has_threads = self.kernel == Kernel::Freebsd && self.freebsd.poller.is_none();
        SimHostFigures {
            host: self.host.name.clone(),
            cpu: shares(&self.cpu.times, &start.times).unwrap_or_default(),
            cpus: Vec::new(),
            cpu_sampled: shares(&self.sampling.seen, &start.samples),
            context_switches: self.cpu.switches - start.switches,
            interrupts: self.tally.interrupts(),
            ledger: self.ledger(start),
            cards: self.tally.cards.iter().map(|card| card.figures).collect(),
            queues: self.queue_figures(),
            storm: has_threads.then_some(self.tally.storm),
            polling: self.polling(start),
            napi: (self.kernel == Kernel::Linux).then_some(self.tally.napi),
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
            received: tally.cards.iter().map(|card| card.figures.received).sum(),
            losses: SIM_PLACES.map(loss).to_vec(),
            in_flight_at_end: self.packets(),
            ..tally.ledger.clone()
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
            ("receive ring", card(|card| &card.rx_ring)),
            ("IP input queue", vec![&self.input.ip_queue]),
            ("socket buffer", sockets.collect()),
            ("send queue", card(|card| &card.send_queue)),
            ("transmit ring", card(|card| &card.tx_ring)),
        ];
        let mut figures = Vec::new();
        for (name, queues) in all {
            for (index, queue) in queues.iter().enumerate().filter(|(_, of)| of.limit > 0) {
                let number = match index {
                    0 => String::new(),
                    _ => format!(" {}", index + 1),
                };
                figures.push(SimQueue {
                    name: format!("{name}{number}"),
                    limit: queue.limit,
                    most: queue.most,
                });
            }
        }
        figures
    }

    /// What the poller did.
    fn polling(&self, start: &Start) -> Option<SimPolling> {
        let poller = self.freebsd.poller.as_ref()?;
        let cycles = &self.tally.cycles;
        Some(SimPolling {
            controller: String::from(poller.controller().name()),
            cycles: cycles.count,
            asked: cycles.asked,
            burst_mean: ratio(cycles.burst_sum, cycles.count),
            burst_min: cycles.burst_min,
            burst_max_reached: cycles.burst_max,
            full_cycles: cycles.at_burst_max,
            knobs: self.knob_figures(start),
        })
    }

    /// Knobs and counters of the poller, in the order of [`Knob::ALL`]; empty without one.
    fn knobs(&self) -> Vec<u32> {
        let read = |poller: &Poller| Knob::ALL.iter().map(|knob| poller.read(*knob)).collect();
        self.freebsd.poller.as_ref().map(read).unwrap_or_default()
    }

    pub fn knob_figures(&self, start: &Start) -> Vec<SimKnob> {
        let now = self.knobs();
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

fn is_counter(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::ShortTicks | Knob::LostPolls | Knob::Suspect | Knob::Stalled
    )
}

pub fn ratio(part: u64, whole: u64) -> Option<f64> {
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
