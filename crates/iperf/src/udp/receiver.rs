//! Receives one stream of datagrams, at either end, and manages its buffers.
//!
//! A server's stream has a small buffer until its datagrams arrive fast, and gives the larger one back when
//! they stop. A receiver faster than its sender would be woken for every datagram by the core that delivers it,
//! which costs more than the datagram itself. On a fast stream it sleeps briefly instead and then reads
//! several. Arrival times come from the kernel and do not change.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::Direction;
use nicpoll_sys::socket::{self, ReceiveBatch, Wait};
use nicpoll_traffic::sockets;
use nicpoll_traffic::udp_server::{BoundUdp, ServerConfig};
use nicpoll_traffic::{LOOK_EVERY, OneWayDelays, RefusedSends, Signals};

use super::sender::SendClock;
use super::session::{DatagramHead, UdpSession};
use crate::config::{StreamConfig, UDP_LENGTH_BYTES, receive_window};
use crate::records::{
    Calls, Connected, End, IntervalRecord, Observer, Splitter, Total, type_of_service,
};
use crate::slots::{Grown, LeastRate, STRANGER_BYTES, STRANGER_TIMEOUT, Ticket};
use crate::stream::{Error, ReadyStream, make_sleeps_exact};
use crate::wire::{Amount, PAYLOAD_BYTES_MAX};

/// A 2.1.8 client repeats its request after a random silence up to this long,
const ASK_EVERY_MAX: Duration = Duration::from_millis(20);
/// at most this often.
const REQUESTS_MAX: u32 = 100;

/// A stream ready to be received.
#[derive(Debug)]
pub struct Incoming {
    // Drop the socket before the client's address: the listener must know the client while its datagrams can
    // arrive here.
    pub bound: BoundUdp,
    pub stream: StreamConfig,
    /// Direction of the test data on this socket.
    pub direction: Direction,
    /// Whether to answer FINs; otherwise the first FIN ends the stream.
    pub is_answered: bool,
    pub type_of_service: u8,
    /// Expected duration, after which a short silence ends the stream.
    pub expected: Option<Duration>,
    /// Datagrams that arrived before the socket was connected to the sender.
    pub queued: Vec<DatagramHead>,
    /// When the first datagram was processed; `None` when none has come.
    pub begun: Option<Instant>,
    /// The server to request the stream from, and the payload of the request.
    pub request: Option<(SocketAddr, Vec<u8>)>,
    /// How far the sender's clock is behind this host's, to record one-way delays to this program. `None` if unknown.
    pub sender_behind_ns: Option<i64>,
    /// The sender's address, at a listener.
    pub _client: Option<Arc<SocketAddr>>,
    /// Keeps the stream's slot at a server.
    pub ticket: Option<Ticket>,
}

impl Incoming {
    /// A stream from a sender not yet known, over a socket of its own.
    pub fn of(bound: BoundUdp, stream: StreamConfig) -> Self {
        Incoming {
            bound,
            type_of_service: type_of_service(&stream, None),
            stream,
            direction: Direction::Forward,
            is_answered: true,
            expected: None,
            queued: Vec::new(),
            begun: None,
            request: None,
            sender_behind_ns: None,
            _client: None,
            ticket: None,
        }
    }
}

impl ReadyStream for Incoming {
    /// Receives the stream to its end.
    fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error> {
        if let Some((server, payload)) = &self.request {
            self.ask(*server, payload.clone(), signals)?;
        }
        let is_batched = self.stream.is_batched;
        if is_batched {
            make_sleeps_exact();
        }
        let now = Instant::now();
        let mut receiver = UdpStreamReceiver {
            incoming: &self,
            intervals: Splitter::new(self.stream.interval, observer),
            session: None,
            calls: Calls::default(),
            foreign_datagrams: 0,
            last_good: now,
            draining_since: None,
            nap: is_batched.then(|| Nap::new(now)),
        };
        if let (Some(first), Some(begun)) = (self.queued.first(), self.begun) {
            receiver.open(first, begun)?;
            for head in &self.queued {
                receiver.take(head, begun)?;
            }
        }
        let outcome = receiver.receive(signals);
        let counted = receiver.counted();
        if let Some(session) = &receiver.session {
            receiver.intervals.finish(session.elapsed(), counted);
        }
        let buffer = self.bound.receive_buffer;
        Ok(Total {
            end: Some(outcome?),
            foreign_datagrams: receiver.foreign_datagrams,
            ..match &receiver.session {
                Some(session) => session.total(receiver.calls, buffer),
                None => Total::of(counted, buffer),
            }
        })
    }
}

