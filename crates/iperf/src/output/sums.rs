//! Streams of a group added up: whole, and interval by interval.

use std::collections::BTreeMap;

use crate::records::IntervalRecord;

/// Intervals that wait for the rest of their group, at most. Streams of one peer that began at different
/// times have many that never get it.
const WAITING_MAX: usize = 1 << 12;

/// Several streams together.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// How many of them this end receives,
    pub receivers: u32,
    /// and sends.
    pub senders: u32,
    /// Their counts.
    pub record: IntervalRecord,
    /// Datagrams that this end sent.
    pub sent_datagrams: u64,
}

impl Sum {
    fn with(sum: Option<Sum>, is_sender: bool, record: &IntervalRecord) -> Self {
        Sum {
            receivers: sum.map_or(0, |sum| sum.receivers) + u32::from(!is_sender),
            senders: sum.map_or(0, |sum| sum.senders) + u32::from(is_sender),
            record: sum.map_or(*record, |sum| sum.record.plus(record)),
            sent_datagrams: sum.map_or(0, |sum| sum.sent_datagrams)
                + if is_sender { record.datagrams } else { 0 },
        }
    }

    /// How many streams there are.
    pub fn streams(&self) -> u32 {
        self.receivers + self.senders
    }
}

/// The sums of all groups that are not complete.
#[derive(Debug)]
pub struct Sums<G> {
    interval_seconds: f64,
    intervals: BTreeMap<(G, u64), Sum>,
    totals: BTreeMap<G, Sum>,
}

impl<G: Copy + Ord> Sums<G> {
    /// For streams with intervals of this length; infinite without.
    pub fn new(interval_seconds: f64) -> Self {
        Sums {
            interval_seconds,
            intervals: BTreeMap::new(),
            totals: BTreeMap::new(),
        }
    }

    /// Adds an interval of one of `running` streams; returns the sum when all of them are in it.
    pub fn interval(
        &mut self,
        group: G,
        is_sender: bool,
        record: &IntervalRecord,
        running: u32,
    ) -> Option<Sum> {
        let index = (record.start / self.interval_seconds).round() as u64;
        let sum = self.intervals.remove(&(group, index));
        let sum = Sum::with(sum, is_sender, record);
        if sum.streams() >= running {
            return Some(sum);
        }
        if self.intervals.len() >= WAITING_MAX {
            self.intervals.pop_first();
        }
        self.intervals.insert((group, index), sum);
        None
    }

    /// Adds a whole stream.
    pub fn add(&mut self, group: G, is_sender: bool, whole: &IntervalRecord) {
        let sum = self.totals.remove(&group);
        let sum = Sum::with(sum, is_sender, whole);
        self.totals.insert(group, sum);
    }

    /// The sum of the whole streams since the last one; `None` when all of them failed. Intervals that are
    /// not complete are dropped.
    pub fn total(&mut self, group: G) -> Option<Sum> {
        self.intervals.retain(|(of, _), _| *of != group);
        self.totals.remove(&group)
    }
}
