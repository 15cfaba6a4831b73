//! Sending by an AF_XDP socket: by one that receives, too, or by one of its own.
//!
//! What must hold: with a socket of its own the interface goes on receiving as before; no XDP program is attached, and
//! the socket works in copy mode, in which the driver keeps its own memory.

use std::io;

use nicpoll_sys::xdp::XdpSocket;

use crate::error::EngineError;
use crate::interface::index_of;
use crate::port::Transmit;
use crate::xdp_port::{FrameMemory, socket_error};

/// Frames that a socket of its own has room for until the kernel has sent them.
const FRAMES: u32 = 1024;

/// Opens a transmit queue, from 0 on, of an interface of the calling thread's network namespace, by a socket that
/// receives nothing.
///
/// # Errors
/// When there is no such interface or queue, its MTU is too large, or a privilege is missing.
pub(crate) fn open_sender(interface: &str, queue: u32) -> Result<XdpSocket, EngineError> {
    let at = (index_of(interface)?, queue);
    let config = FrameMemory::of(interface, false)?.config(at, 0, FRAMES);
    XdpSocket::bind(&config).map_err(|source| socket_error(interface, queue, source))
}

impl Transmit for XdpSocket {
    fn room(&mut self) -> u32 {
        XdpSocket::room(self)
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        XdpSocket::transmit(self, most, fill)
    }

    fn sent(&self) -> u64 {
        XdpSocket::sent(self).completed
    }

    fn refused(&self) -> Option<u64> {
        Some(XdpSocket::sent(self).refused)
    }
}
