//! The streams of a test, and those of a group added up: whole, and interval by interval.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::events::StreamKey;
use crate::options::Options;
use crate::records::{Connected, IntervalRecord};

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

/// Streams that are summed: those of one address at the other end that run at the same time, and where the two
/// sides are summed apart, those of one side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    peer: IpAddr,
    is_later: bool,
    is_sender: Option<bool>,
}

/// A stream that has a peer, and what its printer knows of it.
#[derive(Clone, Copy)]
pub struct Stream<T> {
    pub connected: Connected,
    pub known: T,
    group: Group,
    is_done: bool,
}

/// The streams whose group has not ended.
pub struct Streams<T> {
    is_side_apart: bool,
    /// Infinite without intervals.
    interval_seconds: f64,
    streams: BTreeMap<StreamKey, Stream<T>>,
    intervals: BTreeMap<(Group, u64), Sum>,
    totals: BTreeMap<Group, Sum>,
}

impl<T: Copy> Streams<T> {
    /// None yet. `is_side_apart` is whether what this end sends and what it receives are summed apart.
    pub fn new(options: &Options, is_side_apart: bool) -> Self {
        let interval = options.stream.interval;
        Streams {
            is_side_apart,
            interval_seconds: interval.map_or(f64::INFINITY, |interval| interval.as_secs_f64()),
            streams: BTreeMap::new(),
            intervals: BTreeMap::new(),
            totals: BTreeMap::new(),
        }
    }

    /// A stream that begins.
    pub fn add(&mut self, key: StreamKey, connected: &Connected, known: T) {
        let group = Group {
            peer: connected.peer.ip(),
            is_later: key.is_later,
            is_sender: self.is_side_apart.then_some(connected.is_sender),
        };
        let stream = Stream {
            connected: *connected,
            known,
            group,
            is_done: false,
        };
        self.streams.insert(key, stream);
    }

    /// A stream that has begun.
    pub fn get(&self, key: StreamKey) -> Option<Stream<T>> {
        self.streams.get(&key).copied()
    }

    /// Whether one of them has this number.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        self.streams.keys().any(|key| key.number == number)
    }

    /// Those that run.
    pub fn running(&self) -> impl Iterator<Item = (&StreamKey, &Stream<T>)> {
        self.streams.iter().filter(|(_, stream)| !stream.is_done)
    }

    /// Part of its interval that a record covers.
    pub fn part(&self, record: &IntervalRecord) -> f64 {
        (record.end - record.start) / self.interval_seconds
    }

    /// Adds an interval of a stream; returns the sum when those of all of its group are in it.
    pub fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> Option<Sum> {
        let stream = self.get(key)?;
        let group = stream.group;
        let index = (record.start / self.interval_seconds).round() as u64;
        let sum = self.intervals.remove(&(group, index));
        let sum = Sum::with(sum, stream.connected.is_sender, record);
        if sum.streams() >= self.running_of(group) {
            return Some(sum);
        }
        if self.intervals.len() >= WAITING_MAX {
            self.intervals.pop_first();
        }
        self.intervals.insert((group, index), sum);
        None
    }

    /// Ends a stream, with what it came to if it ended well; returns the sum of its group with the last one of it,
    /// unless all of them failed. Intervals that are not complete are dropped then.
    pub fn end(&mut self, key: StreamKey, whole: Option<&IntervalRecord>) -> Option<Sum> {
        let stream = self.streams.get_mut(&key)?;
        stream.is_done = true;
        let Stream {
            connected, group, ..
        } = *stream;
        if let Some(whole) = whole {
            let sum = self.totals.remove(&group);
            let sum = Sum::with(sum, connected.is_sender, whole);
            self.totals.insert(group, sum);
        }
        if self.running_of(group) > 0 {
            return None;
        }
        self.streams.retain(|_, stream| stream.group != group);
        self.intervals.retain(|(of, _), _| *of != group);
        self.totals.remove(&group)
    }

    fn running_of(&self, group: Group) -> u32 {
        let running = self.running();
        let of = running.filter(|(_, stream)| stream.group == group);
        of.count() as u32
    }
}
