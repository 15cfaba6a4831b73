//! Attaching an XDP program to an interface by a link of its own (`BPF_LINK_CREATE`, Linux 5.9).
//!
//! What must hold: the program goes when the link is dropped or its process dies, and no program of somebody else's
//! is replaced: the kernel refuses to put a link where any program is.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// include/uapi/linux/bpf.h
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_XDP: u32 = 37;
/// include/uapi/linux/if_link.h
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Where on a frame's way the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel has made a packet of the frame.
    Driver,
    /// In the kernel's own code, for drivers that run no programs; slower.
    Generic,
}

impl AttachMode {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            AttachMode::Driver => "driver",
            AttachMode::Generic => "generic",
        }
    }
}

/// A program at an interface. It leaves the interface with this value.
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
    /// Attaches a loaded program to the interface of that index in the calling thread's network namespace.
    ///
    /// # Errors
    /// `EBUSY` or `EEXIST` when the interface has a program already; `EOPNOTSUPP` when its driver runs none;
    /// `ENODEV` when it is gone; `EPERM` without CAP_NET_ADMIN and CAP_BPF; others are the driver's.
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
