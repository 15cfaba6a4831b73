//! What sockets can do beyond the standard library: many datagrams a system call, the kernel's time
//! of arrival, buffer sizes, TCP's own counters.
//!
//! What must hold: every received byte is copied to user space and every datagram is delivered by
//! itself (no `MSG_TRUNC` to discard payload, no `UDP_GRO`), so that a figure measured here is that of an
//! ordinary program.

mod address;
mod receive_batch;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt;

pub use receive_batch::{Datagram, Datagrams, ReceiveBatch, Wait};

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
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the whole call, and the pointer and length are those of
    // `on`, which outlives it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Segments that TCP sent again since the connection began (`tcpi_total_retrans`).
pub fn retransmitted_segments(socket: impl AsFd) -> io::Result<u64> {
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
    if result == 0 {
        Ok(u64::from(info.tcpi_total_retrans))
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
        assert_eq!(retransmitted_segments(&stream).unwrap(), 0);
    }

    #[test]
    fn counters_of_tcp_are_refused_for_udp() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        assert!(retransmitted_segments(&socket).is_err());
    }
}
