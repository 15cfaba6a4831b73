//! AF_XDP: the frames of one queue of a card, in memory shared by the kernel and this process.
//!
//! An XDP program at the interface ([`XdpLink`]) redirects frames to an [`XdpSocket`]; the others go on to the kernel.
//! Reading takes a system call only to sleep; sending takes one for many frames.
//!
//! A frame's memory belongs either to the kernel or to this process, as the rings record. A borrowed frame ends before
//! its memory is returned. Memory for sending is separate from memory for receiving.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpMmapOffsets, XdpOptionsFlags, XdpRingFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::kernel::{self, Mapping, set_option};
use crate::packet::{ReceiverDrops, Transmit};

/// include/uapi/linux/bpf.h
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_XDP: u32 = 37;
/// include/uapi/linux/if_link.h
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel has made an skb of the frame.
    Driver,
    /// In the kernel's generic code, for drivers without XDP; slower.
    Generic,
}

impl AttachMode {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            AttachMode::Driver => "driver",
            AttachMode::Generic => "generic",
        }
    }
}

/// A program attached to an interface. It is detached when this value is dropped.
#[derive(Debug)]
pub struct XdpLink {
    _link: OwnedFd,
}

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` reads.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

impl XdpLink {
    /// Attaches a loaded program to an interface, by index in the calling thread's network namespace.
    ///
    /// # Errors
    /// `EBUSY` or `EEXIST` if the interface has a program already; `EOPNOTSUPP` if its driver has no XDP; `ENODEV` when
    /// the interface is gone; `EPERM` without CAP_NET_ADMIN and CAP_BPF; others come from the driver.
    pub fn attach(program: BorrowedFd<'_>, ifindex: u32, mode: AttachMode) -> io::Result<Self> {
        let attributes = LinkCreate {
            prog_fd: program.as_raw_fd() as u32,
            target_ifindex: ifindex,
            attach_type: BPF_XDP,
            flags: match mode {
                AttachMode::Driver => XDP_FLAGS_DRV_MODE,
                AttachMode::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        // SAFETY: the kernel reads as many bytes of `attributes` as it is told, which lives through the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_LINK_CREATE,
                &raw const attributes,
                size_of::<LinkCreate>(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made this descriptor, and nobody else knows it.
        let link = unsafe { OwnedFd::from_raw_fd(result as libc::c_int) };
        Ok(XdpLink { _link: link })
    }
}

/// A ring of `T` of which this process is one side. It stays mapped while this value lives.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    length: u32,
    _mapping: Mapping,
}

// SAFETY: the pointers are into the mapping, which moves along, and are used through `&mut self` or as atomics.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `length` entries, a power of two, at `page_offset` of a socket.
    fn map(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        length: u32,
        offsets: &XdpRingOffset,
    ) -> io::Result<Self> {
        let entries_bytes = length as usize * size_of::<T>();
        let mut mapping =
            Mapping::shared(socket, page_offset, offsets.desc as usize + entries_bytes)?;
        let start = mapping.as_mut_ptr();
        let at = |offset: u64| {
            // SAFETY: the kernel's offsets lie within the ring, all of which is mapped.
            NonNull::new(unsafe { start.add(offset as usize) }).ok_or(io::ErrorKind::OutOfMemory)
        };
        Ok(Ring {
            producer: at(offsets.producer)?.cast(),
            consumer: at(offsets.consumer)?.cast(),
            flags: match offsets.flags {
                Some(offset) => Some(at(offset)?.cast()),
                None => None,
            },
            entries: at(offsets.desc)?.cast(),
            length,
            _mapping: mapping,
        })
    }

    /// Returns the number of entries in the ring.
    fn filled(&self) -> u32 {
        let consumer = self.consumer().load(Ordering::Acquire);
        self.producer()
            .load(Ordering::Acquire)
            .wrapping_sub(consumer)
    }

    /// Returns the entry `ahead` of the oldest, for the consumer. It must be one of those [`filled`](Self::filled).
    fn get(&self, ahead: u32) -> T {
        debug_assert!(ahead < self.filled());
        let index = self.consumer().load(Ordering::Relaxed).wrapping_add(ahead);
        // SAFETY: the index is below the length; the producer published the entry, and takes it back only after the
        // consumer, which this process is, has released it.
        unsafe { self.slot(index).read() }
    }

    /// Returns the oldest `count` entries to the producer.
    fn release(&mut self, count: u32) {
        let consumed = self.consumer().load(Ordering::Relaxed);
        let consumer = consumed.wrapping_add(count);
        self.consumer().store(consumer, Ordering::Release);
    }

    /// Writes the entry `ahead` of the newest, for the producer. The ring must have room for it.
    fn put(&mut self, ahead: u32, entry: T) {
        debug_assert!(self.filled() + ahead < self.length);
        let index = self.producer().load(Ordering::Relaxed).wrapping_add(ahead);
        // SAFETY: the index is below the length; the consumer has released the entry, and reads it only after it is
        // published.
        unsafe { self.slot(index).write(entry) }
    }

    /// Passes the next `count` entries, written by [`put`](Self::put), to the consumer.
    fn publish(&mut self, count: u32) {
        let produced = self.producer().load(Ordering::Relaxed);
        let producer = produced.wrapping_add(count);
        self.producer().store(producer, Ordering::Release);
    }

    /// Whether the kernel needs a system call to continue (`XDP_RING_NEED_WAKEUP`).
    fn needs_wakeup(&self) -> bool {
        let Some(flags) = self.flags else {
            return true;
        };
        // SAFETY: the pointer is into the mapping, which lives as long as `self`; the kernel writes it atomically.
        let flags = unsafe { flags.as_ref() }.load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: as for the flags.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the flags.
        unsafe { self.consumer.as_ref() }
    }

    fn slot(&self, index: u32) -> NonNull<T> {
        // SAFETY: the length is a power of two, so the masked index is below it, and all entries are mapped.
        unsafe { self.entries.add((index & (self.length - 1)) as usize) }
    }
}

/// include/uapi/linux/if_xdp.h; since Linux 6.17.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Maximum frames sent per system call in copy mode; 32 if the kernel lacks the option.
const FRAMES_A_CALL: u32 = 256;

/// Sending half of a socket, which can be moved to another thread.
///
/// A frame's memory is free, in the transmit ring, with the kernel, or in the completion ring; only free memory is
/// written to. A written frame stays in the ring until the kernel takes it. The mapping stays until both halves are
/// dropped.
#[derive(Debug)]
pub struct XdpSendHalf {
    // Declared first: the kernel releases rings and memory before they are unmapped.
    socket: OwnedFd,
    transmit: Ring<XdpDesc>,
    completion: Ring<u64>,
    /// Offsets of free frames. The most recently used one, still in the CPU's cache, is used first.
    free: Vec<u64>,
    memory: NonNull<u8>,
    frame_memory_bytes: u32,
    /// Frames that the kernel is done with: sent or dropped.
    completed: u64,
    /// Sends that the interface refused because its queue was full or it was not ready.
    refused: u64,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer is into the mapping, which moves along, and is used through `&mut self` alone, for frames that no
// other half has.
unsafe impl Send for XdpSendHalf {}

impl XdpSendHalf {
    /// Requests rings for `frames`, before they are [mapped](Self::map).
    fn size(socket: BorrowedFd<'_>, frames: u32) -> io::Result<()> {
        sockopt::set_xdp_tx_ring_size(socket, frames)?;
        let budget = frames.min(FRAMES_A_CALL);
        // Kernels without the option send fewer frames a call, for which `flush` allows.
        let _ = set_option(socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &[budget]);
        Ok(())
    }

    /// Maps the rings of a socket. Its frames follow those for receiving in `memory`.
    fn map(
        socket: BorrowedFd<'_>,
        offsets: &XdpMmapOffsets,
        config: &XdpConfig,
        memory: NonNull<u8>,
        mapping: &Arc<Mapping>,
    ) -> io::Result<Self> {
        let (first, frames) = (config.frames, config.transmit_frames);
        let begin = |frame: u32| u64::from(frame) * u64::from(config.frame_memory_bytes);
        Ok(XdpSendHalf {
            socket: socket.try_clone_to_owned()?,
            transmit: Ring::map(socket, XDP_PGOFF_TX_RING, frames, &offsets.tx)?,
            completion: Ring::map(socket, XDP_UMEM_PGOFF_COMPLETION_RING, frames, &offsets.cr)?,
            free: (first..first + frames).map(begin).collect(),
            memory,
            frame_memory_bytes: config.frame_memory_bytes,
            completed: 0,
            refused: 0,
            _mapping: Arc::clone(mapping),
        })
    }

    /// Longest frame that fits the memory, in bytes.
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_memory_bytes as usize
    }

    /// Has the kernel take what is in the ring, as far as it can without blocking.
    fn flush(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.transmit.filled();
            if waiting == 0 || !self.transmit.needs_wakeup() {
                return Ok(());
            }
            match rustix::net::send(&self.socket, &[], SendFlags::DONTWAIT) {
                // It took as many frames as one call sends, or the interface is busy.
                Ok(_) | Err(Errno::AGAIN) => {}
                // One frame was dropped; those behind it still wait.
                Err(Errno::BUSY) => self.refused += 1,
                Err(Errno::NOBUFS | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.transmit.filled() == waiting {
                return Ok(());
            }
        }
    }
}

/// Frames that the kernel has not taken yet stay in the ring.
impl Transmit for XdpSendHalf {
    fn room(&mut self) -> u32 {
        let done = self.completion.filled();
        for ahead in 0..done {
            let at = self.completion.get(ahead);
            self.free.push(at & !u64::from(self.frame_memory_bytes - 1));
        }
        if done > 0 {
            self.completion.release(done);
            self.completed += u64::from(done);
        }
        self.free.len() as u32
    }

    fn transmit(
        &mut self,
        most: u32,
        mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        let most = self.room().min(most);
        let mut written = 0;
        while let (true, Some(&at)) = (written < most, self.free.last()) {
            // SAFETY: the frame lies in the mapping, and nobody else has it: it is free until it is published below.
            let frame = unsafe {
                let start = self.memory.add(at as usize);
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
        self.flush()?;
        Ok(written)
    }

    fn sent(&self) -> u64 {
        self.completed
    }

    fn refused(&self) -> Option<u64> {
        Some(self.refused)
    }
}

/// include/uapi/asm-generic/socket.h
const SO_BUSY_POLL: libc::c_int = 46;
const SO_INCOMING_NAPI_ID: libc::c_int = 56;
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;

/// The kernel's busy polling of a socket's queue (Documentation/networking/napi.rst): NAPI runs in the system calls of
/// the thread that reads the queue, and interrupts may stay masked. It needs a NAPI ID at the socket, which the kernel
/// sets at binding with zero-copy since Linux 6.14, else with the first frame. A veth has none.
///
/// Maximum time that a call polls, in us. A non-blocking call polls once for any value above 0.
const BUSY_POLL_US: libc::c_int = 20;
/// Packets per poll, as in NAPI itself.
const BUDGET: libc::c_int = 64;

/// Bytes at the start of each frame's memory that the kernel reserves for XDP programs (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: u32 = 256;
/// A queue is still busy for about 45 ms after its previous socket was closed, on a busy machine for more than a second:
/// the kernel lets go of it in a worker of its own.
const BUSY_MAX: Duration = Duration::from_secs(5);
const TRY_AGAIN: Duration = Duration::from_millis(5);
/// The kernel requires a completion ring even if nothing is sent, and a fill ring even if nothing is received.
const ENTRIES_MIN: u32 = 2;
/// Maximum pieces of a frame, as of the kernel's own packets (`MAX_SKB_FRAGS`, include/linux/skbuff.h).
const PIECES_MAX: u32 = 17;

/// Purpose and capacity of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpConfig {
    /// Interface index in the calling thread's network namespace.
    pub ifindex: u32,
    /// Receive queue, from 0 on.
    pub queue: u32,
    /// Received frames held until they are read; a power of two. 0: nothing is received, and the driver keeps its own
    /// memory, from which the kernel goes on receiving.
    pub frames: u32,
    /// Frames held until the kernel has sent them; a power of two. 0: nothing is sent.
    pub transmit_frames: u32,
    /// Memory of each frame, in bytes: 2048 or 4096. A frame may be as long as [`XdpConfig::frame_bytes_max`].
    pub frame_memory_bytes: u32,
    /// Whether a longer frame arrives in several pieces (`XDP_USE_SG`), each in memory of its own: Linux 6.6. The XDP
    /// program has to support multi-buffer frames.
    pub has_pieces: bool,
}

impl XdpConfig {
    /// Longest frame received, in bytes with the Ethernet header; longer ones are dropped and counted.
    pub fn frame_bytes_max(&self) -> u32 {
        let pieces = if self.has_pieces { PIECES_MAX } else { 1 };
        pieces * self.frame_memory_bytes.saturating_sub(HEADROOM_BYTES)
    }
}

/// A socket with its memory and rings.
#[derive(Debug)]
pub struct XdpSocket {
    // Declared first: the kernel releases rings and memory before they are unmapped.
    socket: OwnedFd,
    fill: Ring<u64>,
    receive: Ring<XdpDesc>,
    memory: NonNull<u8>,
    memory_bytes: u64,
    frame_memory_bytes: u32,
    is_zero_copy: bool,
    /// Pieces read so far of a frame in several pieces.
    joined: Vec<u8>,
    /// The sending half, if requested. It may be taken out for another thread.
    pub sending: Option<XdpSendHalf>,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer is into the mapping, which moves along, and is used through `&mut self` alone.
unsafe impl Send for XdpSocket {}

impl XdpSocket {
    /// Makes a socket and binds it to a queue: zero-copy if the driver can, else with a copy of each frame. A busy
    /// queue is retried for five seconds.
    ///
    /// # Errors
    /// `EINVAL` if the interface has no such queue; `EBUSY` if another program has it; `EPERM` without CAP_NET_RAW;
    /// `ENODEV` if there is no such interface.
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
            XdpSendHalf::size(socket.as_fd(), transmit_frames)?;
        }
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let (fd, fill_at) = (socket.as_fd(), XDP_UMEM_PGOFF_FILL_RING);
        let mut fill = Ring::map(fd, fill_at, fill_length, &offsets.fr)?;
        let receive = Ring::map(fd, XDP_PGOFF_RX_RING, receive_length, &offsets.rx)?;
        let send_half = || XdpSendHalf::map(fd, &offsets, config, memory, &mapping);
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

    /// Whether frames arrive without being copied.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Returns the number of frames that wait to be read, with each piece of a frame counted.
    pub fn waiting(&self) -> u32 {
        self.receive.filled()
    }

    /// Shows up to `most` waiting frames, oldest first, and returns their memory to the kernel. Returns how many were
    /// shown. Never blocks, and makes a system call only if the driver asks for one.
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
            self.poll_napi();
        }
        frames
    }

    /// Has the kernel poll the queue's NAPI in the system calls of this process.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_ADMIN; `ENOPROTOOPT` before Linux 5.11.
    pub fn prefer_busy_poll(&self) -> io::Result<()> {
        for (option, value) in [
            (SO_PREFER_BUSY_POLL, 1),
            (SO_BUSY_POLL, BUSY_POLL_US),
            (SO_BUSY_POLL_BUDGET, BUDGET),
        ] {
            set_option(&self.socket, libc::SOL_SOCKET, option, &[value])?;
        }
        Ok(())
    }

    /// Whether the kernel has set a NAPI ID at the socket. Without one, `prefer_busy_poll` has no effect.
    pub fn has_napi(&self) -> bool {
        // SAFETY: every bit pattern is a valid integer.
        let id = unsafe {
            kernel::option::<libc::c_uint>(&self.socket, libc::SOL_SOCKET, SO_INCOMING_NAPI_ID)
        };
        id.is_ok_and(|id| id != 0)
    }

    /// Has the kernel poll that NAPI once, now, and wakes a driver that waits for memory.
    pub fn poll_napi(&self) {
        let nothing: &mut [u8] = &mut [];
        // The interface's state tells what is wrong with it.
        let _ = rustix::net::recv(&self.socket, nothing, RecvFlags::DONTWAIT);
    }

    /// Returns the frames that the socket has dropped.
    pub fn drops(&self) -> io::Result<ReceiverDrops> {
        let statistics = sockopt::xdp_statistics(&self.socket)?;
        Ok(ReceiverDrops {
            ring_full: statistics.rx_ring_full.unwrap_or(0),
            no_memory: statistics.rx_dropped,
        })
    }
}

impl AsFd for XdpSocket {
    /// Readable in poll(2) while frames wait.
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