impl Incoming {
    /// Repeats the first datagram until the server sends.
    fn ask(
        &self,
        server: SocketAddr,
        mut payload: Vec<u8>,
        signals: &Signals,
    ) -> Result<(), Error> {
        let failed = |source| Error::from(self.bound.receive_failed(source));
        let socket = &self.bound.socket;
        let clock = SendClock::start();
        let random = RandomState::new();
        for request in 0..REQUESTS_MAX {
            if signals.is_cancelled() || signals.is_sender_done() {
                return Err(Error::Cancelled);
            }
            clock.header(1).write_to(&mut payload);
            let mut refused = RefusedSends::default();
            self.bound.answer(server, &payload, &mut refused)?;
            let share = random.hash_one(request) as u32;
            let silence = ASK_EVERY_MAX.mul_f64(f64::from(share) / f64::from(u32::MAX));
            // A timeout of zero would wait for ever.
            let silence = silence.max(Duration::from_micros(1));
            socket.set_read_timeout(Some(silence)).map_err(failed)?;
            match socket.peek(&mut [0; 1]) {
                Ok(_) => {
                    return socket.set_read_timeout(Some(LOOK_EVERY)).map_err(failed);
                }
                Err(error) if sockets::is_no_datagram(&error) => {}
                Err(source) => return Err(failed(source)),
            }
        }
        Err(Error::Because(format!(
            "no data came from {server}; see that the server runs and may send here: a nicpoll server needs --allow \
             with this host's address"
        )))
    }
}

/// Prepares a socket for receiving, with the requested buffer.
pub fn bound(
    socket: UdpSocket,
    bind: SocketAddr,
    stream: &StreamConfig,
    idle_timeout: Duration,
) -> io::Result<BoundUdp> {
    let receive_buffer = receive_window(&socket, stream.buffer_bytes)?;
    let server = ServerConfig {
        bind,
        receive_buffer_bytes: None,
        idle_timeout,
    };
    Ok(BoundUdp {
        receive_buffer,
        ..BoundUdp::set_up(socket, &server)?
    })
}

/// A bound server for one stream.
#[derive(Debug)]
pub struct Server {
    bound: BoundUdp,
    ahead_ns: i64,
}

impl Server {
    /// Binds the socket; the kernel queues datagrams from now on.
    ///
    /// # Errors
    /// When the address is not available.
    pub fn bind(config: &ServerConfig) -> Result<Self, Error> {
        let bound = BoundUdp::bind(config)?;
        socket::enable_arrival_times(&bound.socket).map_err(Error::setup(config.bind))?;
        Ok(Server { bound, ahead_ns: 0 })
    }

    /// With a wall clock that is ahead of the sender's by this much.
    #[must_use]
    pub(crate) fn ahead_by(self, ahead_ns: i64) -> Self {
        Server { ahead_ns, ..self }
    }

    /// The address bound to, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// Receives one stream to its end, from the sender of the first valid datagram, whose clock is known.
    ///
    /// # Errors
    /// See [`Error`]. A client that never comes is no error: see [`End::Idle`].
    pub fn run(self, signals: &Signals) -> Result<Total, Error> {
        let stream = StreamConfig::udp(UDP_LENGTH_BYTES, Amount::Bytes(0));
        let incoming = Incoming {
            sender_behind_ns: Some(self.ahead_ns),
            ..Incoming::of(self.bound, stream)
        };
        incoming.run(signals, &mut ())
    }
}

/// Limit on a session after its first FIN; a client sends FINs for 2.5 s.
const CLOSING_LIMIT: Duration = Duration::from_secs(4);
/// Silence that ends a stream after its expected duration, in case its FINs were lost.
const SILENCE_AT_END: Duration = Duration::from_secs(2);
/// Limit on emptying the socket after the sender is done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

