//! What all senders and receivers do with their sockets: buffers, timeouts, refused sends, and how many datagrams wait.
//!
//! Whoever sends datagrams for an account counts refused sends here, servers too, because the kernel counts each of them.
//! Batches and single datagrams in the queues on the way out are together never more than single ones alone could be.

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
    /// Bytes asked for; `None` when left to the kernel.
    pub asked_bytes: Option<u64>,
    /// Bytes granted as `getsockopt` reports them, which is twice what was asked unless a limit cut
    /// it. TCP buffers left to the kernel grow: theirs is read at the end of the stream.
    pub granted_bytes: u64,
}

/// Longest wait of a send. It ends so that the signals are looked at; the caller then tries again.
pub const SEND_TIMEOUT: Duration = Duration::from_millis(50);

/// A UDP socket connected to `peer`, from `local` where that is given, whose sends and receives end
/// within their timeouts.
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

/// All addresses of this host in one family.
pub fn any_address(is_ipv6: bool, port: u16) -> SocketAddr {
    match is_ipv6 {
        true => (Ipv6Addr::UNSPECIFIED, port).into(),
        false => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

/// A socket for addresses of this one's family.
///
/// # Errors
/// When the kernel has none.
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

/// Connects a TCP socket that does not block, and has it block then, without a wait that the signals could not
/// end: `None` when they ended it.
///
/// # Errors
/// When the peer or the kernel refuses, or nothing comes of it in `limit`.
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

/// Has reads and writes wait, until the signals have to be looked at again.
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

/// Asks for a send buffer, or leaves it to the kernel, and says what was granted.
pub fn send_buffer(fd: impl AsFd, asked: Option<usize>) -> io::Result<SocketBuffer> {
    let granted = match asked {
        Some(bytes) => socket::set_send_buffer(fd, bytes)?,
        None => socket::send_buffer(fd)?,
    };
    Ok(described(asked, granted))
}

/// Asks for a receive buffer, or leaves it to the kernel, and says what was granted.
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

/// Whether a send failed in a way that passes: nothing was sent, and the next try may succeed. These
/// are the errors after which iperf 2.1.8 goes on. Linux counts each in `Ip.OutDiscards`.
pub fn is_refused_send(error: &io::Error) -> bool {
    let no_buffers = Errno::NOBUFS.raw_os_error();
    is_no_datagram(error) || error.raw_os_error() == Some(no_buffers)
}

/// Whether a receive ended without a datagram but the socket is good: nothing came in time, a signal
/// handler ran, or an earlier send met a closed port.
pub fn is_no_datagram(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

/// Whether a read or write of a stream ended without a byte but the stream is good.
pub fn is_no_progress(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits for an event on a socket, until the signals have to be looked at again. `false` when there
/// was none.
pub fn poll_once(fd: impl AsFd, event: PollFlags) -> io::Result<bool> {
    poll_any(&[fd], event, LOOK_EVERY)
}

/// Waits for `event` at any of several descriptors, less than a second.
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

/// Sends that were refused, by what the kernel counts them as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedSends {
    /// There was no room, or the host's own queue or interface dropped them.
    pub unsent: u64,
    /// A filter of the host dropped them on their way out: `EPERM`.
    pub filtered: u64,
}

impl RefusedSends {
    /// Counts datagrams that met with an error, if it is one after which the next send may succeed: whether it is.
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

    /// All of them.
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
/// Room that the kernel leaves in front of a packet, and that its alignment may take.
const LINK_HEADER_BYTES: usize = 47;
/// `struct skb_shared_info` behind each packet, on 64 bits.
const SHARED_INFO_BYTES: usize = 320;
/// `struct sk_buff` of the same packet.
const BUFFER_HEADER_BYTES: usize = 256;

/// The account of what was sent and may wait.
#[derive(Debug)]
pub struct Backlog {
    send_buffer_bytes: usize,
    packet_bytes: usize,
    /// What the kernel charges a packet that is sent alone.
    single_bytes: usize,
    /// What it charges the batches that may wait less than their datagrams alone, at most.
    undercharged_bytes: usize,
    /// Datagrams that were sent alone behind the last batch.
    singles_since: usize,
}

impl Backlog {
    /// Nothing waits. `packet_bytes` is the length of an IP packet.
    pub fn new(send_buffer_bytes: usize, packet_bytes: usize) -> Self {
        // Memory for packets comes in pieces whose sizes are powers of two.
        let data_bytes = packet_bytes + LINK_HEADER_BYTES + SHARED_INFO_BYTES;
        Backlog {
            send_buffer_bytes,
            packet_bytes,
            single_bytes: data_bytes.next_power_of_two() + BUFFER_HEADER_BYTES,
            undercharged_bytes: 0,
            singles_since: 0,
        }
    }

    /// Whether only datagrams that were sent alone may wait.
    pub fn has_no_batch(&self) -> bool {
        self.undercharged_bytes == 0
    }

    /// Takes note of a call that sent so many datagrams.
    pub fn add(&mut self, datagrams: usize) {
        if datagrams > 1 {
            self.undercharged_bytes += datagrams * (self.single_bytes - self.packet_bytes);
            self.singles_since = 0;
        } else {
            self.singles_since = self.singles_since.saturating_add(1);
        }
    }

    /// How many more datagrams single sends would let wait, when the kernel has `unsent_bytes` of the
    /// send buffer taken.
    pub fn room(&mut self, unsent_bytes: usize) -> usize {
        // What was sent leaves in the same order: less than what came behind the last batch is none of it.
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

    /// The kernel's account beside ours: what waits, as datagrams and their charge for each.
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
        // A batch that is cut before it waits is charged as its datagrams alone, another one hardly more
        // than its bytes.
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
            // But not many less: the queue on the way out is what the test of a slow link is about.
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
