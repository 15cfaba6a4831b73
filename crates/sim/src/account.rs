//! What is counted during a run, in space that does not grow with its length: what each machine did, what became of the
//! datagrams of each flow, and what all machines share.
//!
//! Guarantees that a datagram ends exactly once, wherever its fragments end.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimCard, SimNapi, SimStorm};
use nicpoll_model::traffic::Latency;
use nicpoll_stats::Latencies;

use crate::link::{Flow, Packet, Wire};
use crate::spec::simulation::STOPS_MAX;

/// Losses by place.
pub type Losses = [u64; LossPlace::ALL.len()];

/// What machines share. The machine that runs holds all of it; the event loop hands it from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub wires: Vec<Wire>,
    /// One for each flow.
    pub flows: Vec<FlowTally>,
    /// Datagrams delivered of each client at a far end, or answered.
    pub served: Vec<u64>,
    /// Datagrams lost, by machine.
    pub losses: Vec<Losses>,
    pub fates: Fates,
    /// The hosts on which no program runs or wants to: whoever wakes one from another processor pays for it.
    pub sleeping: [bool; STOPS_MAX],
}

impl Shared {
    /// Forgets what was counted, and nothing else.
    pub fn begin_counting(&mut self) {
        for flow in &mut self.flows {
            *flow = flow.restarted();
        }
        self.served.fill(0);
        self.losses.fill(Losses::default());
    }

    /// A datagram of a client has arrived where it was to go.
    #[inline]
    pub fn serve(&mut self, client: u16) {
        if let Some(served) = self.served.get_mut(usize::from(client)) {
            *served += 1;
        }
    }

    /// A packet is lost. Its datagram counts the first time only.
    pub fn lose(&mut self, machine: usize, place: LossPlace, packet: &Packet) {
        let is_first = packet.fate().is_none_or(|fate| self.fates.lose(fate));
        if is_first {
            self.losses[machine][place as usize] += 1;
            let flow = &mut self.flows[usize::from(packet.flow)];
            flow.send_errors += u64::from(place == LossPlace::SendQueue && machine == flow.from);
        }
    }

    /// Datagrams lost at a place of any machine.
    pub fn lost(&self, place: LossPlace) -> u64 {
        self.losses
            .iter()
            .map(|losses| losses[place as usize])
            .sum()
    }

    pub fn offered(&self) -> u64 {
        self.flows.iter().map(|flow| flow.offered).sum()
    }

    pub fn delivered(&self) -> u64 {
        self.flows.iter().map(|flow| flow.delivered).sum()
    }
}

/// What has become of the datagrams that were cut into fragments. Room follows from the fragments that are on
/// their way.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    fates: Vec<Fate>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Fragments that have not ended.
    pending: u16,
    is_lost: bool,
}

impl Fates {
    /// What the fragments of a datagram of this flow have in common; 0 when it is one packet.
    pub fn begin_for(&mut self, flow: &Flow) -> u32 {
        // A datagram has fewer than 2^16 bytes.
        let fragments = flow.shapes.len() as u16;
        if fragments > 1 {
            self.begin(fragments)
        } else {
            0
        }
    }

    fn begin(&mut self, fragments: u16) -> u32 {
        let fate = Fate {
            pending: fragments,
            is_lost: false,
        };
        if let Some(index) = self.free.pop() {
            self.fates[index as usize] = fate;
            return index;
        }
        self.fates.push(fate);
        // Far fewer fragments fit into all queues.
        (self.fates.len() - 1) as u32
    }

    /// A fragment is lost. True when it is the first of its datagram.
    fn lose(&mut self, index: u32) -> bool {
        let fate = &mut self.fates[index as usize];
        let is_first = !fate.is_lost;
        fate.is_lost = true;
        self.end_one(index);
        is_first
    }

    /// A fragment has come where its datagram is put together. Whether all are here now.
    pub fn arrive(&mut self, index: u32) -> bool {
        let is_whole = !self.fates[index as usize].is_lost;
        self.end_one(index) && is_whole
    }

    pub fn is_lost(&self, index: u32) -> bool {
        self.fates[index as usize].is_lost
    }

    fn end_one(&mut self, index: u32) -> bool {
        let fate = &mut self.fates[index as usize];
        fate.pending -= 1;
        let is_last = fate.pending == 0;
        if is_last {
            self.free.push(index);
        }
        is_last
    }
}

/// What a machine counts of its own work.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// IP packets that it made.
    pub made: u64,
    /// IP packets that left its cards.
    pub transmitted: u64,
    /// IP packets whose content its programs took.
    pub taken: u64,
    /// IP packets that others took up when a datagram was put together.
    pub merged: u64,
    losses: Losses,
    pub cards: Vec<CardTally>,
    pub storm: SimStorm,
    pub napi: SimNapi,
    pub cycles: Cycles,
}

