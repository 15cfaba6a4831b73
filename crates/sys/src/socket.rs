//! Socket features beyond the standard library: batched datagrams, arrival times, buffer sizes, TCP's counters.
//!
//! Every received byte is copied to user space (no `MSG_TRUNC` to discard payload), as for an ordinary program.
//! Datagrams travel in batches (`UDP_SEGMENT`, `UDP_GRO`) only on sockets for which that was requested.
//! [`ReceiveBatch::receive`] allocates nothing.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::net::sockopt;
use thiserror::Error;

use crate::kernel::{self, Mapping, set_option};

/// Has a statically linked program find names of hosts by /etc/hosts and DNS alone.
///
/// Its C library would load the modules that nsswitch.conf(5) names (`resolve`, `myhostname`), and with them the host's
/// own C library, whose code then crashes in it. A dynamically linked program loads them as every other does.
pub fn find_hosts_without_modules() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    {
        unsafe extern "C" {
            fn __nss_configure_lookup(
                database: *const libc::c_char,
                services: *const libc::c_char,
            ) -> libc::c_int;
        }
        // SAFETY: both strings end with a zero and live forever. The function copies what it needs, under a lock. It
        // fails only if it does not know the database, which every C library of GNU has.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}

/// A failure to set a socket option.
#[derive(Debug, Error)]
#[error("setting {option} on the socket: {source}")]
struct SocketOptionError {
    option: &'static str,
    source: io::Error,
}

/// Adds the option's name to a failure to set it.
///
/// # Errors
/// The error of `set`, with its kind kept.
pub fn named(option: &'static str, set: Result<(), impl Into<io::Error>>) -> io::Result<()> {
    set.map_err(|error| {
        let source = error.into();
        io::Error::new(source.kind(), SocketOptionError { option, source })
    })
}

/// Requests a receive buffer and returns the size granted as `getsockopt` reports it: twice the request, because the
/// kernel counts its own overhead. CAP_NET_ADMIN bypasses the limit `net.core.rmem_max`, which otherwise applies; so
/// check the result.
pub fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))?;
    receive_buffer(socket)
}

/// Requests a receive buffer within `net.core.rmem_max`, whatever the privileges. Returns the size granted.
pub fn ask_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    receive_buffer(socket)
}

/// Returns the receive buffer's size as `getsockopt` reports it.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_recv_buffer_size(socket)?)
}

/// Requests a send buffer and returns the size granted, like [`ask_receive_buffer`]; the limit is `net.core.wmem_max`.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    send_buffer(socket)
}

/// Returns the send buffer's size as `getsockopt` reports it.
pub fn send_buffer(socket: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(socket)?)
}

