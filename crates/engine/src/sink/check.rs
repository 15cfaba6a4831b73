//! Which packets of each stream were lost, duplicated or late, by the numbers that their sender put in, and their delays.
//!
//! Any frame may come. Streams are bounded by [`STREAMS_MAX`], whatever addresses a stranger makes up. Nothing is allocated
//! per packet.

use std::collections::HashMap;
use std::net::SocketAddr;

use nicpoll_model::engine::SinkCheck;
use nicpoll_stats::Latencies;
use nicpoll_stats::sequence::{Ids, Sequence};
use nicpoll_wire::frame::{Frame, Mark};

/// Streams that are told apart; the packets of further ones are counted and not looked at. One takes half a kilobyte.
pub const STREAMS_MAX: usize = 4096;

/// How packets are numbered.
#[derive(Clone, Copy, Debug)]
pub struct PacketCheck {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Begins to read the ids of one stream.
    pub ids: fn() -> Box<dyn Ids>,
}

/// Of nicpoll's own senders: a [`Mark`], which counts from 0 within its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkIds;

impl Ids for MarkIds {
    fn id(&mut self, payload: &[u8]) -> Option<u64> {
        Mark::parse(payload)?.sequence.checked_add(1)
    }

    fn age_ns(&self, payload: &[u8], now_ns: u64) -> Option<u64> {
        Mark::parse(payload)?.age_ns(now_ns)
    }
}

/// From whom to whom.
type Key = (SocketAddr, SocketAddr);

/// What was seen of each stream.
pub struct CheckedStreams {
    check: PacketCheck,
    places: HashMap<Key, usize>,
    streams: Vec<CheckedStream>,
    /// The stream of the packet before.
    last: Option<(Key, usize)>,
    unnumbered: u64,
    unfollowed: u64,
    latencies: Latencies,
}

struct CheckedStream {
    ids: Box<dyn Ids>,
    sequence: Sequence,
    /// The id that came first; 0 before.
    first: u64,
    packets: u64,
}

impl CheckedStreams {
    /// Nothing was seen yet.
    pub fn new(check: PacketCheck) -> Self {
        CheckedStreams {
            check,
            places: HashMap::new(),
            streams: Vec::new(),
            last: None,
            unnumbered: 0,
            unfollowed: 0,
            latencies: Latencies::default(),
        }
    }

    /// Takes note of a frame, which came at `now_ns` of CLOCK_MONOTONIC.
    pub fn record(&mut self, frame: &[u8], now_ns: u64) {
        let frame = Frame::parse(frame);
        let Some((ip, udp)) = frame.as_ref().ok().and_then(Frame::udp) else {
            self.unnumbered += 1;
            return;
        };
        let key = (
            SocketAddr::new(ip.source, udp.source),
            SocketAddr::new(ip.destination, udp.destination),
        );
        let Some(place) = self.place(key) else {
            self.unfollowed += 1;
            return;
        };
        let stream = &mut self.streams[place];
        let Some(id) = stream.ids.id(udp.payload) else {
            self.unnumbered += 1;
            return;
        };
        if stream.packets == 0 {
            stream.first = id;
        }
        stream.packets += 1;
        stream.sequence.record(id);
        if let Some(age_ns) = stream.ids.age_ns(udp.payload, now_ns) {
            self.latencies.record_ns(age_ns);
        }
    }

