//! A socket that receives the frames of one queue of an interface, sends by it, or both.
//!
//! What must hold: each frame of the memory for receiving is in the fill ring, with the kernel, or in the receive ring;
//! those for sending are others. A frame can
//! always be given back: the fill ring has twice as many entries as there are frames, because the kernel shows a frame
//! (`xsk_flush`, net/xdp/xsk.c) before it says which entries it has taken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc,
    XdpDescOptions, XdpOptionsFlags, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use super::busy_poll;
use super::ring::Ring;
use super::send_half::XdpSendHalf;
use super::sending::{Sending, XdpSent};
use crate::link::{self, LinkState};
use crate::memory::Mapping;

/// Bytes at the start of each frame's memory that the kernel keeps for XDP programs (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: u32 = 256;
/// A queue is still busy for about 45 ms after the socket before was closed.
const BUSY_MAX: Duration = Duration::from_secs(1);
const TRY_AGAIN: Duration = Duration::from_millis(5);
/// The kernel wants a ring of completions also where nothing is sent, and one of memory where nothing is received.
const ENTRIES_MIN: u32 = 2;
/// Pieces of a frame, at most: what the kernel's own packets have (`MAX_SKB_FRAGS`, include/linux/skbuff.h).
const PIECES_MAX: u32 = 17;

/// What a socket is for, and how much it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpConfig {
    /// The interface, by its index in the calling thread's network namespace.
    pub ifindex: u32,
    /// The receive queue, from 0 on.
    pub queue: u32,
    /// Frames that it keeps until they are read; a power of two. 0: it receives nothing, and the driver keeps its own
    /// memory, from which the kernel goes on receiving.
    pub frames: u32,
    /// Frames that it has room for until the kernel has sent them; a power of two. 0: it sends nothing.
    pub transmit_frames: u32,
    /// Memory of each frame: 2048 or 4096. A frame may be as long as [`XdpConfig::frame_bytes_max`].
    pub frame_memory_bytes: u32,
    /// Whether a frame that is longer comes in several pieces (`XDP_USE_SG`), each in memory of its own: Linux 6.6. The
    /// XDP program has to be one for such frames.
    pub has_pieces: bool,
}

impl XdpConfig {
    /// The longest frame that is received, Ethernet header included; longer ones are dropped and counted.
    pub fn frame_bytes_max(&self) -> u32 {
        let pieces = if self.has_pieces { PIECES_MAX } else { 1 };
        pieces * self.frame_memory_bytes.saturating_sub(HEADROOM_BYTES)
    }
}

/// Frames that the socket has dropped since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpDrops {
    /// The receive ring had no room, with the driver's own memory (`rx_ring_full`).
    pub ring_full: u64,
    /// No memory was free, or the frame was too long for it (`rx_dropped`).
    pub no_memory: u64,
    /// How often the fill ring was found empty. It counts the same losses again, and attempts without a loss.
    pub fill_ring_empty: u64,
}

impl XdpDrops {
    /// Frames lost.
    pub fn frames(&self) -> u64 {
        self.ring_full + self.no_memory
    }
}

