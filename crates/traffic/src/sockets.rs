//! Shared by all senders and receivers: buffers, timeouts, refused sends, and the number of datagrams that wait
//! to leave.
//!
//! Senders of accounted datagrams, servers included, count refused sends here, since the kernel counts each of
//! them. Batches and single datagrams in local queues never exceed what single ones alone could reach.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::ops::AddAssign;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nicpoll_model::ControlKind;
use nicpoll_sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use crate::signals::{LOOK_EVERY, Signals};

/// A socket buffer as asked for and as granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketBuffer {
    /// Bytes asked for; `None` for the kernel's choice.
    pub asked_bytes: Option<u64>,
    /// Bytes granted, as reported by `getsockopt`: twice the request unless a limit reduced it. The kernel lets
    /// its default TCP buffers grow; they are read at the end of the stream.
    pub granted_bytes: u64,
}

/// Longest wait of a send, after which the signals are checked and the caller tries again.
pub const SEND_TIMEOUT: Duration = Duration::from_millis(50);

/// A UDP socket connected to `peer`, from `local` if given, with send and receive timeouts.
pub(crate) fn connected_udp(
    peer: SocketAddr,
    local: Option<SocketAddr>,
    receive_timeout: Duration,
) -> io::Result<(UdpSocket, SocketBuffer)> {
    let udp = UdpSocket::bind(local.unwrap_or(any_address(peer.is_ipv6(), 0)))?;
    let buffer = send_buffer(&udp, None)?;
    udp.set_write_timeout(Some(SEND_TIMEOUT))?;
    udp.set_read_timeout(Some(receive_timeout))?;
    udp.connect(peer)?;
    Ok((udp, buffer))
}

/// The unspecified address of a family.
pub fn any_address(is_ipv6: bool, port: u16) -> SocketAddr {
    match is_ipv6 {
        true => (Ipv6Addr::UNSPECIFIED, port).into(),
        false => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

/// Opens a socket of this address's family.
///
/// # Errors
/// When the kernel refuses.
pub fn open(
    address: SocketAddr,
    kind: SocketType,
    flags: SocketFlags,
) -> rustix::io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC | flags, None)
}

