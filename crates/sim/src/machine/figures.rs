//! What came out of a run.

use nicpoll_core::{Knob, Poller};
use nicpoll_model::sim::{
    SimCpu, SimFigures, SimKnob, SimLedger, SimLoss, SimPlace, SimPolling, SimQueue, SimSlice,
};

use super::{Machine, Receive};
use crate::cpu::{State, Times};
use crate::plan::Plan;
use crate::tally::Tally;

/// What there was when the counted time began.
#[derive(Clone, Debug)]
pub(super) struct Start {
    times: Times,
    switches: u64,
    /// Knobs and counters of the poller, in the order of [`Knob::ALL`].
    knobs: Vec<u32>,
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    offered: u64,
    delivered: u64,
    lost: u64,
    interrupts: u64,
    throttled: u64,
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
    pub(super) fn begin_counting(&mut self) -> Start {
        self.tally = Tally::default();
        self.in_flight_at_start = self.in_flight();
        for queue in [
            &mut self.far,
            &mut self.card.rx_ring,
            &mut self.ip_queue,
            &mut self.socket,
            &mut self.card.send_queue,
            &mut self.card.tx_ring,
        ] {
            queue.begin_counting();
        }
        Start {
            times: self.cpu.times,
            switches: self.cpu.switches,
            knobs: self.knobs(),
        }
    }

    /// Runs through all the slices that are asked for.
    pub(super) fn run_slices(&mut self, plan: &Plan, start: &Start) -> Vec<SimSlice> {
        let mut before = Mark::default();
        let mut slices = Vec::new();
        for number in 1..=u64::from(plan.slices) {
            let end_ns =
                u128::from(plan.duration_ns) * u128::from(number) / u128::from(plan.slices);
            // Not beyond the duration.
            let end_ns = end_ns as u64;
            self.run_until(plan.warmup_ns.saturating_add(end_ns));
            let now = self.mark();
            slices.push(SimSlice {
                end_seconds: end_ns as f64 / 1e9,
                offered: now.offered - before.offered,
                delivered: now.delivered - before.delivered,
                lost: now.lost - before.lost,
                interrupts: now.interrupts - before.interrupts,
                throttled: now.throttled - before.throttled,
                knobs: self.knob_figures(start),
            });
            before = now;
        }
        slices
    }

    fn mark(&self) -> Mark {
        let tally = &self.tally;
        Mark {
            offered: tally.offered,
            delivered: tally.delivered,
            lost: SimPlace::ALL.iter().map(|place| tally.lost(*place)).sum(),
            interrupts: tally.interrupts,
            throttled: tally.storm.throttled,
        }
    }

    pub(super) fn figures(&self, plan: &Plan, start: &Start, slices: Vec<SimSlice>) -> SimFigures {
        let seconds = plan.duration_ns as f64 / 1e9;
        let tally = &self.tally;
        let delivered_pps = tally.delivered as f64 / seconds;
        let payload_bits = 8.0 * f64::from(plan.workload.payload_bytes);
        let ledger = self.ledger();
        let switches = self.cpu.switches - start.switches;
        let is_thread =
            matches!(&self.receive, Receive::Threads(_, netisr) if !netisr.is_polling());
        let is_napi = matches!(self.receive, Receive::Napi(_));
        SimFigures {
            offered_pps: tally.offered as f64 / seconds,
            delivered_pps,
            delivered_payload_bits_per_second: delivered_pps * payload_bits,
            loss_ratio: ratio(ledger.lost(), tally.offered),
            line_ratio: tally.line_frames as f64 * self.wire.frame_seconds() / seconds,
            latency: tally.latency(),
            jitter_ns: tally.jitter_ns(),
            cpu: shares(&self.cpu.times, &start.times),
            context_switches: switches,
            context_switches_per_packet: ratio(switches, tally.delivered),
            interrupts: tally.interrupts,
            slices,
            queues: self.queue_figures(),
            storm: is_thread.then_some(tally.storm),
            polling: self.polling_figures(start),
            napi: is_napi.then_some(tally.napi),
            ledger,
        }
    }

    fn ledger(&self) -> SimLedger {
        let loss = |place| SimLoss {
            place,
            packets: self.tally.lost(place),
        };
        SimLedger {
            in_flight_at_start: self.in_flight_at_start,
            offered: self.tally.offered,
            delivered: self.tally.delivered,
            losses: SimPlace::ALL.map(loss).to_vec(),
            in_flight_at_end: self.in_flight(),
        }
    }

    fn queue_figures(&self) -> Vec<SimQueue> {
        let queues = self.queues();
        let with_limit = queues.iter().filter(|(_, queue)| queue.limit() > 0);
        let figures = with_limit.map(|(name, queue)| SimQueue {
            name: String::from(*name),
            limit: queue.limit(),
            most: queue.most(),
        });
        figures.collect()
    }

    fn knob_figures(&self, start: &Start) -> Vec<SimKnob> {
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

    fn polling_figures(&self, start: &Start) -> Option<SimPolling> {
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

fn ratio(part: u64, whole: u64) -> Option<f64> {
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