    /// What all streams came to, those of other queues included.
    pub fn total<'a>(all: impl IntoIterator<Item = &'a CheckedStreams>) -> Option<SinkCheck> {
        let mut latencies = Latencies::default();
        let mut total: Option<SinkCheck> = None;
        for streams in all {
            latencies.add(&streams.latencies);
            let total = total.get_or_insert_with(|| SinkCheck {
                by: String::from(streams.check.name),
                ..SinkCheck::default()
            });
            total.unnumbered_packets += streams.unnumbered;
            total.unfollowed_packets += streams.unfollowed;
            for stream in &streams.streams {
                let sequence = &stream.sequence;
                if stream.packets == 0 {
                    continue;
                }
                // What came before the first one that came here is not missed.
                // A stranger may count up to the end of numbers.
                let span = (sequence.highest() - stream.first).saturating_add(1);
                let distinct = stream.packets - sequence.duplicates();
                total.streams += 1;
                total.numbered_packets += stream.packets;
                let lost = span.saturating_sub(distinct);
                total.lost_packets = total.lost_packets.saturating_add(lost);
                total.duplicate_packets += sequence.duplicates();
                total.late_packets += sequence.out_of_order();
            }
        }
        if let Some(total) = &mut total {
            total.latency = (latencies.samples() > 0).then(|| latencies.summary());
        }
        total
    }

    fn place(&mut self, key: Key) -> Option<usize> {
        if let Some((last, place)) = self.last
            && last == key
        {
            return Some(place);
        }
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.streams.len() < STREAMS_MAX => {
                self.streams.push(CheckedStream {
                    ids: (self.check.ids)(),
                    sequence: Sequence::default(),
                    first: 0,
                    packets: 0,
                });
                self.places.insert(key, self.streams.len() - 1);
                self.streams.len() - 1
            }
            None => return None,
        };
        self.last = Some((key, place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: PacketCheck = PacketCheck {
        name: "mark",
        ids: || Box::new(MarkIds),
    };

    /// A frame of UDP from a port, with a mark.
    fn frame(port: u16, sequence: u64, time_ns: u64) -> Vec<u8> {
        let mark = Mark {
            sequence,
            time_ns,
            flow: 0,
        };
        let mut frame = vec![0; 14 + 20 + 8];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[17] = 20 + 8 + 18;
        frame[22] = 64;
        frame[23] = 17;
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[39] = 8 + 18;
        frame.extend(mark.to_bytes());
        frame
    }

    #[test]
    fn each_stream_has_its_own_losses_duplicates_and_late_packets() {
        let mut streams = CheckedStreams::new(MARKS);
        // Another program was at it before: what came before 10 is not missed.
        for sequence in [10, 11, 13, 13, 12, 16] {
            streams.record(&frame(1, sequence, 1_000), 1_500);
        }
        for sequence in [0, 1, 2] {
            streams.record(&frame(2, sequence, 0), 1_500);
        }
        streams.record(&[0; 60], 1_500);
        let total = CheckedStreams::total([&streams]).unwrap();
        assert_eq!((total.streams, total.numbered_packets), (2, 9));
        assert_eq!((total.lost_packets, total.duplicate_packets), (2, 1));
        assert_eq!((total.late_packets, total.unnumbered_packets), (1, 1));
        let latency = total.latency.unwrap();
        assert_eq!((latency.samples, latency.max_ns), (6, Some(500)));
    }

    #[test]
    fn a_number_that_is_told_over_and_over_for_long_is_still_counted_once_for_each_packet() {
        let mut streams = CheckedStreams::new(MARKS);
        for sequence in [1, 9_000, 1, 1, 1] {
            streams.record(&frame(1, sequence, 0), 1);
        }
        let total = CheckedStreams::total([&streams]).unwrap();
        assert_eq!(total.numbered_packets, 5);
    }

    #[test]
    fn numbers_from_0_to_the_end_of_numbers_are_lost_without_a_panic() {
        struct Whole;
        impl Ids for Whole {
            fn id(&mut self, payload: &[u8]) -> Option<u64> {
                payload.first().map(|it| u64::MAX * u64::from(*it & 1))
            }
        }
        let mut streams = CheckedStreams::new(PacketCheck {
            name: "whole",
            ids: || Box::new(Whole),
        });
        for port in [1, 2] {
            for first in [0, 1] {
                let mut frame = frame(port, 0, 0);
                frame[42] = first;
                streams.record(&frame, 1);
            }
        }
        let total = CheckedStreams::total([&streams]).unwrap();
        assert_eq!((total.numbered_packets, total.lost_packets), (4, u64::MAX));
    }

    #[test]
    fn made_up_addresses_take_no_more_memory_than_so_many_streams() {
        let mut streams = CheckedStreams::new(MARKS);
        for port in 0..=u16::MAX {
            streams.record(&frame(port, 7, 0), 1);
        }
        let total = CheckedStreams::total([&streams]).unwrap();
        assert_eq!(total.streams, STREAMS_MAX as u64);
        assert_eq!(total.unfollowed_packets, 65_536 - STREAMS_MAX as u64);
        assert_eq!((total.lost_packets, total.latency), (0, None));
    }

    #[test]
    fn without_a_check_there_is_no_total() {
        assert_eq!(CheckedStreams::total([]), None);
    }
}
