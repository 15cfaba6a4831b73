//! netblast's loop: send, count, send again, until told to stop.
//!
//! What must hold: no pacing, no back-off, no clock and no allocation in the loop. Datagrams go to the
//! kernel in batches where it takes them: one system call for up to 64, of which all are taken or all
//! refused; each carries its own counter.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nicpoll_sys::socket;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::sending::{self, SendCount, number};
use crate::Signals;

/// Most datagrams of a batch: `UDP_MAX_SEGMENTS` of Linux before 6.9, later kernels take more.
const BATCH_DATAGRAMS_MAX: usize = 64;
/// Most bytes of a batch: 65535 less the headers of UDP and IPv4, or UDP and IPv6.
const BATCH_BYTES_MAX: [usize; 2] = [65_507, 65_487];

/// How to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastConfig {
    /// Bytes of UDP payload.
    pub payload_bytes: usize,
    /// One system call a datagram, as the original makes it.
    pub is_single: bool,
    /// A send waits for room in the socket's buffer. Without it, a send for which there is no room is an
    /// error at once, and so is one that the interface or its queue refuses.
    pub is_blocking: bool,
}

/// A sender with its socket and its datagrams.
#[derive(Debug)]
pub struct Blaster {
    socket: UdpSocket,
    flags: SendFlags,
    payload_bytes: usize,
    /// The datagrams of a batch, one after the other.
    batch: Vec<u8>,
    counter: u32,
}

impl Blaster {
    /// Takes a socket that is connected to `peer`.
    pub fn new(socket: UdpSocket, peer: SocketAddr, config: BlastConfig) -> io::Result<Self> {
        let flags = sending::set_up(&socket, peer, config.is_blocking)?;
        let most_bytes = BATCH_BYTES_MAX[usize::from(peer.is_ipv6())];
        let mut datagrams = match config.payload_bytes {
            0 => 1,
            _ if config.is_single => 1,
            bytes => (most_bytes / bytes).clamp(1, BATCH_DATAGRAMS_MAX),
        };
        // A kernel without batches refuses the option.
        if datagrams > 1 && socket::set_segment(&socket, config.payload_bytes as u16).is_err() {
            datagrams = 1;
        }
        Ok(Blaster {
            socket,
            flags,
            payload_bytes: config.payload_bytes,
            batch: vec![0; datagrams * config.payload_bytes],
            counter: 0,
        })
    }

    /// Datagrams that go to the kernel in one system call. It falls to 1 when the path refuses batches.
    pub fn datagrams_per_system_call(&self) -> usize {
        match self.payload_bytes {
            0 => 1,
            bytes => self.batch.len() / bytes,
        }
    }

    /// Sends until `signals` say to finish or to cancel.
    pub fn run(&mut self, signals: &Signals) -> SendCount {
        let mut count = SendCount::default();
        while !signals.is_finishing() && !signals.is_cancelled() {
            let datagrams = self.datagrams_per_system_call();
            self.number_batch();
            let result = send(&self.socket, &self.batch, self.flags).map(|_| ());
            match result {
                Err(errno) if sending::is_unfinished(self.flags, errno) => continue,
                Err(errno)
                    if datagrams > 1 && refuses_batches(errno) && self.go_single().is_ok() =>
                {
                    count.system_calls += 1;
                    continue;
                }
                _ => {}
            }
            count.count(datagrams as u64, result);
            self.counter = self.counter.wrapping_add(datagrams as u32);
        }
        count
    }

    fn number_batch(&mut self) {
        let mut counter = self.counter;
        for datagram in self.batch.chunks_exact_mut(self.payload_bytes.max(1)) {
            number(datagram, counter);
            counter = counter.wrapping_add(1);
        }
    }

    fn go_single(&mut self) -> io::Result<()> {
        socket::set_segment(&self.socket, 0)?;
        self.batch.truncate(self.payload_bytes);
        Ok(())
    }
}

/// A datagram of a batch must fit the path's MTU, and the path must be able to cut a batch up.
fn refuses_batches(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL | Errno::MSGSIZE | Errno::IO | Errno::OPNOTSUPP
    )
}
