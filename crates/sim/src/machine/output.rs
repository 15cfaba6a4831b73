//! A packet's way out: from whoever sends it to the driver and the card.
//!
//! What the kernel or a program sends waits at its level, and each packet goes to its card's ring or send
//! queue at the end of the step that its driver takes for it.

use std::collections::VecDeque;

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;

use super::input::kib_ns;
use super::task::Request;
use super::{Counts, Discipline, Link, Machine};
use crate::cpu::{LEVELS, Level, State, Step};
use crate::packet::Packet;

/// What each level is to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Output([Outgoing; LEVELS]);

#[derive(Clone, Debug, Default)]
struct Outgoing {
    /// With the work of making each.
    waiting: VecDeque<(Packet, u64)>,
    /// The one that the driver has.
    in_hand: Option<Packet>,
}

impl Outgoing {
    fn iter(&self) -> impl Iterator<Item = &Packet> {
        let waiting = self.waiting.iter().map(|(packet, _)| packet);
        waiting.chain(self.in_hand.iter())
    }
}

impl Output {
    pub(super) fn len(&self) -> u64 {
        let each = |of: &Outgoing| of.waiting.len() as u64 + u64::from(of.in_hand.is_some());
        self.0.iter().map(each).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().flat_map(Outgoing::iter)
    }

    /// Whether a level has packets of a flow to send.
    pub(super) fn has(&self, level: Level, flow: usize) -> bool {
        let mut packets = self.0[level as usize].iter();
        packets.any(|packet| usize::from(packet.flow) == flow)
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// The driver's work on a packet to send.
    pub(super) fn transmit_ns(&self, packet: &Packet) -> u64 {
        let card = &self.host.card;
        card.tx_packet_ns + kib_ns(card.tx_kib_ns, packet.payload_bytes)
    }

    /// A level is to send a packet, after so much work of its own.
    pub(super) fn send_from(&mut self, level: Level, packet: Packet, work_ns: u64) {
        let outgoing = &mut self.output.0[level as usize];
        outgoing.waiting.push_back((packet, work_ns));
    }

    /// Begins with the next packet that a level is to send. False when there is none.
    pub(super) fn output_next(&mut self, level: Level, state: State) -> bool {
        while let Some((packet, work_ns)) = self.output.0[level as usize].waiting.pop_front() {
            let card = self.flows[usize::from(packet.flow)].card;
            let is_driven = self.cards[card].can_transmit_at_once();
            if !is_driven && work_ns == 0 {
                self.queue_to_send(card, packet);
                continue;
            }
            let driver_ns = if is_driven {
                self.transmit_ns(&packet)
            } else {
                0
            };
            self.output.0[level as usize].in_hand = Some(packet);
            self.cpu
                .start(level, Step::Transmit, work_ns + driver_ns, state);
            return true;
        }
        false
    }

    pub(super) fn output_done(&mut self, level: Level) {
        if let Some(packet) = self.output.0[level as usize].in_hand.take() {
            self.transmit(packet);
        }
    }

    /// What a program's call to send a datagram costs, up to the driver.
    pub(super) fn call_ns(&self, flow: usize) -> u64 {
        let host = &self.host;
        let flow = &self.flows[flow];
        let fragments = match flow.shapes.len() as u64 {
            1 => 0,
            several => several,
        };
        let copy_kib_ns = host.socket.copy_kib_ns;
        let (output_ns, per_kib_ns) = match flow.ip {
            IpVersion::V4 => (host.network.output_ns, copy_kib_ns),
            // `udp6_output` computes the checksum, whatever comes after it.
            IpVersion::V6 => (
                host.network.output6_ns,
                copy_kib_ns + host.network.checksum_kib_ns,
            ),
        };
        host.cpu.syscall_ns
            + output_ns
            + kib_ns(per_kib_ns, flow.payload_bytes)
            + fragments * host.network.fragment_ns
    }

    /// What a program's call to read a datagram costs.
    pub(super) fn read_ns(&self, packet: &Packet) -> u64 {
        self.host.cpu.syscall_ns + kib_ns(self.host.socket.copy_kib_ns, packet.payload_bytes)
    }

    /// A program's call has made a datagram; a reply has its request's number and client. Returns the number.
    pub(super) fn make_datagram(&mut self, flow: usize, request: Option<Request>) -> u64 {
        let of = &self.flows[flow];
        let (number, sent_ns) = match request {
            // It is the rest of the request's way.
            Some(request) if of.counts == Counts::Exchange => (request.number, request.sent_ns),
            _ => {
                let own_number = self.shared.flows[flow].offer();
                let number = request.map_or(own_number, |request| request.number);
                (number, self.now_ns)
            }
        };
        let fate = of.begin_fate(&mut self.shared.fates);
        let fragments = of.shapes.len();
        let senders = of.senders;
        let is_ipv4 = of.ip == IpVersion::V4;
        // With IPv4 FreeBSD looks for room first, and then computes the checksum (`ip_output`).
        let is_refused = is_ipv4 && !self.cards[of.card].has_room_for(fragments as u64);
        let checksum_ns = if is_ipv4 {
            kib_ns(self.host.network.checksum_kib_ns, of.payload_bytes)
        } else {
            0
        };
        for index in 0..fragments {
            let mut packet = self.flows[flow].packet(index, number, fate, sent_ns);
            // Less than 2^16.
            let port = (number % u64::from(senders)) as u16;
            packet.client = request.map_or(port, |request| request.client);
            self.tally.made += 1;
            if is_refused {
                self.lose(LossPlace::SendQueue, &packet);
            } else {
                let work_ns = if index == 0 { checksum_ns } else { 0 };
                self.send_from(Level::Program, packet, work_ns);
            }
        }
        number
    }
}
