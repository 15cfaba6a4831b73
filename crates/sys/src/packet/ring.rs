//! The ring that frames come into: slots of one length, each with a header in front of its frame.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::socket::PacketSocket;
use crate::memory::Mapping;

/// include/uapi/linux/if_packet.h
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
/// What the kernel keeps of a slot before the network header, at most: its own header, an address, Ethernet's header
/// and what aligns them.
const HEADER_BYTES: u32 = 96;
/// The kernel takes memory in blocks; larger ones are harder to get.
const BLOCK_BYTES: u32 = 1 << 16;
/// The most memory of a ring: with jumbo frames it has fewer slots.
const RING_BYTES_MAX: u32 = 1 << 26;

/// struct tpacket_req
#[derive(Clone, Copy)]
#[repr(C)]
struct Request {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

/// struct tpacket2_hdr, as far as it is read.
#[repr(C)]
struct SlotHeader {
    status: AtomicU32,
    /// Of the frame on the wire, and of what the slot has of it.
    frame_bytes: u32,
    kept_bytes: u32,
    /// Where in the slot the frame begins.
    frame_offset: u16,
}

/// A ring of received frames.
#[derive(Debug)]
pub struct PacketRing {
    socket: Arc<PacketSocket>,
    slots: NonNull<u8>,
    slot_bytes: u32,
    length: u32,
    /// The slot that is read next.
    next: u32,
    /// From there on so many are known to have a frame.
    seen: Cell<u32>,
    too_long: u64,
    _mapping: Mapping,
}

// SAFETY: the pointer is into the mapping, which moves along; slots are read by whoever has the ring, headers of those
// that the kernel may write as atomics.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Makes the ring of a socket and begins to receive. It keeps up to `frames`, a power of two, with packets of
    /// `mtu_bytes`; fewer when they are long.
    ///
    /// # Errors
    /// `ENOMEM` when the kernel has no memory for it; `ENODEV` or `ENETDOWN` when the interface is gone or down.
    pub fn new(socket: Arc<PacketSocket>, frames: u32, mtu_bytes: u32) -> io::Result<Self> {
        let slot_bytes = (mtu_bytes.saturating_add(HEADER_BYTES))
            .checked_next_power_of_two()
            .unwrap_or(RING_BYTES_MAX);
        let ring_bytes = u64::from(frames.max(2)) * u64::from(slot_bytes);
        let page_bytes = rustix::param::page_size() as u64;
        let ring_bytes = ring_bytes.clamp(page_bytes, u64::from(RING_BYTES_MAX)) as u32;
        let block_bytes = ring_bytes.min(BLOCK_BYTES.max(slot_bytes));
        let request = Request {
            block_bytes,
            blocks: ring_bytes / block_bytes,
            slot_bytes,
            slots: ring_bytes / slot_bytes,
        };
        socket.set(PACKET_VERSION, &TPACKET_V2)?;
        socket.set(PACKET_RX_RING, &request)?;
        let mut mapping = Mapping::shared(socket.as_fd(), 0, ring_bytes as usize)?;
        let slots = NonNull::new(mapping.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        // Last: from here on frames come.
        socket.bind()?;
        Ok(PacketRing {
            socket,
            slots,
            slot_bytes,
            length: request.slots,
            next: 0,
            seen: Cell::new(0),
            too_long: 0,
            _mapping: mapping,
        })
    }

    /// The socket.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Frames that it can keep.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Frames that were longer than a slot, and so were not shown.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Frames that wait to be read.
    pub fn waiting(&self) -> u32 {
        let mut seen = self.seen.get();
        while seen < self.length && self.has_frame(self.after(seen)) {
            seen += 1;
        }
        self.seen.set(seen);
        seen
    }

    /// Shows up to `most` frames that wait, oldest first, and gives their slots back to the kernel. Returns how many.
    /// It makes no system call.
    pub fn receive(&mut self, most: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let mut shown = 0;
        while shown < most && self.has_frame(self.next) {
            let header = self.header(self.next);
            // SAFETY: the kernel has given the slot to this process and does not touch it until its status is set.
            let (frame_bytes, kept_bytes, offset) = unsafe {
                let header = header.as_ref();
                (
                    header.frame_bytes,
                    header.kept_bytes,
                    u32::from(header.frame_offset),
                )
            };
            if kept_bytes == frame_bytes && offset + kept_bytes <= self.slot_bytes {
                // SAFETY: the bytes lie in the slot, which is this process's until the status is set below, after the
                // slice is gone.
                each(unsafe {
                    let start = header.cast::<u8>().add(offset as usize);
                    std::slice::from_raw_parts(start.as_ptr(), kept_bytes as usize)
                });
                shown += 1;
            } else {
                self.too_long += 1;
            }
            self.status(self.next)
                .store(TP_STATUS_KERNEL, Ordering::Release);
            self.next = self.after(1);
            self.seen.set(self.seen.get().saturating_sub(1));
        }
        shown
    }

    fn has_frame(&self, slot: u32) -> bool {
        self.status(slot).load(Ordering::Acquire) & TP_STATUS_USER != 0
    }

    /// The slot that is so far behind the next.
    fn after(&self, slots: u32) -> u32 {
        (self.next + slots) % self.length
    }

    fn status(&self, slot: u32) -> &AtomicU32 {
        let header = self.header(slot);
        // SAFETY: the header lies in the mapping, which lives as long as `self`; the status is its first word, and is
        // written by both sides as one.
        unsafe { header.cast::<AtomicU32>().as_ref() }
    }

    fn header(&self, slot: u32) -> NonNull<SlotHeader> {
        debug_assert!(slot < self.length);
        // SAFETY: there are `length` slots in the mapping. They begin at multiples of a power of two.
        unsafe {
            self.slots
                .add(slot as usize * self.slot_bytes as usize)
                .cast()
        }
    }
}
