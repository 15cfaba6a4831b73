//! What a server knows of the one client that it serves: no clock, no socket. The client is never sent more bytes
//! than came from it, and what it sends is read as its version means it.
//!
//! [`DatagramServer`] serves a stream that comes by another way than a socket, [`ClientIds`] only reads along.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_model::ControlKind;
use nicpoll_stats::sequence::{Ids, Jitter, Sequence};
use nicpoll_sys::socket::Datagram;
use nicpoll_traffic::workload::{Arrival, DatagramReceiver, EndBooks, Payload};
use nicpoll_traffic::{OneWayDelays, RefusedSends, SocketBuffer, WallClock};

use crate::records::{ArrivalTimes, Calls, IntervalRecord, Receipt, Total};
use crate::wire::{DatagramHeader, Dialect, RawDatagram, ServerReport};

/// What is needed of a datagram once it has been read.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub source: SocketAddr,
    pub raw: RawDatagram,
    pub payload_bytes: usize,
    pub arrival_ns: Option<i64>,
}

impl Head {
    /// `None` when the datagram is none of iperf's.
    pub fn of(datagram: &Datagram<'_>) -> Option<Self> {
        Some(Head {
            source: datagram.source?,
            raw: RawDatagram::parse(datagram.payload)?,
            payload_bytes: datagram.payload.len(),
            arrival_ns: datagram.arrival_ns,
        })
    }

    /// Whether it may be a client's first. A FIN of nobody's session is left over from an earlier one.
    pub fn opens_session(&self) -> bool {
        let header = Dialect::of_client(&self.raw).header(&self.raw, 0);
        header.is_some_and(|header| header.id >= 0)
    }
}

/// 2.1.8 answers no more FINs than this.
const ACKS_MAX: u64 = 9;
/// Clients whose FINs count down send no more of them again than this.
const FIN_REPETITIONS_MAX: u64 = 9;
/// Silence that ends the session after a FIN, as in 2.1.8, whose client repeats it every 10 ms.
const SILENCE_AFTER_FIN: Duration = Duration::from_millis(250);
/// The same for clients that repeat it every 250 ms, as 2.0.x, whose servers wait so long.
const SILENCE_AFTER_OLD_FIN: Duration = Duration::from_secs(1);

/// What is sent back to a FIN.
type Answer = [u8; ServerReport::BYTES];

#[derive(Debug)]
pub struct Session {
    pub peer: SocketAddr,
    pub datagrams: u64,
    pub bytes: u64,
    pub fins_received: u64,
    pub acks_sent: u64,
    pub acks_refused: RefusedSends,
    pub sequence: Sequence,
    pub jitter: Jitter,
    /// Recorded when that was asked for.
    pub times: Option<Box<ArrivalTimes>>,
    /// From sending to this program; recorded when the client is known to have this host's clock.
    pub delays: Option<Box<OneWayDelays>>,
    dialect: Dialect,
    /// The id of the client's first datagram, 0 or 1.
    first_id: u64,
    /// When the first datagram was read.
    begun: Instant,
    /// When the last datagram of data was read.
    last_data: Instant,
    /// The first FIN: its answer, and when it was read.
    closing: Option<(ServerReport, Instant)>,
    /// Payload of the FINs.
    fin_bytes: u64,
}

