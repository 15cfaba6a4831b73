//! The kernel's own busy polling of a socket's queue: its NAPI runs in the system calls of who reads the queue, and
//! interrupts may stay masked (Documentation/networking/napi.rst, Documentation/networking/af_xdp.rst).
//!
//! What must hold: nobody claims that it acts. It does for a socket that the kernel has told a NAPI instance: at the
//! binding with zero-copy since Linux 6.14, with the first frame before. On a veth none is told, and every call is a
//! plain one.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// include/uapi/asm-generic/socket.h
const SO_BUSY_POLL: libc::c_int = 46;
const SO_INCOMING_NAPI_ID: libc::c_int = 56;
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;

/// How long a call may poll, in us. One that does not wait polls once; it only has to be more than nothing.
const BUSY_POLL_US: libc::c_int = 20;
/// Packets of one poll: NAPI's own number.
const BUDGET: libc::c_int = 64;

/// Asks for it.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN; `ENOPROTOOPT` before Linux 5.11.
pub(super) fn ask(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, SO_PREFER_BUSY_POLL, 1)?;
    set(socket, SO_BUSY_POLL, BUSY_POLL_US)?;
    set(socket, SO_BUSY_POLL_BUDGET, BUDGET)
}

/// Whether the kernel has told the socket a NAPI instance to poll.
pub(super) fn has_napi(socket: BorrowedFd<'_>) -> bool {
    let mut id: libc::c_uint = 0;
    let mut length = size_of_val(&id) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `id`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_INCOMING_NAPI_ID,
            (&raw mut id).cast(),
            &raw mut length,
        )
    };
    result == 0 && id != 0
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