/// Has the kernel record the arrival time of each datagram ([`Datagram::arrival_ns`]).
pub fn enable_arrival_times(socket: impl AsFd) -> io::Result<()> {
    let set = set_integer(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    named("SO_TIMESTAMPNS", set)
}

/// Has a blocking read wait for this many bytes (`SO_RCVLOWAT`), the end of the stream or the socket's timeout. A TCP
/// socket limits it to half its receive buffer.
pub fn set_receive_low_water(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let set = set_integer(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    named("SO_RCVLOWAT", set)
}

/// Returns the bytes of the send buffer occupied by data that was sent but has not left the host (`SIOCOUTQ`). The
/// kernel counts all memory of a datagram, including its own overhead.
pub fn unsent_bytes(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one c_int.
    unsafe { kernel::ioctl(socket, libc::TIOCOUTQ, &mut bytes) }?;
    Ok(bytes.try_into().unwrap_or(0))
}

/// Has the kernel split each send of more than `bytes` into datagrams of that length, the last one possibly shorter
/// (`UDP_SEGMENT`, Linux 4.18). Such a batch passes the stack once and is segmented before the link unless the device
/// segments; it holds at most 64 datagrams and 65507 bytes, and a datagram must fit the path's MTU. 0 turns this off.
pub fn set_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let bytes = libc::c_int::from(bytes);
    let set = set_integer(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    named("UDP_SEGMENT", set)
}

/// Has the kernel join successive datagrams of the same sender and length into a batch (`UDP_GRO`, Linux 5.0).
/// [`ReceiveBatch`] shows them one by one; other ways of receiving do not.
pub fn enable_coalescing(socket: impl AsFd) -> io::Result<()> {
    let set = set_integer(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    named("UDP_GRO", set)
}

/// Has a send fail if the interface or its queue refuses the datagram (`IP_RECVERR`, `IPV6_RECVERR`). Otherwise Linux
/// hides that from UDP senders. ICMP errors, which a connected socket always reports, are then also reported on an
/// unconnected one.
pub fn enable_send_errors(socket: impl AsFd, is_ipv6: bool) -> io::Result<()> {
    if is_ipv6 {
        let set = set_integer(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, 1);
        named("IPV6_RECVERR", set)
    } else {
        let set = set_integer(socket, libc::SOL_IP, libc::IP_RECVERR, 1);
        named("IP_RECVERR", set)
    }
}

/// Counts datagrams dropped because the socket's buffer was full, or for another reason at the socket itself
/// (`SO_MEMINFO`, Linux 4.12). The kernel's counter has 32 bits and wraps.
pub fn receive_drops(socket: impl AsFd) -> io::Result<u32> {
    /// `SK_MEMINFO_VARS`, include/uapi/linux/sock_diag.h.
    const COUNTS: usize = 9;
    // SAFETY: every bit pattern is a valid integer.
    let counts: [u32; COUNTS] =
        unsafe { kernel::option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO) }?;
    Ok(counts[libc::SK_MEMINFO_DROPS as usize])
}

/// Requests a maximum TCP segment size (`TCP_MAXSEG`); call it before connecting.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let bytes = libc::c_int::from(bytes);
    let set = set_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes);
    named("TCP_MAXSEG", set)
}

/// Has the kernel pace what is written at no more than this rate, headers included (`SO_MAX_PACING_RATE`). TCP paces by
/// itself; UDP only through the `fq` queueing discipline.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    let set = set_option(socket, level, option, &[bytes_per_second]);
    named("SO_MAX_PACING_RATE", set)
}

/// Binds a socket to a network device by name (`SO_BINDTODEVICE`). Once bound, only CAP_NET_RAW may bind it to another.
pub fn bind_to_device(socket: impl AsFd, device: &str) -> io::Result<()> {
    // The kernel copies the name and needs no terminating zero.
    let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
    let set = set_option(socket, level, option, device.as_bytes());
    named("SO_BINDTODEVICE", set)
}

/// State of a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments retransmitted since the connection began (`tcpi_total_retrans`).
    pub retransmitted_segments: u64,
    /// Payload of a segment sent, in bytes (`tcpi_snd_mss`).
    pub send_segment_bytes: u32,
    /// Congestion window in segments (`tcpi_snd_cwnd`).
    pub congestion_window_segments: u32,
    /// Smoothed round-trip time (`tcpi_rtt`), in whole microseconds.
    pub round_trip: Duration,
    /// Mean deviation of the round-trip time (`tcpi_rttvar`), in whole microseconds.
    pub round_trip_variation: Duration,
}

/// Reads [`TcpInfo`].
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    // SAFETY: `tcp_info` holds integers only, for which every bit pattern is valid.
    let info: libc::tcp_info =
        unsafe { kernel::option(socket, libc::IPPROTO_TCP, libc::TCP_INFO) }?;
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
    set_option(socket, level, name, &[value])
}

/// Returns the address in the first `length` bytes of `storage`; `None` if there is none, and for families other than
/// IPv4 and IPv6.
fn from_storage(storage: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    if length == 0 {
        return None;
    }
    let address = std::ptr::from_ref(storage);
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: `sockaddr_storage` is as large and as aligned as every socket address, and
            // `sockaddr_in` holds integers only.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for `sockaddr_in6`.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Room for a control message with a `timespec` and one with an `int`: 32 and 24 bytes on 64-bit machines.
const CONTROL_BYTES: usize = 64;

/// Control messages begin with a `cmsghdr` and need its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

const _: () = assert!(align_of::<libc::cmsghdr>() <= align_of::<ControlBuffer>());
// SAFETY: `CMSG_SPACE` only computes.
const _: () = assert!(
    unsafe {
        libc::CMSG_SPACE(size_of::<libc::timespec>() as u32)
            + libc::CMSG_SPACE(size_of::<libc::c_int>() as u32)
    } as usize
        <= CONTROL_BYTES
);

/// Whether a receive call may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For the first datagram only, up to the socket's receive timeout.
    ForFirst,
    /// Not at all.
    Never,
}

