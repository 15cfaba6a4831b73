//! What machines share: the lines between them, and where the datagrams of each flow ended.
//!
//! The machine that runs holds all of it; [`crate::world`] hands it from one to the next.
//!
//! What must hold: a datagram ends once, wherever its fragments end.

use nicpoll_model::LossPlace;

use crate::line::Wire;
use crate::packet::Packet;
use crate::tally::FlowTally;

/// Losses by place.
pub(crate) type Losses = [u64; LossPlace::ALL.len()];

#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) wires: Vec<Wire>,
    /// One for each flow.
    pub(crate) flows: Vec<FlowTally>,
    /// Datagrams delivered of each client at a far end, or answered.
    pub(crate) served: Vec<u64>,
    /// Datagrams lost, by machine.
    pub(crate) losses: Vec<Losses>,
    pub(crate) fates: Fates,
    pub(crate) sleeping: Sleeping,
}

/// The machines on which no program runs or wants to: whoever wakes one from another processor pays for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sleeping(u16);

impl Sleeping {
    pub(crate) fn insert(&mut self, machine: usize) {
        self.0 |= 1 << machine;
    }

    pub(crate) fn remove(&mut self, machine: usize) {
        self.0 &= !(1 << machine);
    }

    pub(crate) fn contains(self, machine: usize) -> bool {
        self.0 & (1 << machine) != 0
    }
}

impl Shared {
    /// Forgets what was counted, and nothing else.
    pub(crate) fn begin_counting(&mut self) {
        for flow in &mut self.flows {
            *flow = flow.begun_anew();
        }
        self.served.fill(0);
        self.losses.fill(Losses::default());
    }

    /// A datagram of a client has arrived where it was to go.
    #[inline]
    pub(crate) fn serve(&mut self, client: u16) {
        if let Some(served) = self.served.get_mut(usize::from(client)) {
            *served += 1;
        }
    }

    /// A packet is lost. Its datagram counts the first time only.
    pub(crate) fn lose(&mut self, machine: usize, place: LossPlace, packet: &Packet) {
        let is_first = packet.fate().is_none_or(|fate| self.fates.lose(fate));
        if is_first {
            self.losses[machine][place as usize] += 1;
            let flow = &mut self.flows[usize::from(packet.flow)];
            flow.send_errors += u64::from(place == LossPlace::SendQueue && machine == flow.from);
        }
    }

    /// Datagrams lost at a place of any machine.
    pub(crate) fn lost(&self, place: LossPlace) -> u64 {
        self.losses
            .iter()
            .map(|losses| losses[place as usize])
            .sum()
    }

    pub(crate) fn offered(&self) -> u64 {
        self.flows.iter().map(|flow| flow.offered).sum()
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.flows.iter().map(|flow| flow.delivered).sum()
    }
}

/// What has become of the datagrams that were cut into fragments. Room follows from the fragments that are on
/// their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    fates: Vec<Fate>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Fragments that have not ended.
    pending: u16,
    is_lost: bool,
}

/// What an arrived fragment means for its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All are here.
    Complete,
    /// Others are still to come, or one was lost.
    Waiting,
}

impl Fates {
    pub(crate) fn begin(&mut self, fragments: u16) -> u32 {
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

    /// A fragment has come where its datagram is put together.
    pub(crate) fn arrive(&mut self, index: u32) -> Part {
        let is_whole = !self.fates[index as usize].is_lost;
        let is_last = self.end_one(index);
        if is_last && is_whole {
            Part::Complete
        } else {
            Part::Waiting
        }
    }

    pub(crate) fn is_lost(&self, index: u32) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_ends_once_and_its_place_is_used_again() {
        let mut fates = Fates::default();
        let whole = fates.begin(2);
        let cut = fates.begin(3);
        assert_ne!(whole, cut);
        assert_eq!(fates.arrive(whole), Part::Waiting);
        assert_eq!(fates.arrive(whole), Part::Complete);
        assert!(fates.lose(cut));
        assert!(!fates.lose(cut));
        assert_eq!(fates.arrive(cut), Part::Waiting);
        assert_eq!(fates.begin(1), cut);
        assert_eq!(fates.begin(1), whole);
    }
}