/// A socket with its memory and rings.
#[derive(Debug)]
pub struct XdpSocket {
    // Declared first: the kernel lets go of rings and memory before they are unmapped.
    socket: OwnedFd,
    /// An AF_XDP socket answers no questions about interfaces.
    control: OwnedFd,
    ifindex: u32,
    fill: Ring<u64>,
    receive: Ring<XdpDesc>,
    memory: NonNull<u8>,
    memory_bytes: u64,
    frame_memory_bytes: u32,
    is_zero_copy: bool,
    /// What has been read of a frame in several pieces.
    joined: Vec<u8>,
    sending: Option<XdpSendHalf>,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer is into the mapping, which moves along, and is used through `&mut self` alone.
unsafe impl Send for XdpSocket {}

impl XdpSocket {
    /// Makes a socket and binds it to a queue: with the driver's own memory where it can (zero-copy), else with a copy
    /// of each frame. A queue that is busy is tried again for a second.
    ///
    /// # Errors
    /// `EINVAL` when the interface has no such queue; `EBUSY` when another program has it; `EPERM` without CAP_NET_RAW;
    /// `ENODEV` when there is no such interface.
    pub fn bind(config: &XdpConfig) -> io::Result<Self> {
        let (length, transmit_frames) = (config.frames, config.transmit_frames);
        let all = u64::from(length) + u64::from(transmit_frames);
        let memory_bytes = all * u64::from(config.frame_memory_bytes);
        let mut mapping = Mapping::zeroed(memory_bytes as usize)?;
        let memory = NonNull::new(mapping.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Arc::new(mapping);
        let socket = rustix::net::socket_with(
            AddressFamily::XDP,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let registration = XdpUmemReg {
            addr: memory.as_ptr() as u64,
            len: memory_bytes,
            chunk_size: config.frame_memory_bytes,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, registration)?;
        let fill_length = (2 * length).max(ENTRIES_MIN);
        let completions = transmit_frames.max(ENTRIES_MIN);
        let receive_length = length.max(ENTRIES_MIN);
        sockopt::set_xdp_umem_fill_ring_size(&socket, fill_length)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, completions)?;
        sockopt::set_xdp_rx_ring_size(&socket, receive_length)?;
        if transmit_frames > 0 {
            Sending::size(socket.as_fd(), transmit_frames)?;
        }
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let (fd, fill_at) = (socket.as_fd(), XDP_UMEM_PGOFF_FILL_RING);
        let mut fill = Ring::map(fd, fill_at, fill_length, &offsets.fr)?;
        let receive = Ring::map(fd, XDP_PGOFF_RX_RING, receive_length, &offsets.rx)?;
        let chunk = config.frame_memory_bytes;
        let send_half = || {
            let sending = Sending::map(fd, &offsets, length, transmit_frames, chunk)?;
            let socket = fd.try_clone_to_owned()?;
            io::Result::Ok(XdpSendHalf::new(socket, sending, memory, chunk, &mapping))
        };
        let sending = (transmit_frames > 0).then(send_half).transpose()?;
        for frame in 0..length {
            fill.put(
                frame,
                u64::from(frame) * u64::from(config.frame_memory_bytes),
            );
        }
        fill.publish(length);
        bind_patiently(fd, config)?;
        let options = sockopt::xdp_options(&socket)?;
        Ok(XdpSocket {
            is_zero_copy: options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY),
            socket,
            control: link::control_socket()?,
            ifindex: config.ifindex,
            fill,
            receive,
            memory,
            memory_bytes,
            frame_memory_bytes: config.frame_memory_bytes,
            joined: Vec::new(),
            sending,
            _mapping: mapping,
        })
    }

    /// Whether frames come without being copied.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Frames that wait to be read; one in several pieces counts as so many.
    pub fn waiting(&self) -> u32 {
        self.receive.filled()
    }

    /// Shows up to `most` frames that wait, oldest first, and gives their memory back to the kernel. Returns how many.
    /// It waits for nothing, and makes a system call only where the driver asks for one.
    pub fn receive(&mut self, most: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let filled = self.receive.filled();
        let (mut frames, mut entries) = (0, 0);
        while frames < most && entries < filled {
            let entry = self.receive.get(entries);
            let begin = entry.addr & !u64::from(self.frame_memory_bytes - 1);
            let goes_on = entry.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            if entry.addr + u64::from(entry.len) <= self.memory_bytes {
                // SAFETY: the bytes lie in the mapping, and the kernel does not touch them: it has put this memory into
                // the receive ring, and gets it back below, after the slice is gone.
                let piece = unsafe {
                    let start = self.memory.add(entry.addr as usize);
                    std::slice::from_raw_parts(start.as_ptr(), entry.len as usize)
                };
                if !goes_on && self.joined.is_empty() {
                    each(piece);
                } else {
                    self.joined.extend_from_slice(piece);
                }
            }
            if !goes_on {
                if !self.joined.is_empty() {
                    each(&self.joined);
                    self.joined.clear();
                }
                frames += 1;
            }
            self.fill.put(entries, begin);
            entries += 1;
        }
        if entries > 0 {
            self.receive.release(entries);
            self.fill.publish(entries);
        }
        if self.fill.needs_wakeup() {
            // What is wrong with the interface, its state says.
            let _ = self.link_state();
        }
        frames
    }

