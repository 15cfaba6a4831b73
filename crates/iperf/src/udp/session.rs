//! A server's state for one client, without sockets. A client gets no more bytes than it sent, and its
//! datagrams are read in its own dialect.
//!
//! [`DatagramServer`] serves a stream that does not arrive over a socket; [`ClientIds`] only observes one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_model::ControlKind;
use nicpoll_stats::sequence::{Ids, Jitter, Sequence};
use nicpoll_sys::socket::Datagram;
use nicpoll_traffic::workload::{Arrival, DatagramReceiver, EndBooks, Payload};
use nicpoll_traffic::{OneWayDelays, RefusedSends, SocketBuffer, WallClock};

use crate::records::{ArrivalTimes, Calls, IntervalRecord, Receipt, Total};
use crate::wire::{DatagramHeader, Dialect, RawDatagram, ServerReport};

/// The parts of a datagram that matter after it was read.
#[derive(Clone, Copy, Debug)]
pub struct DatagramHead {
    pub source: SocketAddr,
    pub raw: RawDatagram,
    pub payload_bytes: usize,
    pub arrival_ns: Option<i64>,
}

impl DatagramHead {
    /// `None` when the datagram is not iperf's.
    pub fn of(datagram: &Datagram<'_>) -> Option<Self> {
        Some(DatagramHead {
            source: datagram.source?,
            raw: RawDatagram::parse(datagram.payload)?,
            payload_bytes: datagram.payload.len(),
            arrival_ns: datagram.arrival_ns,
        })
    }

    /// Whether this may be a client's first datagram. A FIN without a session is left over from an earlier one.
    pub fn opens_session(&self) -> bool {
        let header = Dialect::of_client(&self.raw).header(&self.raw, 0);
        header.is_some_and(|header| header.id >= 0)
    }
}

/// Most FINs that 2.1.8 answers.
const ACKS_MAX: u64 = 9;
/// Most repetitions of a FIN by clients whose FIN ids count down.
const FIN_REPETITIONS_MAX: u64 = 9;
/// Silence that ends the session after a FIN, as in 2.1.8, whose client repeats it every 10 ms.
const SILENCE_AFTER_FIN: Duration = Duration::from_millis(250);
/// The same for 2.0.x clients, which repeat it every 250 ms; their servers wait this long.
const SILENCE_AFTER_OLD_FIN: Duration = Duration::from_secs(1);

/// The payload of an answer to a FIN.
type FinAnswer = [u8; ServerReport::BYTES];

#[derive(Debug)]
pub struct UdpSession {
    pub peer: SocketAddr,
    pub datagrams: u64,
    pub bytes: u64,
    pub fins_received: u64,
    pub acks_sent: u64,
    pub acks_refused: RefusedSends,
    pub sequence: Sequence,
    pub jitter: Jitter,
    /// Gaps and transit times, if recorded.
    pub times: Option<Box<ArrivalTimes>>,
    /// One-way delays to this program; only if the client shares this host's clock.
    pub delays: Option<Box<OneWayDelays>>,
    dialect: Dialect,
    /// Id of the client's first datagram, 0 or 1.
    first_id: u64,
    /// When the first datagram was read.
    begun: Instant,
    /// When the last datagram of data was read.
    last_data: Instant,
    /// The answer to the first FIN, and when that FIN was read.
    closing: Option<(ServerReport, Instant)>,
    /// Payload bytes of the FINs.
    fin_bytes: u64,
}

impl UdpSession {
    /// Opens a session for the client that sent `first`.
    pub fn open(peer: SocketAddr, first: &RawDatagram, now: Instant) -> Self {
        let dialect = Dialect::of_client(first);
        let is_zero = dialect.header(first, 0).is_some_and(|first| first.id == 0);
        UdpSession {
            peer,
            datagrams: 0,
            bytes: 0,
            fins_received: 0,
            acks_sent: 0,
            acks_refused: RefusedSends::default(),
            sequence: Sequence::default(),
            jitter: Jitter::default(),
            times: None,
            delays: None,
            dialect,
            first_id: if is_zero { 0 } else { dialect.first_id() },
            begun: now,
            last_data: now,
            closing: None,
            fin_bytes: 0,
        }
    }

    /// Takes a datagram. Returns its header in the client's dialect and, for a FIN, the answer due. `None` when
    /// the client cannot have sent it.
    pub fn take(
        &mut self,
        head: &DatagramHead,
        now: Instant,
    ) -> Option<(DatagramHeader, Option<FinAnswer>)> {
        let highest_id = (self.sequence.highest() + self.first_id).saturating_sub(1);
        let header = self.dialect.header(&head.raw, highest_id)?;
        let answer = if header.id >= 0 {
            self.data(&header, head, now);
            None
        } else {
            self.fin(&header, head, now)
        };
        Some((header, answer))
    }

