//! netblast's loop: send, count, send again, until told to stop.
//!
//! The loop has no pacing, no back-off, no clock and no allocation. Each datagram carries its own counter. On
//! request, datagrams go to the kernel in batches: up to 64 per system call, all taken or all refused. After
//! the first refusal they go one by one, since figures behind a full queue would count batches instead of
//! packets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use nicpoll_sys::socket;
use rustix::net::{SendFlags, send};

use crate::netrate::options::NetrateOptions;
use crate::netrate::sending::{self, BATCH_DATAGRAMS_MAX, SendCount, SendProgress, number};
use crate::signals::Signals;
use crate::sockets::{Backlog, PACKET_HEADER_BYTES};

/// Longest batch: 65535 less the headers of UDP and IPv4, or UDP and IPv6.
const BATCH_BYTES_MAX: [usize; 2] = [65_507, 65_487];

/// A sender with its socket and its datagrams.
#[derive(Debug)]
pub struct Blaster {
    socket: UdpSocket,
    flags: SendFlags,
    payload_bytes: usize,
    /// The datagrams of a batch, back to back.
    batch: Vec<u8>,
    backlog: Backlog,
    counter: u32,
    progress: Arc<SendProgress>,
}

impl Blaster {
    /// Takes a socket connected to `peer`, and sends as the options say.
    pub fn new(socket: UdpSocket, peer: SocketAddr, options: &NetrateOptions) -> io::Result<Self> {
        let payload_bytes = options.payload_bytes;
        let flags = sending::set_up(&socket, peer, options.is_blocking)?;
        let most_bytes = BATCH_BYTES_MAX[usize::from(peer.is_ipv6())];
        let mut datagrams = match payload_bytes {
            0 => 1,
            _ if !options.is_batched => 1,
            bytes => (most_bytes / bytes).clamp(1, BATCH_DATAGRAMS_MAX),
        };
        // A kernel without UDP segmentation refuses the option.
        if datagrams > 1 && socket::set_segment(&socket, payload_bytes as u16).is_err() {
            datagrams = 1;
        }
        let buffer_bytes = socket::send_buffer(&socket)?;
        let packet_bytes = payload_bytes + PACKET_HEADER_BYTES[usize::from(peer.is_ipv6())];
        Ok(Blaster {
            backlog: Backlog::new(buffer_bytes, packet_bytes),
            socket,
            flags,
            payload_bytes,
            batch: vec![0; datagrams * payload_bytes],
            counter: 0,
            progress: Arc::default(),
        })
    }

    /// Returns the progress of the next run, for another thread to watch.
    pub fn progress(&mut self) -> Arc<SendProgress> {
        self.progress = Arc::default();
        Arc::clone(&self.progress)
    }

    /// The most datagrams per system call; 1 after a batch was refused.
    pub fn datagrams_per_system_call(&self) -> usize {
        match self.payload_bytes {
            0 => 1,
            bytes => self.batch.len() / bytes,
        }
    }

    /// Sends until `signals` finish or cancel.
    pub fn run(&mut self, signals: &Signals) -> SendCount {
        let mut count = SendCount::default();
        while !signals.is_finishing() && !signals.is_cancelled() {
            let datagrams = self.together();
            self.number_batch(datagrams);
            let length = datagrams * self.payload_bytes;
            let result = send(&self.socket, &self.batch[..length], self.flags).map(|_| ());
            match result {
                Err(errno) if sending::is_unfinished(self.flags, errno) => continue,
                // Sends the same datagrams again, one by one.
                Err(_) if datagrams > 1 && self.go_single().is_ok() => {
                    count.system_calls += 1;
                    continue;
                }
                Ok(()) => self.backlog.add(datagrams),
                Err(_) => {}
            }
            count.count(datagrams as u64, result);
            self.progress.note(&count, result);
            self.counter = self.counter.wrapping_add(datagrams as u32);
        }
        count
    }

    /// How many datagrams the next call sends.
    fn together(&mut self) -> usize {
        match self.datagrams_per_system_call() {
            1 => 1,
            most => {
                let unsent_bytes = socket::unsent_bytes(&self.socket).unwrap_or(0);
                self.backlog.room(unsent_bytes).clamp(1, most)
            }
        }
    }

    fn number_batch(&mut self, datagrams: usize) {
        let mut counter = self.counter;
        let datagrams = &mut self.batch[..datagrams * self.payload_bytes];
        for datagram in datagrams.chunks_exact_mut(self.payload_bytes.max(1)) {
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
