//! A card: its rings, when it interrupts, and the frames that come and go.
//!
//! An interrupt masks the card until its handler lets it interrupt again; a card that then still has
//! something to tell does so at once, or when its moderation is over.

use std::collections::VecDeque;

use nicpoll_model::LossPlace;

use super::{Attachment, Discipline, FarEnd, Link, Machine, Of, hard};
use crate::clients::Clients;
use crate::cpu::{Level, State, Step};
use crate::host::HostModel;
use crate::packet::{FAR, Packet};
use crate::queue::Queue;

#[derive(Clone, Debug)]
pub(super) struct Card {
    /// The line out, of the world's.
    wire: usize,
    delay_ns: u64,
    /// What sends to it, when no simulated machine does.
    far: Option<FarEnd>,
    /// Frames on their way to it, with the time of their arrival.
    inbound: VecDeque<(u64, Packet)>,
    rx_ring: Queue,
    /// Packets whose frames have not left; the first one is on the line.
    tx_ring: Queue,
    /// Descriptors whose frames have left and that the driver has not cleared.
    tx_done: u64,
    /// When the card can send the next frame.
    tx_ready_ns: u64,
    /// Packets that wait for the transmit ring (`if_snd`).
    send_queue: Queue,
    /// Whether it may interrupt.
    has_interrupts: bool,
    /// Whether something has happened since it interrupted last.
    has_cause: bool,
    /// Whether such a cause alone makes it interrupt, when what happened has been dealt with.
    keeps_cause: bool,
    /// Whether an interrupt is on its way to the processor.
    is_raised: bool,
    /// The earliest moment of the next interrupt.
    quiet_until_ns: u64,
}

impl Card {
    pub(super) fn new(host: &HostModel, attachment: Attachment) -> Self {
        Card {
            wire: attachment.wire,
            delay_ns: attachment.delay_ns,
            far: attachment.far,
            inbound: VecDeque::new(),
            rx_ring: Queue::new(host.card.rx_ring),
            tx_ring: Queue::new(host.card.tx_ring),
            tx_done: 0,
            tx_ready_ns: 0,
            send_queue: Queue::new(host.network.send_queue_packets),
            has_interrupts: true,
            has_cause: false,
            keeps_cause: host.card.hands_over > 0,
            is_raised: false,
            quiet_until_ns: 0,
        }
    }

    fn has_news(&self) -> bool {
        !self.rx_ring.is_empty() || self.tx_done > 0 || (self.has_cause && self.keeps_cause)
    }

    fn has_tx_room(&self) -> bool {
        self.tx_ring.len() + self.tx_done < self.tx_ring.limit()
    }

    /// Whether so many packets more fit into ring and send queue.
    pub(super) fn has_room_for(&self, packets: u64) -> bool {
        let ring = self
            .tx_ring
            .limit()
            .saturating_sub(self.tx_ring.len() + self.tx_done);
        let queue = self.send_queue.limit() - self.send_queue.len();
        ring + queue >= packets
    }

    /// Whether a packet can go to the ring past the send queue.
    pub(super) fn can_transmit_at_once(&self) -> bool {
        self.send_queue.is_empty() && self.has_tx_room()
    }

    pub(super) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Who sends to it from an ideal far end.
    pub(super) fn clients(&mut self) -> Option<&mut Clients> {
        self.far.as_mut().and_then(|far| far.clients.as_mut())
    }

    /// What waits for its line at an ideal far end.
    pub(super) fn far_queue(&self) -> Option<&Queue> {
        self.far.as_ref().map(|far| &far.queue)
    }

    pub(super) fn rx_ring(&self) -> &Queue {
        &self.rx_ring
    }

    pub(super) fn send_queue(&self) -> &Queue {
        &self.send_queue
    }

    pub(super) fn tx_ring(&self) -> &Queue {
        &self.tx_ring
    }

    pub(super) fn queues(&self) -> [&Queue; 3] {
        [&self.rx_ring, &self.send_queue, &self.tx_ring]
    }

    /// Starts it. Returns when the far end hands over its first packet, if somebody sends there.
    pub(super) fn boot(&mut self, has_interrupts: bool) -> Option<u64> {
        self.has_interrupts = has_interrupts;
        self.clients().map(|clients| clients.next_ns())
    }

    /// The packet that the driver takes next from the receive ring.
    pub(super) fn first_received(&self) -> Option<&Packet> {
        self.rx_ring.front()
    }

