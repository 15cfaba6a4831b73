//! What all senders and receivers do with their sockets.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nicpoll_sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::signals::LOOK_EVERY;

/// A socket buffer as asked for and as granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub fn connected_udp(
    peer: SocketAddr,
    local: Option<SocketAddr>,
    send_buffer_bytes: Option<usize>,
    receive_timeout: Duration,
) -> io::Result<(UdpSocket, SocketBuffer)> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let udp = UdpSocket::bind(local.unwrap_or(SocketAddr::new(any, 0)))?;
    let buffer = send_buffer(&udp, send_buffer_bytes)?;
    udp.set_write_timeout(Some(SEND_TIMEOUT))?;
    udp.set_read_timeout(Some(receive_timeout))?;
    udp.connect(peer)?;
    Ok((udp, buffer))
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
