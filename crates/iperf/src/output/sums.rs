//! Groups the streams of a test and sums each group up, per interval and in total.
//!
//! An interval's sum is made once every stream of the group has finished that interval or ended. So the
//! interval sums of a group add up to its total, whenever its streams begin and end.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::events::StreamKey;
use crate::options::Options;
use crate::records::{Connected, IntervalRecord};

/// Several streams summed up.
#[derive(Clone, Copy, Debug)]
pub struct StreamSum {
    /// All streams of the group, summed or not.
    pub members: u32,
    /// How many of the summed streams this end receives,
    pub receivers: u32,
    /// and how many it sends.
    pub senders: u32,
    /// The sum of their counts.
    pub record: IntervalRecord,
    /// Datagrams that this end sent.
    pub sent_datagrams: u64,
    /// One of the streams.
    pub connected: Connected,
}

impl StreamSum {
    fn with(sum: Option<StreamSum>, connected: &Connected, record: &IntervalRecord) -> Self {
        let is_sender = connected.is_sender;
        let mut whole = sum.map_or(*record, |sum| sum.record.plus(record));
        whole.is_partial = record.is_partial && sum.is_none_or(|sum| sum.record.is_partial);
        StreamSum {
            members: 0,
            receivers: sum.map_or(0, |sum| sum.receivers) + u32::from(!is_sender),
            senders: sum.map_or(0, |sum| sum.senders) + u32::from(is_sender),
            record: whole,
            sent_datagrams: sum.map_or(0, |sum| sum.sent_datagrams)
                + if is_sender { record.datagrams } else { 0 },
            connected: *connected,
        }
    }

    /// The number of streams summed.
    pub fn streams(&self) -> u32 {
        self.receivers + self.senders
    }
}

/// Streams that are summed up together: those with the same peer address that run at the same time and, if the
/// sides are summed separately, have the same side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SumGroup {
    peer: IpAddr,
    is_later: bool,
    is_sender: Option<bool>,
    /// Counts earlier groups that held a single stream when one of its intervals ended; no stream joins those
    /// later.
    generation: u32,
}

/// The state of a group.
#[derive(Default)]
struct Gathered {
    members: u32,
    /// Number of interval sums already made.
    summed: u64,
    /// Incomplete interval sums, by interval number.
    intervals: BTreeMap<u64, StreamSum>,
    total: Option<StreamSum>,
}

/// A stream that has a peer, with its printer's data.
#[derive(Clone, Copy)]
pub struct SummedStream<T> {
    pub connected: Connected,
    pub known: T,
    group: SumGroup,
    /// The group's interval in which the stream began,
    first: u64,
    /// and that of its next record.
    next: u64,
    is_done: bool,
}

/// Sums that are complete.
#[derive(Default)]
pub struct DueSums {
    /// Interval sums, in order.
    pub intervals: Vec<StreamSum>,
    /// The total of a group.
    pub total: Option<StreamSum>,
}

/// The streams of groups that have not ended.
pub struct SummedStreams<T> {
    is_side_apart: bool,
    /// Infinite without intervals.
    interval_seconds: f64,
    /// A client's own streams that have neither begun nor failed; until all have, no interval is complete.
    awaited: u32,
    streams: BTreeMap<StreamKey, SummedStream<T>>,
    groups: BTreeMap<SumGroup, Gathered>,
}