    pub(super) fn take_received(&mut self) -> Option<Packet> {
        self.rx_ring.pop()
    }

    /// Puts a packet into the receive ring. False when there is no room.
    #[must_use]
    pub(super) fn receive(&mut self, packet: Packet) -> bool {
        self.rx_ring.push(packet)
    }

    /// The processor has taken its interrupt.
    pub(super) fn interrupt_served(&mut self) {
        self.is_raised = false;
    }

    /// Whether an interrupt is on its way to the processor.
    pub(super) fn is_raised(&self) -> bool {
        self.is_raised
    }

    /// Whether it may interrupt.
    pub(super) fn has_interrupts(&self) -> bool {
        self.has_interrupts
    }

    pub(super) fn begin_counting(&mut self) {
        self.rx_ring.begin_counting();
        self.send_queue.begin_counting();
        self.tx_ring.begin_counting();
        if let Some(far) = &mut self.far {
            far.queue.begin_counting();
        }
    }

    /// A packet is on its line.
    #[cfg(test)]
    pub(super) fn queue_at_far_end(&mut self, packet: Packet) {
        let far = self.far.as_mut().expect("it has a far end");
        assert!(far.queue.push(packet), "the line is free");
    }

    /// Packets that have not reached it yet.
    pub(super) fn coming(&self) -> impl Iterator<Item = &Packet> {
        let far = self.far.iter().flat_map(|far| far.queue.iter());
        far.chain(self.inbound.iter().map(|(_, packet)| packet))
    }
}

/// The way in.
impl<D: Discipline, L: Link> Machine<D, L> {
    /// The far end hands over its next datagram.
    pub(super) fn offer(&mut self, card: usize) {
        let now_ns = self.now_ns;
        let Some(far) = &mut self.cards[card].far else {
            return;
        };
        let Some(clients) = &mut far.clients else {
            return;
        };
        let number = self.shared.flows[far.flow].offer();
        let (client, payload_bytes) = clients.send(number);
        self.timers.set(card, Of::Offer, clients.next_ns());
        let flow = &self.flows[far.flow];
        let fate = flow.begin_fate(&mut self.shared.fates);
        for index in 0..flow.shapes.len() {
            let mut packet = flow.packet(index, number, fate, now_ns);
            packet.client = client;
            if let Some(frame) = payload_bytes.and_then(|bytes| far.frames.get(&bytes)) {
                packet.line_bytes = frame.line_bytes;
                packet.payload_bytes = frame.payload_bytes;
            }
            if !far.queue.push(packet) {
                self.shared.lose(self.number, LossPlace::FarQueue, &packet);
            } else if far.queue.len() == 1 {
                let arrival_ns = self.shared.wires[far.wire].carry(now_ns, packet.line_bytes);
                self.timers.set(card, Of::Arrival, arrival_ns);
            }
        }
    }

    /// A frame is on its way to the card, from another machine's, and has left that now.
    pub(super) fn expect(&mut self, card: usize, packet: Packet, left_ns: u64) {
        let arrival_ns = left_ns.saturating_add(self.cards[card].delay_ns);
        let inbound = &mut self.cards[card].inbound;
        inbound.push_back((arrival_ns, packet));
        if inbound.len() == 1 {
            self.timers.set(card, Of::Arrival, arrival_ns);
        }
    }

    /// A frame has reached the card.
    pub(super) fn arrive(&mut self, card: usize) {
        let Some(mut packet) = self.next_arrival(card) else {
            return;
        };
        packet.arrived_ns = self.now_ns;
        let tally = &mut self.tally.cards[card];
        tally.received += 1;
        tally.received_bytes += u64::from(packet.line_bytes);
        L::arrived(self, card, packet);
    }

    /// A frame that has reached the card goes into its ring.
    pub(super) fn receive_frame(&mut self, card: usize, packet: Packet) {
        if self.cards[card].receive(packet) {
            self.request_interrupt(card);
        } else {
            self.tally.cards[card].ring_lost += 1;
            self.lose(LossPlace::RxRing, &packet);
        }
    }