struct UdpStreamReceiver<'a> {
    incoming: &'a Incoming,
    intervals: Splitter<'a>,
    session: Option<UdpSession>,
    calls: Calls,
    foreign_datagrams: u64,
    /// When the session's last datagram came, or when the wait for the first began.
    last_good: Instant,
    draining_since: Option<Instant>,
    /// `None` to read every datagram as soon as it arrives.
    nap: Option<Nap>,
}

impl UdpStreamReceiver<'_> {
    fn receive(&mut self, signals: &Signals) -> Result<End, Error> {
        let incoming = self.incoming;
        let failed = |source| Error::from(incoming.bound.receive_failed(source));
        let ticket = incoming.ticket.as_ref();
        let begun = Instant::now();
        let mut room = Room::new(ticket, begun).map_err(failed)?;
        let mut least_rate = LeastRate::new(begun);
        loop {
            signals.check()?;
            // Checked before the receive: if the socket is then empty, it stays empty.
            let is_draining = signals.is_sender_done();
            let wait = if is_draining {
                Wait::Never
            } else {
                Wait::ForFirst
            };
            let batch = room.batch();
            let datagrams_max = batch.datagrams_max() as u32;
            let received = batch.receive(&incoming.bound.socket, wait);
            let now = Instant::now();
            self.close_intervals(now);
            let is_empty = match received {
                Ok(mut datagrams) => {
                    self.calls.done += 1;
                    let mut count = 0;
                    datagrams.try_for_each(|datagram| {
                        count += 1;
                        match DatagramHead::of(&datagram) {
                            Some(head) => self.take(&head, now),
                            None => {
                                self.foreign_datagrams += 1;
                                Ok(())
                            }
                        }
                    })?;
                    room.after(count, now);
                    let nap = self.nap.as_mut();
                    if let Some(nap) = nap.and_then(|nap| nap.after(count, datagrams_max, now)) {
                        thread::sleep(nap);
                    }
                    false
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    room.after_silence(now);
                    true
                }
                Err(error) if sockets::is_no_datagram(&error) => false,
                Err(source) => return Err(failed(source)),
            };
            let is_in_the_way = ticket.is_some_and(|ticket| {
                let bytes = self.session.as_ref().map_or(0, |session| session.bytes);
                least_rate.look(ticket, bytes, now)
            });
            if is_in_the_way {
                return Ok(End::Idle);
            }
            if let Some(end) = self.end(is_draining, is_empty, now) {
                return Ok(end);
            }
        }
    }

    fn take(&mut self, head: &DatagramHead, now: Instant) -> Result<(), Error> {
        let source = &head.source;
        let incoming = self.incoming;
        let bound = &incoming.bound;
        let session = match &mut self.session {
            Some(session) if session.peer == *source => session,
            None if head.opens_session() => {
                bound.connect(*source)?;
                self.open(head, now)?
            }
            _ => {
                self.foreign_datagrams += 1;
                return Ok(());
            }
        };
        let Some((header, answer)) = session.take(head, now) else {
            self.foreign_datagrams += 1;
            return Ok(());
        };
        let is_timed = header.id >= 0 && session.times.is_some();
        if let Some(answer) = answer
            && incoming.is_answered
            && bound.answer(*source, &answer, &mut session.acks_refused)?
        {
            session.acks_sent += 1;
        }
        if let Some(ticket) = &incoming.ticket
            && session.datagrams + session.fins_received > 1
        {
            ticket.prove();
        }
        if let Some(arrival_ns) = head.arrival_ns.filter(|_| is_timed) {
            let transit_ns = arrival_ns.saturating_sub(header.sent_ns());
            self.intervals.transit.record(transit_ns);
        }
        self.last_good = now;
        Ok(())
    }

    /// Starts the session with the sender of this datagram, to which the socket is connected.
    fn open(&mut self, first: &DatagramHead, now: Instant) -> Result<&mut UdpSession, Error> {
        let Incoming { bound, stream, .. } = self.incoming;
        let peer = first.source;
        let local = bound.socket.local_addr();
        self.intervals.observer.connected(&Connected {
            local: local.map_err(|source| bound.receive_failed(source))?,
            peer,
            direction: self.incoming.direction,
            is_sender: false,
            buffer: bound.receive_buffer,
            tcp: None,
            type_of_service: self.incoming.type_of_service,
        });
        self.last_good = now;
        let session = self.session.insert(UdpSession::open(peer, &first.raw, now));
        if stream.records_times {
            session.times = Some(Box::default());
        }
        if let Some(ahead_ns) = self.incoming.sender_behind_ns {
            session.delays = Some(Box::new(OneWayDelays::start(ahead_ns)));
        }
        Ok(session)
    }

    /// Closes the intervals that have ended. Intervals run from the start of the session to its FIN.
    fn close_intervals(&mut self, now: Instant) {
        let Some(session) = &self.session else { return };
        let elapsed = session.elapsed_at(now);
        if self.intervals.is_due(elapsed) {
            let counted = self.counted();
            self.intervals.close_due(elapsed, counted);
        }
    }

    fn counted(&self) -> IntervalRecord {
        let session = self.session.as_ref();
        IntervalRecord {
            calls: self.calls,
            ..session.map(UdpSession::counted).unwrap_or_default()
        }
    }

    /// Whether the session has ended, and how.
    fn end(&mut self, is_draining: bool, is_empty: bool, now: Instant) -> Option<End> {
        if is_draining && is_empty {
            return Some(End::SenderDone);
        }
        if is_draining {
            let since = *self.draining_since.get_or_insert(now);
            return (now.duration_since(since) >= DRAIN_LIMIT).then_some(End::SenderDone);
        }
        let silence = now.duration_since(self.last_good);
        let closing = self.session.as_ref().and_then(|session| {
            let closing_for = session.closing_for(now)?;
            Some((closing_for, session.silence_after_fin()))
        });
        let session = self.session.as_ref();
        let elapsed = session.map(|session| session.elapsed_at(now));
        let times = elapsed.zip(self.incoming.expected);
        let is_late = times.is_some_and(|(elapsed, expected)| elapsed >= expected);
        let is_over = is_late && silence >= SILENCE_AT_END;
        match closing {
            Some(_) if !self.incoming.is_answered => Some(End::Closed),
            Some((time, limit)) if silence >= limit || time >= CLOSING_LIMIT => Some(End::Closed),
            _ if is_over || silence >= self.silence_max() => Some(End::Idle),
            _ => None,
        }
    }

    /// Longest silence before the stream ends; shorter for a client that has not proved to exist.
    fn silence_max(&self) -> Duration {
        let idle_timeout = self.incoming.bound.idle_timeout;
        match &self.incoming.ticket {
            Some(ticket) if !ticket.proof().is_given() => idle_timeout.min(STRANGER_TIMEOUT),
            _ => idle_timeout,
        }
    }
}

