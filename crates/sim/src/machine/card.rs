//! The card: its rings, when it interrupts, and the frames that it sends.
//!
//! An interrupt masks the card until its handler lets it interrupt again; a card that then still has
//! something to tell does so at once, or when its moderation is over.

use nicpoll_model::sim::SimPlace;

use super::{Machine, NEVER, Timer, hard};
use crate::cpu::{Level, State, Step};
use crate::host::Host;
use crate::queue::{Packet, Queue};

#[derive(Clone, Debug)]
pub(super) struct Card {
    pub(super) rx_ring: Queue,
    /// Packets whose frames have not left; the first one is on the line.
    pub(super) tx_ring: Queue,
    /// Descriptors whose frames have left and that the driver has not cleared.
    tx_done: u64,
    /// Packets that wait for the transmit ring (`if_snd`).
    pub(super) send_queue: Queue,
    /// Whether it may interrupt.
    pub(super) has_interrupts: bool,
    /// Whether an interrupt is on its way to the processor.
    pub(super) is_raised: bool,
    /// The earliest moment of the next interrupt.
    quiet_until_ns: u64,
}

impl Card {
    pub(super) fn new(host: &Host) -> Self {
        Card {
            rx_ring: Queue::new(host.card.rx_ring),
            tx_ring: Queue::new(host.card.tx_ring),
            tx_done: 0,
            send_queue: Queue::new(host.network.send_queue_packets),
            has_interrupts: true,
            is_raised: false,
            quiet_until_ns: 0,
        }
    }

    fn has_news(&self) -> bool {
        !self.rx_ring.is_empty() || self.tx_done > 0
    }

    fn has_tx_room(&self) -> bool {
        self.tx_ring.len() + self.tx_done < self.tx_ring.limit()
    }
}

impl Machine {
    /// The card has something to tell.
    pub(super) fn request_interrupt(&mut self) {
        let is_waiting = self.timers[Timer::Moderation as usize] != NEVER;
        if !self.card.has_interrupts || self.card.is_raised || is_waiting {
            return;
        }
        if self.card.quiet_until_ns <= self.now_ns {
            self.interrupt_now();
        } else {
            self.timers[Timer::Moderation as usize] = self.card.quiet_until_ns;
        }
    }

    pub(super) fn interrupt_now(&mut self) {
        self.timers[Timer::Moderation as usize] = NEVER;
        self.card.is_raised = true;
        self.card.quiet_until_ns = self.now_ns.saturating_add(self.host.card.moderation_ns);
        self.tally.interrupts += 1;
        self.raise(hard::CARD);
    }

    /// Lets the card interrupt. It may do so at once.
    pub(super) fn unmask(&mut self) {
        self.card.has_interrupts = true;
        if self.card.has_news() {
            self.request_interrupt();
        }
    }

    /// Keeps the card from interrupting.
    pub(super) fn mask(&mut self) {
        self.card.has_interrupts = false;
        self.timers[Timer::Moderation as usize] = NEVER;
    }

    /// Begins to clear what was sent, if anything was. False when there is nothing to clear.
    pub(super) fn reclaim(&mut self, level: Level, state: State) -> bool {
        let done = self.card.tx_done;
        if done == 0 {
            return false;
        }
        let refilled = done.min(self.card.send_queue.len());
        let cost_ns = done * self.host.card.tx_done_ns + refilled * self.host.card.tx_packet_ns;
        self.cpu
            .start(level, Step::Reclaim { done }, cost_ns, state);
        true
    }

    /// What was sent is cleared; what waited takes its place.
    pub(super) fn reclaimed(&mut self, done: u64) {
        // Two levels may have set out to clear the same descriptors.
        self.card.tx_done = self.card.tx_done.saturating_sub(done);
        for _ in 0..done {
            if !self.card.has_tx_room() {
                break;
            }
            let Some(packet) = self.card.send_queue.pop() else {
                break;
            };
            self.put_on_ring(packet);
        }
    }

    /// Whether a packet can go to the ring past the send queue.
    pub(super) fn can_transmit_at_once(&self) -> bool {
        self.card.send_queue.is_empty() && self.card.has_tx_room()
    }

    /// A packet that the driver has taken goes to the ring, or waits if that has filled meanwhile.
    pub(super) fn transmit(&mut self, packet: Packet) {
        if self.can_transmit_at_once() {
            self.put_on_ring(packet);
        } else {
            self.queue_to_send(packet);
        }
    }

    pub(super) fn queue_to_send(&mut self, packet: Packet) {
        if !self.card.send_queue.push(packet) {
            self.tally.lose(SimPlace::SendQueue);
        }
    }

    fn put_on_ring(&mut self, packet: Packet) {
        let was_idle = self.card.tx_ring.is_empty();
        if !self.card.tx_ring.push(packet) {
            self.tally.lose(SimPlace::SendQueue);
        } else if was_idle {
            self.timers[Timer::Sent as usize] = self.wire.carry(self.now_ns);
        }
    }

    /// A frame has left the card.
    pub(super) fn frame_sent(&mut self) {
        let packet = self.card.tx_ring.pop();
        self.timers[Timer::Sent as usize] = if self.card.tx_ring.is_empty() {
            NEVER
        } else {
            self.wire.carry(self.now_ns)
        };
        if let Some(packet) = packet {
            let took_ns = self.now_ns - packet.sent_ns;
            self.tally.line_frames += 1;
            self.tally.deliver(took_ns, took_ns);
        }
        self.card.tx_done += 1;
        self.request_interrupt();
    }
}
