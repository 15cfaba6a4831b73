//! The loop that sends a stream of datagrams, at whichever end sends it, in batches, and its end: FINs until one
//! is answered.
//!
//! A datagram belongs to the interval in which its send began, and no wait goes without a look at the signals.
//! Every datagram has its own id and time of sending, however many of them one system call takes; the kernel
//! takes all of a batch or nothing of it; and no more datagrams wait to leave the host than would if each were
//! sent alone, so a queue on the way out loses none that it would not lose otherwise. Whichever version serves,
//! its first look at a FIN shows how much was sent, and no server can keep the client from ending.

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
use crate::records::{Connected, Gaps, IntervalRecord, Intervals, Observer, Total};
use crate::slots::Ticket;
use crate::stream::Error;
use crate::stream::{Run, make_sleeps_exact};
use crate::wire::{
    DatagramHeader, Dialect, HeaderAck, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, Reply, ServerReport,
    Version, classify,
};

/// How often a sender looks for room that the kernel does not make it wait for.
const ROOM_EVERY: Duration = Duration::from_micros(200);

/// A stream that waits to be sent.
#[derive(Debug)]
pub struct Outgoing {
    // The socket is dropped before the client's address, as in a stream that is received.
    pub socket: UdpSocket,
    pub connected: Connected,
    /// How. The last datagram carries what is left of the bytes to send, but never less than the least payload.
    pub stream: StreamConfig,
    /// What the first datagram carries, but for its own header; as long as `payload` or longer,
    pub opening: Vec<u8>,
    /// and what the others carry.
    pub payload: Vec<u8>,
    /// Whether FINs are answered: not where the other end sends over the same socket as well, or
    /// instead.
    pub is_answered: bool,
    /// Whether a closed port at the other end ends the stream, as it must where a client can ask for
    /// it and go.
    pub ends_at_closed_port: bool,
    /// Has the listener know the client for as long as this lives.
    pub _client: Option<Arc<SocketAddr>>,
    /// Counts the stream at a server.
    pub _ticket: Option<Ticket>,
}

impl Outgoing {
    /// The same, to be run later.
    pub fn boxed(self) -> Run {
        Box::new(move |signals, observer| self.run(signals, observer))
    }

    /// Sends datagrams until the time is up or everything is sent, then ends the stream as 2.1.8 does:
    /// a FIN, and another after each 10 ms without an answer, 201 at most. With a server that is known to
    /// be of 2.0.x there are ten, 250 ms apart; where none is answered, three. A receiver that never answers is no
    /// error.
    pub fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error> {
        let (peer, stream) = (self.connected.peer, &self.stream);
        check_payload(self.payload.len())?;
        let datagrams_per_call = if stream.is_batched { usize::MAX } else { 1 };
        observer.connected(&self.connected);
        let mut sender = Sender {
            batch: Batch::new(&self.socket, &self.payload, datagrams_per_call),
            outgoing: &self,
            signals,
            intervals: Intervals::new(stream.interval, observer),
            clock: Clock::start(),
            counted: IntervalRecord::default(),
            gaps: stream.records_times.then(Gaps::new),
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
        // Nobody answers for a group.
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

/// Refuses a payload that has no room for the headers, or does not fit a datagram.
pub fn check_payload(bytes: usize) -> Result<(), Error> {
    if (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Because(format!(
        "a UDP payload of {bytes} bytes cannot carry an iperf stream; choose {PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX}"
    )))
}

struct Sender<'a> {
    outgoing: &'a Outgoing,
    signals: &'a Signals,
    batch: Batch,
    intervals: Intervals<'a>,
    clock: Clock,
    counted: IntervalRecord,
    gaps: Option<Gaps>,
    closed_port_after: Option<Duration>,
    closing: Closing,
}

impl Sender<'_> {
    /// Sends the data; returns how long it took.
    fn send_data(&mut self) -> Result<Duration, Error> {
        let (duration, bytes_max) = self.outgoing.stream.bounds();
        let pace = self.pace();
        self.clock = Clock::start();
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
                        let left = (duration - elapsed).min(self.intervals.left(elapsed));
                        thread::sleep(ahead.min(left).min(LOOK_EVERY));
                        continue;
                    }
                    pace.due_together(self.counted.datagrams, elapsed)
                }
            };
            if self.opens() {
                self.send_opening(elapsed)?;
            } else {
                self.send_next(due, bytes_max - self.counted.bytes, elapsed)?;
            }
        }
    }

    /// The schedule. Sleeps are as exact as the kernel's timers from then on.
    fn pace(&self) -> Option<Pace> {
        let rate = self.outgoing.stream.rate?;
        make_sleeps_exact();
        let pace = Pace::of_datagrams(rate, self.outgoing.payload.len());
        Some(pace.in_bursts(self.outgoing.stream.burst_datagrams))
    }

    /// Whether the next datagram is longer than those behind it.
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

    /// Sends `due` datagrams, or as many as one call takes and `bytes_left` fill. A refusal for now does not use up
    /// their ids.
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
            // The last datagram is as long as it must be, and goes alone.
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

    /// Sends `length` bytes of datagrams; `false` when the kernel refused for now.
    fn send(&mut self, first_id: i64, length: usize) -> Result<bool, Error> {
        let outcome = self
            .batch
            .send(&self.outgoing.socket, &self.clock, first_id, length);
        self.judge(outcome)
    }

    /// What came of a send; `false` when the kernel refused for now.
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

    /// Whether the receiver has gone before the end and that matters.
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

    /// One receive; `None` when there was nothing in the socket's time.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        match self.outgoing.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if sockets::is_no_datagram(&error) => Ok(None),
            Err(source) => Err(self.receive_failed(source)),
        }
    }

    /// Ends the stream. A server that never answers is no error.
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
            // It has told its version only now, and may not have understood the FINs so far. A second
            // version would be no server's.
            if server == self.outgoing.stream.dialect && self.batch.dialect != server {
                (server, tries) = (self.batch.dialect, 0);
            }
        }
        if self.await_ack(FIN_LIMIT.saturating_sub(begun.elapsed()))? {
            return self.await_late_acks();
        }
        Ok(())
    }

    /// Ends a stream whose FINs nobody answers.
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

    /// Sends a FIN. Its id is the same each time: the first one that arrives states how much was sent.
    /// The originals since 2.0.10 change it, and a server that misses the first one then counts a datagram
    /// that was never sent.
    fn send_fin(&mut self) -> Result<(), Error> {
        if self.send(-self.next_id(), self.outgoing.payload.len())? {
            self.closing.fins_sent += 1;
        } else {
            self.closing.fins_refused += 1;
        }
        Ok(())
    }

    /// Takes what came before the first FIN and therefore answers none: header acknowledgements of
    /// 2.0.10 to 2.0.13.
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

    /// From now on FINs are written as the server reads them. A version that was asked for stays.
    fn learn(&mut self, server: Version) {
        if self.outgoing.stream.dialect == Dialect::V2_1 {
            self.batch.dialect = Dialect::of_server(server);
        }
    }

    /// Waits for the answers to the remaining FINs, which would otherwise find no socket and be
    /// missing from the account of what was sent and received.
    fn await_late_acks(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + LATE_ACK_LIMIT;
        while self.closing.acks_received < self.closing.fins_sent
            && Instant::now() < deadline
            && self.await_ack(LATE_ACK_SILENCE)?
        {}
        Ok(())
    }

    /// Waits for one answer to a FIN; `false` when none came in time.
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

