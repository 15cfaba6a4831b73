//! A packet's way in: card, driver, IP queue, protocols, and on to a socket or to another card.

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;

use super::gro::Gro;
use super::{Counts, Discipline, Link, Machine, Of};
use crate::cpu::{Level, State, Step};
use crate::host::Network;
use crate::packet::{Packet, PacketKind};
use crate::queue::Queue;
use crate::shared::Part;

const BYTES_PER_KIB: u64 = 1024;

/// What so many bytes cost, at a cost of 1024 of them.
pub(super) fn kib_ns(cost_ns: u64, bytes: u32) -> u64 {
    cost_ns * u64::from(bytes) / BYTES_PER_KIB
}

/// The datagram of a flow that is being put together. Lines keep the order of frames, so the first fragment
/// of another ends the wait for what is missing.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    number: u64,
    /// How many of it are here.
    fragments: u64,
}

/// What packets wait in on their way through the protocols.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Whether drivers put packets into the IP queue rather than hand them on.
    is_queued: bool,
    ip_queue: Queue,
    /// Datagrams that are put together, by flow.
    holds: Vec<Hold>,
    pub(super) gro: Gro,
}

impl Input {
    pub(super) fn new(has_queue: bool, network: &Network, flows: usize) -> Self {
        let queue_packets = network.ip_queue_packets;
        Input {
            is_queued: has_queue && queue_packets > 0,
            ip_queue: Queue::new(queue_packets),
            holds: vec![Hold::default(); flows],
            gro: Gro::new(network.gro > 0, flows),
        }
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.ip_queue
    }

    /// Packets that wait for the rest of their datagram.
    pub(super) fn held(&self) -> u64 {
        self.holds.iter().map(|hold| hold.fragments).sum()
    }

    pub(super) fn begin_counting(&mut self) {
        self.ip_queue.begin_counting();
    }
}

impl<D: Discipline, L: Link> Machine<D, L> {
    /// Whether its way through the protocols ends here.
    fn is_own(&self, packet: &Packet) -> bool {
        usize::from(packet.to) == self.number || L::ENDS_EVERY_WAY
    }

    /// The driver's work on a received packet, with the protocols' if they follow at once.
    fn receive_ns(&self, packet: &Packet) -> u64 {
        let card = &self.host.card;
        let driver_ns = card.rx_packet_ns + kib_ns(card.rx_kib_ns, packet.payload_bytes);
        if self.input.is_queued {
            driver_ns
        } else if self.input.gro.continues(packet) {
            driver_ns + self.host.network.gro_ns
        } else {
            driver_ns + self.protocol_ns(packet)
        }
    }

    /// IP, and what comes after it.
    fn protocol_ns(&self, packet: &Packet) -> u64 {
        let network = &self.host.network;
        let ip_ns = match packet.ip {
            IpVersion::V4 => network.ipv4_ns,
            IpVersion::V6 => network.ipv6_ns,
        };
        if !self.is_own(packet) {
            return ip_ns + network.forward_ns;
        }
        let checksum_ns = kib_ns(network.checksum_kib_ns, packet.payload_bytes);
        let above_ns = match packet.kind {
            PacketKind::Datagram => network.udp_ns,
            PacketKind::Segment(_) => self.host.tcp.segment_ns,
            PacketKind::Ack(_) => self.host.tcp.ack_ns,
            // UDP has its turn once, with the fragment that completes the datagram.
            PacketKind::Fragment { of, .. } => {
                let held = self.input.holds[usize::from(packet.flow)];
                let is_last = held.number == packet.number && held.fragments + 1 == u64::from(of);
                if is_last { network.udp_ns } else { 0 }
            }
        };
        ip_ns + above_ns + checksum_ns
    }

    /// Begins with the next packet of a level's batch, or with what is to go out first. False when the batch
    /// or the ring is at its end.
    pub(super) fn receive_next(&mut self, level: Level, state: State) -> bool {
        if self.output_next(level, state) || L::wake_other(self, level, state) {
            return true;
        }
        let batch = self.cpu.batch(level);
        if batch.left == 0 {
            return false;
        }
        let Some(packet) = self.cards[batch.card].first_received() else {
            return false;
        };
        let cost_ns = self.receive_ns(packet);
        self.cpu.take_of_batch(level);
        self.cpu.start(level, Step::Receive, cost_ns, state);
        true
    }