/// Connects a non-blocking TCP socket and makes it blocking; the signals can end every wait: `None` if they
/// did.
///
/// # Errors
/// When the peer or the kernel refuses, or after `limit`.
pub fn connect(
    fd: OwnedFd,
    peer: SocketAddr,
    limit: Duration,
    signals: &Signals,
) -> io::Result<Option<TcpStream>> {
    let begun = Instant::now();
    match rustix::net::connect(&fd, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    while !poll_once(&fd, PollFlags::OUT)? {
        if signals.is_cancelled() || signals.is_finishing() {
            return Ok(None);
        }
        if begun.elapsed() >= limit {
            return Err(Errno::TIMEDOUT.into());
        }
    }
    sockopt::socket_error(&fd)??;
    let stream = TcpStream::from(fd);
    make_blocking(&stream)?;
    Ok(Some(stream))
}

/// Makes reads and writes wait until the signals must be checked again.
///
/// # Errors
/// When the kernel refuses.
pub fn make_blocking(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    stream.set_read_timeout(Some(LOOK_EVERY))
}

/// The kernel's words for an error, without the number that the standard library adds.
pub fn kernel_words(error: &io::Error) -> String {
    let text = error.to_string();
    String::from(text.split(" (os error").next().unwrap_or(&text))
}

/// Asks for a send buffer, or leaves it to the kernel; returns the size granted.
pub fn send_buffer(fd: impl AsFd, asked: Option<usize>) -> io::Result<SocketBuffer> {
    let granted = match asked {
        Some(bytes) => socket::set_send_buffer(fd, bytes)?,
        None => socket::send_buffer(fd)?,
    };
    Ok(described(asked, granted))
}

/// Asks for a receive buffer, or leaves it to the kernel; returns the size granted.
pub fn receive_buffer(fd: impl AsFd, asked: Option<usize>) -> io::Result<SocketBuffer> {
    let granted = match asked {
        Some(bytes) => socket::set_receive_buffer(fd, bytes)?,
        None => socket::receive_buffer(fd)?,
    };
    Ok(described(asked, granted))
}

/// A buffer as asked for and as granted.
pub fn described(asked: Option<usize>, granted: usize) -> SocketBuffer {
    SocketBuffer {
        asked_bytes: asked.map(|bytes| bytes as u64),
        granted_bytes: granted as u64,
    }
}

/// Whether a send failed temporarily: nothing was sent, and the next try may succeed. iperf 2.1.8 goes on after
/// the same errors. Linux counts each in `Ip.OutDiscards`.
pub fn is_refused_send(error: &io::Error) -> bool {
    let no_buffers = Errno::NOBUFS.raw_os_error();
    is_no_datagram(error) || error.raw_os_error() == Some(no_buffers)
}

/// Whether a receive got no datagram but the socket is still good: a timeout, a signal handler, or a closed
/// port met by an earlier send.
pub fn is_no_datagram(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

/// Whether a read or write of a stream moved nothing but the stream is still good.
pub fn is_no_progress(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits for an event on a socket until the signals must be checked again; returns `false` if there was none.
pub fn poll_once(fd: impl AsFd, event: PollFlags) -> io::Result<bool> {
    poll_any(&[fd], event, LOOK_EVERY)
}

/// Waits for `event` on any of several descriptors, for less than a second.
pub fn poll_any(fds: &[impl AsFd], event: PollFlags, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: wait.subsec_nanos().into(),
    };
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, event)).collect();
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Refused sends, by the kernel counter that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedSends {
    /// No room, or dropped by the host's own queue or interface.
    pub unsent: u64,
    /// Dropped by a packet filter of this host on the way out: `EPERM`.
    pub filtered: u64,
}

impl RefusedSends {
    /// Counts refused datagrams; returns `false`, without counting, for errors after which sends cannot
    /// succeed.
    pub fn note(&mut self, error: &io::Error, datagrams: u64) -> bool {
        let count = if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) {
            &mut self.filtered
        } else if is_refused_send(error) {
            &mut self.unsent
        } else {
            return false;
        };
        *count += datagrams;
        true
    }

    /// All refused sends.
    pub fn all(self) -> u64 {
        self.unsent + self.filtered
    }

    /// The same as lines of an account.
    pub fn control(self) -> [(ControlKind, u64); 2] {
        [
            (ControlKind::Refused, self.unsent),
            (ControlKind::Filtered, self.filtered),
        ]
    }
}

impl AddAssign for RefusedSends {
    fn add_assign(&mut self, other: Self) {
        self.unsent += other.unsent;
        self.filtered += other.filtered;
    }
}

/// Headers of UDP and IPv4, and of UDP and IPv6.
pub const PACKET_HEADER_BYTES: [usize; 2] = [28, 48];
/// Headroom that the kernel leaves before a packet, including alignment.
const LINK_HEADER_BYTES: usize = 47;
/// `struct skb_shared_info` after each packet, on 64 bits.
const SHARED_INFO_BYTES: usize = 320;
/// `struct sk_buff` of the same packet.
const BUFFER_HEADER_BYTES: usize = 256;

/// Estimates how many more datagrams single sends would let wait.
#[derive(Debug)]
pub struct Backlog {
    send_buffer_bytes: usize,
    packet_bytes: usize,
    /// The kernel's charge for a single packet.
    single_bytes: usize,
    /// At most how much less the kernel charges waiting batches than their datagrams alone.
    undercharged_bytes: usize,
    /// Single datagrams since the last batch.
    singles_since: usize,
}

impl Backlog {
    /// No datagrams wait. `packet_bytes` is the length of an IP packet.
    pub fn new(send_buffer_bytes: usize, packet_bytes: usize) -> Self {
        // Packet memory is allocated in powers of two.
        let data_bytes = packet_bytes + LINK_HEADER_BYTES + SHARED_INFO_BYTES;
        Backlog {
            send_buffer_bytes,
            packet_bytes,
            single_bytes: data_bytes.next_power_of_two() + BUFFER_HEADER_BYTES,
            undercharged_bytes: 0,
            singles_since: 0,
        }
    }

    /// Whether only single datagrams may wait.
    pub fn has_no_batch(&self) -> bool {
        self.undercharged_bytes == 0
    }

    /// Records a call that sent this many datagrams.
    pub fn add(&mut self, datagrams: usize) {
        if datagrams > 1 {
            self.undercharged_bytes += datagrams * (self.single_bytes - self.packet_bytes);
            self.singles_since = 0;
        } else {
            self.singles_since = self.singles_since.saturating_add(1);
        }
    }

