//! Loss, order and jitter against a model that remembers everything.

use std::collections::BTreeSet;

use nicpoll_stats::sequence::{Jitter, Sequence};
use proptest::collection::vec;
use proptest::prelude::*;

/// How far back a `Sequence` recognises duplicates.
const WINDOW_IDS: u64 = 4096;

/// Counts the same from a set of all ids.
#[derive(Default)]
struct Oracle {
    seen: BTreeSet<u64>,
    highest: u64,
    distinct: u64,
    out_of_order: u64,
    duplicates: u64,
}

impl Oracle {
    fn record(&mut self, id: u64) {
        let is_known = self.seen.contains(&id) && self.highest - id < WINDOW_IDS;
        if is_known {
            self.duplicates += 1;
            return;
        }
        if id < self.highest {
            self.out_of_order += 1;
        }
        self.distinct += 1;
        self.seen.insert(id);
        self.highest = self.highest.max(id);
    }
}

/// Ids around a moving front: next ones, gaps, late ones, duplicates and jumps past the window.
fn arrivals() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        8 => Just(1i64),
        2 => 2..70i64,
        3 => -70..=0i64,
        1 => -5000..=0i64,
        1 => 4000..4200i64,
        1 => 8000..20_000i64,
    ];
    vec(step, 0..600).prop_map(|steps| {
        let mut front = 0i64;
        let mut ids = Vec::new();
        for step in steps {
            let id = (front + step).max(1);
            front = front.max(id);
            ids.push(id.unsigned_abs());
        }
        ids
    })
}

proptest! {
    #[test]
    fn counts_are_those_of_a_full_account(ids in arrivals(), sent_beyond in 0..5u64) {
        let mut sequence = Sequence::default();
        let mut oracle = Oracle::default();
        for &id in &ids {
            sequence.record(id);
            oracle.record(id);
            prop_assert_eq!(sequence.highest(), oracle.highest);
            prop_assert_eq!(sequence.duplicates(), oracle.duplicates);
            prop_assert_eq!(sequence.out_of_order(), oracle.out_of_order);
            prop_assert_eq!(sequence.lost(), oracle.highest.saturating_sub(oracle.distinct));
        }
        let lost = sequence.lost();
        sequence.expect_up_to(oracle.highest + sent_beyond);
        prop_assert_eq!(sequence.lost(), lost + sent_beyond);
    }

    #[test]
    fn a_shuffled_whole_stream_has_lost_nothing(ids in Just((1..500u64).collect::<Vec<_>>()).prop_shuffle()) {
        let mut sequence = Sequence::default();
        ids.iter().for_each(|&id| sequence.record(id));
        prop_assert_eq!(sequence.lost(), 0);
        prop_assert_eq!(sequence.duplicates(), 0);
    }

    #[test]
    fn jitter_is_the_recurrence_of_rfc_3550_whatever_the_offset_of_the_clocks(
        transits_ns in vec(0..1_000_000_000i64, 0..100),
        offset_ns in -1_000_000_000_000_000_000..1_000_000_000_000_000_000i64,
    ) {
        let mut jitter = Jitter::default();
        for (index, transit_ns) in transits_ns.iter().enumerate() {
            let sent_ns = 1_700_000_000_000_000_000 + 1_000_000 * index as i64;
            prop_assert_eq!(jitter.transit_ns().is_some(), index > 0);
            jitter.record(sent_ns, sent_ns + transit_ns + offset_ns);
            prop_assert_eq!(jitter.transit_ns(), Some(transit_ns + offset_ns));
        }
        let deviations = transits_ns.windows(2).map(|pair| (pair[1] - pair[0]).abs() as f64);
        let expected = deviations.fold(0.0, |jitter, deviation| jitter + (deviation - jitter) / 16.0);
        match jitter.ns() {
            Some(ns) => prop_assert!((ns - expected).abs() <= 1e-9 * expected.max(1.0)),
            None => prop_assert!(transits_ns.len() < 2),
        }
    }
}

#[test]
fn the_window_holds_as_many_ids_as_it_says_and_not_one_more() {
    // The oldest remembered id, which has come, and the next older one.
    for (old, duplicates, late) in [(2, 1, 0), (1, 0, 1)] {
        let mut sequence = Sequence::default();
        sequence.record(old);
        sequence.record(WINDOW_IDS + 1);
        sequence.record(old);
        assert_eq!(sequence.duplicates(), duplicates, "{old}");
        assert_eq!(sequence.out_of_order(), late, "{old}");
    }
    // An id that is too old has the place of a younger one, and must not pass for it.
    let mut sequence = Sequence::default();
    sequence.expect_up_to(WINDOW_IDS + 1);
    sequence.record(1);
    sequence.record(WINDOW_IDS + 1);
    assert_eq!(sequence.duplicates(), 0);
    assert_eq!(sequence.lost(), WINDOW_IDS - 1);
}

#[test]
fn an_end_marker_tells_of_the_last_ones_and_later_arrivals_take_them_back() {
    let mut sequence = Sequence::default();
    [1, 2, 4].into_iter().for_each(|id| sequence.record(id));
    sequence.expect_up_to(6);
    assert_eq!((sequence.lost(), sequence.out_of_order()), (3, 0));
    sequence.record(6);
    sequence.record(6);
    assert_eq!((sequence.lost(), sequence.out_of_order()), (2, 1));
    assert_eq!(sequence.duplicates(), 1);
}

#[test]
fn the_greatest_times_do_not_overflow_the_jitter() {
    let mut jitter = Jitter::default();
    jitter.record(i64::MIN, i64::MAX);
    jitter.record(i64::MAX, i64::MIN);
    assert!(jitter.ns().unwrap().is_finite());
}
