//! The loop that receives one stream, whichever way it was opened.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::socket::{Datagram, Wait};

use nicpoll_traffic::sockets;
use nicpoll_traffic::udp_server::{BoundUdp, ServerError};
use nicpoll_traffic::{OneWayDelays, RefusedSends, Signals};

use crate::wire::datagram::has_shared_clock;
use crate::wire::{Dialect, RawDatagram};
use nicpoll_model::iperf::Direction;

use super::nap::Nap;
use super::room::Room;
use super::server::{End, ReceiveReport};
use super::session::Session;
use crate::observer::{Calls, Connected, Intervals, Observer, Remarks, Totals};
use crate::pace;
use crate::slots::{LeastRate, STRANGER_TIMEOUT, Ticket};

/// A client's FINs take 2.5 s; whoever sends for longer is not listened to.
const CLOSING_LIMIT: Duration = Duration::from_secs(4);
/// Silence that ends a stream whose time is over, should its FINs be lost.
const SILENCE_AT_END: Duration = Duration::from_secs(2);
/// The longest time to empty the socket after the sender is done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// What is needed of a datagram once it has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) source: SocketAddr,
    pub(super) raw: RawDatagram,
    pub(super) payload_bytes: usize,
    pub(super) arrival_ns: Option<i64>,
    /// See [`has_shared_clock`].
    pub(super) has_shared_clock: bool,
}

impl Taken {
    /// `None` when the datagram is none of iperf's.
    pub(super) fn of(datagram: &Datagram<'_>) -> Option<Self> {
        Some(Taken {
            source: datagram.source?,
            raw: RawDatagram::parse(datagram.payload).ok()?,
            payload_bytes: datagram.payload.len(),
            arrival_ns: datagram.arrival_ns,
            has_shared_clock: has_shared_clock(datagram.payload),
        })
    }

    /// Whether it may be a client's first. A FIN of nobody's session is left over from an earlier one.
    pub(super) fn opens_session(&self) -> bool {
        let header = Dialect::of_client(&self.raw).header(&self.raw, 0);
        header.is_ok_and(|header| header.id >= 0)
    }
}

/// How a stream is received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Which way the test's data flow over the socket.
    pub(super) direction: Direction,
    /// Whether FINs are answered; where they are not, the first one ends the stream.
    pub(super) is_answered: bool,
    /// What is remarked of it.
    pub(super) remarks: Remarks,
    /// When the stream should be over: a short silence ends it then.
    pub(super) expected: Option<Duration>,
}

impl Manner {
    /// A stream that is answered, however long it takes.
    pub(super) const ANSWERED: Manner = Manner {
        direction: Direction::Forward,
        is_answered: true,
        remarks: Remarks {
            type_of_service: 0,
            is_paced: false,
            peer_version: None,
        },
        expected: None,
    };
}