/// Buffers for a batch of datagrams.
///
/// `headers` points into the other four. They are never reallocated, and pointers taken by `as_mut_ptr` stay valid when
/// the batch moves and while its parts are only read.
///
/// Payloads are in mapped memory, which takes none where no datagram was written.
pub struct ReceiveBatch {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    sources: Vec<libc::sockaddr_storage>,
    controls: Vec<ControlBuffer>,
    payloads: Mapping,
    payload_bytes_max: usize,
    /// Number of headers that the last call wrote, whose lengths must be reset.
    used: usize,
}

// SAFETY: the pointers in `headers` and `vectors` lead to memory that the batch owns and takes along to the other
// thread; nothing else has them.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Makes buffers for `datagrams_max` datagrams a call, keeping the first `payload_bytes_max` bytes of each. The
    /// kernel accepts at most 1024 a call.
    ///
    /// # Errors
    /// If the process may have no more memory.
    pub fn new(datagrams_max: usize, payload_bytes_max: usize) -> io::Result<Self> {
        let datagrams_max = datagrams_max.clamp(1, 1024);
        // SAFETY: `sockaddr_storage` holds integers only.
        let source: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut batch = ReceiveBatch {
            headers: Vec::with_capacity(datagrams_max),
            vectors: Vec::with_capacity(datagrams_max),
            sources: vec![source; datagrams_max],
            controls: vec![ControlBuffer([0; CONTROL_BYTES]); datagrams_max],
            payloads: Mapping::zeroed(datagrams_max * payload_bytes_max)?,
            payload_bytes_max,
            used: datagrams_max,
        };
        let payloads = batch.payloads.as_mut_ptr();
        batch
            .vectors
            .extend((0..datagrams_max).map(|index| libc::iovec {
                // SAFETY: `payloads` holds `datagrams_max` times as many bytes.
                iov_base: unsafe { payloads.add(index * payload_bytes_max) }.cast(),
                iov_len: payload_bytes_max,
            }));
        let vectors = batch.vectors.as_mut_ptr();
        let sources = batch.sources.as_mut_ptr();
        let controls = batch.controls.as_mut_ptr();
        for index in 0..datagrams_max {
            // SAFETY: `mmsghdr` holds integers and pointers only.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            // SAFETY: each of the three has `datagrams_max` elements.
            unsafe {
                header.msg_hdr.msg_iov = vectors.add(index);
                header.msg_hdr.msg_name = sources.add(index).cast();
                header.msg_hdr.msg_control = controls.add(index).cast();
            }
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        Ok(batch)
    }

    /// Returns the maximum of datagrams, or of their batches, per call.
    pub fn datagrams_max(&self) -> usize {
        self.headers.len()
    }

    /// Receives the datagrams that wait, at least one.
    ///
    /// # Errors
    /// `WouldBlock` if none arrived in time. A connected socket also reports the errors of earlier sends, such as
    /// `ConnectionRefused`.
    pub fn receive(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<Datagrams<'_>> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
        // A call that fails may have written the first header.
        self.used = 1;
        let flags = match wait {
            Wait::ForFirst => libc::MSG_WAITFORONE,
            Wait::Never => libc::MSG_DONTWAIT,
        };
        // SAFETY: the descriptor is open for the whole call. Each of the `headers.len()` headers
        // points to buffers of this batch with their true lengths, which nothing else uses while
        // `self` is borrowed. A null timeout is allowed.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        self.used = received;
        Ok(Datagrams {
            batch: self,
            next: 0,
            current: None,
        })
    }

    fn message(&self, index: usize) -> BatchMessage<'_> {
        let header = &self.headers[index];
        let begin = index * self.payload_bytes_max;
        let length = (header.msg_len as usize).min(self.payload_bytes_max);
        let control = ControlMessages::of(&header.msg_hdr);
        BatchMessage {
            rest: &self.payloads[begin..begin + length],
            // Without a segment size the message is one datagram.
            segment_bytes: control.segment_bytes.unwrap_or(length).max(1),
            is_truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            source: from_storage(&self.sources[index], header.msg_hdr.msg_namelen),
            arrival_ns: control.arrival_ns,
        }
    }
}

