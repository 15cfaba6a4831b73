//! AF_XDP: the frames of a network card's queue in memory that the kernel and this process share.
//!
//! An XDP program at the interface sends frames to a [`XdpSocket`]; the others go on to the kernel. Who reads the
//! socket makes a system call only to sleep; who sends by it makes one for many frames.
//!
//! What must hold: a frame is the kernel's or this process's, never both. The rings say whose; a borrowed frame ends
//! before its memory is given back.

mod attach;
mod busy_poll;
mod ring;
mod send_half;
mod sending;
mod socket;

pub use attach::{AttachMode, XdpLink};
pub use send_half::XdpSendHalf;
pub use sending::XdpSent;
pub use socket::{XdpConfig, XdpDrops, XdpSocket};
