//! Datagrams that are handed to the kernel together.
//!
//! What must hold: every datagram bears its own id and time of sending, however many of them one
//! system call takes; the kernel takes all of a batch or nothing of it; and batches change no figure:
//! no more datagrams wait to leave the host than would if each were sent alone, so that a queue on
//! the way out loses none that it would not lose otherwise.

use std::io;
use std::net::UdpSocket;
use std::time::Instant;

use nicpoll_sys::socket;
use nicpoll_traffic::WallClock;
use nicpoll_traffic::backlog::{Backlog, PACKET_HEADER_BYTES};
use rustix::io::Errno;

use crate::wire::datagram::PAYLOAD_BYTES_MAX;
use crate::wire::{DatagramHeader, Dialect};

/// The most that every kernel with `UDP_SEGMENT` takes (`UDP_MAX_SEGMENTS`).
const DATAGRAMS_MAX: usize = 64;

/// The time that datagrams bear.
pub(super) struct Clock {
    pub(super) begun: Instant,
    wall: WallClock,
}

impl Clock {
    pub(super) fn start() -> Self {
        let wall = WallClock::start();
        Clock {
            begun: Instant::now(),
            wall,
        }
    }

    /// The header of a datagram that is sent now.
    pub(super) fn header(&self, id: i64) -> DatagramHeader {
        let now = self.wall.at(Instant::now());
        DatagramHeader {
            id,
            sent_seconds: now.as_secs() as u32,
            sent_microseconds: now.subsec_micros(),
        }
    }
}

/// Payloads side by side, of which each call sends the first ones.
pub(super) struct Batch {
    /// How ids are written; as in 2.1 unless set.
    pub(super) dialect: Dialect,
    payloads: Vec<u8>,
    payload_bytes: usize,
    /// Datagrams that one call may send, at most.
    datagrams_max: usize,
    backlog: Backlog,
}

impl Batch {
    /// Copies of `payload`, as many as `socket` takes with one call but no more than `datagrams_max`:
    /// one when a datagram has to be fragmented, or when the kernel knows no batches.
    pub(super) fn new(socket: &UdpSocket, payload: &[u8], datagrams_max: usize) -> Self {
        let payload_bytes = payload.len();
        let is_ipv6 = socket.peer_addr().is_ok_and(|peer| peer.is_ipv6());
        let mtu = if is_ipv6 {
            rustix::net::sockopt::ipv6_mtu(socket)
        } else {
            rustix::net::sockopt::ip_mtu(socket)
        };
        let packet_bytes = payload_bytes + PACKET_HEADER_BYTES[usize::from(is_ipv6)];
        let fits = mtu.is_ok_and(|mtu| packet_bytes <= mtu as usize);
        let buffer_bytes = socket::send_buffer(socket);
        let datagrams_max = datagrams_max
            .min(DATAGRAMS_MAX)
            .min(PAYLOAD_BYTES_MAX / payload_bytes.max(1))
            .max(1);
        let mut batch = Batch {
            dialect: Dialect::V2_1,
            payloads: payload.repeat(datagrams_max),
            payload_bytes,
            datagrams_max,
            backlog: Backlog::new(buffer_bytes.unwrap_or(0), packet_bytes),
        };
        // A socket for batches pays for them with every datagram: one without them does not ask.
        if datagrams_max > 1 && (!fits || batch.cut(socket, true).is_err()) {
            batch.datagrams_max = 1;
        }
        batch
    }

    /// How many of `datagrams` one call may send now; none while as many wait to leave the host as single
    /// sends would have left there. As long as there are no batches among them, the kernel sees to that
    /// and a send waits.
    pub(super) fn together(&mut self, socket: &UdpSocket, datagrams: u64) -> usize {
        let datagrams = usize::try_from(datagrams).unwrap_or(usize::MAX);
        let datagrams = datagrams.min(self.datagrams_max);
        if self.datagrams_max == 1 || datagrams == 1 && self.backlog.has_no_batch() {
            return datagrams;
        }
        let unsent_bytes = socket::unsent_bytes(socket).unwrap_or(0);
        let room = self.backlog.room(unsent_bytes);
        if self.backlog.has_no_batch() {
            return datagrams.min(room).max(1);
        }
        datagrams.min(room)
    }

    /// Has the kernel cut what is longer than a datagram, or no longer.
    fn cut(&self, socket: &UdpSocket, is_cut: bool) -> io::Result<()> {
        let bytes = if is_cut { self.payload_bytes } else { 0 };
        // Longer ones than that are alone in their batch.
        socket::set_segment(socket, u16::try_from(bytes).unwrap_or(0))
    }