/// Contents of one header of the batch: a datagram, or several joined (`UDP_GRO`).
#[derive(Clone, Copy)]
struct BatchMessage<'a> {
    rest: &'a [u8],
    segment_bytes: usize,
    is_truncated: bool,
    source: Option<SocketAddr>,
    arrival_ns: Option<i64>,
}

impl<'a> BatchMessage<'a> {
    /// Returns the next datagram, and whether it is the last.
    fn split(&mut self) -> (Datagram<'a>, bool) {
        let (payload, rest) = self.rest.split_at(self.segment_bytes.min(self.rest.len()));
        self.rest = rest;
        let is_last = rest.is_empty();
        let datagram = Datagram {
            payload,
            // Truncation cuts the end off, so only the last datagram is affected.
            is_truncated: self.is_truncated && is_last,
            source: self.source,
            arrival_ns: self.arrival_ns,
        };
        (datagram, is_last)
    }
}

/// One received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The payload, or its beginning.
    pub payload: &'a [u8],
    /// Whether the payload was longer than the buffer.
    pub is_truncated: bool,
    /// Sender; `None` if the family is neither IPv4 nor IPv6.
    pub source: Option<SocketAddr>,
    /// When the kernel took the datagram from the interface, in nanoseconds since 1970 by CLOCK_REALTIME; `None` unless
    /// [`enable_arrival_times`] was called. All datagrams of a batch have the arrival time of the first.
    pub arrival_ns: Option<i64>,
}

/// Datagrams of one call, in order of arrival.
pub struct Datagrams<'a> {
    batch: &'a ReceiveBatch,
    next: usize,
    /// A batch of which some datagrams were shown.
    current: Option<BatchMessage<'a>>,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut message = match self.current.take() {
            Some(message) => message,
            None if self.next < self.batch.used => {
                self.next += 1;
                self.batch.message(self.next - 1)
            }
            None => return None,
        };
        let (datagram, is_last) = message.split();
        if !is_last {
            self.current = Some(message);
        }
        Some(datagram)
    }
}

/// Control messages of a received message.
#[derive(Default)]
struct ControlMessages {
    arrival_ns: Option<i64>,
    segment_bytes: Option<usize>,
}

impl ControlMessages {
    /// Parses those of a header that recvmmsg wrote.
    fn of(header: &libc::msghdr) -> Self {
        let mut found = ControlMessages::default();
        // SAFETY: `msg_control` and `msg_controllen` describe the control messages that the kernel
        // wrote to an aligned buffer.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        // SAFETY: a non-null `message` points to a whole `cmsghdr` within that buffer.
        while let Some(control) = unsafe { message.as_ref() } {
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: this kind of message carries a whole `timespec`, perhaps not aligned.
                    let time: libc::timespec = unsafe {
                        libc::CMSG_DATA(message)
                            .cast::<libc::timespec>()
                            .read_unaligned()
                    };
                    found.arrival_ns = time
                        .tv_sec
                        .checked_mul(1_000_000_000)
                        .and_then(|ns| ns.checked_add(time.tv_nsec));
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    // SAFETY: this kind of message carries an `int`, perhaps not aligned.
                    let bytes: libc::c_int = unsafe {
                        libc::CMSG_DATA(message)
                            .cast::<libc::c_int>()
                            .read_unaligned()
                    };
                    found.segment_bytes = usize::try_from(bytes).ok();
                }
                _ => {}
            }
            // SAFETY: as for `CMSG_FIRSTHDR`, `message` being one of its messages.
            message = unsafe { libc::CMSG_NXTHDR(header, message) };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;

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
    fn a_fresh_connection_has_sent_nothing_again_and_udp_has_no_counters_of_tcp() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert_eq!(info.retransmitted_segments, 0);
        assert!(info.send_segment_bytes > 0 && info.congestion_window_segments > 0);
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

