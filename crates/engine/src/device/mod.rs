//! The devices by which the engine receives an interface's frames: one table, chosen from by name or by rule.
//!
//! `auto` takes the fastest device that the interface and the machine have, in the order of the table, and says why it did
//! not take the ones before. The order is known from measurements (docs/engine.md); a probe would have to take packets from
//! other programs. Read [`port`] first. A new device is a row here and a file.

pub(crate) mod interface;
pub mod packet;
pub mod port;
pub mod tap;
pub mod xdp;

use nicpoll_model::engine::RefusedDevice;
use nicpoll_sys::xdp::AttachMode;

use crate::device::packet::PacketPort;
use crate::device::port::{AnyPort, Intake, PacketInput};
use crate::device::tap::TapPort;
use crate::device::xdp::{Take, XdpPort};
use crate::error::EngineError;
use crate::names::{Choice, Named};

/// A way to an interface's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A card's queue in memory that the kernel and the program share, past the kernel's stack.
    AfXdp,
    /// A copy of each frame; the kernel goes on with it.
    AfPacket,
    /// The program's own end of a link.
    Tap,
}

/// Which device is wanted.
pub type DeviceChoice = Choice<DeviceKind>;

/// What is to be received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reception<'a> {
    /// The interface, in the network namespace of the calling thread.
    pub interface: &'a str,
    /// Which packets.
    pub take: &'a Take,
    /// Frames that each queue keeps until they are polled for, where that can be chosen; a power of two.
    pub frames: u32,
}

/// An interface that is open for receiving.
pub struct Opened<I> {
    /// By what.
    pub kind: DeviceKind,
    /// Its receive queues.
    pub ports: Vec<AnyPort<I>>,
    /// What brings their frames. It has to outlive the ports' use.
    pub intake: Box<dyn Intake>,
    /// Where the XDP program runs, if there is one.
    pub program_mode: Option<AttachMode>,
    /// Whether frames come without being copied.
    pub is_zero_copy: bool,
    /// The faster devices that do not work here, and why.
    pub refused: Vec<RefusedDevice>,
}

struct Row {
    kind: DeviceKind,
    name: &'static str,
    /// Whether it receives what comes to any interface, so that `auto` may take it.
    is_automatic: bool,
}

/// The fastest first.
const TABLE: [Row; 3] = [
    Row {
        kind: DeviceKind::AfXdp,
        name: "af-xdp",
        is_automatic: true,
    },
    Row {
        kind: DeviceKind::AfPacket,
        name: "af-packet",
        is_automatic: true,
    },
    Row {
        kind: DeviceKind::Tap,
        name: "tap",
        is_automatic: false,
    },
];

impl Named for DeviceKind {
    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        TABLE.iter().map(|row| (row.kind, row.name))
    }
}

impl DeviceKind {
    /// Opens an interface for receiving. Each queue's packets go to an `input` of its own.
    ///
    /// # Errors
    /// When the interface cannot be had by this device. Nothing is left at it then.
    pub fn receive<I: PacketInput + Send + 'static>(
        self,
        reception: &Reception<'_>,
        mut input: impl FnMut() -> I,
    ) -> Result<Opened<I>, EngineError> {
        let Reception {
            interface,
            take,
            frames,
        } = *reception;
        let opened = |ports, intake| Opened {
            kind: self,
            ports,
            intake,
            program_mode: None,
            is_zero_copy: false,
            refused: Vec::new(),
        };
        match self {
            DeviceKind::AfXdp => {
                let (taker, ports) = XdpPort::open(interface, take, frames, input)?;
                let (mode, is_zero_copy) = (taker.mode(), ports.iter().all(XdpPort::is_zero_copy));
                let ports = ports.into_iter().map(|port| Box::new(port) as AnyPort<I>);
                Ok(Opened {
                    program_mode: mode,
                    is_zero_copy,
                    ..opened(ports.collect(), Box::new(taker))
                })
            }
            DeviceKind::AfPacket => {
                let (socket, port) = PacketPort::open(interface, take, frames, input())?;
                Ok(opened(vec![Box::new(port)], Box::new(socket)))
            }
            DeviceKind::Tap => {
                let (end, port) = TapPort::open(interface, take, input())?;
                Ok(opened(vec![Box::new(port)], Box::new(end)))
            }
        }
    }
}

impl DeviceChoice {
    /// Opens an interface for receiving, by the first of the chosen devices that can.
    ///
    /// # Errors
    /// When none can: the reason of the last one.
    pub fn receive<I: PacketInput + Send + 'static>(
        self,
        reception: &Reception<'_>,
        mut input: impl FnMut() -> I,
    ) -> Result<Opened<I>, EngineError> {
        let mut refused = Vec::new();
        let (faster, last) = self.kinds();
        for kind in faster {
            match kind.receive(reception, &mut input) {
                Ok(opened) => return Ok(Opened { refused, ..opened }),
                Err(error) if error.is_of_device() => refused.push(RefusedDevice {
                    device: String::from(kind.name()),
                    why: error.to_string(),
                }),
                Err(error) => return Err(error),
            }
        }
        let opened = last.receive(reception, &mut input)?;
        Ok(Opened { refused, ..opened })
    }

    /// The devices to try, and the one after them, whose failure is final.
    fn kinds(self) -> (Vec<DeviceKind>, DeviceKind) {
        match self {
            DeviceChoice::Auto => {
                let rows = TABLE.iter().filter(|row| row.is_automatic);
                let mut kinds: Vec<DeviceKind> = rows.map(|row| row.kind).collect();
                let last = kinds.pop().expect("some devices are automatic");
                (kinds, last)
            }
            DeviceChoice::Only(kind) => (Vec::new(), kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_makes_no_interface() {
        let kinds = DeviceChoice::Auto.kinds();
        assert_eq!(kinds, (vec![DeviceKind::AfXdp], DeviceKind::AfPacket));
    }

    #[test]
    fn an_interface_that_is_not_there_is_no_reason_to_try_another_device() {
        let (take, interface) = (Take::AllUdp, "no-such-if");
        let reception = Reception {
            interface,
            take: &take,
            frames: 64,
        };
        let outcome = DeviceChoice::Auto.receive(&reception, || |_: &[u8]| ());
        assert!(matches!(outcome, Err(EngineError::NoInterface { .. })));
    }
}