    /// Takes a datagram of data.
    fn data(&mut self, header: &DatagramHeader, head: &DatagramHead, now: Instant) {
        self.datagrams += 1;
        self.bytes += head.payload_bytes as u64;
        self.last_data = now;
        // Counts from 1, whatever the client's first id. A lower id is not part of the test.
        let number = (header.id.unsigned_abs() + 1).saturating_sub(self.first_id);
        if number > 0 {
            self.sequence.record(number);
        }
        if let Some(delays) = &mut self.delays {
            let sent_ns = u64::try_from(header.sent_ns()).unwrap_or(0);
            delays.record(Duration::from_nanos(sent_ns), now);
        }
        if let Some(arrival_ns) = head.arrival_ns {
            self.jitter.record(header.sent_ns(), arrival_ns);
            if let Some(times) = &mut self.times {
                times.record(header.sent_ns(), arrival_ns);
            }
        }
    }

    /// Takes a FIN; returns the answer due, or `None` when enough were sent.
    fn fin(
        &mut self,
        header: &DatagramHeader,
        head: &DatagramHead,
        now: Instant,
    ) -> Option<FinAnswer> {
        self.fins_received += 1;
        self.fin_bytes += head.payload_bytes as u64;
        if self.closing.is_none() {
            // All data has smaller ids.
            let fin_id = self.first_fin_id(header, head.arrival_ns);
            self.sequence
                .expect_up_to(fin_id.saturating_sub(self.first_id));
            self.closing = Some((self.report(now), now));
        }
        let answer = ServerReport::BYTES as u64;
        let budget = self.bytes + self.fin_bytes;
        if self.acks_sent >= ACKS_MAX || (self.acks_sent + 1) * answer > budget {
            return None;
        }
        let (report, _) = self.closing.as_ref()?;
        Some(report.answer(self.dialect, &head.raw))
    }

    /// Estimates the magnitude of the first FIN's id. In dialects where each repetition has another id but
    /// keeps the first FIN's send time, a repeated FIN shows a longer transit time than the data.
    fn first_fin_id(&self, header: &DatagramHeader, arrival_ns: Option<i64>) -> u64 {
        let id = header.id.unsigned_abs();
        let (Some(arrival_ns), Some(transit_ns)) = (arrival_ns, self.jitter.transit_ns()) else {
            return id;
        };
        let late_ns = arrival_ns
            .saturating_sub(header.sent_ns())
            .saturating_sub(transit_ns);
        let every_ns = self.dialect.fin_every().as_nanos() as i64;
        let repetitions = late_ns.saturating_add(every_ns / 2).max(0) / every_ns;
        match self.dialect.fin_id_step() {
            0 => id,
            // At most as many as there are ids not accounted for by received data.
            1.. => {
                let next_id = self.sequence.highest() + self.first_id;
                let unaccounted = id.saturating_sub(next_id);
                id - unaccounted.min(repetitions.unsigned_abs())
            }
            ..0 => id + repetitions.unsigned_abs().min(FIN_REPETITIONS_MAX),
        }
    }

    /// Silence after which the client has its answer or has stopped asking.
    pub fn silence_after_fin(&self) -> Duration {
        match self.dialect {
            Dialect::V2_1 => SILENCE_AFTER_FIN,
            _ => SILENCE_AFTER_OLD_FIN,
        }
    }

    /// Time since the first FIN; `None` before it.
    pub fn closing_for(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.closing.as_ref()?;
        Some(now.duration_since(*since))
    }

    /// Time from the first datagram to `now`, or to the first FIN if that has come.
    pub fn elapsed_at(&self, now: Instant) -> Duration {
        let end = self.closing.as_ref().map_or(now, |(_, since)| *since);
        end.duration_since(self.begun)
    }

    /// Time from the first datagram to the first FIN, or without a FIN to the last datagram of data.
    pub fn elapsed(&self) -> Duration {
        self.elapsed_at(self.last_data)
    }

    /// The counts since the first datagram.
    pub fn counted(&self) -> IntervalRecord {
        let times = self.times.as_deref();
        IntervalRecord {
            bytes: self.bytes,
            datagrams: self.datagrams,
            receipt: Some(Receipt {
                expected: self.sequence.highest(),
                lost: self.sequence.lost() as i64,
                out_of_order: self.sequence.out_of_order(),
                duplicates: self.sequence.duplicates(),
                jitter_seconds: self.jitter.ns().map(|ns| ns / 1e9),
                transit: times.and_then(|times| times.transit.transit()),
            }),
            ..IntervalRecord::default()
        }
    }

