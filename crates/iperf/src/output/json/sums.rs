//! Streams of one side and one peer added up.
//!
//! What must hold: the sides are never mixed, and a sum holds exactly the streams that it says.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use nicpoll_model::iperf::{IperfCounts, IperfSum};
use nicpoll_model::{Protocol, Side};

use super::records::counts;
use crate::IntervalRecord;

/// Intervals that wait for the rest of their group, at most. Streams of one peer that began at different
/// times have many that never get it.
const WAITING_MAX: usize = 1 << 12;

type Group = (IpAddr, Side);

/// A sum that waits for the rest of its group.
struct Part {
    streams: u32,
    record: IntervalRecord,
}

/// All sums that are not complete.
pub(super) struct Sums {
    interval_seconds: f64,
    intervals: BTreeMap<(Group, u64), Part>,
    totals: BTreeMap<Group, Part>,
}

impl Sums {
    pub(super) fn new(interval: Option<Duration>) -> Self {
        Sums {
            interval_seconds: interval.map_or(f64::INFINITY, |interval| interval.as_secs_f64()),
            intervals: BTreeMap::new(),
            totals: BTreeMap::new(),
        }
    }

    /// Adds an interval of one of `streams` streams that run; returns the sum when all of them are in it
    /// and they are more than one.
    pub(super) fn interval(
        &mut self,
        peer: IpAddr,
        side: Side,
        protocol: Protocol,
        record: &IntervalRecord,
        streams: u32,
    ) -> Option<IperfSum> {
        let index = (record.start / self.interval_seconds).round() as u64;
        let key = ((peer, side), index);
        let part = self.intervals.remove(&key);
        let part = Part::with(part, record);
        if part.streams < streams {
            if self.intervals.len() >= WAITING_MAX {
                self.intervals.pop_first();
            }
            self.intervals.insert(key, part);
            return None;
        }
        (part.streams > 1).then(|| part.sum(peer, side, protocol))
    }

    /// Adds a whole stream.
    pub(super) fn add(&mut self, peer: IpAddr, side: Side, whole: &IntervalRecord) {
        let part = self.totals.remove(&(peer, side));
        self.totals.insert((peer, side), Part::with(part, whole));
    }

    /// The sum of the whole streams since the last one; `None` when all of them failed.
    pub(super) fn total(
        &mut self,
        peer: IpAddr,
        side: Side,
        protocol: Protocol,
    ) -> Option<IperfSum> {
        self.intervals
            .retain(|(group, _), _| *group != (peer, side));
        let part = self.totals.remove(&(peer, side))?;
        Some(part.sum(peer, side, protocol))
    }
}

impl Part {
    fn with(part: Option<Part>, record: &IntervalRecord) -> Self {
        match part {
            None => Part {
                streams: 1,
                record: *record,
            },
            Some(part) => Part {
                streams: part.streams + 1,
                record: part.record.plus(record),
            },
        }
    }

    fn sum(&self, peer: IpAddr, side: Side, protocol: Protocol) -> IperfSum {
        IperfSum {
            side,
            peer_address: peer.to_string(),
            streams: self.streams,
            counts: IperfCounts {
                // Each stream has its own.
                mss_bytes: None,
                congestion_window_bytes: None,
                round_trip_seconds: None,
                round_trip_variation_seconds: None,
                jitter_seconds: None,
                ..counts(side, protocol, &self.record)
            },
        }
    }
}
