//! Memory that goes back to the kernel as soon as it is given up.
//!
//! An allocator keeps what is freed, and writes all of it to hand it out as zeros again: a large buffer
//! that is hardly used then takes as much memory as one that is full. A mapping of its own takes the
//! pages that were written, and no page once it is gone.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Zeroed bytes in pages of their own.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and no thread has more right to it than another.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, 1 at least.
    ///
    /// # Errors
    /// When the process may have no more memory or no more mappings.
    pub fn zeroed(bytes: usize) -> io::Result<Self> {
        Self::map(bytes.max(1), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps `bytes` that the kernel shares by a descriptor. It writes to them at any time, so they are for atomic
    /// accesses through [`as_mut_ptr`](Self::as_mut_ptr) and not for a slice.
    pub(crate) fn shared(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(bytes, flags, fd.as_raw_fd(), offset as libc::off_t)
    }

    fn map(
        bytes: usize,
        flags: libc::c_int,
        fd: libc::c_int,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, bytes })
    }

    /// The bytes, for whoever writes them. Not for memory that the kernel shares.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are mapped, initialised and this value's own for as long as they are borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Where the bytes begin, for whoever has the kernel write to them.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped and initialised for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_zero_and_as_long_as_asked() {
        let mapping = Mapping::zeroed(70_000).unwrap();
        assert_eq!(mapping.len(), 70_000);
        assert!(mapping.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_no_process_may_have_is_refused() {
        assert!(Mapping::zeroed(usize::MAX / 2).is_err());
    }
}