    /// How many more datagrams single sends would let wait, if the kernel charges `unsent_bytes` to the send
    /// buffer.
    pub fn room(&mut self, unsent_bytes: usize) -> usize {
        // Datagrams leave in order: if less is charged than came after the last batch, the batch has left.
        let behind_bytes = self.singles_since.saturating_mul(self.packet_bytes);
        if unsent_bytes == 0 || unsent_bytes < behind_bytes {
            self.undercharged_bytes = 0;
        }
        let taken_bytes = unsent_bytes + self.undercharged_bytes;
        let left_bytes = self.send_buffer_bytes.saturating_sub(taken_bytes);
        left_bytes.div_ceil(self.single_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_filter_dropped_is_told_from_what_had_no_room_and_from_what_ends_the_sending() {
        let mut refused = RefusedSends::default();
        for (errno, passes) in [
            (Errno::PERM, true),
            (Errno::NOBUFS, true),
            (Errno::AGAIN, true),
            (Errno::NETUNREACH, false),
        ] {
            assert_eq!(refused.note(&errno.into(), 3), passes, "{errno}");
        }
        let expected = RefusedSends {
            unsent: 6,
            filtered: 3,
        };
        assert_eq!(refused, expected);
        refused += expected;
        assert_eq!(refused.all(), 18);
        assert_eq!(
            refused.control(),
            [(ControlKind::Refused, 12), (ControlKind::Filtered, 6)]
        );
    }

    const SEND_BUFFER_BYTES: usize = 212_992;
    const PACKET_BYTES: usize = 1498;

    /// A model of the kernel's account: waiting datagrams, and the charge for each.
    #[derive(Default)]
    struct Kernel {
        queue: std::collections::VecDeque<usize>,
    }

    impl Kernel {
        fn unsent_bytes(&self) -> usize {
            self.queue.iter().sum()
        }

        fn take(&mut self, datagrams: usize, charge_bytes: usize) {
            self.queue
                .extend(std::iter::repeat_n(charge_bytes, datagrams));
        }
    }

    #[test]
    fn a_packet_that_is_sent_alone_is_charged_as_linux_charges_it() {
        for (packet_bytes, charge_bytes) in [(92, 768), (1498, 2304), (46, 768)] {
            let backlog = Backlog::new(SEND_BUFFER_BYTES, packet_bytes);
            assert_eq!(backlog.single_bytes, charge_bytes, "{packet_bytes}");
        }
    }

    #[test]
    fn no_more_wait_than_single_sends_would_leave() {
        const SINGLE_BYTES: usize = 2304;
        let most = SEND_BUFFER_BYTES.div_ceil(SINGLE_BYTES);
        // A batch segmented before it waits is charged like its single datagrams, another one little more than
        // its bytes.
        for batch_charge_bytes in [PACKET_BYTES, SINGLE_BYTES] {
            let mut kernel = Kernel::default();
            let mut backlog = Backlog::new(SEND_BUFFER_BYTES, PACKET_BYTES);
            let mut longest = 0;
            for turn in 0..10_000 {
                let room = backlog.room(kernel.unsent_bytes());
                let wanted = [1, 44, 1, 7][turn % 4];
                let datagrams = wanted.min(room);
                if datagrams > 0 {
                    backlog.add(datagrams);
                    let charge_bytes = match datagrams {
                        1 => SINGLE_BYTES,
                        _ => batch_charge_bytes,
                    };
                    kernel.take(datagrams, charge_bytes);
                }
                longest = longest.max(kernel.queue.len());
                kernel.queue.drain(..(turn % 23).min(kernel.queue.len()));
            }
            assert!(longest <= most, "{longest} of {most}");
            // But not many fewer: a slow link test is about the queue on the way out.
            assert!(longest >= most * 3 / 5, "{longest} of {most}");
        }
    }

    #[test]
    fn single_datagrams_behind_a_batch_show_that_it_has_left() {
        let mut backlog = Backlog::new(SEND_BUFFER_BYTES, PACKET_BYTES);
        backlog.add(44);
        assert!(!backlog.has_no_batch());
        (0..10).for_each(|_| backlog.add(1));
        backlog.room(44 * PACKET_BYTES);
        assert!(!backlog.has_no_batch());
        backlog.room(6 * 2304);
        assert!(backlog.has_no_batch());
    }
}
