//! The half of a socket that sends.
//!
//! What must hold: memory of a frame is free, in the transmit ring, with the kernel, or in the completion ring; only
//! free memory is written. What was written is in the ring until the kernel has taken it, whatever a system call says.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::net::xdp::{
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XdpDesc, XdpDescOptions, XdpMmapOffsets,
};
use rustix::net::{SendFlags, sockopt};

use super::ring::Ring;

/// include/uapi/linux/if_xdp.h; since Linux 6.17.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Frames that a system call sends at most, in copy mode; 32 where the kernel has no such option.
const FRAMES_A_CALL: u32 = 256;

/// What became of frames that a socket was given to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpSent {
    /// Given to the kernel.
    pub handed: u64,
    /// Of those, how many it is done with: sent, or dropped.
    pub completed: u64,
    /// Of those, how many the interface refused: its queue was full, or it was not ready.
    pub refused: u64,
    /// System calls that were made for it.
    pub system_calls: u64,
}

/// The rings, and whose memory is whose.
#[derive(Debug)]
pub(super) struct Sending {
    transmit: Ring<XdpDesc>,
    completion: Ring<u64>,
    /// Where free frames begin. The one that was used last is used first: it is in the CPU's cache.
    free: Vec<u64>,
    frame_memory_bytes: u32,
    sent: XdpSent,
}

impl Sending {
    /// Asks for rings for `frames`. It comes before the rings are [mapped](Self::map).
    pub(super) fn size(socket: BorrowedFd<'_>, frames: u32) -> io::Result<()> {
        sockopt::set_xdp_tx_ring_size(socket, frames)?;
        let budget = frames.min(FRAMES_A_CALL);
        // SAFETY: the kernel reads four bytes of `budget`, which lives through the call.
        unsafe {
            // Kernels without the option send fewer frames a call, which `flush` sees.
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_XDP,
                XDP_MAX_TX_SKB_BUDGET,
                (&raw const budget).cast(),
                size_of::<u32>() as libc::socklen_t,
            );
        }
        Ok(())
    }

    /// Maps the rings. The frames are those of the memory from `first` on.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        offsets: &XdpMmapOffsets,
        first: u32,
        frames: u32,
        frame_memory_bytes: u32,
    ) -> io::Result<Self> {
        let begin = |frame: u32| u64::from(frame) * u64::from(frame_memory_bytes);
        Ok(Sending {
            transmit: Ring::map(socket, XDP_PGOFF_TX_RING, frames, &offsets.tx)?,
            completion: Ring::map(socket, XDP_UMEM_PGOFF_COMPLETION_RING, frames, &offsets.cr)?,
            free: (first..first + frames).map(begin).collect(),
            frame_memory_bytes,
            sent: XdpSent::default(),
        })
    }

    pub(super) fn sent(&self) -> XdpSent {
        self.sent
    }

    /// Frames that can be written now.
    pub(super) fn room(&mut self) -> u32 {
        let done = self.completion.filled();
        for ahead in 0..done {
            let at = self.completion.get(ahead);
            self.free.push(at & !u64::from(self.frame_memory_bytes - 1));
        }
        if done > 0 {
            self.completion.release(done);
            self.sent.completed += u64::from(done);
        }
        self.free.len() as u32
    }

    /// Has up to `most` frames written into `memory`, which starts there and holds all frames.
    pub(super) fn write(
        &mut self,
        memory: NonNull<u8>,
        most: u32,
        mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> u32 {
        let most = self.room().min(most);
        let mut written = 0;
        while let (true, Some(&at)) = (written < most, self.free.last()) {
            // SAFETY: the frame lies in the mapping, and nobody else has it: it is free until it is published below.
            let frame = unsafe {
                let start = memory.add(at as usize);
                std::slice::from_raw_parts_mut(start.as_ptr(), self.frame_memory_bytes as usize)
            };
            let Some(bytes) = fill(frame) else { break };
            self.free.pop();
            let len = (bytes as u64).min(u64::from(self.frame_memory_bytes)) as u32;
            let entry = XdpDesc {
                addr: at,
                len,
                options: XdpDescOptions::empty(),
            };
            self.transmit.put(written, entry);
            written += 1;
        }
        self.transmit.publish(written);
        self.sent.handed += u64::from(written);
        written
    }

    /// Has the kernel take what is in the ring, as far as it does so without waiting.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let waiting = self.transmit.filled();
            if waiting == 0 || !self.transmit.needs_wakeup() {
                return Ok(());
            }
            self.sent.system_calls += 1;
            match rustix::net::send(socket.as_fd(), &[], SendFlags::DONTWAIT) {
                // It took as many as one call sends, or the interface is busy.
                Ok(_) | Err(Errno::AGAIN) => {}
                // One frame was dropped, and those behind it are still there.
                Err(Errno::BUSY) => self.sent.refused += 1,
                Err(Errno::NOBUFS | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.transmit.filled() == waiting {
                return Ok(());
            }
        }
    }
}
