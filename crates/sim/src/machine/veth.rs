//! A veth pair: two processors of one machine, each with a program, and the same card between them.
//!
//! What a program sends goes into the ring of the other end, and the sender's own processor takes it out
//! again: no hard interrupt comes between, its NAPI is scheduled by the call itself. Only the program that the packet is
//! for runs on the other processor, and has to be woken there when it sleeps.
//!
//! What must hold: a packet leaves the processor that sent it when it is in the other's socket, never before.

use nicpoll_model::sim::SimPlace;

use super::{Machine, Of};
use crate::cpu::{Level, State, Step};
use crate::packet::Packet;

impl Machine {
    /// The driver has a packet to send (`veth_xmit`).
    pub(super) fn cross(&mut self, card: usize, packet: Packet) {
        if self.cards[card].rx_ring.push(packet) {
            self.request_interrupt(card);
        } else {
            self.lose(SimPlace::RxRing, &packet);
        }
    }

    /// NAPI is scheduled, on this processor, and runs as soon as the caller lets it.
    pub(super) fn schedule_veth(&mut self, card: usize) {
        self.mask(card);
        self.schedule_napi(card);
        if !self.cpu.has_work(Level::Hard) {
            self.softirq_on_exit();
        }
    }

    /// A packet goes to a socket whose program is on the other processor.
    pub(super) fn hand_over(&mut self, packet: Packet) {
        let to = usize::from(packet.to);
        if self.shared.sleeping.contains(to) {
            // Woken once, though it takes a while until it runs.
            self.shared.sleeping.remove(to);
            self.owes_wake = true;
        }
        self.tally.transmitted += 1;
        let card = self.flows[usize::from(packet.flow)].card;
        self.tally.cards[card].transmitted_bytes += u64::from(packet.line_bytes);
        self.outbox = Some((card, packet));
    }

    /// Begins to wake the program that the last packet was for, if it slept. False when there is none.
    pub(super) fn wake_other(&mut self, level: Level, state: State) -> bool {
        let is_owed = std::mem::take(&mut self.owes_wake);
        if is_owed {
            let cost_ns = self.host.veth.wake_ns;
            self.cpu.start(level, Step::WakeOther, cost_ns, state);
        }
        is_owed
    }

    /// A socket has a packet for a program.
    pub(super) fn wake_for_packet(&mut self, id: usize) {
        let delay_ns = self.host.veth.wake_delay_ns;
        let card = self.flows[self.programs.list[id].task.flow()].card;
        if delay_ns == 0 {
            self.wake_program(id);
        } else if self.is_asleep(id) && !self.timers.is_set(card, Of::Woken) {
            self.timers.set(card, Of::Woken, self.now_ns + delay_ns);
        }
    }

    /// The processor has heard that its programs were woken.
    pub(super) fn woken(&mut self, card: usize) {
        self.timers.clear(card, Of::Woken);
        for id in 0..self.programs.list.len() {
            if !self.programs.list[id].socket.is_empty() {
                self.wake_program(id);
            }
        }
    }
}