pub(super) struct Receiver<'a> {
    bound: &'a BoundUdp,
    manner: Manner,
    intervals: Intervals<'a>,
    /// A server's.
    ticket: Option<&'a Ticket>,
    session: Option<Session>,
    records_times: bool,
    records_delays: bool,
    calls: Calls,
    foreign_datagrams: u64,
    /// When the last datagram of the session came, or the wait for it began.
    last_good: Instant,
    draining_since: Option<Instant>,
    /// `None` when every datagram is to be read as soon as it has come.
    nap: Option<Nap>,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(
        bound: &'a BoundUdp,
        interval: Option<Duration>,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Receiver {
            bound,
            manner: Manner::ANSWERED,
            intervals: Intervals::new(interval, observer),
            ticket: None,
            session: None,
            records_times: false,
            records_delays: false,
            calls: Calls::default(),
            foreign_datagrams: 0,
            last_good: Instant::now(),
            draining_since: None,
            nap: None,
        }
    }

    /// Receives in another manner than the usual one.
    pub(super) fn in_manner(self, manner: Manner) -> Self {
        Receiver { manner, ..self }
    }

    /// Receives as one of a server's streams.
    pub(super) fn counted_by(self, ticket: Option<&'a Ticket>) -> Self {
        Receiver { ticket, ..self }
    }

    /// Records gaps and times of transit.
    pub(super) fn recording_times(self) -> Self {
        Receiver {
            records_times: true,
            ..self
        }
    }

    /// Records how long datagrams take from their sender, which has this host's clock, to this program.
    pub(super) fn recording_delays(self) -> Self {
        Receiver {
            records_delays: true,
            ..self
        }
    }

    /// Lets datagrams gather while they come fast.
    pub(super) fn napping(self) -> Self {
        pace::make_sleeps_exact();
        Receiver {
            nap: Some(Nap::new(Instant::now())),
            ..self
        }
    }

    pub(super) fn run(mut self, signals: &Signals) -> Result<ReceiveReport, ServerError> {
        let outcome = self.receive(signals);
        let totals = self.totals();
        if let Some(session) = &self.session {
            self.intervals.finish(session.elapsed(), totals);
        }
        Ok(self.report(outcome?))
    }

    fn receive(&mut self, signals: &Signals) -> Result<End, ServerError> {
        let begun = Instant::now();
        let room = Room::new(self.ticket, begun);
        let mut room = room.map_err(|source| self.bound.receive_failed(source))?;
        let mut least_rate = LeastRate::new(begun);
        loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            // Looked at before the receive, so that an empty socket afterwards is empty for good.
            let is_draining = signals.is_sender_done();
            let wait = if is_draining {
                Wait::Never
            } else {
                Wait::ForFirst
            };
            let batch = room.batch();
            let datagrams_max = batch.datagrams_max() as u32;
            let received = batch.receive(&self.bound.socket, wait);
            let now = Instant::now();
            self.close_intervals(now);
            let is_empty = match received {
                Ok(mut datagrams) => {
                    self.calls.done += 1;
                    let mut count = 0;
                    datagrams.try_for_each(|datagram| {
                        count += 1;
                        match Taken::of(&datagram) {
                            Some(taken) => self.take(&taken, now),
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
                Err(source) => return Err(self.bound.receive_failed(source)),
            };
            let is_in_the_way = self.ticket.is_some_and(|ticket| {
                let bytes = self.session.as_ref().map_or(0, |session| session.bytes);
                least_rate.is_missed(ticket, bytes, now)
            });
            if is_in_the_way {
                return Ok(End::Idle);
            }
            if let Some(end) = self.end(is_draining, is_empty, now) {
                return Ok(end);
            }
        }
    }

    pub(super) fn take(&mut self, taken: &Taken, now: Instant) -> Result<(), ServerError> {
        let Taken { source, raw, .. } = taken;
        let bound = self.bound;
        let is_answered = self.manner.is_answered;
        let ticket = self.ticket;
        let session = match &mut self.session {
            Some(session) if session.peer == *source => session,
            None if taken.opens_session() => {
                bound.connect(*source)?;
                self.open(taken, now)?
            }
            _ => {
                self.foreign_datagrams += 1;
                return Ok(());
            }
        };
        let Some(header) = session.read(raw) else {
            self.foreign_datagrams += 1;
            return Ok(());
        };
        let length = taken.payload_bytes;
        if header.id >= 0 {
            session.data(&header, length, taken.arrival_ns, now);
        } else if let Some(answer) = session.fin(raw, &header, length, taken.arrival_ns, now)
            && is_answered
            && bound.answer(*source, &answer, &mut session.acks_refused)?
        {
            session.acks_sent += 1;
        }
        if let Some(ticket) = ticket
            && session.datagrams + session.fins_received > 1
        {
            ticket.prove();
        }
        self.last_good = now;
        Ok(())
    }

    /// Begins the session with the sender of this datagram, which the socket is connected to.
    pub(super) fn open(
        &mut self,
        first: &Taken,
        now: Instant,
    ) -> Result<&mut Session, ServerError> {
        let peer = first.source;
        let local = self.bound.socket.local_addr();
        self.intervals.observer.connected(&Connected {
            local: local.map_err(|source| self.bound.receive_failed(source))?,
            peer,
            direction: self.manner.direction,
            is_sender: false,
            buffer: self.bound.receive_buffer,
            tcp: None,
            remarks: self.manner.remarks,
        });
        self.last_good = now;
        let session = self.session.insert(Session::open(peer, &first.raw, now));
        if self.records_times {
            session.record_times(first.has_shared_clock);
        }
        if self.records_delays {
            session.delays = Some(Box::new(OneWayDelays::start()));
        }
        Ok(session)
    }

    /// Closes the intervals that have ended. They begin with the session and end with its FIN.
    fn close_intervals(&mut self, now: Instant) {
        let Some(session) = &self.session else { return };
        let elapsed = session.elapsed_at(now);
        if self.intervals.is_due(elapsed) {
            let totals = self.totals();
            self.intervals.close_due(elapsed, totals);
            let times = self
                .session
                .as_mut()
                .and_then(|session| session.times.as_mut());
            if let Some(times) = times {
                times.begin_interval();
            }
        }
    }

    fn totals(&self) -> Totals {
        let session = self.session.as_ref();
        Totals {
            calls: self.calls,
            ..session.map_or_else(Totals::default, Session::totals)
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
        let is_over = self.is_over(now) && silence >= SILENCE_AT_END;
        match closing {
            Some(_) if !self.manner.is_answered => Some(End::Fin),
            Some((time, limit)) if silence >= limit || time >= CLOSING_LIMIT => Some(End::Fin),
            _ if is_over || silence >= self.silence_max() => Some(End::Idle),
            _ => None,
        }
    }

    /// How long to wait for the next datagram: not long for one that may never come.
    fn silence_max(&self) -> Duration {
        let idle_timeout = self.bound.idle_timeout;
        match self.ticket {
            Some(ticket) if !ticket.test().is_proven() => idle_timeout.min(STRANGER_TIMEOUT),
            _ => idle_timeout,
        }
    }

    /// Whether the stream should have ended by itself.
    fn is_over(&self, now: Instant) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| {
            let expected = self.manner.expected;
            expected.is_some_and(|expected| session.elapsed_at(now) >= expected)
        })
    }

    fn report(self, end: End) -> ReceiveReport {
        let session = self.session.as_ref();
        let count = |of: fn(&Session) -> u64| session.map_or(0, of);
        ReceiveReport {
            peer: session.map(|session| session.peer),
            datagrams_received: count(|session| session.datagrams),
            bytes_received: count(|session| session.bytes),
            seconds: session.map_or(0.0, Session::seconds),
            seconds_to_fin: session.and_then(Session::seconds_to_fin),
            datagrams_expected: count(|session| session.sequence.highest()),
            lost: count(|session| session.sequence.lost()),
            out_of_order: count(|session| session.sequence.out_of_order()),
            duplicates: count(|session| session.sequence.duplicates()),
            jitter_seconds: session.and_then(Session::jitter_seconds),
            fins_received: count(|session| session.fins_received),
            fin_acks_sent: count(|session| session.acks_sent),
            refused_sends: session.map_or(RefusedSends::default(), |session| session.acks_refused),
            foreign_datagrams: self.foreign_datagrams,
            end,
            whole: self
                .totals()
                .whole(session.map_or(Duration::ZERO, Session::elapsed)),
            gaps: session.and_then(Session::gaps).map(Box::new),
            one_way_delays: session.and_then(Session::one_way_delays).map(Box::new),
            delays_to_program: session.and_then(Session::delays_to_program),
            receive_buffer: self.bound.receive_buffer,
        }
    }
}
