//! What came out on a machine.

use nicpoll_core::{Knob, Poller};
use nicpoll_model::sim::{
    SimCpu, SimKnob, SimLoss, SimNapi, SimPlace, SimPolling, SimQueue, SimStorm,
};
use nicpoll_model::sim_path::{SimHostFigures, SimHostLedger};

use super::{Machine, Receive};
use crate::cpu::{State, Times};
use crate::queue::Queue;
use crate::tally::{CardTally, Tally};

/// What there was when the counted time began.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    times: Times,
    switches: u64,
    /// Knobs and counters of the poller, in the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

impl Machine {
    fn poller(&self) -> Option<&Poller> {
        match &self.receive {
            Receive::Threads(_, netisr) => netisr.poller(),
            Receive::Napi(_) => None,
        }
    }

    fn knobs(&self) -> Vec<u32> {
        let read = |poller: &Poller| Knob::ALL.iter().map(|knob| poller.read(*knob)).collect();
        self.poller().map(read).unwrap_or_default()
    }

    /// The warm-up is over.
    pub(crate) fn begin_counting(&mut self) -> Start {
        self.tally = Tally::new(self.cards.len());
        self.in_flight_at_start = self.packets();
        for card in &mut self.cards {
            card.rx_ring.begin_counting();
            card.send_queue.begin_counting();
            card.tx_ring.begin_counting();
            if let Some(far) = &mut card.far {
                far.queue.begin_counting();
            }
        }
        self.ip_queue.begin_counting();
        for program in &mut self.programs.list {
            program.socket.begin_counting();
        }
        Start {
            times: self.cpu.times,
            switches: self.cpu.switches,
            knobs: self.knobs(),
        }
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.tally.cards.iter().map(|card| card.interrupts).sum()
    }

    pub(crate) fn throttled(&self) -> u64 {
        self.tally.storm.throttled
    }

    pub(crate) fn cards(&self) -> &[CardTally] {
        &self.tally.cards
    }

    pub(crate) fn cpu_figures(&self, start: &Start) -> SimCpu {
        shares(&self.cpu.times, &start.times)
    }

    pub(crate) fn context_switches(&self, start: &Start) -> u64 {
        self.cpu.switches - start.switches
    }

    pub(crate) fn storm_figures(&self) -> Option<SimStorm> {
        let is_thread =
            matches!(&self.receive, Receive::Threads(_, netisr) if !netisr.is_polling());
        is_thread.then_some(self.tally.storm)
    }

    pub(crate) fn napi_figures(&self) -> Option<SimNapi> {
        matches!(self.receive, Receive::Napi(_)).then_some(self.tally.napi)
    }

    pub(crate) fn host_figures(&self, start: &Start) -> SimHostFigures {
        SimHostFigures {
            host: self.host.name.clone(),
            cpu: self.cpu_figures(start),
            context_switches: self.context_switches(start),
            interrupts: self.interrupts(),
            ledger: self.ledger(),
            queues: self.queue_figures(),
            storm: self.storm_figures(),
            polling: self.polling_figures(start),
            napi: self.napi_figures(),
        }
    }

    fn ledger(&self) -> SimHostLedger {
        let tally = &self.tally;
        let loss = |place| SimLoss {
            place,
            packets: tally.lost(place),
        };
        SimHostLedger {
            in_flight_at_start: self.in_flight_at_start,
            received: tally.cards.iter().map(|card| card.received).sum(),
            made: tally.made,
            transmitted: tally.transmitted,
            taken: tally.taken,
            merged: tally.merged,
            losses: SimPlace::ALL.map(loss).to_vec(),
            in_flight_at_end: self.packets(),
        }
    }

    /// Every queue with a limit, in the order of a packet's way in, then its way out. Those of a second card
    /// or program have its number, counted from 1.
    pub(crate) fn queue_figures(&self) -> Vec<SimQueue> {
        let card = |of: fn(&super::Card) -> &Queue| self.cards.iter().map(of).collect::<Vec<_>>();
        let far = self.cards.iter().filter_map(|card| card.far.as_ref());
        let sockets = self.programs.list.iter().map(|program| &program.socket);
        let all = [
            ("queue at the far end", far.map(|far| &far.queue).collect()),
            ("receive ring", card(|card| &card.rx_ring)),
            ("IP input queue", vec![&self.ip_queue]),
            ("socket buffer", sockets.collect()),
            ("send queue", card(|card| &card.send_queue)),
            ("transmit ring", card(|card| &card.tx_ring)),
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

    pub(crate) fn knob_figures(&self, start: &Start) -> Vec<SimKnob> {
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

    pub(crate) fn polling_figures(&self, start: &Start) -> Option<SimPolling> {
        let poller = self.poller()?;
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

fn shares(end: &Times, start: &Times) -> SimCpu {
    let whole = (end.sum() - start.sum()) as f64;
    let share = |state| (end.of(state) - start.of(state)) as f64 / whole;
    SimCpu {
        user: share(State::User),
        system: share(State::System),
        interrupt: share(State::Interrupt),
        soft_interrupt: share(State::SoftInterrupt),
        idle: share(State::Idle),
    }
}
