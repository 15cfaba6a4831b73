//! What is counted during a run, in space that does not grow with its length.

use nicpoll_model::LossPlace;
use nicpoll_model::rr::Latency;
use nicpoll_model::sim::{SimNapi, SimStorm};
use nicpoll_stats::Latencies;

use crate::shared::Losses;

/// What a machine counts of its own work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// IP packets that it made.
    pub(crate) made: u64,
    /// IP packets that left its cards.
    pub(crate) transmitted: u64,
    /// IP packets whose content its programs took.
    pub(crate) taken: u64,
    /// IP packets that others took up when a datagram was put together.
    pub(crate) merged: u64,
    losses: Losses,
    pub(crate) cards: Vec<CardTally>,
    pub(crate) storm: SimStorm,
    pub(crate) napi: SimNapi,
    pub(crate) cycles: Cycles,
}

/// What is counted of a card.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CardTally {
    /// IP packets that reached it.
    pub(crate) received: u64,
    /// Of these, those that its ring had no room for.
    pub(crate) ring_lost: u64,
    pub(crate) interrupts: u64,
    /// Bytes on its line, with preamble and gap.
    pub(crate) received_bytes: u64,
    pub(crate) transmitted_bytes: u64,
}

impl Tally {
    pub(crate) fn new(cards: usize) -> Self {
        Tally {
            cards: vec![CardTally::default(); cards],
            ..Tally::default()
        }
    }

    pub(crate) fn lose(&mut self, place: LossPlace) {
        self.losses[place as usize] += 1;
    }

    pub(crate) fn lost(&self, place: LossPlace) -> u64 {
        self.losses[place as usize]
    }

    /// Interrupts of all cards.
    pub(crate) fn interrupts(&self) -> u64 {
        self.cards.iter().map(|card| card.interrupts).sum()
    }

    /// A frame has left a card.
    pub(crate) fn transmit(&mut self, card: usize, line_bytes: u32) {
        self.transmitted += 1;
        self.cards[card].transmitted_bytes += u64::from(line_bytes);
    }
}

/// What is counted of a flow, in datagrams.
#[derive(Clone, Debug)]
pub(crate) struct FlowTally {
    /// The machine that sends.
    pub(crate) from: usize,
    /// The number of the next one. Never begun anew.
    pub(crate) next_number: u64,
    pub(crate) offered: u64,
    pub(crate) delivered: u64,
    /// Bytes of payload that a program has read.
    pub(crate) read_bytes: u64,
    /// Calls that were refused.
    pub(crate) send_errors: u64,
    pub(crate) out_of_order: u64,
    /// Of a flow whose packets have no one length: their payload, sent and arrived.
    pub(crate) sent_bytes: u64,
    pub(crate) arrived_bytes: u64,
    /// The first number that was delivered and the one after the highest.
    numbers: Option<(u64, u64)>,
    latencies: Latencies,
    /// Of requests, from the call to the end of the reply's read.
    round_trips: Option<Latencies>,
    last_transit_ns: Option<u64>,
    jitter_ns: f64,
    has_jitter: bool,
}

/// The poller's cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    pub(crate) count: u64,
    pub(crate) asked: u64,
    pub(crate) burst_sum: u64,
    pub(crate) burst_min: Option<u32>,
    pub(crate) burst_max: Option<u32>,
    /// Cycles whose burst was all that it may be.
    pub(crate) at_burst_max: u64,
}

impl Cycles {
    pub(crate) fn begin(&mut self, burst: u32, limit: u32) {
        self.count += 1;
        self.burst_sum += u64::from(burst);
        self.burst_min = Some(self.burst_min.map_or(burst, |least| least.min(burst)));
        self.burst_max = Some(self.burst_max.map_or(burst, |most| most.max(burst)));
        self.at_burst_max += u64::from(burst >= limit);
    }
}

impl FlowTally {
    pub(crate) fn new(from: usize) -> Self {
        FlowTally {
            from,
            next_number: 0,
            offered: 0,
            delivered: 0,
            read_bytes: 0,
            send_errors: 0,
            out_of_order: 0,
            sent_bytes: 0,
            arrived_bytes: 0,
            numbers: None,
            latencies: Latencies::default(),
            round_trips: None,
            last_transit_ns: None,
            jitter_ns: 0.0,
            has_jitter: false,
        }
    }

    /// With nothing counted; numbers go on.
    pub(crate) fn begun_anew(&self) -> Self {
        FlowTally {
            next_number: self.next_number,
            ..FlowTally::new(self.from)
        }
    }

    /// A datagram sets out. Returns its number.
    pub(crate) fn offer(&mut self) -> u64 {
        self.offered += 1;
        self.next_number += 1;
        self.next_number - 1
    }

    /// A datagram has arrived where it was to go.
    pub(crate) fn deliver(&mut self, number: u64, transit_ns: u64, latency_ns: u64) {
        self.delivered += 1;
        self.latencies.record_ns(latency_ns);
        match &mut self.numbers {
            None => self.numbers = Some((number, number + 1)),
            Some((_, next)) if number < *next => self.out_of_order += 1,
            Some((_, next)) => *next = number + 1,
        }
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            let step = transit_ns.abs_diff(last) as f64;
            self.jitter_ns += (step - self.jitter_ns) / 16.0;
            self.has_jitter = true;
        }
    }

    /// A reply has come.
    pub(crate) fn answer(&mut self, round_trip_ns: u64) {
        let trips = self.round_trips.get_or_insert_default();
        trips.record_ns(round_trip_ns);
    }

    /// Gaps in the numbers of those delivered, as iperf's receiver counts them.
    pub(crate) fn missing(&self) -> u64 {
        let span = self.numbers.map_or(0, |(first, next)| next - first);
        span.saturating_sub(self.delivered)
    }

    pub(crate) fn jitter_ns(&self) -> Option<f64> {
        self.has_jitter.then_some(self.jitter_ns)
    }

    pub(crate) fn latency(&self) -> Latency {
        self.latencies.summary()
    }

    /// The latency of several flows together.
    pub(crate) fn latency_of_all(flows: &[FlowTally]) -> Latency {
        let mut all = Latencies::default();
        for flow in flows {
            all.add(&flow.latencies);
        }
        all.summary()
    }

    pub(crate) fn round_trip(&self) -> Option<Latency> {
        self.round_trips.as_ref().map(Latencies::summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_sixteenth_of_each_step_smoothed() {
        let mut tally = FlowTally::new(0);
        assert_eq!(tally.jitter_ns(), None);
        tally.deliver(0, 1000, 1);
        assert_eq!(tally.jitter_ns(), None);
        tally.deliver(1, 1160, 1);
        assert_eq!(tally.jitter_ns(), Some(10.0));
        tally.deliver(2, 1160, 1);
        assert_eq!(tally.jitter_ns(), Some(9.375));
        tally.deliver(3, 1000, 1);
        assert_eq!(tally.jitter_ns(), Some(9.375 + (160.0 - 9.375) / 16.0));
    }

    #[test]
    fn gaps_and_order_follow_from_the_numbers() {
        let mut tally = FlowTally::new(0);
        assert_eq!(tally.missing(), 0);
        for number in [10, 11, 14, 13, 15] {
            tally.deliver(number, 0, 1);
        }
        assert_eq!((tally.missing(), tally.out_of_order), (1, 1));
        assert_eq!(tally.begun_anew().missing(), 0);
    }
}
