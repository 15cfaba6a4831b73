//! netreceive: takes what comes, and counts.
//!
//! Every datagram is received by itself. Batches are not asked for (`UDP_GRO`), because
//! the kernel counts the loss of a batch as one drop.

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

/// What the original asks for with SO_RCVBUF.
pub const RECEIVE_BUFFER_BYTES: usize = 128 * 1024;
/// Room for one datagram, as in the original: the longest there is.
const DATAGRAM_BYTES: usize = 65_536;
const DATAGRAMS_A_CALL: usize = 64;
/// How long what is queued at the end is still taken.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// A socket for IPv6 and one for IPv4, or one of the two when the other cannot be had.
///
/// # Errors
/// Why the last one could not be had, when neither could.
pub fn listen(port: u16) -> Result<Vec<UdpSocket>, Because> {
    match [true, false].map(|is_ipv6| listen_at(sockets::any_address(is_ipv6, port))) {
        [Err(_), Err(error)] => Err(error),
        tried => Ok(tried.into_iter().flatten().collect()),
    }
}

/// A socket at one address, with the original's receive buffer.
///
/// # Errors
/// Which step the kernel refused.
pub(super) fn listen_at(address: SocketAddr) -> Result<UdpSocket, Because> {
    let at = sending::at::<Errno>;
    let socket = sockets::open(address, SocketType::DGRAM, SocketFlags::empty());
    let socket = socket.map_err(at("socket"))?;
    // As on FreeBSD, where an IPv6 socket takes IPv6 only, so that both can be bound.
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(at("socket"))?;
    }
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES).map_err(at("SO_RCVBUF"))?;
    bind(&socket, &address).map_err(at("bind"))?;
    Ok(UdpSocket::from(socket))
}

/// What one thread has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// When the first and the last batch of datagrams were taken, after the moment given to [`receive`]; `None`
    /// before the first.
    pub first_and_last: Option<(Duration, Duration)>,
    /// Datagrams whose number had come from the same source before. `None` when none had a number that can be one of
    /// netblast's or netsend's.
    pub duplicates: Option<u64>,
}

impl Received {
    /// What both threads received.
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

/// What one thread has received until now, written by that thread only.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct ReceiveCount(Mutex<Received>);

impl ReceiveCount {
    /// The figures now.
    pub fn look(&self) -> Received {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Received)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
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
