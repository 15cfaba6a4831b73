//! What joins a machine's cards to others: where frames go that leave, and what their arrival causes.

use std::fmt;

use super::{Discipline, Machine};
use crate::cpu::{Level, State, Step};
use crate::packet::Packet;

/// In place of a card's number: the packet goes to a program of another processor.
pub(crate) const OTHER_PROCESSOR: usize = usize::MAX;

/// A kind of link, with what an end of it remembers.
pub(crate) trait Link: fmt::Debug + Default + Sized {
    /// Whether every packet's way through the protocols ends on the machine that takes it in, whoever it is for.
    const ENDS_EVERY_WAY: bool;

    /// A frame has arrived.
    fn arrived<D: Discipline>(machine: &mut Machine<D, Self>, card: usize, packet: Packet);

    /// A card that may interrupt has news for its driver.
    fn notify<D: Discipline>(machine: &mut Machine<D, Self>, card: usize);

    /// The driver has a packet to send, and room for it.
    fn transmit<D: Discipline>(machine: &mut Machine<D, Self>, card: usize, packet: Packet);

    /// A packet whose way through the protocols ended here is for a program of another processor.
    fn hand_over<D: Discipline>(machine: &mut Machine<D, Self>, packet: Packet);

    /// Begins to wake the program that the last packet was handed over for. False when there is none.
    fn wake_other<D: Discipline>(
        _machine: &mut Machine<D, Self>,
        _level: Level,
        _state: State,
    ) -> bool {
        false
    }
}

/// A line between two cards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ethernet {
    /// Whether a program of another processor has been woken, and that is not paid for yet.
    owes_wake: bool,
}

impl Link for Ethernet {
    const ENDS_EVERY_WAY: bool = false;

    fn arrived<D: Discipline>(machine: &mut Machine<D, Self>, card: usize, packet: Packet) {
        machine.receive_frame(card, packet);
    }

    fn notify<D: Discipline>(machine: &mut Machine<D, Self>, card: usize) {
        machine.interrupt_in_time(card);
    }

    fn transmit<D: Discipline>(machine: &mut Machine<D, Self>, card: usize, packet: Packet) {
        machine.put_on_tx_ring(card, packet);
    }

    /// A packet for another host is forwarded before it comes to a socket: this one's program is on another processor.
    fn hand_over<D: Discipline>(machine: &mut Machine<D, Self>, packet: Packet) {
        let is_asleep = machine.shared.sleeping.contains(machine.number);
        machine.link.owes_wake |= is_asleep && machine.host.cpu.wake_other_ns > 0;
        machine.outbox = Some((OTHER_PROCESSOR, packet));
    }

    fn wake_other<D: Discipline>(
        machine: &mut Machine<D, Self>,
        level: Level,
        state: State,
    ) -> bool {
        let is_owed = std::mem::take(&mut machine.link.owes_wake);
        if is_owed {
            let cost_ns = machine.host.cpu.wake_other_ns;
            machine.cpu.start(level, Step::WakeOther, cost_ns, state);
        }
        is_owed
    }
}
