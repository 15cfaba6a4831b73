//! What netblast and netsend share: how a send is made, numbered and counted.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::SendFlags;
use thiserror::Error;

use crate::sockets::{RefusedSends, SEND_TIMEOUT};

/// What came of the send calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendCount {
    /// Datagrams that were to be sent.
    pub calls: u64,
    /// Datagrams that the kernel refused.
    pub errors: u64,
    /// The errors by their number, errno(3), in the order in which they first came.
    pub errors_by_number: Vec<(i32, u64)>,
    /// System calls that were made for it.
    pub system_calls: u64,
}

impl SendCount {
    /// Datagrams that the kernel took.
    pub fn successes(&self) -> u64 {
        self.calls - self.errors
    }

    /// Datagrams that the kernel refused and counted where they were lost.
    pub fn refused(&self) -> RefusedSends {
        let mut refused = RefusedSends::default();
        for &(number, count) in &self.errors_by_number {
            refused.note(&io::Error::from_raw_os_error(number), count);
        }
        refused
    }

    /// The first error that says that a datagram cannot reach its receiver, by its number.
    pub fn cut_off(&self) -> Option<i32> {
        let mut numbers = self.errors_by_number.iter().map(|(number, _)| *number);
        numbers.find(|&number| is_cut_off(number))
    }

    /// Adds what another sender counted.
    pub fn add(&mut self, other: &SendCount) {
        self.calls += other.calls;
        self.system_calls += other.system_calls;
        for &(number, count) in &other.errors_by_number {
            self.count_errors(number, count);
        }
    }

    pub(super) fn count(&mut self, datagrams: u64, result: Result<(), Errno>) {
        self.calls += datagrams;
        self.system_calls += 1;
        if let Err(errno) = result {
            self.count_errors(errno.raw_os_error(), datagrams);
        }
    }

    fn count_errors(&mut self, number: i32, count: u64) {
        self.errors += count;
        let mut known = self.errors_by_number.iter_mut();
        match known.find(|(known, _)| *known == number) {
            Some((_, sum)) => *sum += count,
            None => self.errors_by_number.push((number, count)),
        }
    }
}

/// The errors of a datagram that cannot reach its receiver, whatever room there is in queues.
fn is_cut_off(errno: i32) -> bool {
    [
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::NETDOWN,
        Errno::NODEV,
    ]
    .iter()
    .any(|one| one.raw_os_error() == errno)
}

/// How far a sender is, for whoever watches it.
#[derive(Debug, Default)]
pub struct SendProgress {
    taken: AtomicU64,
    has_begun: AtomicBool,
    is_cut_off: AtomicBool,
}

impl SendProgress {
    /// Datagrams that the kernel took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether anything was sent, or tried to.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Whether the kernel has said that a datagram cannot reach its receiver.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, count: &SendCount, result: Result<(), Errno>) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.taken.store(count.successes(), Ordering::Relaxed);
        if result.is_err_and(|errno| is_cut_off(errno.raw_os_error())) {
            self.is_cut_off.store(true, Ordering::Relaxed);
        }
    }
}

/// Why no socket could be connected.
#[derive(Debug, Error)]
#[error("{step}")]
pub struct ConnectError {
    /// What failed, as the originals name it: `socket` or `connect`.
    pub(super) step: &'static str,
    /// What the kernel said.
    pub(super) source: io::Error,
}

impl ConnectError {
    pub(super) fn at_socket(source: io::Error) -> Self {
        ConnectError {
            step: "socket",
            source,
        }
    }
}

/// A socket connected to the first of the addresses that can be connected to.
///
/// # Errors
/// What the last address met with; without any address, that there is none.
pub fn connect_first(addresses: &[SocketAddr]) -> Result<(UdpSocket, SocketAddr), ConnectError> {
    let mut failed = ConnectError {
        step: "connect",
        source: io::Error::from(io::ErrorKind::AddrNotAvailable),
    };
    for &peer in addresses {
        let connected = open(peer).and_then(|socket| match socket.connect(peer) {
            Ok(()) => Ok(socket),
            Err(source) => Err(ConnectError {
                step: "connect",
                source,
            }),
        });
        match connected {
            Ok(socket) => return Ok((socket, peer)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A socket of the peer's family at a port that the kernel chooses.
pub(super) fn open(peer: SocketAddr) -> Result<UdpSocket, ConnectError> {
    let bound = match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    };
    bound.map_err(ConnectError::at_socket)
}

/// Sets a socket up to wait for room, or to say at once that there is none.
///
/// Linux tells a sender about a datagram that its own interface refused only when it asks for errors;
/// FreeBSD always does.
pub(crate) fn set_up(
    socket: &UdpSocket,
    peer: SocketAddr,
    is_blocking: bool,
) -> io::Result<SendFlags> {
    if is_blocking {
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        return Ok(SendFlags::empty());
    }
    socket::enable_send_errors(socket, peer.is_ipv6())?;
    Ok(SendFlags::DONTWAIT)
}

/// Whether a send ended without an outcome: a blocking one waited so long that the signals have to be
/// looked at, and is made again.
pub(super) fn is_unfinished(flags: SendFlags, errno: Errno) -> bool {
    !flags.contains(SendFlags::DONTWAIT) && matches!(errno, Errno::AGAIN | Errno::INTR)
}

/// Writes the counter to the beginning of a datagram that has room for it.
pub(crate) fn number(datagram: &mut [u8], counter: u32) {
    if let Some(room) = datagram.first_chunk_mut() {
        *room = counter.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_number() {
        let mut count = SendCount::default();
        count.count(64, Ok(()));
        count.count(64, Err(Errno::AGAIN));
        count.count(1, Err(Errno::CONNREFUSED));
        count.count(1, Err(Errno::AGAIN));
        let mut sum = count.clone();
        sum.add(&count);
        assert_eq!((sum.calls, sum.errors, sum.successes()), (260, 132, 128));
        assert_eq!(sum.system_calls, 8);
        let [again, refused] = [Errno::AGAIN, Errno::CONNREFUSED].map(Errno::raw_os_error);
        assert_eq!(sum.errors_by_number, [(again, 130), (refused, 2)]);
    }

    #[test]
    fn what_the_kernel_refused_and_counted_is_told_from_other_errors() {
        let mut count = SendCount::default();
        assert_eq!(count.refused().all(), 0);
        count.count(1, Err(Errno::AGAIN));
        count.count(3, Err(Errno::NOBUFS));
        count.count(1, Err(Errno::NETUNREACH));
        count.count(1, Err(Errno::NOBUFS));
        assert_eq!((count.refused().all(), count.errors), (5, 6));
    }

    #[test]
    fn a_counter_is_big_endian_and_needs_four_bytes() {
        let mut datagram = [0; 6];
        number(&mut datagram, 0x0102_0304);
        assert_eq!(datagram, [1, 2, 3, 4, 0, 0]);
        let mut short = [0; 3];
        number(&mut short, 0x0102_0304);
        assert_eq!(short, [0; 3]);
    }

    #[test]
    fn the_first_address_that_works_is_taken() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let good = receiver.local_addr().unwrap();
        // A datagram to a network's broadcast address needs a permission that is not asked for.
        let bad: SocketAddr = "255.255.255.255:9".parse().unwrap();
        assert_eq!(connect_first(&[bad, good]).unwrap().1, good);
        let error = connect_first(&[bad]).unwrap_err();
        assert_eq!(error.to_string(), "connect");
        assert!(connect_first(&[]).is_err());
    }
}
