//! The figures of machines and hosts.

use nicpoll_core::{Knob, Poller};
use nicpoll_model::sim::{
    SIM_PLACES, SimCard, SimCpu, SimHostFigures, SimHostLedger, SimKnob, SimLoss, SimNapi,
    SimPolling, SimQueue,
};

use super::card::Card;
use super::cpu::{TimeState, Times};
use super::state::SimMachine;
use crate::account::Tally;
use crate::link::BoundedQueue;
use crate::spec::discipline::HostKernel;

/// The state of a machine when the counted time began.
#[derive(Clone, Debug)]
pub struct Start {
    times: Times,
    samples: Times,
    switches: u64,
    /// Packets in the machine.
    in_flight: u64,
    /// Knobs and counters of the poller, in the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

impl SimMachine {
    /// Starts counting, after the warm-up.
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

    /// Returns every queue with a limit, in the order of a packet's way in, then its way out. The names of a second
    /// card's or program's queues end with its number, from 1.
    fn queue_figures(&self) -> Vec<SimQueue> {
        let card = |of: fn(&Card) -> &BoundedQueue| self.cards.iter().map(of).collect::<Vec<_>>();
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
                    limit_packets: queue.limit,
                    most_packets: queue.most,
                });
            }
        }
        figures
    }

    /// Returns the poller's figures.
    fn polling(&self, start: &Start) -> Option<SimPolling> {
        let poller = self.freebsd.poller.as_ref()?;
        let cycles = &self.tally.cycles;
        Some(SimPolling {
            controller: String::from(poller.controller().name()),
            cycles: cycles.count,
            asked_packets: cycles.asked,
            burst_mean_packets: ratio(cycles.burst_sum, cycles.count),
            burst_min_packets: cycles.burst_min,
            burst_max_reached_packets: cycles.burst_max,
            full_cycles: cycles.at_burst_max,
            knobs: self.knob_figures(start),
        })
    }

    /// Returns knobs and counters of the poller, in the order of [`Knob::ALL`]; empty without one.
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

/// Returns the time that each processor of a host has spent so far.
pub fn times(processors: &[SimMachine]) -> Vec<Times> {
    processors.iter().map(|cpu| cpu.cpu.times).collect()
}

/// Returns the shares of the time between two readings of [`times`].
pub fn shares_between(before: &[Times], now: &[Times]) -> SimCpu {
    let each = now
        .iter()
        .zip(before)
        .filter_map(|(now, before)| shares(now, before));
    mean(&each.collect::<Vec<_>>()).unwrap_or_default()
}

/// Returns the figures of a host. Over its processors counts are summed, shares of time averaged, and of queues with
/// the same name the fullest counts.
pub fn host_figures(processors: &[SimMachine], starts: &[Start]) -> SimHostFigures {
    let last = &processors[processors.len() - 1];
    let each = || processors.iter().zip(starts);
    let sum = |of: fn(&SimMachine, &Start) -> u64| each().map(|(cpu, start)| of(cpu, start)).sum();
    let times = each().map(|(cpu, start)| shares(&cpu.cpu.times, &start.times));
    let cpus: Vec<_> = times.map(Option::unwrap_or_default).collect();
    let sampled = each().filter_map(|(cpu, start)| shares(&cpu.sampling.seen, &start.samples));
    let has_threads = last.kernel == HostKernel::Freebsd && last.freebsd.poller.is_none();
    SimHostFigures {
        host: last.host.name.clone(),
        cpu: mean(&cpus).unwrap_or_default(),
        cpu_sampled: mean(&sampled.collect::<Vec<_>>()),
        cpus: if cpus.len() > 1 { cpus } else { Vec::new() },
        context_switches: sum(|cpu, start| cpu.cpu.switches - start.switches),
        interrupts: sum(|cpu, _| cpu.tally.interrupts()),
        ledger: SimHostLedger {
            in_flight_at_start_packets: sum(|_, start| start.in_flight),
            received_packets: sum(|cpu, _| cpu.tally.received()),
            made_packets: sum(|cpu, _| cpu.tally.made),
            transmitted_packets: sum(|cpu, _| cpu.tally.transmitted),
            taken_packets: sum(|cpu, _| cpu.tally.taken),
            merged_packets: sum(|cpu, _| cpu.tally.merged),
            losses: losses(processors),
            in_flight_at_end_packets: sum(|cpu, _| cpu.packets()),
        },
        cards: cards(processors),
        queues: queues(processors),
        storm: has_threads.then_some(last.tally.storm),
        polling: last.polling(&starts[starts.len() - 1]),
        napi: (last.kernel == HostKernel::Linux).then(|| SimNapi {
            polls: sum(|cpu, _| cpu.tally.napi.polls),
            empty_polls: sum(|cpu, _| cpu.tally.napi.empty_polls),
            time_squeezes: sum(|cpu, _| cpu.tally.napi.time_squeezes),
            handovers: sum(|cpu, _| cpu.tally.napi.handovers),
            timer_polls: sum(|cpu, _| cpu.tally.napi.timer_polls),
            busy_polls: sum(|cpu, _| cpu.tally.napi.busy_polls),
        }),
    }
}

fn losses(processors: &[SimMachine]) -> Vec<SimLoss> {
    let loss = |place| SimLoss {
        place,
        packets: processors.iter().map(|cpu| cpu.tally.lost(place)).sum(),
    };
    SIM_PLACES.map(loss).to_vec()
}

/// Returns the figures of the cards, without the share of their lines.
fn cards(processors: &[SimMachine]) -> Vec<SimCard> {
    let card = |card: usize| {
        let tallies = || processors.iter().map(|cpu| &cpu.tally.cards[card].figures);
        SimCard {
            received_packets: tallies().map(|of| of.received_packets).sum(),
            ring_lost_packets: tallies().map(|of| of.ring_lost_packets).sum(),
            interrupts: tallies().map(|of| of.interrupts).sum(),
            line_ratio: None,
        }
    };
    (0..processors[0].cards.len()).map(card).collect()
}

/// Returns the fullest of each queue: all processors have the same queues, in the same order.
fn queues(processors: &[SimMachine]) -> Vec<SimQueue> {
    let mut queues = processors[0].queue_figures();
    for cpu in processors {
        for (queue, other) in queues.iter_mut().zip(cpu.queue_figures()) {
            queue.most_packets = queue.most_packets.max(other.most_packets);
        }
    }
    queues
}

fn mean(cpus: &[SimCpu]) -> Option<SimCpu> {
    let of = |share: fn(&SimCpu) -> f64| cpus.iter().map(share).sum::<f64>() / cpus.len() as f64;
    (!cpus.is_empty()).then(|| SimCpu {
        user_ratio: of(|cpu| cpu.user_ratio),
        system_ratio: of(|cpu| cpu.system_ratio),
        interrupt_ratio: of(|cpu| cpu.interrupt_ratio),
        soft_interrupt_ratio: of(|cpu| cpu.soft_interrupt_ratio),
        idle_ratio: of(|cpu| cpu.idle_ratio),
    })
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

/// Returns the shares of the time between two readings; `None` when none passed.
fn shares(end: &Times, start: &Times) -> Option<SimCpu> {
    let whole = end.sum() - start.sum();
    let share = |state| (end.of(state) - start.of(state)) as f64 / whole as f64;
    (whole > 0).then(|| SimCpu {
        user_ratio: share(TimeState::User),
        system_ratio: share(TimeState::System),
        interrupt_ratio: share(TimeState::Interrupt),
        soft_interrupt_ratio: share(TimeState::SoftInterrupt),
        idle_ratio: share(TimeState::Idle),
    })
}