/// After an answer, answers to the other FINs are awaited until this long a silence,
const LATE_ACK_SILENCE: Duration = Duration::from_millis(20);
/// and never longer than this.
const LATE_ACK_LIMIT: Duration = Duration::from_millis(250);

/// How often a 2.1.8 client sends its FIN again,
const RETRIES: u32 = 200;
/// and one of 2.0.x, whose servers answer ten FINs and no more.
const OLD_RETRIES: u32 = 9;
/// An answer is awaited at least this long, as 2.0.x clients do.
const FIN_LIMIT: Duration = Duration::from_millis(2500);

/// FINs that are sent where none is answered. 2.1.8 sends one, and loses the end with it.
const FINS_UNANSWERED: u32 = 3;

/// How often the FIN is sent again to such a server.
fn retries(server: Dialect) -> u32 {
    match server {
        Dialect::V2_0_2 | Dialect::V2_0_8 | Dialect::V2_0_10 | Dialect::V2_0_13 => OLD_RETRIES,
        _ => RETRIES,
    }
}

/// What came of the end so far.
#[derive(Default)]
struct Closing {
    has_begun: bool,
    fins_sent: u64,
    fins_refused: u64,
    acks_received: u64,
    server_report: Option<ServerReport>,
}

/// The most that every kernel with `UDP_SEGMENT` takes (`UDP_MAX_SEGMENTS`).
const DATAGRAMS_MAX: usize = 64;

/// The time that datagrams bear.
pub struct Clock {
    begun: Instant,
    wall: WallClock,
}

impl Clock {
    pub fn start() -> Self {
        let wall = WallClock::start();
        Clock {
            begun: Instant::now(),
            wall,
        }
    }

    /// The header of a datagram that is sent now.
    pub fn header(&self, id: i64) -> DatagramHeader {
        let now = self.wall.at(Instant::now());
        DatagramHeader::at(id, now)
    }
}

/// Payloads in one buffer; each call sends the first ones.
struct Batch {
    /// How ids are written; as in 2.1 unless set.
    dialect: Dialect,
    payloads: Vec<u8>,
    payload_bytes: usize,
    /// Datagrams that one call may send, at most.
    datagrams_max: usize,
    backlog: Backlog,
}

impl Batch {
    /// Copies of `payload`, as many as `socket` takes with one call but no more than `datagrams_max`:
    /// one when a datagram has to be fragmented, or when the kernel knows no batches.
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

    /// Has the kernel cut what is longer than a datagram, or no longer.
    fn cut(&self, socket: &UdpSocket, is_cut: bool) -> io::Result<()> {
        let bytes = if is_cut { self.payload_bytes } else { 0 };
        // Longer ones than that are alone in their batch.
        socket::set_segment(socket, u16::try_from(bytes).unwrap_or(0))
    }

    /// One payload, with whatever header it was sent with last.
    fn payload(&self) -> &[u8] {
        &self.payloads[..self.payload_bytes]
    }

    /// Sends `length` bytes: datagrams of the full length with ids from `first_id` on, and a last one
    /// with what is left. `length` is 1 at least and fits the batch.
    fn send(
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
    fn send_alone(
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
