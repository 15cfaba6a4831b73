//! Access to the kernel: shared memory, socket options, and requests about an interface (`ifreq`).

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::{fs, io};

use rustix::process::Pid;

/// Turns a negative result of a system call into the error in `errno`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Starts a copy of this process, which must have a single thread. Returns the copy's id, and `None` in the copy.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the calling process has several threads"));
    }
    // SAFETY: this is the process's only thread, so the new process has all threads: no lock is held by a missing one,
    // and what is sound here is sound there.
    Ok(Pid::from_raw(checked(unsafe { libc::fork() })?))
}

/// Makes an ioctl on a device or socket.
///
/// # Safety
/// The request may read and write only the argument and what it points to.
pub(crate) unsafe fn ioctl<T>(
    fd: impl AsFd,
    what: libc::Ioctl,
    argument: &mut T,
) -> io::Result<()> {
    let argument = std::ptr::from_mut(argument);
    // SAFETY: the descriptor is open and the argument lives for the whole call; the caller vouches for the rest.
    checked(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), what, argument) }).map(|_| ())
}

/// Sets a socket option to a value with the layout that the kernel expects, and without pointers.
pub(crate) fn set_option<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[T],
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; the kernel reads no more than the bytes of `value`, and keeps no
    // reference to them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    checked(result).map(|_| ())
}

/// Reads a socket option.
///
/// # Safety
/// Every bit pattern has to be a valid `T`.
pub(crate) unsafe fn option<T>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    // SAFETY: by the caller's promise, zeros are a valid value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the whole call; the kernel writes at most `length` bytes to `value`, which is that
    // long, and the new length to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    checked(result).map(|_| value)
}

/// Zeroed bytes in pages of their own, which return to the kernel on drop.
///
/// An allocator keeps freed memory and zeroes all of it when it hands it out again, so a large buffer that is hardly
/// used takes as much memory as a full one. Here only pages that were written to take memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` of zeroed private memory, at least 1.
    ///
    /// # Errors
    /// If the process may have no more memory or mappings.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        Self::map(bytes.max(1), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps `bytes` that the kernel shares through a descriptor. The kernel writes to them at any time, so access them
    /// atomically through [`as_mut_ptr`](Self::as_mut_ptr), not as a slice.
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

    /// Returns the bytes for writing. Not for memory shared with the kernel.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` bytes are mapped, initialised and this value's own for as long as they are borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Returns the address of the first byte, for pointers that the kernel is given.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` bytes are mapped and initialised for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Makes a request about an interface that holds nothing but its name.
///
/// # Errors
/// `ENODEV` if the name is longer than an interface's may be.
pub(crate) fn ifreq(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid `ifreq`: it holds integers and a raw pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // Keep the last byte zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
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

    #[test]
    fn a_name_fits_with_the_zero_behind_it_or_is_that_of_no_interface() {
        let longest = "a".repeat(libc::IFNAMSIZ - 1);
        let name = ifreq(&longest).unwrap().ifr_name;
        assert_eq!(name.map(|letter| letter as u8), *b"aaaaaaaaaaaaaaa\0");
        let error = ifreq(&(longest + "a")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
