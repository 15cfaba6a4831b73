//! Sending by AF_PACKET with fewer calls into the kernel's stack: frames of one flow are handed over as one long datagram,
//! which the kernel cuts up before the interface gets it (UDP segmentation offload).
//!
//! What must hold: the receiver sees single packets. So frames are joined only while the interface has the feature
//! turned off, and the kernel itself has to cut them: a veth that has it passes a long datagram on as it is, and what a
//! card makes of one nobody here sees.

use std::io;
use std::time::{Duration, Instant};

use nicpoll_sys::ethtool::Feature;
use nicpoll_sys::packet::{Joining, PacketSender};

use crate::interface::Interface;
use crate::port::Transmit;

/// The feature of an interface that takes long datagrams as they are.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// How often it is looked whether it is still off: a veth has it again when the XDP program at its other end leaves.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The sender, and what says whether it may go on joining.
pub(super) struct JoinedSender {
    sender: PacketSender,
    takes_long: Feature,
    looked: Instant,
}

impl JoinedSender {
    /// A sender through an interface of the calling thread's network namespace; `None` where frames are better sent one
    /// by one.
    pub(super) fn open(
        interface: &Interface,
        frame_bytes_max: u32,
        joining: &Joining,
    ) -> Option<Self> {
        let takes_long = Feature::named(&interface.name, UDP_SEGMENTATION).ok()?;
        if takes_long.is_on().unwrap_or(true) {
            return None;
        }
        let sender = PacketSender::joining(interface.ifindex, frame_bytes_max, joining).ok()?;
        Some(JoinedSender {
            sender,
            takes_long,
            looked: Instant::now(),
        })
    }
}

impl Transmit for JoinedSender {
    fn room(&mut self) -> u32 {
        self.sender.room()
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        if self.sender.joins() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            if self.takes_long.is_on().unwrap_or(true) {
                self.sender.send_singly()?;
            }
        }
        self.sender.send(most, fill)
    }

    fn sent(&self) -> u64 {
        self.sender.sent()
    }
}
