//! Sends a stream of datagrams in batches, at either end, then ends it with FINs until one is answered.
//!
//! A datagram belongs to the interval in which its send began, and every wait checks the signals. Each datagram
//! has its own id and send time, also within a batch. The kernel takes a batch whole or not at all. No more
//! datagrams wait to leave the host than single sends would leave there, so batches cause no extra loss in a
//! local queue. Any server version learns the number sent from the first FIN it sees, and no server can keep
//! the client from ending.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Pace;
use nicpoll_sys::socket;
use nicpoll_traffic::sockets::{self, Backlog, PACKET_HEADER_BYTES};
use nicpoll_traffic::{LOOK_EVERY, RefusedSends, Signals, WallClock};
use rustix::io::Errno;

use crate::config::StreamConfig;
use crate::records::{Connected, Gaps, IntervalRecord, Observer, Splitter, Total};
use crate::slots::Ticket;
use crate::stream::{Error, ReadyStream, make_sleeps_exact};
use crate::wire::{
    DatagramHeader, Dialect, HeaderAck, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, Reply, ServerReport,
    Version, classify,
};

/// Poll interval while the batch limit, not the kernel, leaves no room.
const ROOM_EVERY: Duration = Duration::from_micros(200);

/// A stream ready to be sent.
#[derive(Debug)]
pub struct Outgoing {
    // Drop the socket before the client's address, as in a received stream.
    pub socket: UdpSocket,
    pub connected: Connected,
    /// How to send. The last datagram carries the remaining bytes, but at least the minimum payload.
    pub stream: StreamConfig,
    /// Payload of the first datagram, except its header; at least as long as `payload`.
    pub opening: Vec<u8>,
    /// Payload of the other datagrams.
    pub payload: Vec<u8>,
    /// Whether the other end answers FINs: not if it sends over this socket.
    pub is_answered: bool,
    /// Whether a closed port at the other end ends the stream; set where a client can make a request and leave.
    pub ends_at_closed_port: bool,
    /// Keeps the client known to the listener.
    pub _client: Option<Arc<SocketAddr>>,
    /// Keeps the stream's slot at a server.
    pub _ticket: Option<Ticket>,
}

impl ReadyStream for Outgoing {
    /// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does: a FIN,
    /// repeated every 10 ms until answered, at most 201 in all. A server known to be 2.0.x gets ten, 250 ms
    /// apart; a receiver that answers none gets three. No answer is no error.
    fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error> {
        let (peer, stream) = (self.connected.peer, &self.stream);
        check_payload(self.payload.len())?;
        let datagrams_per_call = if stream.is_batched { usize::MAX } else { 1 };
        observer.connected(&self.connected);
        let mut sender = UdpStreamSender {
            batch: PayloadBatch::new(&self.socket, &self.payload, datagrams_per_call),
            outgoing: &self,
            signals,
            intervals: Splitter::new(stream.interval, observer),
            clock: SendClock::start(),
            counted: IntervalRecord::default(),
            gaps: stream.records_times.then(Gaps::default),
            closed_port_after: None,
            closing: Closing::default(),
        };
        sender.batch.dialect = stream.dialect;
        let outcome = sender.send_data();
        let elapsed = *outcome.as_ref().unwrap_or(&sender.clock.begun.elapsed());
        sender.intervals.finish(elapsed, sender.counted);
        let total = Total::of(sender.counted.until(elapsed), self.connected.buffer);
        if let Err(error) = outcome {
            sender.intervals.observer.broken(total);
            return Err(error);
        }
        match self.is_answered {
            true => sender.close()?,
            false => sender.close_unanswered()?,
        }
        let closing = &sender.closing;
        let is_unanswered = self.is_answered && closing.acks_received == 0;
        // A multicast group does not answer.
        let is_unknown = is_unanswered && !peer.ip().is_multicast();
        let closed_after = sender.closed_port_after.filter(|_| is_unknown);
        let doubt = match closed_after {
            Some(_) => "the server's port is closed; see whether it runs",
            None => "the server did not answer the end of the stream; what arrived is not known",
        };
        Ok(Total {
            gaps: sender.gaps.as_ref().and_then(Gaps::times),
            server_report: closing.server_report,
            fins: closing.fins_sent,
            fin_answers: closing.acks_received,
            refused: RefusedSends {
                unsent: sender.counted.calls.refused + closing.fins_refused,
                filtered: 0,
            },
            is_unanswered,
            flowed_seconds: closed_after.map(|after| after.as_secs_f64()),
            doubt: is_unknown.then_some(doubt),
            ..total
        })
    }
}

