//! netreceive: receives and counts.
//!
//! Datagrams are received one by one, without coalescing (`UDP_GRO`), since the kernel counts the loss of a
//! coalesced batch as one drop.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Add;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nicpoll_sys::socket::{ReceiveBatch, Wait};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, bind, sockopt};

use crate::netrate::numbers::Numbers;
use crate::netrate::sending;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets;
use crate::workload::{Because, merged};

/// The original's SO_RCVBUF.
pub const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
/// Room for one datagram of any length, as in the original.
const DATAGRAM_BYTES: usize = 65_536;
const DATAGRAMS_A_CALL: usize = 64;
/// How long to go on receiving queued datagrams at the end.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Opens a socket for IPv6 and one for IPv4, or only the one that is possible.
///
/// # Errors
/// Why the IPv4 socket failed, if both did.
pub fn listen(port: u16) -> Result<Vec<UdpSocket>, Because> {
    match [true, false].map(|is_ipv6| listen_at(sockets::any_address(is_ipv6, port))) {
        [Err(_), Err(error)] => Err(error),
        tried => Ok(tried.into_iter().flatten().collect()),
    }
}

/// Opens a socket at one address, with the original's receive buffer.
///
/// # Errors
/// The step that the kernel refused.
pub(super) fn listen_at(address: SocketAddr) -> Result<UdpSocket, Because> {
    let at = sending::at::<Errno>;
    let socket = sockets::open(address, SocketType::DGRAM, SocketFlags::empty());
    let socket = socket.map_err(at("socket"))?;
    // As on FreeBSD, an IPv6 socket takes only IPv6, so both can be bound.
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(at("socket"))?;
    }
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES).map_err(at("SO_RCVBUF"))?;
    bind(&socket, &address).map_err(at("bind"))?;
    Ok(UdpSocket::from(socket))
}

/// The counts of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Datagrams received.
    pub datagrams: u64,
    /// Bytes of payload received.
    pub bytes: u64,
    /// When the first and the last batch was read, since the start given to [`receive`]; `None` before the
    /// first.
    pub first_and_last: Option<(Duration, Duration)>,
    /// Datagrams whose counter had already arrived from the same source. `None` when no source had counters
    /// like netblast's or netsend's.
    pub duplicates: Option<u64>,
}

impl Received {
    /// Adds two threads' counts.
    pub(super) fn and(self, other: Received) -> Received {
        let span = |one: (Duration, Duration), other: (Duration, Duration)| {
            (one.0.min(other.0), one.1.max(other.1))
        };
        Received {
            datagrams: self.datagrams + other.datagrams,
            bytes: self.bytes + other.bytes,
            first_and_last: merged(self.first_and_last, other.first_and_last, span),
            duplicates: merged(self.duplicates, other.duplicates, u64::add),
        }
    }
}

/// The counts of one thread so far; only that thread writes them.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct ReceiveCount(Mutex<Received>);

impl ReceiveCount {
    /// The current counts.
    pub fn look(&self) -> Received {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Received)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Receives at `socket`, possibly with other threads, until `signals` finish, cancel, or report the sender
/// done. Times are relative to `start`.
///
/// # Errors
/// When the socket fails permanently.
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
            count.change(|all| all.duplicates = numbers.duplicates());
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
                let at = start.elapsed();
                count.change(|all| {
                    all.datagrams += received;
                    all.bytes += bytes;
                    let first = all.first_and_last.map_or(at, |(first, _)| first);
                    all.first_and_last = Some((first, at));
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                count.change(|all| all.duplicates = numbers.duplicates());
                if end.is_some() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