    fn next_arrival(&mut self, card: usize) -> Option<Packet> {
        let at = &mut self.cards[card];
        let (packet, next_ns) = if let Some(far) = &mut at.far {
            let packet = far.queue.pop();
            let wire = &mut self.shared.wires[far.wire];
            let carry = |next: &Packet| wire.carry(self.now_ns, next.line_bytes);
            (packet, far.queue.front().map(carry))
        } else {
            let packet = at.inbound.pop_front().map(|(_, packet)| packet);
            (
                packet,
                at.inbound.front().map(|(arrival_ns, _)| *arrival_ns),
            )
        };
        match next_ns {
            Some(ns) => self.timers.set(card, Of::Arrival, ns),
            None => self.timers.clear(card, Of::Arrival),
        }
        packet
    }
}

/// Interrupts.
impl<D: Discipline, L: Link> Machine<D, L> {
    /// The card has something to tell.
    pub(super) fn request_interrupt(&mut self, card: usize) {
        let at = &mut self.cards[card];
        at.has_cause = true;
        let is_waiting = self.timers.is_set(card, Of::Moderation);
        if !at.has_interrupts || at.is_raised || is_waiting {
            return;
        }
        L::notify(self, card);
    }

    /// The card interrupts, when its moderation lets it.
    pub(super) fn interrupt_in_time(&mut self, card: usize) {
        let quiet_until_ns = self.cards[card].quiet_until_ns;
        if quiet_until_ns <= self.now_ns {
            self.interrupt_now(card);
        } else {
            self.timers.set(card, Of::Moderation, quiet_until_ns);
        }
    }

    pub(super) fn interrupt_now(&mut self, card: usize) {
        self.timers.clear(card, Of::Moderation);
        let at = &mut self.cards[card];
        at.is_raised = true;
        at.has_cause = false;
        at.quiet_until_ns = self.now_ns.saturating_add(self.host.card.moderation_ns);
        self.tally.cards[card].interrupts += 1;
        self.raise(hard::card(card));
    }

    /// Lets the card interrupt. It may do so at once.
    pub(super) fn unmask(&mut self, card: usize) {
        self.cards[card].has_interrupts = true;
        if self.cards[card].has_news() {
            self.request_interrupt(card);
        }
    }

    /// Keeps the card from interrupting.
    pub(super) fn mask(&mut self, card: usize) {
        self.cards[card].has_interrupts = false;
        self.timers.clear(card, Of::Moderation);
    }
}

/// The way out.
impl<D: Discipline, L: Link> Machine<D, L> {
    /// Begins to clear what was sent, if anything was. False when there is nothing to clear.
    pub(super) fn reclaim(&mut self, level: Level, state: State) -> bool {
        let card = &self.cards[self.cpu.batch(level).card];
        let done = card.tx_done;
        if done == 0 {
            return false;
        }
        let refilled = card.send_queue.iter().take(done as usize);
        let driver_ns: u64 = refilled.map(|packet| self.transmit_ns(packet)).sum();
        let cost_ns = done * self.host.card.tx_done_ns + driver_ns;
        self.cpu
            .start(level, Step::Reclaim { done }, cost_ns, state);
        true
    }

    /// What was sent is cleared; what waited takes its place.
    pub(super) fn reclaimed(&mut self, level: Level, done: u64) {
        let card = self.cpu.batch(level).card;
        let at = &mut self.cards[card];
        // Two levels may have set out to clear the same descriptors.
        at.tx_done = at.tx_done.saturating_sub(done);
        for _ in 0..done {
            let at = &mut self.cards[card];
            if !at.has_tx_room() {
                break;
            }
            let Some(packet) = at.send_queue.pop() else {
                break;
            };
            L::transmit(self, card, packet);
        }
    }

    /// A packet that the driver has taken goes to the ring, or waits if that has filled meanwhile.
    pub(super) fn transmit(&mut self, packet: Packet) {
        let card = self.flows[usize::from(packet.flow)].card;
        if self.cards[card].can_transmit_at_once() {
            L::transmit(self, card, packet);
        } else {
            self.queue_to_send(card, packet);
        }
    }

    pub(super) fn queue_to_send(&mut self, card: usize, packet: Packet) {
        if !self.cards[card].send_queue.push(packet) {
            self.lose(LossPlace::SendQueue, &packet);
        }
    }

    /// A packet goes to the transmit ring; its frame follows those before it.
    pub(super) fn put_on_tx_ring(&mut self, card: usize, packet: Packet) {
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
        let sent_ns = self.shared.wires[at.wire].carry(ready_ns, line_bytes);
        self.timers.set(card, Of::Sent, sent_ns);
    }

    /// A frame has left the card.
    pub(super) fn frame_sent(&mut self, card: usize) {
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
}
