//! What a server knows of the one client that it serves. No clock, no socket.
//!
//! What must hold: the client is never sent more bytes than came from it, and what it sends is read
//! as its version means it.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_model::TimeDistribution;
use nicpoll_stats::sequence::{Jitter, Sequence};
use nicpoll_traffic::{OneWayDelays, RefusedSends};

use crate::observer::{ReceiptTotals, Totals};
use crate::times::{ArrivalTimes, Distribution};
use crate::wire::{DatagramHeader, Dialect, RawDatagram, ServerReport};

/// 2.1.8 answers no more FINs than this.
const ACKS_MAX: u64 = 9;
/// Clients whose FINs count down send no more of them again than this.
const FIN_REPETITIONS_MAX: u64 = 9;
/// Silence that ends the session after a FIN, as in 2.1.8, whose client repeats it every 10 ms.
const SILENCE_AFTER_FIN: Duration = Duration::from_millis(250);
/// The same for clients that repeat it every 250 ms, as 2.0.x, whose servers wait so long.
const SILENCE_AFTER_OLD_FIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: SocketAddr,
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
    pub(super) fins_received: u64,
    pub(super) acks_sent: u64,
    pub(super) acks_refused: RefusedSends,
    pub(super) sequence: Sequence,
    pub(super) jitter: Jitter,
    /// Recorded when that was asked for.
    pub(super) times: Option<Box<ArrivalTimes>>,
    /// From sending to this program; recorded when the client is known to have this host's clock.
    pub(super) delays: Option<Box<OneWayDelays>>,
    /// The first datagram says that the client has this host's clock.
    has_shared_clock: bool,
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
    pub(super) fn open(peer: SocketAddr, first: &RawDatagram, now: Instant) -> Self {
        let dialect = Dialect::of_client(first);
        let is_zero = dialect.header(first, 0).is_ok_and(|first| first.id == 0);
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
            has_shared_clock: false,
            dialect,
            first_id: if is_zero { 0 } else { dialect.first_id() },
            begun: now,
            last_data: now,
            closing: None,
            fin_bytes: 0,
        }
    }

    /// Records gaps and times of transit from now on. The client has this host's clock, or says nothing
    /// of it.
    pub(super) fn record_times(&mut self, has_shared_clock: bool) {
        self.times = Some(Box::new(ArrivalTimes::new()));
        self.has_shared_clock = has_shared_clock;
    }

    /// Reads a header as the client means it; `None` when the datagram cannot be its.
    pub(super) fn read(&self, raw: &RawDatagram) -> Option<DatagramHeader> {
        let highest_id = (self.sequence.highest() + self.first_id).saturating_sub(1);
        self.dialect.header(raw, highest_id).ok()
    }

    /// Takes a datagram of data.
    pub(super) fn data(
        &mut self,
        header: &DatagramHeader,
        payload_bytes: usize,
        arrival_ns: Option<i64>,
        now: Instant,
    ) {
        self.datagrams += 1;
        self.bytes += payload_bytes as u64;
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
        if let Some(arrival_ns) = arrival_ns {
            self.jitter.record(header.sent_ns(), arrival_ns);
            if let Some(times) = &mut self.times {
                times.record(header.sent_ns(), arrival_ns);
            }
        }
    }

    /// Takes a FIN; returns the answer that is due, or `None` when enough were given.
    pub(super) fn fin(
        &mut self,
        raw: &RawDatagram,
        header: &DatagramHeader,
        payload_bytes: usize,
        arrival_ns: Option<i64>,
        now: Instant,
    ) -> Option<[u8; ServerReport::BYTES]> {
        self.fins_received += 1;
        self.fin_bytes += payload_bytes as u64;
        if self.closing.is_none() {
            // All data has smaller ids.
            let fin_id = self.first_fin_id(header, arrival_ns);
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
        Some(report.answer(self.dialect, raw))
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
    pub(super) fn silence_after_fin(&self) -> Duration {
        match self.dialect {
            Dialect::V2_1 => SILENCE_AFTER_FIN,
            _ => SILENCE_AFTER_OLD_FIN,
        }
    }

    /// How long ago the first FIN came; `None` before it.
    pub(super) fn closing_for(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.closing.as_ref()?;
        Some(now.duration_since(*since))
    }

    /// From the first datagram to the last one of data.
    pub(super) fn seconds(&self) -> f64 {
        self.last_data.duration_since(self.begun).as_secs_f64()
    }

    pub(super) fn seconds_to_fin(&self) -> Option<f64> {
        let (_, since) = self.closing.as_ref()?;
        Some(since.duration_since(self.begun).as_secs_f64())
    }

    /// Time from the first datagram to `now`, or to the first FIN when that has come.
    pub(super) fn elapsed_at(&self, now: Instant) -> Duration {
        let end = self.closing.as_ref().map_or(now, |(_, since)| *since);
        end.duration_since(self.begun)
    }

    /// Time from the first datagram to the first FIN; without one, to the last datagram of data.
    pub(super) fn elapsed(&self) -> Duration {
        self.elapsed_at(self.last_data)
    }

    pub(super) fn jitter_seconds(&self) -> Option<f64> {
        Some(self.jitter.ns()? / 1e9)
    }

    pub(super) fn totals(&self) -> Totals {
        let times = self.times.as_deref();
        Totals {
            bytes: self.bytes,
            datagrams: self.datagrams,
            receipt: Some(ReceiptTotals {
                expected: self.sequence.highest(),
                lost: self.sequence.lost(),
                out_of_order: self.sequence.out_of_order(),
                duplicates: self.sequence.duplicates(),
                jitter_seconds: self.jitter_seconds(),
                interval_transit: times.and_then(ArrivalTimes::interval_transit),
                transit: times.and_then(ArrivalTimes::transit),
            }),
            ..Totals::default()
        }
    }

    /// The gaps between arrivals; `None` when they are not recorded.
    pub(super) fn gaps(&self) -> Option<Distribution> {
        self.times.as_deref()?.gaps()
    }

    /// From sending to arrival; `None` unless the client says that it has this host's clock.
    pub(super) fn one_way_delays(&self) -> Option<Distribution> {
        self.times
            .as_deref()
            .filter(|_| self.has_shared_clock)?
            .delays()
    }

    /// From sending to this program; `None` unless that is recorded.
    pub(super) fn delays_to_program(&self) -> Option<TimeDistribution> {
        self.delays.as_deref()?.distribution()
    }

    /// What is told the client: the figures of this end, so that both ends state the same. The FIN is no
    /// data; a 2.1.8 server counts it as a datagram.
    fn report(&self, now: Instant) -> ServerReport {
        ServerReport {
            bytes: self.bytes,
            elapsed: now.duration_since(self.begun),
            lost: self.sequence.lost(),
            out_of_order: self.sequence.out_of_order(),
            datagrams: self.sequence.highest(),
            jitter: Duration::from_nanos(self.jitter.ns().unwrap_or(0.0) as u64),
        }
    }
}
