//! A veth pair: two processors of one machine, each with a program, and the same card between them.
//!
//! What a program sends goes into the ring of the other end, and the sender's own processor takes it out
//! again: no hard interrupt comes between, its NAPI is scheduled by the call itself. Only the program that the packet is
//! for runs on the other processor, and has to be woken there when it sleeps.
//!
//! What must hold: a packet leaves the processor that sent it when it is in the other's socket, never before.

use nicpoll_model::LossPlace;

use super::{Discipline, Link, Machine};
use crate::cpu::{Level, State, Step};
use crate::packet::Packet;

/// One end of the pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Veth {
    /// Whether the softirq has woken a program of the other processor, and not paid for it yet.
    owes_wake: bool,
}

impl Link for Veth {
    const ENDS_EVERY_WAY: bool = true;

    /// The packet has come through the protocols of the processor that sent it.
    fn arrived<D: Discipline>(machine: &mut Machine<D, Self>, _card: usize, packet: Packet) {
        machine.put_into_socket(packet);
    }

    /// NAPI is scheduled, on this processor, and runs as soon as the caller lets it.
    fn notify<D: Discipline>(machine: &mut Machine<D, Self>, card: usize) {
        machine.mask(card);
        D::on_interrupt(machine, card);
        if !machine.cpu.has_work(Level::Hard) {
            D::on_interrupts_over(machine);
        }
    }

    /// The driver has a packet to send (`veth_xmit`).
    fn transmit<D: Discipline>(machine: &mut Machine<D, Self>, card: usize, packet: Packet) {
        if machine.cards[card].receive(packet) {
            machine.request_interrupt(card);
        } else {
            machine.lose(LossPlace::RxRing, &packet);
        }
    }

    /// A packet goes to a socket whose program is on the other processor.
    fn hand_over<D: Discipline>(machine: &mut Machine<D, Self>, packet: Packet) {
        let to = usize::from(packet.to);
        if machine.shared.sleeping.contains(to) {
            // Woken once, though it takes a while until it runs.
            machine.shared.sleeping.remove(to);
            machine.link.owes_wake = true;
        }
        let card = machine.flows[usize::from(packet.flow)].card;
        machine.leave(card, packet);
    }

    /// The program that the last packet was for is woken, if it slept.
    fn wake_other<D: Discipline>(
        machine: &mut Machine<D, Self>,
        level: Level,
        state: State,
    ) -> bool {
        let is_owed = std::mem::take(&mut machine.link.owes_wake);
        if is_owed {
            let cost_ns = machine.host.veth.wake_ns;
            machine.cpu.start(level, Step::WakeOther, cost_ns, state);
        }
        is_owed
    }
}
