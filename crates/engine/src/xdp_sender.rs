//! Sending by an AF_XDP socket that receives nothing.
//!
//! What must hold: the interface goes on receiving as before; no XDP program is attached, and the socket works in copy
//! mode, in which the driver keeps its own memory.

use std::io;

use nicpoll_sys::xdp::{XdpConfig, XdpSocket};

use crate::error::EngineError;
use crate::interface::index_of;
use crate::port::Transmit;
use crate::xdp_port::{frame_memory_bytes, socket_error};

/// Frames that it has room for until the kernel has sent them.
const FRAMES: u32 = 1024;

/// A transmit queue of an interface, by a socket of its own.
pub struct XdpSender {
    socket: XdpSocket,
}

impl XdpSender {
    /// Opens a transmit queue, from 0 on, of an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is no such interface or queue, its MTU is too large, or a privilege is missing.
    pub fn open(interface: &str, queue: u32) -> Result<Self, EngineError> {
        let config = XdpConfig {
            ifindex: index_of(interface)?,
            queue,
            frames: 0,
            transmit_frames: FRAMES,
            frame_memory_bytes: frame_memory_bytes(interface)?,
        };
        let socket = XdpSocket::bind(&config);
        let socket = socket.map_err(|source| socket_error(interface, queue, source))?;
        Ok(XdpSender { socket })
    }
}

impl Transmit for XdpSender {
    fn room(&mut self) -> u32 {
        self.socket.room()
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        self.socket.transmit(most, fill)
    }

    fn sent(&self) -> u64 {
        self.socket.sent().completed
    }

    fn refused(&self) -> Option<u64> {
        Some(self.socket.sent().refused)
    }
}
