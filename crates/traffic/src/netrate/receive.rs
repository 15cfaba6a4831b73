//! netreceive: takes what comes, and counts.
//!
//! Every datagram is received by itself. Batches are not asked for (`UDP_GRO`), because
//! the kernel counts the loss of a batch as one drop.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nicpoll_sys::socket::{ReceiveBatch, Wait};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use thiserror::Error;

use crate::netrate::numbers::Numbers;
use crate::signals::{LOOK_EVERY, Signals};

/// What the original asks for with SO_RCVBUF.
pub const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
/// Room for one datagram, as in the original: the longest there is.
const DATAGRAM_BYTES: usize = 65_536;
const DATAGRAMS_A_CALL: usize = 64;
/// How long what is queued at the end is still taken.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Why netreceive cannot receive.
#[derive(Debug, Error)]
#[error("{step}")]
pub struct ListenError {
    /// What failed, as the original names it: `socket`, `SO_RCVBUF` or `bind`.
    step: &'static str,
    /// What the kernel said.
    source: io::Error,
}

/// A socket for IPv6 and one for IPv4, or one of the two when the other cannot be had.
///
/// # Errors
/// Why the last one could not be had, when neither could.
pub fn listen(port: u16) -> Result<Vec<UdpSocket>, ListenError> {
    let addresses = [
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
    ];
    let mut sockets = Vec::new();
    let mut failed = None;
    for address in addresses {
        match listen_at(address) {
            Ok(socket) => sockets.push(socket),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}

/// A socket at one address, with the original's receive buffer.
///
/// # Errors
/// Which step the kernel refused.
pub(super) fn listen_at(address: SocketAddr) -> Result<UdpSocket, ListenError> {
    let at = |step| {
        move |errno: rustix::io::Errno| ListenError {
            step,
            source: errno.into(),
        }
    };
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None).map_err(at("socket"))?;
    // As on FreeBSD, where an IPv6 socket takes IPv6 only, so that both can be bound.
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(at("socket"))?;
    }
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES).map_err(at("SO_RCVBUF"))?;
    bind(&socket, &address).map_err(at("bind"))?;
    Ok(UdpSocket::from(socket))
}

/// What one thread has received until now. It is written by that thread only.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct ReceiveCount {
    datagrams: AtomicU64,
    bytes: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    /// One more than the duplicates; 0 when no datagram had a number.
    duplicates_known: AtomicU64,
}

impl ReceiveCount {
    /// Datagrams.
    pub fn datagrams(&self) -> u64 {
        self.datagrams.load(Ordering::Relaxed)
    }

    /// Bytes of their payload.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When the first and the last batch of datagrams were taken, after the moment given to
    /// [`receive`]; `None` before the first.
    pub fn first_and_last(&self) -> Option<(Duration, Duration)> {
        let [first, last] = [&self.first_ns, &self.last_ns]
            .map(|ns| Duration::from_nanos(ns.load(Ordering::Relaxed)));
        (self.datagrams() > 0).then_some((first, last))
    }

    /// Datagrams whose number had come from the same source before. `None` when none had a number that can be one of
    /// netblast's or netsend's.
    pub fn duplicates(&self) -> Option<u64> {
        self.duplicates_known.load(Ordering::Relaxed).checked_sub(1)
    }

    fn set_duplicates(&self, duplicates: Option<u64>) {
        let known = duplicates.map_or(0, |duplicates| duplicates + 1);
        self.duplicates_known.store(known, Ordering::Relaxed);
    }

    fn add(&self, datagrams: u64, bytes: u64, at: Duration) {
        let at_ns = at.as_nanos() as u64;
        if self.datagrams() == 0 {
            self.first_ns.store(at_ns, Ordering::Relaxed);
        }
        self.last_ns.store(at_ns, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.datagrams.fetch_add(datagrams, Ordering::Relaxed);
    }
}

/// Receives at `socket`, which other threads may do as well, until `signals` say to finish, that the
/// sender is done, or to cancel. Times are counted from `start`.
///
/// # Errors
/// When the socket fails for good.
pub fn receive(
    socket: &UdpSocket,
    count: &ReceiveCount,
    signals: &Signals,
    start: Instant,
) -> io::Result<()> {
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    let mut batch = ReceiveBatch::new(DATAGRAMS_A_CALL, DATAGRAM_BYTES)?;
    let mut end: Option<Instant> = None;
    let mut numbers = Numbers::default();
    loop {
        if signals.is_cancelled() || end.is_some_and(|end| Instant::now() > end) {
            count.set_duplicates(numbers.duplicates());
            return Ok(());
        }
        if end.is_none() && (signals.is_finishing() || signals.is_sender_done()) {
            end = Some(Instant::now() + DRAIN_TIME);
        }
        let wait = match end {
            Some(_) => Wait::Never,
            None => Wait::ForFirst,
        };
        match batch.receive(socket, wait) {
            Ok(datagrams) => {
                let (mut received, mut bytes) = (0, 0);
                for datagram in datagrams {
                    received += 1;
                    bytes += datagram.payload.len() as u64;
                    if let Some(source) = datagram.source {
                        numbers.record(source, datagram.payload);
                    }
                }
                count.add(received, bytes, start.elapsed());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                count.set_duplicates(numbers.duplicates());
                if end.is_some() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
