//! The socket itself: what it takes, what it counted, and its interface.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::filter::FrameFilter;
use crate::link::{self, LinkState};

/// include/uapi/linux/if_packet.h
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Frames that the filter took since the socket began to receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// All of them, lost ones included.
    pub taken: u64,
    /// Of those, lost because the ring had no free slot.
    pub ring_full: u64,
}

/// A socket at an interface. It takes nothing until a ring is made of it.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ifindex: u32,
    /// The kernel forgets what it has told.
    counts: Mutex<PacketCounts>,
}

impl PacketSocket {
    /// Makes a socket that will take by `filter` what comes to the interface of that index in the calling thread's
    /// network namespace. Frames that this host sends are not looked at.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW; as [`FrameFilter::attach`].
    pub fn new(ifindex: u32, filter: &FrameFilter) -> io::Result<Self> {
        let socket = raw_socket()?;
        filter.attach(&socket)?;
        let socket = PacketSocket {
            socket,
            ifindex,
            counts: Mutex::default(),
        };
        socket.set(PACKET_IGNORE_OUTGOING, &1i32)?;
        Ok(socket)
    }

    /// Takes nothing more. What is in the ring stays there.
    pub fn stop(&self) -> io::Result<()> {
        FrameFilter::nothing().attach(&self.socket)
    }

    /// What has become of the interface.
    pub fn link_state(&self) -> LinkState {
        link::state(&self.socket, self.ifindex)
    }

    /// The interface's longest packet, in bytes.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn mtu_bytes(&self) -> io::Result<u32> {
        link::mtu_bytes(&self.socket, self.ifindex)
    }

    /// What the socket counted.
    pub fn counts(&self) -> io::Result<PacketCounts> {
        // struct tpacket_stats: frames, lost ones included, and lost ones, since the last time.
        let mut counted = [0u32; 2];
        let mut length = size_of_val(&counted) as libc::socklen_t;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the descriptor is open for the whole call; the kernel writes at most `length` bytes to `counted`,
        // which is that long, and the new length to `length`.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                counted.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        counts.taken += u64::from(counted[0]);
        counts.ring_full += u64::from(counted[1]);
        Ok(*counts)
    }

    /// Begins to receive.
    pub(super) fn bind(&self) -> io::Result<()> {
        let address = address(self.ifindex, libc::ETH_P_ALL as u16);
        // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of `address`.
        let result = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sets an option of AF_PACKET.
    pub(super) fn set<T: Copy>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        set_option(&self.socket, option, value)
    }
}

impl AsFd for PacketSocket {
    /// poll(2) says that it is readable while frames wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket of whole frames that receives nothing yet.
pub(super) fn raw_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol.
    Ok(socket_with(family, kind, flags, None)?)
}

/// Sets an option of AF_PACKET to a value that has the layout that the kernel expects.
pub(super) fn set_option<T: Copy>(
    socket: &OwnedFd,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The address of an interface.
pub(super) fn address(ifindex: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: ifindex as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}