    /// One payload, with whatever header it was sent with last.
    pub(super) fn payload(&self) -> &[u8] {
        &self.payloads[..self.payload_bytes]
    }

    /// Puts `block`, cut off where the datagram ends, behind the header of the first datagram, in the
    /// place of everything else. Returns the datagram's length.
    pub(super) fn load(&mut self, block: &[u8]) -> usize {
        let offset = self.dialect.client_header_offset();
        let place = &mut self.payloads[offset..self.payload_bytes];
        let length = block.len().min(place.len());
        place[..length].copy_from_slice(&block[..length]);
        offset + length
    }

    /// Sends `length` bytes: datagrams of the full length with ids from `first_id` on, and a last one
    /// with what is left. `length` is 1 at least and fits the batch.
    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        clock: &Clock,
        first_id: i64,
        length: usize,
    ) -> io::Result<()> {
        self.number(clock, first_id, length);
        match socket.send(&self.payloads[..length]) {
            Ok(_) => {
                self.backlog.add(length.div_ceil(self.payload_bytes));
                Ok(())
            }
            // The path's MTU has shrunk, or the way out cannot cut batches: one at a time from now on.
            Err(error) if length > self.payload_bytes && is_no_batch(&error) => {
                self.datagrams_max = 1;
                self.cut(socket, false)?;
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends one datagram that may be longer than those of the batch.
    pub(super) fn send_alone(
        &mut self,
        socket: &UdpSocket,
        clock: &Clock,
        id: i64,
        payload: &[u8],
    ) -> io::Result<()> {
        let mut payload = payload.to_vec();
        self.dialect.write_header(&clock.header(id), &mut payload);
        if self.datagrams_max == 1 {
            return socket.send(&payload).map(|_| ());
        }
        // It would be cut into several.
        self.cut(socket, false)?;
        let outcome = socket.send(&payload).map(|_| ());
        self.cut(socket, true)?;
        outcome
    }

    fn number(&mut self, clock: &Clock, first_id: i64, length: usize) {
        let payloads = self.payloads[..length].chunks_mut(self.payload_bytes);
        for (id, payload) in (first_id..).zip(payloads) {
            self.dialect.write_header(&clock.header(id), payload);
        }
    }
}

fn is_no_batch(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::MSGSIZE, Errno::IO]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    fn pair(ip: impl Into<IpAddr>) -> (UdpSocket, UdpSocket) {
        let ip = ip.into();
        let receiver = UdpSocket::bind((ip, 0)).unwrap();
        let sender = UdpSocket::bind((ip, 0)).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let wait = Some(Duration::from_secs(2));
        receiver.set_read_timeout(wait).unwrap();
        (sender, receiver)
    }

    #[test]
    fn every_datagram_of_a_batch_has_its_own_id_and_time() {
        let (sender, receiver) = pair(Ipv4Addr::LOCALHOST);
        let mut batch = Batch::new(&sender, &[0; 100], 64);
        let clock = Clock::start();
        batch.send(&sender, &clock, 7, 250).unwrap();
        let mut last_ns = 0;
        for (id, length) in [(7, 100), (8, 100), (9, 50)] {
            let mut payload = [0; 200];
            assert_eq!(receiver.recv(&mut payload).unwrap(), length);
            let header = DatagramHeader::parse(&payload[..length]).unwrap();
            assert_eq!(header.id, id);
            assert!(header.sent_ns() >= last_ns);
            last_ns = header.sent_ns();
        }
    }

    #[test]
    fn the_longest_batch_is_taken_whole() {
        for ip in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            let (sender, receiver) = pair(ip);
            let mut batch = Batch::new(&sender, &[0; 1023], usize::MAX);
            assert_eq!(batch.datagrams_max, 64);
            batch.send(&sender, &Clock::start(), 1, 64 * 1023).unwrap();
            for _ in 0..64 {
                assert_eq!(receiver.recv(&mut [0; 2000]).unwrap(), 1023);
            }
        }
    }

    #[test]
    fn a_batch_fits_one_packet_and_one_that_would_be_fragmented_is_none() {
        let (sender, _receiver) = pair(Ipv4Addr::LOCALHOST);
        assert_eq!(Batch::new(&sender, &[0; 1470], 64).datagrams_max, 44);
        assert_eq!(Batch::new(&sender, &[0; 1470], 1).datagrams_max, 1);
        // The loopback's MTU is the largest packet.
        assert_eq!(Batch::new(&sender, &[0; 65_507], 64).datagrams_max, 1);
    }
}
