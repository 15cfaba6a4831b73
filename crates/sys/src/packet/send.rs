//! Sending whole frames, many a system call (`sendmmsg`): on a veth that is faster than a ring of slots to send from
//! (`PACKET_TX_RING`), whose every frame the kernel copies the headers of.
//!
//! What must hold: each frame that was written is handed to the kernel once, in order, also when the kernel takes only
//! a part of them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::socket::{address, raw_socket};
use crate::memory::Mapping;

/// Frames of one system call, at most.
const BATCH: usize = 64;

/// Sends frames through an interface.
pub struct PacketSender {
    socket: OwnedFd,
    address: libc::sockaddr_ll,
    frame_bytes_max: usize,
    memory: Mapping,
    /// Lengths of the frames that were written, of which the first `sent` are done with.
    lengths: Vec<usize>,
    sent: usize,
    /// Frames that were handed over, since the sender was made.
    total: u64,
}

impl PacketSender {
    /// A sender through the interface of that index in the calling thread's network namespace, for frames of up to
    /// `frame_bytes_max`, Ethernet header included.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW.
    pub fn new(ifindex: u32, frame_bytes_max: u32) -> io::Result<Self> {
        let frame_bytes_max = frame_bytes_max as usize;
        Ok(PacketSender {
            socket: raw_socket()?,
            address: address(ifindex, 0),
            frame_bytes_max,
            memory: Mapping::zeroed(BATCH * frame_bytes_max)?,
            lengths: Vec::with_capacity(BATCH),
            sent: 0,
            total: 0,
        })
    }

    /// Frames that were handed to the kernel.
    pub fn sent(&self) -> u64 {
        self.total
    }

    /// Frames that [`PacketSender::send`] has room for.
    pub fn room(&self) -> u32 {
        (BATCH - self.lengths.len()) as u32
    }

    /// Has `fill` write up to `most` frames, each into the memory that it is given, and hands them to the kernel.
    /// `fill` returns a frame's length, or `None` when there is none. Frames that the kernel did not take are handed
    /// over by the next call, before any others. Returns how many were written.
    ///
    /// # Errors
    /// `ENETDOWN` or `ENXIO` when the interface is down or gone; `EMSGSIZE` when a frame is too long for it, which is
    /// then given up. That the kernel has no room now is no error.
    pub fn send(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        let before = self.lengths.len();
        let wanted = (before + most as usize).min(BATCH);
        while self.lengths.len() < wanted {
            let start = self.lengths.len() * self.frame_bytes_max;
            let place = &mut self.memory.bytes_mut()[start..start + self.frame_bytes_max];
            match fill(place) {
                Some(length) => self.lengths.push(length.min(self.frame_bytes_max)),
                None => break,
            }
        }
        let written = self.lengths.len() - before;
        self.hand_over()?;
        Ok(written as u32)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        while self.sent < self.lengths.len() {
            match self.call() {
                Ok(frames) => {
                    self.sent += frames;
                    self.total += frames as u64;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS) => break,
                    Some(libc::EINTR) => {}
                    Some(libc::EMSGSIZE) => {
                        self.sent += 1;
                        return Err(error);
                    }
                    _ => return Err(error),
                },
            }
        }
        if self.sent == self.lengths.len() {
            self.lengths.clear();
            self.sent = 0;
        }
        Ok(())
    }

    fn call(&mut self) -> io::Result<usize> {
        let start = self.memory.as_mut_ptr();
        let mut parts = [const {
            libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            }
        }; BATCH];
        // SAFETY: `mmsghdr` is plain data, for which all bits zero are valid.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let waiting = self.lengths.iter().enumerate().skip(self.sent);
        let mut count = 0;
        for ((frame, length), (part, message)) in waiting.zip(parts.iter_mut().zip(&mut messages)) {
            part.iov_base = start.wrapping_add(frame * self.frame_bytes_max).cast();
            part.iov_len = *length;
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = (&raw mut self.address).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            count += 1;
        }
        let flags = libc::MSG_DONTWAIT;
        let socket = self.socket.as_raw_fd();
        // SAFETY: the first `count` messages point to the address and to bytes of `memory`, all of which outlive the
        // call and are only read.
        let sent = unsafe { libc::sendmmsg(socket, messages.as_mut_ptr(), count, flags as _) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }
}
