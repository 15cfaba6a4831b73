//! A packet's way out: from the sender to the driver, the card and the line.
//!
//! Packets wait at the level that sends them; each goes to its card's ring or send queue at the end of the driver's
//! step for it.

use nicpoll_model::LossPlace;
use nicpoll_model::line::IpVersion;

use super::cpu::{CpuStep, Level, Of};
use super::programs::RequestParts;
use super::receive::kib_ns;
use super::state::SimMachine;
use crate::link::{DeliveryCount, FAR, Packet};

impl SimMachine {
    /// Returns the driver's work on a packet to send.
    fn transmit_ns(&self, packet: &Packet) -> u64 {
        let card = &self.host.card;
        card.tx_packet_ns + kib_ns(card.tx_kib_ns, packet.payload_bytes)
    }

    /// Queues a packet at a level, which spends `work_ns` on it before the driver.
    pub fn send_from(&mut self, level: Level, packet: Packet, work_ns: u64) {
        self.output.of(level).waiting.push_back((packet, work_ns));
    }

    /// Begins the next packet that a level has to send. Returns false when there is none.
    pub fn output_next(&mut self, level: Level) -> bool {
        while let Some((packet, work_ns)) = self.output.of(level).waiting.pop_front() {
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
            self.output.of(level).in_hand = Some(packet);
            self.cpu
                .start(level, CpuStep::Transmit, work_ns + driver_ns);
            return true;
        }
        false
    }

    /// Puts the packet that the driver has taken into the ring, or into the send queue if the ring has filled
    /// meanwhile.
    pub fn output_done(&mut self, level: Level) {
        let Some(packet) = self.output.of(level).in_hand.take() else {
            return;
        };
        let card = self.flows[usize::from(packet.flow)].card;
        if self.cards[card].can_transmit_at_once() {
            self.transmit(card, packet);
        } else {
            self.queue_to_send(card, packet);
        }
    }

    fn queue_to_send(&mut self, card: usize, packet: Packet) {
        if !self.cards[card].send_queue.push(packet) {
            self.lose(LossPlace::SendQueue, &packet);
        }
    }

    /// Puts a packet into the transmit ring, behind earlier ones; of a veth pair, into the receive ring of the other
    /// end (`veth_xmit`).
    fn transmit(&mut self, card: usize, packet: Packet) {
        if self.is_veth {
            if self.cards[card].rx_ring.push(packet) {
                self.request_interrupt(card);
            } else {
                self.lose(LossPlace::RxRing, &packet);
            }
            return;
        }
        let was_idle = self.cards[card].tx_ring.is_empty();
        if !self.cards[card].tx_ring.push(packet) {
            self.lose(LossPlace::SendQueue, &packet);
        } else if was_idle {
            self.send_frame(card, packet.line_bytes);
        }
    }

    fn send_frame(&mut self, card: usize, line_bytes: u32) {
        let at = &self.cards[card];
        let ready_ns = self.now_ns.max(at.tx_ready_ns);
        let sent_ns = self.shared.wires[at.attachment.wire].carry(ready_ns, line_bytes);
        self.timers.set(card, Of::Sent, sent_ns);
    }

    /// Handles a frame that has left the card.
    pub fn frame_sent(&mut self, card: usize) {
        let at = &mut self.cards[card];
        let packet = at.tx_ring.pop();
        at.tx_done += 1;
        at.tx_ready_ns = self.now_ns + self.host.card.tx_gap_ns;
        match at.tx_ring.front().map(|next| next.line_bytes) {
            Some(line_bytes) => self.send_frame(card, line_bytes),
            None => self.timers.clear(card, Of::Sent),
        }
        if let Some(packet) = packet {
            if packet.to == FAR {
                self.tally.transmit(card, packet.line_bytes);
                self.reached_far_end(card, &packet);
            } else {
                self.leave(card, packet);
            }
        }
        self.request_interrupt(card);
    }

    /// Begins to clear sent descriptors. Returns false when there is nothing to clear.
    pub fn reclaim(&mut self, level: Level) -> bool {
        let card = &self.cards[self.cpu.batches[level as usize].card];
        let done = card.tx_done;
        if done == 0 {
            return false;
        }
        let refilled = card.send_queue.iter().take(done as usize);
        let driver_ns: u64 = refilled.map(|packet| self.transmit_ns(packet)).sum();
        let cost_ns = done * self.host.card.tx_done_ns + driver_ns;
        self.cpu.start(level, CpuStep::Reclaim { done }, cost_ns);
        true
    }

    /// Clears sent descriptors; waiting packets take their place.
    pub fn reclaimed(&mut self, level: Level, done: u64) {
        let card = self.cpu.batches[level as usize].card;
        // Two levels may have started to clear the same descriptors.
        self.cards[card].tx_done = self.cards[card].tx_done.saturating_sub(done);
        for _ in 0..done {
            let at = &mut self.cards[card];
            if !at.has_tx_room() {
                break;
            }
            let Some(packet) = at.send_queue.pop() else {
                break;
            };
            self.transmit(card, packet);
        }
    }

    /// Returns the cost of a program's call to send a datagram, up to the driver.
    pub fn call_ns(&self, flow: usize) -> u64 {
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

    /// Makes a datagram for a program's call; a reply has its request's number and client. Returns the number.
    pub fn make_datagram(&mut self, flow: usize, request: Option<RequestParts>) -> u64 {
        let of = &self.flows[flow];
        let (number, sent_ns) = match request {
            // The reply completes the request's exchange.
            Some(request) if of.counts == DeliveryCount::Exchange => {
                (request.number, request.sent_ns)
            }
            _ => {
                let own_number = self.shared.flows[flow].offer();
                let number = request.map_or(own_number, |request| request.number);
                (number, self.now_ns)
            }
        };
        let fate = self.shared.fates.begin_for(of);
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
