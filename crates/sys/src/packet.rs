//! AF_PACKET: a copy of each frame that an interface receives, in a ring that the kernel and this process share
//! (`PACKET_RX_RING`, `TPACKET_V2`), and whole frames that are sent through it.
//!
//! Such a socket is a tap: the kernel goes on with the frame as if nobody had looked. `TPACKET_V3` hands frames over in
//! blocks, which it closes after a millisecond at the earliest: that is a tick of the poller and more, so each frame
//! has a slot of its own here.
//!
//! What must hold: a slot is the kernel's or this process's, never both; its status word says whose.

mod filter;
mod ring;
mod send;
mod socket;

pub use filter::{FILTER_PORTS_MAX, FrameFilter};
pub use ring::PacketRing;
pub use send::{Joining, PacketSender};
pub use socket::{PacketCounts, PacketSocket};
