//! The half of a socket that sends. It can be separated from the half that receives, for another thread.
//!
//! What must hold: the memory that frames are sent from is none that they are received into, and stays until both
//! halves are gone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use super::sending::{Sending, XdpSent};
use crate::memory::Mapping;

/// What sends the frames of a socket.
#[derive(Debug)]
pub struct XdpSendHalf {
    // Declared first: the kernel lets go of rings and memory before they are unmapped.
    socket: OwnedFd,
    sending: Sending,
    memory: NonNull<u8>,
    frame_memory_bytes: u32,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer is into the mapping, which moves along, and is used through `&mut self` alone, for frames that no
// other half has.
unsafe impl Send for XdpSendHalf {}

impl XdpSendHalf {
    /// Of a socket, with a descriptor of its own; `memory` is where the mapping starts.
    pub(super) fn new(
        socket: OwnedFd,
        sending: Sending,
        memory: NonNull<u8>,
        frame_memory_bytes: u32,
        mapping: &Arc<Mapping>,
    ) -> Self {
        XdpSendHalf {
            socket,
            sending,
            memory,
            frame_memory_bytes,
            _mapping: Arc::clone(mapping),
        }
    }

    /// The longest frame that there is memory for, in bytes.
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_memory_bytes as usize
    }

    /// Frames that could be written to be sent now.
    pub fn room(&mut self) -> u32 {
        self.sending.room()
    }

    /// Has up to `most` frames written and hands them to the kernel, with a system call for many of them. `each` writes
    /// a frame to the start of memory that holds anything, and returns its length, or `None` when there are no more.
    /// Returns how many were written. It waits for nothing: what the kernel did not take yet, the next call hands it.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENXIO` when it is gone.
    pub fn transmit(
        &mut self,
        most: u32,
        each: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        let written = self.sending.write(self.memory, most, each);
        self.sending.flush(self.socket.as_fd())?;
        Ok(written)
    }

    /// What became of what was to be sent.
    pub fn sent(&self) -> XdpSent {
        self.sending.sent()
    }
}
