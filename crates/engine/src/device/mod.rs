//! The devices by which the engine receives an interface's frames: one table, chosen from by name or by rule.
//!
//! `auto` takes the fastest device that the interface and the machine have, in the order of the table, and says why it did
//! not take the ones before. The order is known from measurements (docs/engine.md); a probe would have to take packets from
//! other programs. Read [`port`] first. A new device is a row here and a file.

pub(crate) mod interface;
pub mod packet;
pub mod port;
pub mod presence;
pub mod tap;
pub mod xdp;

use nicpoll_model::engine::RefusedDevice;

use crate::device::port::{DeviceKind, Opened, PacketInput, Reception};
use crate::error::EngineError;
use crate::names::{Choice, Named};

/// Which device is wanted.
pub type DeviceChoice = Choice<DeviceKind>;

/// The fastest first, and whether it receives what comes to any interface, so that `auto` may take it.
const TABLE: [(DeviceKind, &str, bool); 3] = [
    (DeviceKind::AfXdp, "af-xdp", true),
    (DeviceKind::AfPacket, "af-packet", true),
    (DeviceKind::Tap, "tap", false),
];

impl Named for DeviceKind {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        TABLE.into_iter().map(|(kind, name, _)| (kind, name))
    }
}

fn receive<I: PacketInput + Send + 'static>(
    kind: DeviceKind,
    reception: &Reception<'_>,
    mut input: impl FnMut() -> I,
) -> Result<Opened<I>, EngineError> {
    match kind {
        DeviceKind::AfXdp => xdp::open(reception, input),
        DeviceKind::AfPacket => packet::open(reception, input()),
        DeviceKind::Tap => tap::open(reception, input()),
    }
}

impl DeviceChoice {
    /// Opens an interface for receiving, by the first of the chosen devices that can. Each queue's packets go to an `input`
    /// of its own.
    ///
    /// # Errors
    /// When none can: the reason of the last one. Nothing is left at the interface then.
    pub fn receive<I: PacketInput + Send + 'static>(
        self,
        reception: &Reception<'_>,
        mut input: impl FnMut() -> I,
    ) -> Result<Opened<I>, EngineError> {
        let open = |kind: DeviceKind| receive(kind, reception, &mut input);
        let (opened, refused) = self.first(automatic(), open, EngineError::is_of_device)?;
        let refused = refused.into_iter().map(|(name, why)| RefusedDevice {
            device: String::from(name),
            why,
        });
        Ok(Opened {
            refused: refused.collect(),
            ..opened
        })
    }
}

fn automatic() -> Vec<DeviceKind> {
    let rows = TABLE.iter().filter(|(_, _, is_automatic)| *is_automatic);
    rows.map(|(kind, ..)| *kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::port::Take;

    #[test]
    fn auto_makes_no_interface() {
        assert_eq!(automatic(), [DeviceKind::AfXdp, DeviceKind::AfPacket]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_no_reason_to_try_another_device() {
        let (take, interface) = (Take::AllUdp, "no-such-if");
        let reception = Reception {
            interface,
            take: &take,
            frames: 64,
            transmit_frames: 0,
        };
        let outcome = DeviceChoice::Auto.receive(&reception, || |_: &[u8]| ());
        assert!(matches!(outcome, Err(EngineError::Failed(_))));
    }
}
