//! A ring of entries between the kernel and this process (Documentation/networking/af_xdp.rst).
//!
//! What must hold: one side produces and the other consumes. Each counter is written by its own side only, after the
//! entries that it tells of; both run on at 2^32, and their difference is the entries in the ring, at most its length.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use crate::memory::Mapping;

/// A ring of `T`, of which this process is one side. It stays mapped as long as it lives.
#[derive(Debug)]
pub(super) struct Ring<T> {
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
    /// Maps the ring of `length` entries, a power of two, that a socket has at `page_offset`.
    pub(super) fn map(
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

    /// Entries in the ring.
    pub(super) fn filled(&self) -> u32 {
        let consumer = self.consumer().load(Ordering::Acquire);
        self.producer()
            .load(Ordering::Acquire)
            .wrapping_sub(consumer)
    }

    /// The entry `ahead` of the oldest: of those that are [`filled`](Self::filled), for the consumer.
    pub(super) fn get(&self, ahead: u32) -> T {
        debug_assert!(ahead < self.filled());
        let index = self.consumer().load(Ordering::Relaxed).wrapping_add(ahead);
        // SAFETY: the index is below the length; the producer published the entry, and takes it back only after the
        // consumer, which this process is, has released it.
        unsafe { self.slot(index).read() }
    }

    /// Gives the oldest `count` entries back to the producer.
    pub(super) fn release(&mut self, count: u32) {
        let consumed = self.consumer().load(Ordering::Relaxed);
        let consumer = consumed.wrapping_add(count);
        self.consumer().store(consumer, Ordering::Release);
    }

    /// Writes the entry that is `ahead` of the newest, for the producer; there has to be room for it.
    pub(super) fn put(&mut self, ahead: u32, entry: T) {
        debug_assert!(self.filled() + ahead < self.length);
        let index = self.producer().load(Ordering::Relaxed).wrapping_add(ahead);
        // SAFETY: the index is below the length; the consumer has released the entry, and reads it only after it is
        // published.
        unsafe { self.slot(index).write(entry) }
    }

    /// Hands the next `count` entries, which were [`put`](Self::put), to the consumer.
    pub(super) fn publish(&mut self, count: u32) {
        let produced = self.producer().load(Ordering::Relaxed);
        let producer = produced.wrapping_add(count);
        self.producer().store(producer, Ordering::Release);
    }

    /// Whether the kernel wants a system call before it goes on (`XDP_RING_NEED_WAKEUP`).
    pub(super) fn needs_wakeup(&self) -> bool {
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