    /// The session's total; `calls` and `buffer` are those of its socket.
    pub fn total(&self, calls: Calls, buffer: SocketBuffer) -> Total {
        let times = self.times.as_deref();
        let whole = IntervalRecord {
            calls,
            ..self.counted()
        };
        Total {
            seconds: self.last_data.duration_since(self.begun).as_secs_f64(),
            gaps: times.and_then(|times| times.gaps.times()),
            delays_to_program: self.delays.as_deref().and_then(OneWayDelays::distribution),
            fins: self.fins_received,
            fin_answers: self.acks_sent,
            refused: self.acks_refused,
            ..Total::of(whole.until(self.elapsed()), buffer)
        }
    }

    /// The report to the client, with the figures that this end prints. Unlike in 2.1.8, the FIN is not counted
    /// as a datagram; as in 2.1.8, duplicates count as out of order.
    fn report(&self, now: Instant) -> ServerReport {
        ServerReport {
            bytes: self.bytes,
            elapsed: now.duration_since(self.begun),
            lost: self.sequence.lost(),
            out_of_order: self.sequence.out_of_order() + self.sequence.duplicates(),
            datagrams: self.sequence.highest(),
            jitter: Duration::from_nanos(self.jitter.ns().unwrap_or(0.0) as u64),
        }
    }
}

/// The data that one end counted.
pub(crate) fn datagrams(total: &Total) -> Payload {
    Payload {
        packets: Some(total.whole.datagrams),
        bytes: total.whole.bytes,
    }
}

/// The books of a UDP receiver.
pub(crate) fn books_of_receiver(total: &Total) -> EndBooks {
    let receipt = total.receipt();
    EndBooks {
        control_sent: vec![(ControlKind::FinAcknowledgement, total.fin_answers)],
        control_received: vec![(ControlKind::Fin, total.fins)],
        jitter_seconds: receipt.jitter_seconds,
        one_way_delays: total.delays_to_program.clone(),
        out_of_order_packets: Some(receipt.out_of_order),
        duplicate_packets: Some(receipt.duplicates),
        ..EndBooks::of_receiver(datagrams(total), total.seconds, total.buffer)
    }
}

/// Receives one stream, from a sender that shares this host's clock: the sender of the first valid datagram.
#[derive(Debug)]
pub struct DatagramServer {
    clock: WallClock,
    session: Option<UdpSession>,
}

impl Default for DatagramServer {
    /// A server that has received nothing yet.
    fn default() -> Self {
        DatagramServer {
            clock: WallClock::start(),
            session: None,
        }
    }
}

impl DatagramReceiver for DatagramServer {
    fn take(&mut self, arrival: &Arrival<'_>) -> Option<Vec<u8>> {
        let now = arrival.at;
        let arrived: Duration = self.clock.at(now);
        let arrival_ns = i64::try_from(arrived.as_nanos()).ok();
        let head = DatagramHead::of(&Datagram {
            payload: arrival.payload,
            is_truncated: false,
            source: Some(arrival.source),
            arrival_ns,
        })?;
        let session = match &mut self.session {
            Some(session) if session.peer == head.source => session,
            None if head.opens_session() => {
                let mut session = UdpSession::open(head.source, &head.raw, now);
                session.delays = Some(Box::new(OneWayDelays::start(0)));
                self.session.insert(session)
            }
            _ => return None,
        };
        let (_, answer) = session.take(&head, now)?;
        let answer = answer?;
        session.acks_sent += 1;
        Some(answer.to_vec())
    }

    fn books(&self) -> EndBooks {
        let session = self.session.as_ref();
        let total = session.map(|session| session.total(Calls::default(), SocketBuffer::default()));
        books_of_receiver(&total.unwrap_or_default())
    }
}

/// Extracts the ids of one client's datagrams for an observer, in the dialect of the first datagram, as a
/// server would. A FIN has no id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientIds {
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    dialect: Dialect,
    /// Id of the client's first datagram, 0 or 1.
    first_id: u64,
    /// The highest id so far, as sent.
    highest: u64,
}

impl Ids for ClientIds {
    fn id(&mut self, payload: &[u8]) -> Option<u64> {
        let raw = RawDatagram::parse(payload)?;
        let begun = self.begun.get_or_insert_with(|| {
            let dialect = Dialect::of_client(&raw);
            Begun {
                dialect,
                first_id: dialect.first_id(),
                highest: 0,
            }
        });
        let header = begun.dialect.header(&raw, begun.highest)?;
        let id = u64::try_from(header.id).ok()?;
        if id == 0 {
            begun.first_id = 0;
        }
        begun.highest = begun.highest.max(id);
        (id + 1).checked_sub(begun.first_id).filter(|id| *id > 0)
    }
}

#[cfg(test)]
mod tests;
