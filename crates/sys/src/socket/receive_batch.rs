//! Datagrams by the batch: recvmmsg(2) into buffers that were made once.
//!
//! What must hold: a call allocates nothing, and whatever [`Datagrams`] shows was written by the
//! call that returned it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use super::address;
use crate::memory::Mapping;

/// Room for a control message with a `timespec` and one with an `int`: 32 and 24 bytes on 64-bit
/// machines.
const CONTROL_BYTES: usize = 64;

/// Control messages begin with a `cmsghdr` and must be aligned like one.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

const _: () = assert!(align_of::<libc::cmsghdr>() <= align_of::<Control>());
// SAFETY: `CMSG_SPACE` only computes.
const _: () = assert!(
    unsafe {
        libc::CMSG_SPACE(size_of::<libc::timespec>() as u32)
            + libc::CMSG_SPACE(size_of::<libc::c_int>() as u32)
    } as usize
        <= CONTROL_BYTES
);

/// Whether a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For the first datagram, as long as the socket's receive timeout says; never for more.
    ForFirst,
    /// Not at all.
    Never,
}

/// Buffers for a batch of datagrams.
///
/// `headers` points into the other four. They are never reallocated, and pointers taken by
/// `as_mut_ptr` stay valid when the batch moves and when its parts are only read.
///
/// Payloads lie in a [`Mapping`]: places that no datagram was written to take no memory.
pub struct ReceiveBatch {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    sources: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    payloads: Mapping,
    payload_bytes_max: usize,
    /// How many headers the last call wrote to, whose lengths have to be set again.
    used: usize,
}

// SAFETY: the pointers in `headers` and `vectors` lead to what the batch itself owns, which goes to the
// other thread with it; nothing else has them.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Room for `datagrams_max` datagrams a call, of which the first `payload_bytes_max` bytes are
    /// kept. The kernel takes at most 1024 a call.
    ///
    /// # Errors
    /// When the process may have no more memory.
    pub fn new(datagrams_max: usize, payload_bytes_max: usize) -> io::Result<Self> {
        let datagrams_max = datagrams_max.clamp(1, 1024);
        // SAFETY: `sockaddr_storage` holds integers only.
        let source: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut batch = ReceiveBatch {
            headers: Vec::with_capacity(datagrams_max),
            vectors: Vec::with_capacity(datagrams_max),
            sources: vec![source; datagrams_max],
            controls: vec![Control([0; CONTROL_BYTES]); datagrams_max],
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

    /// Datagrams, or batches of them, that one call takes at most.
    pub fn datagrams_max(&self) -> usize {
        self.headers.len()
    }

    /// Receives what is there, at least one datagram.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came in time. A connected socket also reports what earlier sends
    /// met with, such as `ConnectionRefused`.
    pub fn receive(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<Datagrams<'_>> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
        // A call that fails may have written to the first header.
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

    fn message(&self, index: usize) -> Message<'_> {
        let header = &self.headers[index];
        let begin = index * self.payload_bytes_max;
        let length = (header.msg_len as usize).min(self.payload_bytes_max);
        let control = ControlMessages::of(&header.msg_hdr);
        Message {
            rest: &self.payloads[begin..begin + length],
            // A batch without a length of its datagrams is one datagram.
            segment_bytes: control.segment_bytes.unwrap_or(length).max(1),
            is_truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            source: address::from_storage(&self.sources[index], header.msg_hdr.msg_namelen),
            arrival_ns: control.arrival_ns,
        }
    }
}

/// What one header of the batch holds: a datagram, or a batch of them (`UDP_GRO`).
#[derive(Clone, Copy)]
struct Message<'a> {
    rest: &'a [u8],
    segment_bytes: usize,
    is_truncated: bool,
    source: Option<SocketAddr>,
    arrival_ns: Option<i64>,
}