/// Refuses a payload too small for the headers or too large for a datagram.
pub fn check_payload(bytes: usize) -> Result<(), Error> {
    if (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Because(format!(
        "a UDP payload of {bytes} bytes cannot carry an iperf stream; choose {PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX}"
    )))
}

struct UdpStreamSender<'a> {
    outgoing: &'a Outgoing,
    signals: &'a Signals,
    batch: PayloadBatch,
    intervals: Splitter<'a>,
    clock: SendClock,
    counted: IntervalRecord,
    gaps: Option<Gaps>,
    closed_port_after: Option<Duration>,
    closing: Closing,
}

impl UdpStreamSender<'_> {
    /// Sends the data; returns how long it took.
    fn send_data(&mut self) -> Result<Duration, Error> {
        let (duration, bytes_max) = self.outgoing.stream.bounds();
        let pace = self.pace();
        self.clock = SendClock::start();
        // Where and when the stream fell behind.
        let mut late = None;
        loop {
            let elapsed = self.clock.begun.elapsed();
            if self.intervals.is_due(elapsed) {
                self.intervals.close_due(elapsed, self.counted);
            }
            let is_over = elapsed >= duration || self.counted.bytes >= bytes_max;
            if is_over || self.signals.is_finishing() {
                return Ok(elapsed);
            }
            self.signals.check()?;
            let due = match pace {
                None => u64::MAX,
                Some(pace) => {
                    let ahead = pace.ahead(self.counted.datagrams, elapsed);
                    if !ahead.is_zero() {
                        late = None;
                        let left = (duration - elapsed).min(self.intervals.left(elapsed));
                        thread::sleep(ahead.min(left).min(LOOK_EVERY));
                        continue;
                    }
                    let sent = self.counted.datagrams;
                    let due = pace.due_together(sent, elapsed);
                    if due == 1 {
                        late = None;
                    }
                    let (from, since) = *late.get_or_insert((sent, elapsed));
                    let due = due.min(pace.catching_up(sent - from, elapsed - since));
                    if due == 0 {
                        thread::sleep(ROOM_EVERY);
                        continue;
                    }
                    due
                }
            };
            if self.opens() {
                self.send_opening(elapsed)?;
            } else {
                self.send_next(due, bytes_max - self.counted.bytes, elapsed)?;
            }
        }
    }

    /// The schedule of a paced stream. Makes this thread's sleeps exact.
    fn pace(&self) -> Option<Pace> {
        let rate = self.outgoing.stream.rate?;
        make_sleeps_exact();
        let pace = Pace::of_datagrams(rate, self.outgoing.payload.len());
        Some(pace.in_bursts(self.outgoing.stream.burst_datagrams))
    }

    /// Whether the next datagram is the first, and longer than the rest.
    fn opens(&self) -> bool {
        self.counted.datagrams == 0 && self.outgoing.opening.len() > self.outgoing.payload.len()
    }

    /// Sends the first datagram, alone.
    fn send_opening(&mut self, elapsed: Duration) -> Result<(), Error> {
        let opening = &self.outgoing.opening;
        let outcome =
            self.batch
                .send_alone(&self.outgoing.socket, &self.clock, self.next_id(), opening);
        let is_sent = self.judge(outcome)?;
        self.count(is_sent, 1, opening.len(), elapsed);
        Ok(())
    }

    /// Sends `due` datagrams, or as many as fit one call and `bytes_left`. When the kernel refuses them for the
    /// moment, their ids are used again.
    fn send_next(&mut self, due: u64, bytes_left: u64, elapsed: Duration) -> Result<(), Error> {
        let payload_bytes = self.outgoing.payload.len() as u64;
        let datagrams = self.batch.together(&self.outgoing.socket, due) as u64;
        if datagrams == 0 {
            thread::sleep(ROOM_EVERY);
            return Ok(());
        }
        let length = (datagrams * payload_bytes).min(bytes_left);
        let rest = length % payload_bytes;
        let length = match length - rest {
            _ if rest == 0 || rest >= PAYLOAD_BYTES_MIN as u64 => length,
            // The last datagram has at least the minimum payload, and is sent alone.
            0 => PAYLOAD_BYTES_MIN as u64,
            whole => whole,
        };
        let is_sent = self.send(self.next_id(), length as usize)?;
        let datagrams = length.div_ceil(payload_bytes);
        self.count(is_sent, datagrams, length as usize, elapsed);
        Ok(())
    }

    fn count(&mut self, is_sent: bool, datagrams: u64, length: usize, elapsed: Duration) {
        if is_sent {
            self.counted.datagrams += datagrams;
            self.counted.bytes += length as u64;
            self.counted.calls.done += 1;
            if let Some(gaps) = &mut self.gaps {
                gaps.record(elapsed.as_nanos() as i64, datagrams);
            }
        } else {
            self.counted.calls.refused += 1;
        }
    }

    fn next_id(&self) -> i64 {
        (self.counted.datagrams + self.outgoing.stream.dialect.first_id()) as i64
    }

    /// Sends `length` bytes of datagrams; returns `false` when the kernel refused them for the moment.
    fn send(&mut self, first_id: i64, length: usize) -> Result<bool, Error> {
        let outcome = self
            .batch
            .send(&self.outgoing.socket, &self.clock, first_id, length);
        self.judge(outcome)
    }

    /// Evaluates a send; returns `false` when the kernel refused it for the moment.
    fn judge(&mut self, outcome: io::Result<()>) -> Result<bool, Error> {
        match outcome {
            Ok(()) => Ok(true),
            Err(error) if self.is_gone(&error) => Err(Error::Because(format!(
                "{} closed its port after {} datagrams; see why it ended",
                self.outgoing.connected.peer, self.counted.datagrams
            ))),
            Err(error) if sockets::is_refused_send(&error) => {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    let elapsed = self.clock.begun.elapsed();
                    self.closed_port_after.get_or_insert(elapsed);
                }
                Ok(false)
            }
            Err(source) => Err(Error::Io {
                what: format!(
                    "cannot send to {} after {} datagrams; see the route, the MTU and what packet filters of this \
                     host let out",
                    self.outgoing.connected.peer, self.counted.datagrams
                ),
                source,
            }),
        }
    }

    /// Whether the receiver's port closed early and that must end the stream.
    fn is_gone(&self, error: &io::Error) -> bool {
        let is_closed = error.kind() == io::ErrorKind::ConnectionRefused;
        is_closed && self.outgoing.ends_at_closed_port && !self.closing.has_begun
    }

    fn receive_failed(&self, source: io::Error) -> Error {
        let peer = self.outgoing.connected.peer;
        let what =
            format!("cannot receive the answer from {peer}; see whether the interface is still up");
        Error::Io { what, source }
    }

    /// Receives one datagram; `None` on the socket's timeout.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        match self.outgoing.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(self.receive_failed(source)),
        }
    }

    /// Ends the stream. No answer is no error.
    fn close(&mut self) -> Result<(), Error> {
        self.closing.has_begun = true;
        self.take_early_replies()?;
        let begun = Instant::now();
        let mut server = self.batch.dialect;
        let mut tries = 0;
        while tries <= retries(server) {
            self.signals.check()?;
            self.send_fin()?;
            if self.await_ack(server.fin_every())? {
                return self.await_late_acks();
            }
            tries += 1;
            // The server has only now stated its version, and may not have understood the FINs so far. Servers
            // do not change their version again.
            if server == self.outgoing.stream.dialect && self.batch.dialect != server {
                (server, tries) = (self.batch.dialect, 0);
            }
        }
        if self.await_ack(FIN_LIMIT.saturating_sub(begun.elapsed()))? {
            return self.await_late_acks();
        }
        Ok(())
    }

    /// Ends a stream whose FINs get no answer.
    fn close_unanswered(&mut self) -> Result<(), Error> {
        self.closing.has_begun = true;
        for repetition in 0..FINS_UNANSWERED {
            self.signals.check()?;
            if repetition > 0 {
                thread::sleep(Dialect::V2_1.fin_every());
            }
            self.send_fin()?;
        }
        Ok(())
    }

    /// Sends a FIN. Every FIN has the same id, so the first one to arrive states how much was sent. The
    /// originals since 2.0.10 change the id, and a server that misses the first FIN counts a datagram never
    /// sent.
    fn send_fin(&mut self) -> Result<(), Error> {
        if self.send(-self.next_id(), self.outgoing.payload.len())? {
            self.closing.fins_sent += 1;
        } else {
            self.closing.fins_refused += 1;
        }
        Ok(())
    }

    /// Reads what arrived before the first FIN and so answers none: header acknowledgements of 2.0.10 to
    /// 2.0.13.
    fn take_early_replies(&mut self) -> Result<(), Error> {
        let socket = &self.outgoing.socket;
        let set = socket.set_nonblocking(true);
        set.map_err(|source| self.receive_failed(source))?;
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        let mut buffer = [0; 64];
        while Instant::now() < deadline
            && let Some(length) = self.receive(&mut buffer)?
        {
            if let Some(ack) = HeaderAck::parse(&buffer[..length]) {
                self.learn(ack.version);
            }
        }
        let set = socket.set_nonblocking(false);
        set.map_err(|source| self.receive_failed(source))
    }

    /// Writes FINs in the server's dialect from now on, unless a dialect was requested.
    fn learn(&mut self, server: Version) {
        if self.outgoing.stream.dialect == Dialect::V2_1 {
            self.batch.dialect = Dialect::of_server(server);
        }
    }

    /// Waits for the answers to the remaining FINs, so the counts of sent and received packets match.
    fn await_late_acks(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        while self.closing.acks_received < self.closing.fins_sent
            && Instant::now() < deadline
            && self.await_ack(LATE_ACK_SILENCE)?
        {}
        Ok(())
    }

    /// Waits for one answer to a FIN; returns `false` on timeout.
    fn await_ack(&mut self, timeout: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        let mut buffer = [0; 2048];
        loop {
            self.signals.check()?;
            if let Some(length) = self.receive(&mut buffer)? {
                let batch = &self.batch;
                let is_ack = match classify(&buffer[..length], batch.payload(), batch.dialect) {
                    Reply::HeaderAck(version) => {
                        self.learn(version);
                        false
                    }
                    Reply::Report(report) => {
                        self.closing.server_report = Some(report);
                        true
                    }
                    Reply::Echo | Reply::BareAck => true,
                };
                if is_ack {
                    self.closing.acks_received += 1;
                    return Ok(true);
                }
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }
}

/// After one answer, the others are awaited until a silence this long,
const LATE_ACK_SILENCE: Duration = Duration::from_millis(20);
/// but for no longer than this.
const LATE_ACK_LIMIT: Duration = Duration::from_millis(250);

/// How often a 2.1.8 client repeats its FIN.
const RETRIES: u32 = 200;
/// How often a 2.0.x client does: its servers answer at most ten FINs.
const OLD_RETRIES: u32 = 9;
/// Minimum wait for an answer, as in 2.0.x clients.
const FIN_LIMIT: Duration = Duration::from_millis(2500);

/// FINs sent to a receiver that answers none. 2.1.8 sends one, and may lose the end with it.
const FINS_UNANSWERED: u32 = 3;

/// How often to repeat the FIN to a server of this dialect.
fn retries(server: Dialect) -> u32 {
    match server {
        Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_0_10 | Dialect::V2_0_13 => OLD_RETRIES,
        _ => RETRIES,
    }
}

/// State of the stream's end.
#[derive(Default)]
struct Closing {
    has_begun: bool,
    fins_sent: u64,
    fins_refused: u64,
    acks_received: u64,
    server_report: Option<ServerReport>,
}

/// Most datagrams that every kernel with `UDP_SEGMENT` takes at once (`UDP_MAX_SEGMENTS`).
const DATAGRAMS_MAX: usize = 64;

/// Clock of the send times in datagrams.
pub struct SendClock {
    begun: Instant,
    wall: WallClock,
}

impl SendClock {
    pub fn start() -> Self {
        let wall = WallClock::start();
        SendClock {
            begun: Instant::now(),
            wall,
        }
    }

    /// The header of a datagram sent now.
    pub fn header(&self, id: i64) -> DatagramHeader {
        let now = self.wall.at(Instant::now());
        DatagramHeader::at(id, now)
    }
}

/// Copies of the payload in one buffer; each call sends the first few.
struct PayloadBatch {
    /// How headers are written; 2.1 by default.
    dialect: Dialect,
    payloads: Vec<u8>,
    payload_bytes: usize,
    /// Most datagrams per call.
    datagrams_max: usize,
    backlog: Backlog,
}

impl PayloadBatch {
    /// Makes as many copies of `payload` as one call on `socket` can send, at most `datagrams_max`. Only one if
    /// a datagram needs fragmentation or the kernel has no UDP segmentation.
    fn new(socket: &UdpSocket, payload: &[u8], datagrams_max: usize) -> Self {
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
        let mut batch = PayloadBatch {
            dialect: Dialect::V2_1,
            payloads: payload.repeat(datagrams_max),
            payload_bytes,
            datagrams_max,
            backlog: Backlog::new(buffer_bytes.unwrap_or(0), packet_bytes),
        };
        // `UDP_SEGMENT` costs time on every datagram: do not set it for single sends.
        if datagrams_max > 1 && (!fits || batch.cut(socket, true).is_err()) {
            batch.datagrams_max = 1;
        }
        batch
    }

    /// How many of `datagrams` one call may send now; 0 while as many wait to leave the host as single sends
    /// would leave there. Without batches in that queue, the kernel limits it and a send blocks.
    fn together(&mut self, socket: &UdpSocket, datagrams: u64) -> usize {
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

    /// Turns the kernel's segmentation on or off.
    fn cut(&self, socket: &UdpSocket, is_cut: bool) -> io::Result<()> {
        let bytes = if is_cut { self.payload_bytes } else { 0 };
        // Payloads too long for this option are sent alone anyway.
        socket::set_segment(socket, u16::try_from(bytes).unwrap_or(0))
    }

    /// One payload, with the header it was last sent with.
    fn payload(&self) -> &[u8] {
        &self.payloads[..self.payload_bytes]
    }

    /// Sends `length` bytes: full datagrams with ids from `first_id`, the last one possibly shorter. `length`
    /// is at least 1 and fits the batch.
    fn send(
        &mut self,
        socket: &UdpSocket,
        clock: &SendClock,
        first_id: i64,
        length: usize,
    ) -> io::Result<()> {
        self.number(clock, first_id, length);
        match socket.send(&self.payloads[..length]) {
            Ok(_) => {
                self.backlog.add(length.div_ceil(self.payload_bytes));
                Ok(())
            }
            // The path MTU has shrunk, or the device cannot segment: send single datagrams from now on.
            Err(error) if length > self.payload_bytes && is_no_batch(&error) => {
                self.datagrams_max = 1;
                self.cut(socket, false)?;
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends one datagram that may be longer than those in the batch.
    fn send_alone(
        &mut self,
        socket: &UdpSocket,
        clock: &SendClock,
        id: i64,
        payload: &[u8],
    ) -> io::Result<()> {
        let mut payload = payload.to_vec();
        self.dialect.write_header(&clock.header(id), &mut payload);
        if self.datagrams_max == 1 {
            return socket.send(&payload).map(|_| ());
        }
        // Segmentation would split it.
        self.cut(socket, false)?;
        let outcome = socket.send(&payload).map(|_| ());
        self.cut(socket, true)?;
        outcome
    }

    fn number(&mut self, clock: &SendClock, first_id: i64, length: usize) {
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
        let mut batch = PayloadBatch::new(&sender, &[0; 100], 64);
        let clock = SendClock::start();
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
            let mut batch = PayloadBatch::new(&sender, &[0; 1023], usize::MAX);
            assert_eq!(batch.datagrams_max, 64);
            batch
                .send(&sender, &SendClock::start(), 1, 64 * 1023)
                .unwrap();
            for _ in 0..64 {
                assert_eq!(receiver.recv(&mut [0; 2000]).unwrap(), 1023);
            }
        }
    }

    #[test]
    fn a_batch_fits_one_packet_and_one_that_would_be_fragmented_is_none() {
        let (sender, _receiver) = pair(Ipv4Addr::LOCALHOST);
        assert_eq!(PayloadBatch::new(&sender, &[0; 1470], 64).datagrams_max, 44);
        assert_eq!(PayloadBatch::new(&sender, &[0; 1470], 1).datagrams_max, 1);
        // Loopback's MTU equals the largest packet.
        assert_eq!(
            PayloadBatch::new(&sender, &[0; 65_507], 64).datagrams_max,
            1
        );
    }
}