/// What is counted of a card.
#[derive(Clone, Copy, Debug, Default)]
pub struct CardTally {
    /// All but the share of its line.
    pub figures: SimCard,
    /// Bytes on its line, with preamble and gap.
    pub received_bytes: u64,
    pub transmitted_bytes: u64,
}

impl Tally {
    pub fn new(cards: usize) -> Self {
        Tally {
            cards: vec![CardTally::default(); cards],
            ..Tally::default()
        }
    }

    pub fn lose(&mut self, place: LossPlace) {
        self.losses[place as usize] += 1;
    }

    pub fn lost(&self, place: LossPlace) -> u64 {
        self.losses[place as usize]
    }

    /// IP packets that reached its cards.
    pub fn received(&self) -> u64 {
        self.cards.iter().map(|card| card.figures.received).sum()
    }

    /// Interrupts of all cards.
    pub fn interrupts(&self) -> u64 {
        self.cards.iter().map(|card| card.figures.interrupts).sum()
    }

    /// A frame has left a card.
    pub fn transmit(&mut self, card: usize, line_bytes: u32) {
        self.transmitted += 1;
        self.cards[card].transmitted_bytes += u64::from(line_bytes);
    }
}

/// What is counted of a flow, in datagrams.
#[derive(Clone, Debug, Default)]
pub struct FlowTally {
    /// The machine that sends.
    pub from: usize,
    /// The number of the next one. Never restarted.
    pub next_number: u64,
    pub offered: u64,
    pub delivered: u64,
    /// Bytes of payload that a program has read.
    pub read_bytes: u64,
    /// Calls that were refused.
    pub send_errors: u64,
    pub out_of_order: u64,
    /// Of a flow whose packets have no one length: their payload, sent and arrived.
    pub sent_bytes: u64,
    pub arrived_bytes: u64,
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
pub struct Cycles {
    pub count: u64,
    pub asked: u64,
    pub burst_sum: u64,
    pub burst_min: Option<u32>,
    pub burst_max: Option<u32>,
    /// Cycles whose burst was all that it may be.
    pub at_burst_max: u64,
}

impl Cycles {
    pub fn begin(&mut self, burst: u32, limit: u32) {
        self.count += 1;
        self.burst_sum += u64::from(burst);
        self.burst_min = Some(self.burst_min.map_or(burst, |least| least.min(burst)));
        self.burst_max = Some(self.burst_max.map_or(burst, |most| most.max(burst)));
        self.at_burst_max += u64::from(burst >= limit);
    }
}

impl FlowTally {
    pub fn new(from: usize) -> Self {
        FlowTally {
            from,
            ..FlowTally::default()
        }
    }

    /// With nothing counted; numbers go on.
    pub fn restarted(&self) -> Self {
        FlowTally {
            next_number: self.next_number,
            ..FlowTally::new(self.from)
        }
    }

    /// A datagram sets out. Returns its number.
    pub fn offer(&mut self) -> u64 {
        self.offered += 1;
        self.next_number += 1;
        self.next_number - 1
    }

    /// A datagram has arrived where it was to go.
    pub fn deliver(&mut self, number: u64, transit_ns: u64, latency_ns: u64) {
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
    pub fn answer(&mut self, round_trip_ns: u64) {
        let trips = self.round_trips.get_or_insert_default();
        trips.record_ns(round_trip_ns);
    }

    /// Gaps in the numbers of those delivered, as iperf's receiver counts them.
    pub fn missing(&self) -> u64 {
        let span = self.numbers.map_or(0, |(first, next)| next - first);
        span.saturating_sub(self.delivered)
    }

    pub fn jitter_ns(&self) -> Option<f64> {
        self.has_jitter.then_some(self.jitter_ns)
    }

    pub fn latency(&self) -> Latency {
        self.latencies.summary()
    }

    /// The latency of several flows together.
    pub fn latency_of_all(flows: &[FlowTally]) -> Latency {
        let mut all = Latencies::default();
        for flow in flows {
            all.add(&flow.latencies);
        }
        all.summary()
    }

    pub fn round_trip(&self) -> Option<Latency> {
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
        assert_eq!(tally.restarted().missing(), 0);
    }

    #[test]
    fn a_datagram_ends_once_and_its_place_is_used_again() {
        let mut fates = Fates::default();
        let whole = fates.begin(2);
        let cut = fates.begin(3);
        assert_ne!(whole, cut);
        assert!(!fates.arrive(whole) && fates.arrive(whole));
        assert!(fates.lose(cut) && !fates.lose(cut));
        assert!(!fates.arrive(cut));
        assert_eq!(fates.begin(1), cut);
        assert_eq!(fates.begin(1), whole);
    }
}