    /// Asks the kernel to poll the queue's NAPI in the calls of this process.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_ADMIN; `ENOPROTOOPT` before Linux 5.11.
    pub fn prefer_busy_poll(&self) -> io::Result<()> {
        busy_poll::ask(self.socket.as_fd())
    }

    /// Whether the kernel has told the socket a NAPI. Without one, to prefer busy polling has no effect.
    pub fn has_napi(&self) -> bool {
        busy_poll::has_napi(self.socket.as_fd())
    }

    /// Has the kernel poll that NAPI once, now.
    pub fn poll_napi(&self) {
        // What is wrong with the interface, its state says.
        let _ = self.link_state();
    }

    /// Separates the half that sends, for another thread; `None` when it is gone, or there never was one. What is left
    /// sends nothing.
    pub fn take_send_half(&mut self) -> Option<XdpSendHalf> {
        self.sending.take()
    }

    /// As [`XdpSendHalf::room`]; 0 without that half.
    pub fn room(&mut self) -> u32 {
        self.sending.as_mut().map_or(0, XdpSendHalf::room)
    }

    /// As [`XdpSendHalf::transmit`]; nothing is sent without that half.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENXIO` when it is gone.
    pub fn transmit(
        &mut self,
        most: u32,
        each: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        match &mut self.sending {
            Some(sending) => sending.transmit(most, each),
            None => Ok(0),
        }
    }

    /// As [`XdpSendHalf::sent`].
    pub fn sent(&self) -> XdpSent {
        let sending = self.sending.as_ref();
        sending.map_or_else(XdpSent::default, XdpSendHalf::sent)
    }

    /// What has become of the interface. The system call also wakes a driver that waits for memory.
    pub fn link_state(&self) -> LinkState {
        let nothing: &mut [u8] = &mut [];
        match rustix::net::recv(&self.socket, nothing, RecvFlags::DONTWAIT) {
            Err(Errno::NETDOWN) => LinkState::Down,
            Err(Errno::NXIO) => LinkState::Gone,
            _ => LinkState::Up,
        }
    }

    /// The interface's longest packet, in bytes.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn mtu_bytes(&self) -> io::Result<u32> {
        link::mtu_bytes(&self.control, self.ifindex)
    }

    /// What the socket has dropped.
    pub fn drops(&self) -> io::Result<XdpDrops> {
        let statistics = sockopt::xdp_statistics(&self.socket)?;
        Ok(XdpDrops {
            ring_full: statistics.rx_ring_full.unwrap_or(0),
            no_memory: statistics.rx_dropped,
            fill_ring_empty: statistics.rx_fill_ring_empty_descs.unwrap_or(0),
        })
    }
}

impl AsFd for XdpSocket {
    /// poll(2) says that it is readable while frames wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bind_patiently(socket: BorrowedFd<'_>, config: &XdpConfig) -> io::Result<()> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    if config.has_pieces {
        flags |= SocketAddrXdpFlags::XDP_USE_SG;
    }
    if config.frames == 0 {
        // With zero-copy the queue's driver would receive into this socket's memory, of which there is none.
        flags |= SocketAddrXdpFlags::XDP_COPY;
    }
    let address = SocketAddrXdp::new(flags, config.ifindex, config.queue);
    let began = Instant::now();
    loop {
        match rustix::net::bind(socket, &address) {
            Err(Errno::BUSY) if began.elapsed() < BUSY_MAX => thread::sleep(TRY_AGAIN),
            outcome => return Ok(outcome?),
        }
    }
}