    /// The driver has a packet out of the ring. Whoever interrupted it may have taken it first.
    pub(super) fn take_from_card(&mut self, level: Level) {
        let card = self.cpu.batch(level).card;
        let Some(packet) = self.cards[card].take_received() else {
            return;
        };
        if !self.input.is_queued {
            let is_merged = self.input.gro.take(&packet);
            self.input(level, packet, is_merged);
        } else if self.input.ip_queue.push(packet) {
            D::on_queued(self);
        } else {
            self.lose(LossPlace::IpQueue, &packet);
        }
    }

    /// What the next packet of the IP queue costs.
    pub(super) fn next_protocol_ns(&self) -> Option<u64> {
        let packet = self.input.ip_queue.front()?;
        Some(self.protocol_ns(packet))
    }

    pub(super) fn take_from_ip_queue(&mut self, level: Level) {
        if let Some(packet) = self.input.ip_queue.pop() {
            self.input(level, packet, false);
        }
    }

    /// A packet has passed IP, by itself or merged into the one before it.
    fn input(&mut self, level: Level, packet: Packet, is_merged: bool) {
        if !self.is_own(&packet) {
            return self.send_from(level, packet, 0);
        }
        match packet.kind {
            PacketKind::Datagram => self.put_into_socket(packet),
            PacketKind::Segment(_) | PacketKind::Ack(_) => {
                self.tcp_input(level, packet, is_merged);
            }
            PacketKind::Fragment { of, fate } => self.put_together(packet, of, fate),
        }
    }

    fn put_together(&mut self, packet: Packet, of: u16, fate: u32) {
        let flow = usize::from(packet.flow);
        let hold = &mut self.input.holds[flow];
        if hold.number != packet.number {
            // What is held misses a fragment for ever.
            for _ in 0..hold.fragments {
                self.tally.lose(LossPlace::Reassembly);
            }
            *hold = Hold {
                number: packet.number,
                fragments: 0,
            };
        }
        hold.fragments += 1;
        if self.shared.fates.arrive(fate) == Part::Complete {
            hold.fragments = 0;
            self.tally.merged += u64::from(of) - 1;
            self.put_into_socket(Packet {
                payload_bytes: self.flows[flow].payload_bytes,
                kind: PacketKind::Datagram,
                ..packet
            });
        }
    }

    pub(super) fn put_into_socket(&mut self, packet: Packet) {
        if usize::from(packet.to) != self.number || self.programs.list.is_empty() {
            return L::hand_over(self, packet);
        }
        let flow = &self.flows[usize::from(packet.flow)];
        let program = flow.program;
        if self.programs.receive(program, flow.card, packet) {
            self.wake_for_packet(program);
        } else {
            self.lose(LossPlace::SocketBuffer, &packet);
        }
    }

    /// A packet has reached a far end where no machine is simulated.
    pub(super) fn reached_far_end(&mut self, card: usize, packet: &Packet) {
        let fates = &mut self.shared.fates;
        let fate = packet.fate();
        let is_whole = fate.is_none_or(|fate| fates.arrive(fate) == Part::Complete);
        if !is_whole {
            return;
        }
        let mut took_ns = self.now_ns - packet.sent_ns;
        if self.flows[usize::from(packet.flow)].counts == Counts::Exchange {
            took_ns = took_ns.saturating_add(2 * self.cards[card].delay_ns());
        }
        let flow = &mut self.shared.flows[usize::from(packet.flow)];
        flow.deliver(packet.number, took_ns, took_ns);
        self.shared.serve(packet.client);
        if let Some(clients) = self.cards[card].clients() {
            clients.answer(packet.client, packet.number, self.now_ns);
            self.timers.set(card, Of::Offer, clients.next_ns());
        }
    }
}
