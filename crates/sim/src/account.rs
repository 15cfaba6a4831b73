//! The counts of a run, in memory that does not grow with its length: each machine's work, the fate of each flow's
//! datagrams, and the state that all machines share.
//!
//! Guarantees that a datagram ends exactly once, wherever its fragments end.

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimCard, SimNapi, SimStorm};
use nicpoll_model::traffic::Latency;
use nicpoll_stats::Latencies;

use crate::link::{Flow, Packet, Wire};
use crate::spec::simulation::STOPS_MAX;

/// Losses by place.
pub type LossesByPlace = [u64; LossPlace::ALL.len()];

/// State that machines share. The running machine holds it; the event loop passes it on.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub wires: Vec<Wire>,
    /// By flow.
    pub flows: Vec<FlowTally>,
    /// Datagrams of each client at a far end that were delivered or answered.
    pub served: Vec<u64>,
    /// Datagrams lost, by host.
    pub losses: Vec<LossesByPlace>,
    pub fates: Fates,
    /// By host: whether all its programs sleep. Waking one from another processor costs time there.
    pub sleeping: [bool; STOPS_MAX],
}

impl Shared {
    /// Resets the counts, and nothing else.
    pub fn begin_counting(&mut self) {
        for flow in &mut self.flows {
            *flow = flow.restarted();
        }
        self.served.fill(0);
        self.losses.fill(LossesByPlace::default());
    }

    /// Counts a client's datagram that has reached its destination.
    #[inline]
    pub fn serve(&mut self, client: u16) {
        if let Some(served) = self.served.get_mut(usize::from(client)) {
            *served += 1;
        }
    }

    /// Counts a lost packet. Its datagram counts once, with the first lost fragment.
    pub fn lose(&mut self, host: usize, place: LossPlace, packet: &Packet) {
        let is_first = packet.fate().is_none_or(|fate| self.fates.lose(fate));
        if is_first {
            self.losses[host][place as usize] += 1;
            let flow = &mut self.flows[usize::from(packet.flow)];
            flow.send_errors += u64::from(place == LossPlace::SendQueue && host == flow.from);
        }
    }

    /// Returns the datagrams lost at a place, on all hosts.
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

/// The state of datagrams cut into fragments. Memory is bounded by the fragments under way.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    fates: Vec<Fate>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Fragments still under way.
    pending: u16,
    is_lost: bool,
}

impl Fates {
    /// Returns the index that all fragments of a new datagram carry; 0 when it is one packet.
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
        // All queues together hold far fewer than 2^32 fragments.
        (self.fates.len() - 1) as u32
    }

    /// Counts a lost fragment. Returns whether it is the first one lost of its datagram.
    fn lose(&mut self, index: u32) -> bool {
        let fate = &mut self.fates[index as usize];
        let is_first = !fate.is_lost;
        fate.is_lost = true;
        self.end_one(index);
        is_first
    }

    /// Counts a fragment that has reached reassembly. Returns whether the datagram is now complete.
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

/// Counts of a machine's own work.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// IP packets that it made.
    pub made: u64,
    /// IP packets that left its cards.
    pub transmitted: u64,
    /// IP packets that its programs or TCP have taken.
    pub taken: u64,
    /// IP packets merged into others by reassembly.
    pub merged: u64,
    losses: LossesByPlace,
    pub cards: Vec<CardTally>,
    pub storm: SimStorm,
    pub napi: SimNapi,
    pub cycles: Cycles,
}

/// Counts of a card.
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

    /// Returns the IP packets that reached its cards.
    pub fn received(&self) -> u64 {
        self.cards
            .iter()
            .map(|card| card.figures.received_packets)
            .sum()
    }

    /// Returns the interrupts of all cards.
    pub fn interrupts(&self) -> u64 {
        self.cards.iter().map(|card| card.figures.interrupts).sum()
    }

    /// Counts a frame that has left a card.
    pub fn transmit(&mut self, card: usize, line_bytes: u32) {
        self.transmitted += 1;
        self.cards[card].transmitted_bytes += u64::from(line_bytes);
    }
}

/// Counts of a flow, in datagrams.
#[derive(Clone, Debug, Default)]
pub struct FlowTally {
    /// The host that sends.
    pub from: usize,
    /// Number of the next datagram. Never reset.
    pub next_number: u64,
    pub offered: u64,
    pub delivered: u64,
    /// Bytes of payload that a program has read.
    pub read_bytes: u64,
    /// Send calls that were refused.
    pub send_errors: u64,
    pub out_of_order: u64,
    /// Payload sent and arrived, for flows whose packets differ in length.
    pub sent_bytes: u64,
    pub arrived_bytes: u64,
    /// The first delivered number, and the one after the highest.
    numbers: Option<(u64, u64)>,
    latencies: Latencies,
    /// Of requests, from the call until the reply has been read.
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
    /// Cycles with the largest burst allowed.
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

    /// Returns a tally with its counts reset; numbers continue.
    pub fn restarted(&self) -> Self {
        FlowTally {
            next_number: self.next_number,
            ..FlowTally::new(self.from)
        }
    }

    /// Counts a datagram that sets out. Returns its number.
    pub fn offer(&mut self) -> u64 {
        self.offered += 1;
        self.next_number += 1;
        self.next_number - 1
    }

    /// Counts a datagram that has reached its destination.
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

    /// Records a round trip whose reply has come.
    pub fn answer(&mut self, round_trip_ns: u64) {
        let trips = self.round_trips.get_or_insert_default();
        trips.record_ns(round_trip_ns);
    }

    /// Returns the gaps in the delivered numbers, as iperf's receiver counts them.
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

    /// Returns the latency of several flows together.
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
