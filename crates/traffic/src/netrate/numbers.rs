//! Turns the counters in datagrams of netblast and netsend into ids that do not wrap, and counts duplicates.
//!
//! netreceive counts any datagram, so a source's counters are believed only if most of its datagrams have
//! distinct ones. A source that puts the same bytes into all datagrams has no duplicates.

use std::net::SocketAddr;

use nicpoll_stats::sequence::{Ids, Sequence};

/// Number of counter values.
const ROUND: u64 = 1 << 32;

/// The ids of one sender: a 32-bit big-endian counter at the start, which counts from 0 and wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetrateIds {
    highest: Option<u64>,
}

impl NetrateIds {
    /// Length of the counter.
    pub const BYTES: usize = 4;
}

impl Ids for NetrateIds {
    /// ```
    /// use nicpoll_stats::sequence::Ids;
    /// use nicpoll_traffic::netrate::NetrateIds;
    ///
    /// let mut ids = NetrateIds::default();
    /// let mut id = |number: u32| ids.id(&number.to_be_bytes());
    /// let last = id(u32::MAX).unwrap();
    /// assert_eq!((id(0), id(u32::MAX - 1)), (Some(last + 1), Some(last - 1)));
    /// ```
    fn id(&mut self, payload: &[u8]) -> Option<u64> {
        let number = u32::from_be_bytes(*payload.first_chunk()?);
        // Leaves room below the first id, for datagrams that it overtook.
        let near = self.highest.unwrap_or(ROUND + u64::from(number));
        let ahead = number.wrapping_sub(near as u32) as i32;
        let number = near.saturating_add_signed(ahead.into());
        self.highest = Some(near.max(number));
        Some(number + 1)
    }
}

/// Most sources told apart; others are ignored. A source takes half a kilobyte.
const SOURCES_MAX: usize = 64;

/// The state of each source.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    sources: Vec<RangeSource>,
    /// The source of the previous datagram.
    last: usize,
}

#[derive(Debug)]
struct RangeSource {
    address: SocketAddr,
    ids: NetrateIds,
    sequence: Sequence,
    datagrams: u64,
}

impl Numbers {
    /// Records a datagram, if it is long enough for a counter.
    pub fn record(&mut self, address: SocketAddr, payload: &[u8]) {
        if payload.len() < NetrateIds::BYTES {
            return;
        }
        let Some(source) = self.source(address) else {
            return;
        };
        if let Some(id) = source.ids.id(payload) {
            source.datagrams += 1;
            source.sequence.record(id);
        }
    }

    /// Datagrams whose counter had already arrived; `None` when no datagram had one.
    pub fn duplicates(&self) -> Option<u64> {
        let numbered = self.sources.iter().filter(|source| {
            source.datagrams > 0 && 2 * source.sequence.duplicates() <= source.datagrams
        });
        numbered
            .map(|source| source.sequence.duplicates())
            .reduce(|sum, duplicates| sum + duplicates)
    }

    fn source(&mut self, address: SocketAddr) -> Option<&mut RangeSource> {
        let is_it = |source: &RangeSource| source.address == address;
        if !self.sources.get(self.last).is_some_and(is_it) {
            self.last = match self.sources.iter().position(is_it) {
                Some(known) => known,
                None if self.sources.len() < SOURCES_MAX => {
                    self.sources.push(RangeSource {
                        address,
                        ids: NetrateIds::default(),
                        sequence: Sequence::default(),
                        datagrams: 0,
                    });
                    self.sources.len() - 1
                }
                None => return None,
            };
        }
        self.sources.get_mut(self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(numbers: &mut Numbers, port: u16, sent: impl IntoIterator<Item = u32>) {
        for number in sent {
            let mut payload = [0; 64];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            numbers.record(([198, 18, 0, 1], port).into(), &payload);
        }
    }

    #[test]
    fn what_came_twice_is_counted_for_each_source() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.duplicates(), None);
        record(&mut numbers, 1, [0, 1, 2, 2, 5, 4, 4, 4]);
        record(&mut numbers, 2, [0, 1, 2]);
        record(&mut numbers, 1, [5, 6]);
        assert_eq!(numbers.duplicates(), Some(4));
    }

    #[test]
    fn the_same_bytes_over_and_over_are_no_numbers() {
        let mut numbers = Numbers::default();
        record(&mut numbers, 1, [7; 100]);
        assert_eq!(numbers.duplicates(), None);
        numbers.record(([198, 18, 0, 1], 3).into(), b"odd");
        record(&mut numbers, 2, [1, 2, 3]);
        assert_eq!(numbers.duplicates(), Some(0));
    }

    #[test]
    fn the_number_after_the_greatest_is_0() {
        let mut numbers = Numbers::default();
        record(
            &mut numbers,
            1,
            [0xFFFF_FFF0, 0xFFFF_FFEF, 0xFFFF_FFFF, 0, 0, 1],
        );
        assert_eq!(numbers.duplicates(), Some(1));
    }

    #[test]
    fn more_sources_than_are_told_apart_take_no_more_memory() {
        let mut numbers = Numbers::default();
        for port in 1..=200 {
            record(&mut numbers, port, [0, 0, 1, 2]);
        }
        assert_eq!(numbers.sources.len(), SOURCES_MAX);
        assert_eq!(numbers.duplicates(), Some(SOURCES_MAX as u64));
    }

    proptest! {
        #[test]
        fn any_payload_is_taken(payloads in proptest::collection::vec(any::<Vec<u8>>(), 0..50)) {
            let mut numbers = Numbers::default();
            for payload in &payloads {
                numbers.record(([198, 18, 0, 1], 1).into(), payload);
            }
            prop_assert!(numbers.duplicates().unwrap_or(0) <= payloads.len() as u64);
        }
    }
}