/// Average gap below which a stream is fast and its datagrams may queue.
const FAST_GAP: Duration = Duration::from_micros(10);
/// How long they may queue: the default buffer of 208 KiB holds about 250 small datagrams, which arrive in this
/// time at five million per second.
const NAP: Duration = Duration::from_micros(50);

/// Decides when to let datagrams queue.
struct Nap {
    previous: Instant,
}

impl Nap {
    fn new(now: Instant) -> Self {
        Nap { previous: now }
    }

    /// Returns how long to sleep after a call that read `datagrams` of at most `datagrams_max`; `None` if more
    /// may be queued already or the stream is slow.
    fn after(&mut self, datagrams: u32, datagrams_max: u32, now: Instant) -> Option<Duration> {
        let elapsed = now.duration_since(self.previous);
        self.previous = now;
        // A call that returns fewer has emptied the socket.
        let has_emptied_socket = datagrams < datagrams_max / 2;
        (has_emptied_socket && elapsed < FAST_GAP * datagrams).then_some(NAP)
    }
}

/// Datagrams, or coalesced trains of them, that one call reads on a fast stream.
pub const BATCH_DATAGRAMS: usize = 32;
/// A sender is fast if this many datagrams
const PROOF_DATAGRAMS: u32 = 64;
/// arrive within this time.
const PROOF_TIME: Duration = Duration::from_millis(1);

const _: () = assert!(PAYLOAD_BYTES_MAX <= STRANGER_BYTES);

