//! Segments that came before what they follow (`tcp_reass`).
//!
//! What must hold: the ranges are in order, apart from each other, and hold no byte twice.

/// Ranges of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// First byte and the byte after the last, in order.
    ranges: Vec<(u64, u64)>,
}

impl Reassembly {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Keeps the bytes from `start` up to `end`, which is beyond it.
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let after = self.ranges.partition_point(|range| range.0 <= end);
        let touched = &self.ranges[first..after];
        let start = touched.first().map_or(start, |range| range.0.min(start));
        let end = touched.last().map_or(end, |range| range.1.max(end));
        self.ranges.splice(first..after, [(start, end)]);
    }

    /// Gives up what follows `next` without a gap. Returns the byte after it.
    pub(super) fn take_from(&mut self, next: u64) -> u64 {
        match self.ranges.first() {
            Some(&(start, end)) if start <= next => {
                self.ranges.remove(0);
                next.max(end)
            }
            _ => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_join_when_they_touch() {
        let mut queue = Reassembly::default();
        queue.insert(30, 40);
        queue.insert(10, 20);
        assert_eq!(queue.ranges, [(10, 20), (30, 40)]);
        queue.insert(20, 30);
        assert_eq!(queue.ranges, [(10, 40)]);
        assert_eq!(queue.take_from(5), 5);
        assert_eq!(queue.take_from(10), 40);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_bytes_holds(
            ranges in prop::collection::vec((0..60u64, 1..20u64), 0..20),
        ) {
            let mut queue = Reassembly::default();
            let mut bytes = [false; 80];
            for (start, len) in ranges {
                queue.insert(start, start + len);
                bytes[start as usize..(start + len) as usize].fill(true);
                let held = |byte: u64| queue.ranges.iter().any(|r| (r.0..r.1).contains(&byte));
                prop_assert!((0..80).all(|byte| held(byte) == bytes[byte as usize]));
                prop_assert!(queue.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            let run = bytes.iter().take_while(|held| **held).count() as u64;
            prop_assert_eq!(queue.take_from(0), run);
        }
    }
}