impl Session {
    /// With the client whose first datagram this is.
    pub fn open(peer: SocketAddr, first: &RawDatagram, now: Instant) -> Self {
        let dialect = Dialect::of_client(first);
        let is_zero = dialect.header(first, 0).is_some_and(|first| first.id == 0);
        Session {
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

    /// Records gaps and times of transit from now on.
    pub fn record_times(&mut self) {
        self.times = Some(Box::new(ArrivalTimes::new()));
    }

    /// Takes a datagram, read as the client means it; its header, and the answer that is due if it is a FIN. `None`
    /// when it cannot be the client's.
    pub fn take(&mut self, head: &Head, now: Instant) -> Option<(DatagramHeader, Option<Answer>)> {
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
    fn data(&mut self, header: &DatagramHeader, head: &Head, now: Instant) {
        self.datagrams += 1;
        self.bytes += head.payload_bytes as u64;
        self.last_data = now;
        // Counted from 1, whatever the client calls its first. An id before that is none of the test.
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

    /// Takes a FIN; returns the answer that is due, or `None` when enough were given.
    fn fin(&mut self, header: &DatagramHeader, head: &Head, now: Instant) -> Option<Answer> {
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

    /// The magnitude of the id that the client's first FIN had. Where each repetition has another id,
    /// this FIN may be one of those: it then comes later after its time, which is the first one's, than
    /// the data did.
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
            // No more than are not accounted for by data that came.
            1.. => {
                let next_id = self.sequence.highest() + self.first_id;
                let unaccounted = id.saturating_sub(next_id);
                id - unaccounted.min(repetitions.unsigned_abs())
            }
            ..0 => id + repetitions.unsigned_abs().min(FIN_REPETITIONS_MAX),
        }
    }

    /// Silence after which the client has its answer, or has given up asking for it.
    pub fn silence_after_fin(&self) -> Duration {
        match self.dialect {
            Dialect::V2_1 => SILENCE_AFTER_FIN,
            _ => SILENCE_AFTER_OLD_FIN,
        }
    }

    /// How long ago the first FIN came; `None` before it.
    pub fn closing_for(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.closing.as_ref()?;
        Some(now.duration_since(*since))
    }

    /// Time from the first datagram to `now`, or to the first FIN when that has come.
    pub fn elapsed_at(&self, now: Instant) -> Duration {
        let end = self.closing.as_ref().map_or(now, |(_, since)| *since);
        end.duration_since(self.begun)
    }

    /// Time from the first datagram to the first FIN; without one, to the last datagram of data.
    pub fn elapsed(&self) -> Duration {
        self.elapsed_at(self.last_data)
    }

    /// What was counted from the first datagram on.
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
                transit: times.and_then(ArrivalTimes::transit),
            }),
            ..IntervalRecord::default()
        }
    }

    /// What all of it came to, in so many reads of a socket with this buffer.
    pub fn total(&self, calls: Calls, buffer: SocketBuffer) -> Total {
        let times = self.times.as_deref();
        let whole = IntervalRecord {
            calls,
            ..self.counted()
        };
        Total {
            seconds: self.last_data.duration_since(self.begun).as_secs_f64(),
            gaps: times.and_then(ArrivalTimes::gaps),
            delays_to_program: self.delays.as_deref().and_then(OneWayDelays::distribution),
            fins: self.fins_received,
            fin_answers: self.acks_sent,
            refused: self.acks_refused,
            ..Total::of(whole.until(self.elapsed()), buffer)
        }
    }

    /// The report to the client: the figures of this end, so both ends state the same. The FIN is not counted
    /// as data; a 2.1.8 server counts it as a datagram. What came twice is out of order, as there.
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

/// What one end counted.
pub(crate) fn datagrams(total: &Total) -> Payload {
    Payload {
        packets: Some(total.whole.datagrams),
        bytes: total.whole.bytes,
    }
}

/// What a receiver of datagrams counted.
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

/// Receives one stream, from a sender that has this host's clock. The first good datagram decides whose.
#[derive(Debug)]
pub struct DatagramServer {
    clock: WallClock,
    session: Option<Session>,
}

impl Default for DatagramServer {
    /// Nothing has come yet.
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
        let head = Head::of(&Datagram {
            payload: arrival.payload,
            is_truncated: false,
            source: Some(arrival.source),
            arrival_ns,
        })?;
        let session = match &mut self.session {
            Some(session) if session.peer == head.source => session,
            None if head.opens_session() => {
                let mut session = Session::open(head.source, &head.raw, now);
                session.delays = Some(Box::new(OneWayDelays::start()));
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

/// The ids of one client's datagrams, for an observer that is not their server. It reads them as a server would,
/// by the dialect of the first datagram. An end marker (FIN) has no id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientIds {
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    dialect: Dialect,
    /// What the client calls its first datagram, 0 or 1.
    first_id: u64,
    /// The highest id so far, as the client writes it.
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
