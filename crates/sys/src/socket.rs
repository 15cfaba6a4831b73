//! What sockets can do beyond the standard library: many datagrams a system call, the kernel's time
//! of arrival, buffer sizes, TCP's own counters.
//!
//! What must hold: every received byte is copied to user space (no `MSG_TRUNC` to discard payload), so
//! that a figure measured here is that of an ordinary program. Datagrams travel in batches
//! (`UDP_SEGMENT`, `UDP_GRO`) only on a socket for which that was asked.

mod address;
mod receive_batch;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::net::sockopt;
use thiserror::Error;

pub use receive_batch::{Datagram, Datagrams, ReceiveBatch, Wait};

/// An option that the kernel did not set.
#[derive(Debug, Error)]
#[error("setting {option} on the socket: {source}")]
struct OptionError {
    option: &'static str,
    source: io::Error,
}

/// Has the failure to set an option say which option it was.
///
/// # Errors
/// When `set` is one; of the same kind.
pub fn named(option: &'static str, set: Result<(), impl Into<io::Error>>) -> io::Result<()> {
    set.map_err(|error| {
        let source = error.into();
        io::Error::new(source.kind(), OptionError { option, source })
    })
}

/// Asks for a receive buffer and returns the size granted as `getsockopt` reports it: twice what was
/// asked, the kernel counting its own overhead. The limit `net.core.rmem_max` is passed over with
/// CAP_NET_ADMIN and holds without; so compare the result.
pub fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
    receive_buffer(socket)
}

/// Size of the receive buffer as `getsockopt` reports it.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_recv_buffer_size(socket)?)
}

/// Asks for a send buffer and returns the size granted, as [`set_receive_buffer`] does; the limit is
/// `net.core.wmem_max`.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_send_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, bytes))?;
    send_buffer(socket)
}

/// Size of the send buffer as `getsockopt` reports it.
pub fn send_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(socket)?)
}

/// Has the kernel note when each datagram arrived ([`Datagram::arrival_ns`]).
pub fn enable_arrival_times(socket: impl AsFd) -> io::Result<()> {
    let set = set_integer(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    named("SO_TIMESTAMPNS", set)
}

/// Has a blocking read wait until this many bytes are there (`SO_RCVLOWAT`), the stream ends or the
/// socket's timeout is over. A TCP socket takes no more than half its receive buffer.
pub fn set_receive_low_water(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let set = set_integer(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    named("SO_RCVLOWAT", set)
}

/// Bytes of the send buffer that are taken: by what was sent and has not left the host yet
/// (`SIOCOUTQ`). The kernel charges a datagram with all the memory it occupies, its own overhead
/// included.
pub fn unsent_bytes(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one c_int to the place that it is given, which lives through the
    // call; the descriptor is open for as long as `socket` is borrowed.
    let outcome = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::TIOCOUTQ,
            std::ptr::from_mut(&mut bytes),
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.try_into().unwrap_or(0))
}

/// Has a send of more than `bytes` be taken as a batch of datagrams of that length, the last one shorter
/// when there is no more (`UDP_SEGMENT`, Linux 4.18). A batch passes the stack once and is cut before
/// the link unless that can cut it; it holds at most 64 datagrams and 65507 bytes, and a datagram must
/// fit the path's MTU. 0 ends it.
pub fn set_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let bytes = libc::c_int::from(bytes);
    let set = set_integer(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    named("UDP_SEGMENT", set)
}

/// Has the kernel hand over datagrams of one sender and length that follow each other as a batch
/// (`UDP_GRO`, Linux 5.0). [`ReceiveBatch`] shows them one by one; other ways to receive do not.
pub fn enable_coalescing(socket: impl AsFd) -> io::Result<()> {
    let set = set_integer(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    named("UDP_GRO", set)
}

/// Has a send fail when the interface or its queue refuses the datagram (`IP_RECVERR`, `IPV6_RECVERR`).
/// Without this, Linux keeps that from senders of UDP. ICMP errors, which a connected socket tells of
/// anyway, then also come for one that is not connected.
pub fn enable_send_errors(socket: impl AsFd, is_ipv6: bool) -> io::Result<()> {
    if is_ipv6 {
        let set = set_integer(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, 1);
        named("IPV6_RECVERR", set)
    } else {
        let set = set_integer(socket, libc::SOL_IP, libc::IP_RECVERR, 1);
        named("IP_RECVERR", set)
    }
}

/// Datagrams that were dropped because the socket's buffer had no room for them, or for another reason
/// at the socket itself (`SO_MEMINFO`, Linux 4.12). The kernel's count is of 32 bits and wraps.
pub fn receive_drops(socket: impl AsFd) -> io::Result<u32> {
    /// `SK_MEMINFO_VARS`, include/uapi/linux/sock_diag.h.
    const COUNTS: usize = 9;
    let mut counts = [0u32; COUNTS];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the descriptor is open for the whole call; the kernel writes at most `length` bytes
    // to `counts`, which is that long, and the new length to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    done(result)?;
    Ok(counts[libc::SK_MEMINFO_DROPS as usize])
}

/// Asks for a largest TCP segment (`TCP_MAXSEG`), before the connection is made.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let bytes = libc::c_int::from(bytes);
    let set = set_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes);
    named("TCP_MAXSEG", set)
}