/// The receive buffers of one stream.
struct Room<'a> {
    /// Accounts for the buffers of a server's stream; `None` elsewhere.
    ticket: Option<&'a Ticket>,
    small: ReceiveBatch,
    large: Option<(ReceiveBatch, Option<Grown>)>,
    since: Instant,
    datagrams: u32,
}

impl<'a> Room<'a> {
    /// Buffers for a stream whose sender is not yet known.
    ///
    /// # Errors
    /// When there is no memory.
    fn new(ticket: Option<&'a Ticket>, now: Instant) -> io::Result<Self> {
        Ok(Room {
            ticket,
            small: ReceiveBatch::new(1, PAYLOAD_BYTES_MAX)?,
            large: None,
            since: now,
            datagrams: 0,
        })
    }

    /// The buffer for the next call.
    fn batch(&mut self) -> &mut ReceiveBatch {
        match &mut self.large {
            Some((batch, _)) => batch,
            None => &mut self.small,
        }
    }

    /// Records a call that returned `datagrams`.
    fn after(&mut self, datagrams: u32, now: Instant) {
        if self.large.is_some() {
            return;
        }
        self.datagrams += datagrams;
        if self.datagrams >= PROOF_DATAGRAMS {
            if now.duration_since(self.since) < PROOF_TIME {
                self.large = self.grown();
            }
            (self.since, self.datagrams) = (now, 0);
        }
    }

    /// Records a wait without datagrams.
    fn after_silence(&mut self, now: Instant) {
        self.large = None;
        (self.since, self.datagrams) = (now, 0);
    }

    /// `None` when the server's limit leaves no room.
    fn grown(&self) -> Option<(ReceiveBatch, Option<Grown>)> {
        let grown = match self.ticket {
            Some(ticket) => Some(ticket.grow(BATCH_DATAGRAMS * PAYLOAD_BYTES_MAX)?),
            None => None,
        };
        let batch = ReceiveBatch::new(BATCH_DATAGRAMS, PAYLOAD_BYTES_MAX).ok()?;
        Some((batch, grown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::slots::Slots;

    #[test]
    fn room_grows_with_proof_and_shrinks_with_silence() {
        let slots = Slots::new(false);
        let ticket = slots.take(([192, 0, 2, 1], 1).into(), 1).unwrap();
        let begun = Instant::now();
        let us = |us| begun + Duration::from_micros(us);
        let mut room = Room::new(Some(&ticket), begun).unwrap();
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(64, us(1000));
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(63, us(1001));
        assert_eq!(room.batch().datagrams_max(), 1);
        room.after(1, us(1999));
        assert_eq!(room.batch().datagrams_max(), BATCH_DATAGRAMS);
        room.after_silence(us(3000));
        assert_eq!(room.batch().datagrams_max(), 1);
    }

    #[test]
    fn all_streams_together_have_so_much_room_and_no_more() {
        let slots = Slots::new(false);
        let now = Instant::now();
        let tickets: Vec<_> = (0..64)
            .map(|host| slots.take(([192, 0, 2, host], 1).into(), 1).unwrap())
            .collect();
        let large = tickets.iter().map(|ticket| {
            let mut room = Room::new(Some(ticket), now).unwrap();
            room.after(PROOF_DATAGRAMS, now);
            room
        });
        let rooms: Vec<_> = large.collect();
        let grown = rooms.iter().filter(|room| room.large.is_some()).count();
        assert!((8..32).contains(&grown), "{grown}");
    }

    #[test]
    fn only_a_fast_stream_is_let_gather() {
        let begun = Instant::now();
        let mut nap = Nap::new(begun);
        let us = |us| begun + Duration::from_micros(us);
        assert_eq!(nap.after(0, 32, us(1)), None);
        assert_eq!(nap.after(1, 32, us(10)), Some(NAP));
        assert_eq!(nap.after(1, 32, us(20)), None);
        assert_eq!(nap.after(15, 32, us(169)), Some(NAP));
        assert_eq!(nap.after(15, 32, us(320)), None);
        assert_eq!(nap.after(64, 32, us(650)), None);
    }

    #[test]
    fn nobody_naps_who_reads_one_datagram_a_call() {
        let begun = Instant::now();
        let mut nap = Nap::new(begun);
        for call in 1..100 {
            assert_eq!(nap.after(1, 1, begun + Duration::from_micros(call)), None);
        }
    }
}
