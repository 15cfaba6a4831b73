//! What joins a machine's cards to others: where frames go that leave, and what their arrival causes.

use std::fmt;

use super::{Discipline, Machine};
use crate::cpu::{Level, State};
use crate::packet::Packet;

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
pub(crate) struct Ethernet;

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

    /// A packet for another machine is forwarded before it comes to a socket.
    fn hand_over<D: Discipline>(_machine: &mut Machine<D, Self>, _packet: Packet) {}
}
