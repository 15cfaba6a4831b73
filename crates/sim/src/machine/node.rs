//! A machine as the world sees it, whatever its discipline and its links.

use std::fmt;

use nicpoll_model::sim::{SimHostFigures, SimKnob};

use super::{Discipline, End, Link, Machine, Start};
use crate::packet::Packet;
use crate::shared::Shared;
use crate::tally::Tally;

/// A machine of a world.
pub(crate) trait Node: fmt::Debug {
    /// Starts it.
    fn boot(&mut self);

    /// When the next thing happens that it knows of.
    fn next_event_ns(&mut self) -> u64;

    /// Lets everything happen that is due before `end_ns`, up to a packet's leaving for another machine.
    fn run_before(&mut self, end_ns: u64);

    /// Lets the time pass in which nothing happens. What falls on the edge itself is left for later.
    fn advance_to(&mut self, edge_ns: u64);

    fn now_ns(&self) -> u64;

    /// Takes the frame that has left for another machine, with the card that it left.
    fn take_outbox(&mut self) -> Option<(usize, Packet)>;

    /// A frame is on its way to a card, from another machine's, and has left that now.
    fn expect(&mut self, card: usize, packet: Packet, left_ns: u64);

    /// A packet that another processor of the host has taken in is for a program here, now.
    fn take_over(&mut self, packet: Packet);

    /// The place of what all machines share.
    fn shared(&mut self) -> &mut Box<Shared>;

    /// Shows every packet in a queue of this machine, those on their way to its cards included.
    fn each_packet(&self, show: &mut dyn FnMut(&Packet));

    /// Requests that a program has read and not answered, of those that count until they are.
    fn owed(&self) -> u64;

    /// Its ends of TCP connections.
    fn ends(&self) -> &[End];

    /// The warm-up is over.
    fn begin_counting(&mut self) -> Start;

    /// What is counted of its work.
    fn tally(&self) -> &Tally;

    /// Its poller's knobs and counters.
    fn knob_figures(&self, start: &Start) -> Vec<SimKnob>;

    /// What came out on it.
    fn host_figures(&self, start: &Start) -> SimHostFigures;
}

impl<D: Discipline, L: Link> Node for Machine<D, L> {
    fn boot(&mut self) {
        self.start();
    }

    fn next_event_ns(&mut self) -> u64 {
        self.next_event_ns()
    }

    fn run_before(&mut self, end_ns: u64) {
        self.run_before(end_ns);
    }

    fn advance_to(&mut self, edge_ns: u64) {
        self.advance_to(edge_ns);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn take_outbox(&mut self) -> Option<(usize, Packet)> {
        self.outbox.take()
    }

    fn expect(&mut self, card: usize, packet: Packet, left_ns: u64) {
        self.expect(card, packet, left_ns);
    }

    fn take_over(&mut self, packet: Packet) {
        self.put_into_socket(packet);
    }

    fn shared(&mut self) -> &mut Box<Shared> {
        &mut self.shared
    }

    fn each_packet(&self, show: &mut dyn FnMut(&Packet)) {
        self.each_packet().for_each(show);
    }

    fn owed(&self) -> u64 {
        self.owed()
    }

    fn ends(&self) -> &[End] {
        &self.ends
    }

    fn begin_counting(&mut self) -> Start {
        self.begin_counting()
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn knob_figures(&self, start: &Start) -> Vec<SimKnob> {
        self.knob_figures(start)
    }

    fn host_figures(&self, start: &Start) -> SimHostFigures {
        self.host_figures(start)
    }
}