    fn pair(ip: impl Into<std::net::IpAddr>) -> (UdpSocket, UdpSocket) {
        let ip = ip.into();
        let sender = UdpSocket::bind((ip, 0)).unwrap();
        let receiver = UdpSocket::bind((ip, 0)).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        (sender, receiver)
    }

    fn now_ns() -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_nanos() as i64
    }

    /// Receives with one call and returns the payloads, after checking source, length and arrival times.
    fn payloads(
        batch: &mut ReceiveBatch,
        pair: &(UdpSocket, UdpSocket),
        wait: Wait,
        has_times: bool,
    ) -> Vec<Vec<u8>> {
        let datagrams = batch.receive(&pair.1, wait).unwrap();
        let payload = |datagram: Datagram<'_>| {
            assert!(!datagram.is_truncated && datagram.arrival_ns.is_some() == has_times);
            assert_eq!(datagram.source, Some(pair.0.local_addr().unwrap()));
            datagram.payload.to_vec()
        };
        datagrams.map(payload).collect()
    }

    #[test]
    fn datagrams_come_with_their_times_in_order() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        enable_arrival_times(&receiver).unwrap();
        // The kernel begins to stamp a moment later; until then a datagram has the time at which it was read.
        std::thread::sleep(Duration::from_millis(100));
        let before_ns = now_ns();
        for payload in [&b"one"[..], b"", b"three"] {
            sender.send(payload).unwrap();
        }
        let mut batch = ReceiveBatch::new(8, 16).unwrap();
        let datagrams = batch.receive(&receiver, Wait::ForFirst).unwrap();
        let times: Vec<i64> = datagrams.map(|it| it.arrival_ns.unwrap()).collect();
        let times = [&[before_ns][..], &times, &[now_ns()]].concat();
        assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
    }

    #[test]
    fn a_train_is_shown_as_the_datagrams_that_were_sent() {
        let pair = pair(Ipv4Addr::LOCALHOST);
        set_segment(&pair.0, 4).unwrap();
        enable_coalescing(&pair.1).unwrap();
        enable_arrival_times(&pair.1).unwrap();
        pair.0.send(b"aaaabbbbccccdd").unwrap();
        pair.0.send(b"e").unwrap();
        let mut batch = ReceiveBatch::new(8, 64).unwrap();
        let shown = payloads(&mut batch, &pair, Wait::ForFirst, true);
        assert_eq!(shown, [&b"aaaa"[..], b"bbbb", b"cccc", b"dd", b"e"]);
    }

    #[test]
    fn later_calls_show_nothing_of_earlier_ones() {
        for pair in [pair(Ipv4Addr::LOCALHOST), pair(Ipv6Addr::LOCALHOST)] {
            let mut batch = ReceiveBatch::new(2, 4).unwrap();
            for round in 0..3u8 {
                for index in 0..3u8 {
                    pair.0.send(&[round, index]).unwrap();
                }
                let first = payloads(&mut batch, &pair, Wait::ForFirst, false);
                assert_eq!(first, [[round, 0], [round, 1]]);
                let rest = payloads(&mut batch, &pair, Wait::Never, false);
                assert_eq!(rest, [[round, 2]]);
            }
        }
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_says_so() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        sender.send(b"too long").unwrap();
        sender.send(b"fits").unwrap();
        let mut batch = ReceiveBatch::new(4, 4).unwrap();
        let mut datagrams = batch.receive(&receiver, Wait::ForFirst).unwrap();
        let long = datagrams.next().unwrap();
        assert_eq!((long.payload, long.is_truncated), (&b"too "[..], true));
        let short = datagrams.next().unwrap();
        assert_eq!((short.payload, short.is_truncated), (&b"fits"[..], false));
    }

    #[test]
    fn an_empty_socket_ends_the_wait() {
        let (_sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        receiver
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let mut batch = ReceiveBatch::new(4, 4).unwrap();
        for wait in [Wait::Never, Wait::ForFirst] {
            let error = batch.receive(&receiver, wait).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }
}