/// Has the kernel spread what is written over time, so that no more than this leaves a second, headers
/// included (`SO_MAX_PACING_RATE`). TCP does so by itself; UDP only through the `fq` queueing discipline.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of the
    // number, which outlives it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            size_of_val(&bytes_per_second) as libc::socklen_t,
        )
    };
    named("SO_MAX_PACING_RATE", done(result))
}

/// Ties a socket to a network device by name (`SO_BINDTODEVICE`). Once a socket is tied, only
/// CAP_NET_RAW may tie it to another.
pub fn bind_to_device(socket: impl AsFd, device: &str) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of
    // `device`, which outlives it. The kernel copies the name and needs no terminating zero.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            device.as_ptr().cast(),
            device.len() as libc::socklen_t,
        )
    };
    named("SO_BINDTODEVICE", done(result))
}

/// What TCP knows of a connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again since the connection began (`tcpi_total_retrans`).
    pub retransmitted_segments: u64,
    /// Payload of the segments being sent (`tcpi_snd_mss`).
    pub send_segment_bytes: u32,
    /// Congestion window in segments (`tcpi_snd_cwnd`).
    pub congestion_window_segments: u32,
    /// Smoothed round-trip time (`tcpi_rtt`), in whole microseconds.
    pub round_trip: Duration,
    /// Its mean deviation (`tcpi_rttvar`), in whole microseconds.
    pub round_trip_variation: Duration,
}

/// Reads [`TcpInfo`].
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    // SAFETY: `tcp_info` holds integers only, for which all bits zero are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the whole call; the kernel writes at most `length` bytes
    // to `info`, which is that long, and the new length to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    done(result)?;
    Ok(TcpInfo {
        retransmitted_segments: u64::from(info.tcpi_total_retrans),
        send_segment_bytes: info.tcpi_snd_mss,
        congestion_window_segments: info.tcpi_snd_cwnd,
        round_trip: Duration::from_micros(u64::from(info.tcpi_rtt)),
        round_trip_variation: Duration::from_micros(u64::from(info.tcpi_rttvar)),
    })
}

fn set_integer(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of
    // `value`, which outlives it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    done(result)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_granted_buffer_is_what_getsockopt_reports() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert_eq!(
            set_receive_buffer(&socket, 65_536).unwrap(),
            receive_buffer(&socket).unwrap()
        );
        assert_eq!(
            set_send_buffer(&socket, 65_536).unwrap(),
            send_buffer(&socket).unwrap()
        );
        assert_eq!(receive_buffer(&socket).unwrap(), 2 * 65_536);
    }

    #[test]
    fn a_fresh_connection_has_sent_nothing_again() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert_eq!(info.retransmitted_segments, 0);
        assert!(info.send_segment_bytes > 0 && info.congestion_window_segments > 0);
    }

    #[test]
    fn counters_of_tcp_are_refused_for_udp() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert!(tcp_info(&socket).is_err());
        let refused = set_max_segment(&socket, 1000).unwrap_err().to_string();
        assert!(refused.starts_with("setting TCP_MAXSEG on the socket: "));
    }

    #[test]
    fn what_has_no_room_in_the_buffer_is_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_receive_buffer(&receiver, 4096).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sent = 100;
        for _ in 0..sent {
            let to = receiver.local_addr().unwrap();
            sender.send_to(&[0; 1000], to).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        let received = (0..sent).take_while(|_| receiver.recv(&mut [0; 1000]).is_ok());
        let received = received.count() as u32;
        assert!(received < sent);
        assert_eq!(receive_drops(&receiver).unwrap(), sent - received);
    }

    #[test]
    fn errors_are_asked_for_by_family() {
        let ipv4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable_send_errors(&ipv4, false).unwrap();
        assert!(enable_send_errors(&ipv4, true).is_err());
    }

    #[test]
    fn a_socket_is_tied_to_a_device_that_exists_only() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert!(bind_to_device(&socket, "no-such-device").is_err());
        bind_to_device(&socket, "lo").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.send(b"lo").unwrap();
        assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 2);
    }
}