impl<T: Copy> SummedStreams<T> {
    /// No streams yet. `is_side_apart`: sum sent and received streams separately.
    pub fn new(options: &Options, is_side_apart: bool) -> Self {
        let interval = options.stream.interval;
        SummedStreams {
            is_side_apart,
            interval_seconds: interval.map_or(f64::INFINITY, |interval| interval.as_secs_f64()),
            awaited: match options.is_client() {
                true => options.stream.streams,
                false => 0,
            },
            streams: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Adds a stream. It joins the running group, unless that is a single stream whose first interval has
    /// passed.
    pub fn add(&mut self, key: StreamKey, connected: &Connected, known: T) {
        if !self.has_number(key.number) {
            self.awaited = self.awaited.saturating_sub(1);
        }
        let mut group = SumGroup {
            peer: connected.peer.ip(),
            is_later: key.is_later,
            is_sender: self.is_side_apart.then_some(connected.is_sender),
            generation: u32::MAX,
        };
        let alike = |of: &SumGroup| {
            SumGroup {
                generation: u32::MAX,
                ..*of
            } == group
        };
        let youngest = self.groups.iter().rfind(|(of, _)| alike(of));
        group.generation = youngest.map_or(0, |(of, gathered)| {
            let is_closed = gathered.members == 1 && gathered.summed > 0;
            of.generation + u32::from(is_closed)
        });
        let gathered = self.groups.entry(group).or_default();
        gathered.members += 1;
        let stream = SummedStream {
            connected: *connected,
            known,
            group,
            first: gathered.summed,
            next: gathered.summed,
            is_done: false,
        };
        self.streams.insert(key, stream);
    }

    /// A stream that has begun.
    pub fn get(&self, key: StreamKey) -> Option<SummedStream<T>> {
        self.streams.get(&key).copied()
    }

    /// Whether a stream has this number.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        self.streams.keys().any(|key| key.number == number)
    }

    /// The streams that run.
    pub fn running(&self) -> impl Iterator<Item = (&StreamKey, &SummedStream<T>)> {
        self.streams.iter().filter(|(_, stream)| !stream.is_done)
    }

    /// The fraction of its interval that a record covers.
    pub fn part(&self, record: &IntervalRecord) -> f64 {
        (record.end - record.start) / self.interval_seconds
    }

    /// Adds an interval of a stream; returns the sums then complete.
    pub fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> DueSums {
        let Some(stream) = self.streams.get_mut(&key) else {
            return DueSums::default();
        };
        let number = stream.next;
        stream.next += 1;
        let stream = *stream;
        // Converts to the time of the group.
        let began = match stream.first {
            0 => 0.0,
            first => first as f64 * self.interval_seconds,
        };
        let record = IntervalRecord {
            start: record.start + began,
            end: record.end + began,
            ..*record
        };
        if let Some(gathered) = self.groups.get_mut(&stream.group) {
            let sum = gathered.intervals.remove(&number);
            let sum = StreamSum::with(sum, &stream.connected, &record);
            gathered.intervals.insert(number, sum);
        }
        self.due(stream.group)
    }

    /// Ends a stream, with its total if it did not fail; returns the sums then complete. The last stream of a
    /// group completes the group's total, unless all of them failed.
    pub fn end(&mut self, key: StreamKey, whole: Option<&IntervalRecord>) -> Vec<DueSums> {
        let Some(stream) = self.streams.get_mut(&key) else {
            // A stream that never began.
            self.awaited = self.awaited.saturating_sub(1);
            let groups: Vec<SumGroup> = self.groups.keys().copied().collect();
            return groups.into_iter().map(|group| self.due(group)).collect();
        };
        stream.is_done = true;
        let stream = *stream;
        if let (Some(whole), Some(gathered)) = (whole, self.groups.get_mut(&stream.group)) {
            gathered.total = Some(StreamSum::with(gathered.total, &stream.connected, whole));
        }
        vec![self.due(stream.group)]
    }

    /// The complete sums of a group. Removes the group if all its streams have ended.
    fn due(&mut self, group: SumGroup) -> DueSums {
        let mut due = DueSums::default();
        let running = self.streams.values();
        let running = running.filter(|stream| stream.group == group && !stream.is_done);
        let running = running.map(|stream| stream.next).min();
        let (0, Some(gathered)) = (self.awaited, self.groups.get_mut(&group)) else {
            return due;
        };
        let members = gathered.members;
        while let Some(first) = gathered.intervals.first_entry()
            && running.is_none_or(|next| *first.key() < next)
        {
            gathered.summed = first.key() + 1;
            let sum = first.remove();
            due.intervals.push(StreamSum { members, ..sum });
        }
        if running.is_none() {
            due.total = gathered.total.map(|sum| StreamSum { members, ..sum });
            self.groups.remove(&group);
            self.streams.retain(|_, stream| stream.group != group);
        }
        due
    }
}

#[cfg(test)]
mod tests;