impl<'a> Message<'a> {
    /// The next datagram, and whether it is the last.
    fn split(&mut self) -> (Datagram<'a>, bool) {
        let (payload, rest) = self.rest.split_at(self.segment_bytes.min(self.rest.len()));
        self.rest = rest;
        let is_last = rest.is_empty();
        let datagram = Datagram {
            payload,
            // What the buffer has no room for is cut off the end.
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
    /// The payload, or the beginning of it.
    pub payload: &'a [u8],
    /// Whether the payload was longer than the buffer.
    pub is_truncated: bool,
    /// Who sent it; `None` when the family is neither IPv4 nor IPv6.
    pub source: Option<SocketAddr>,
    /// When the kernel took it from the interface, in nanoseconds since 1970 by CLOCK_REALTIME;
    /// `None` unless [`enable_arrival_times`](super::enable_arrival_times) was called. The datagrams
    /// of one batch bear the time of the first.
    pub arrival_ns: Option<i64>,
}

/// The datagrams of one call, in the order of their arrival.
pub struct Datagrams<'a> {
    batch: &'a ReceiveBatch,
    next: usize,
    /// A batch whose first datagrams were shown.
    current: Option<Message<'a>>,
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

/// What the kernel says beside a message.
#[derive(Default)]
struct ControlMessages {
    arrival_ns: Option<i64>,
    segment_bytes: Option<usize>,
}

impl ControlMessages {
    /// Those of a header that recvmmsg wrote.
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
    use super::*;
    use crate::socket::{enable_arrival_times, enable_coalescing, set_segment};
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

    #[test]
    fn datagrams_come_with_source_time_and_payload_in_order() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        enable_arrival_times(&receiver).unwrap();
        let before_ns = now_ns();
        for payload in [&b"one"[..], b"", b"three"] {
            sender.send(payload).unwrap();
        }
        let mut batch = ReceiveBatch::new(8, 16).unwrap();
        let datagrams = batch.receive(&receiver, Wait::ForFirst).unwrap();
        let mut last_ns = before_ns;
        let mut shown = 0;
        for (datagram, expected) in datagrams.zip([&b"one"[..], b"", b"three"]) {
            shown += 1;
            assert_eq!(datagram.payload, expected);
            assert!(!datagram.is_truncated);
            assert_eq!(datagram.source, Some(sender.local_addr().unwrap()));
            let arrival_ns = datagram.arrival_ns.unwrap();
            assert!((last_ns..=now_ns()).contains(&arrival_ns));
            last_ns = arrival_ns;
        }
        assert_eq!(shown, 3);
    }

    #[test]
    fn a_train_is_shown_as_the_datagrams_that_were_sent() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        set_segment(&sender, 4).unwrap();
        enable_coalescing(&receiver).unwrap();
        enable_arrival_times(&receiver).unwrap();
        sender.send(b"aaaabbbbccccdd").unwrap();
        sender.send(b"e").unwrap();
        let mut batch = ReceiveBatch::new(8, 64).unwrap();
        let datagrams = batch.receive(&receiver, Wait::ForFirst).unwrap();
        let shown: Vec<_> = datagrams
            .map(|datagram| {
                assert!(datagram.arrival_ns.is_some() && !datagram.is_truncated);
                assert_eq!(datagram.source, Some(sender.local_addr().unwrap()));
                datagram.payload.to_vec()
            })
            .collect();
        assert_eq!(shown, [&b"aaaa"[..], b"bbbb", b"cccc", b"dd", b"e"]);
    }

    #[test]
    fn later_calls_show_nothing_of_earlier_ones() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        let mut batch = ReceiveBatch::new(2, 4).unwrap();
        for round in 0..3u8 {
            for index in 0..3u8 {
                sender.send(&[round, index]).unwrap();
            }
            let first: Vec<Vec<u8>> = batch
                .receive(&receiver, Wait::ForFirst)
                .unwrap()
                .map(|datagram| datagram.payload.to_vec())
                .collect();
            assert_eq!(first, [[round, 0], [round, 1]]);
            let mut rest = batch.receive(&receiver, Wait::Never).unwrap();
            let datagram = rest.next().unwrap();
            assert_eq!(datagram.payload, [round, 2]);
            assert_eq!(datagram.source, Some(sender.local_addr().unwrap()));
            assert_eq!(datagram.arrival_ns, None);
            assert!(rest.next().is_none());
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

    #[test]
    fn an_ipv6_source_is_read_whole() {
        let (sender, receiver) = pair(Ipv6Addr::LOCALHOST);
        sender.send(b"six").unwrap();
        let mut batch = ReceiveBatch::new(1, 4).unwrap();
        let mut datagrams = batch.receive(&receiver, Wait::ForFirst).unwrap();
        assert_eq!(
            datagrams.next().unwrap().source,
            Some(sender.local_addr().unwrap())
        );
    }
}
