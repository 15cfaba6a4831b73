//! Times in buckets, as the programs of `bpf/` count them: what `bpf/octaves.h` does, the other way round.
//!
//! What must hold: buckets lie end to end, and each is a sixteenth of its octave wide.

use nicpoll_sys::bpf_maps::{GAP_BUCKETS, GAP_FIRST_OCTAVE, GAP_PARTS};

/// Where a bucket begins.
pub(crate) fn bucket_lower_ns(index: usize) -> u64 {
    let (octave, part) = (index / GAP_PARTS, (index % GAP_PARTS) as u64);
    let base = 1u64 << (GAP_FIRST_OCTAVE as usize + octave);
    base + part * (base / GAP_PARTS as u64)
}

/// How wide the bucket is that begins there.
pub(crate) fn bucket_width_ns(lower_ns: u64) -> u64 {
    let octave = 1u64 << lower_ns.max(1 << GAP_FIRST_OCTAVE).ilog2();
    octave / GAP_PARTS as u64
}

/// Times of one kind, counted in buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: vec![0; GAP_BUCKETS],
        }
    }
}

impl Histogram {
    /// Adds what another one counted, bucket by bucket.
    pub(crate) fn add(&mut self, buckets: &[u64]) {
        for (sum, count) in self.buckets.iter_mut().zip(buckets) {
            *sum += count;
        }
    }

    /// Counts one time.
    pub(crate) fn count_one(&mut self, ns: u64) {
        let above = (1..GAP_BUCKETS).find(|&index| ns < bucket_lower_ns(index));
        self.buckets[above.unwrap_or(GAP_BUCKETS) - 1] += 1;
    }

    /// What was counted since `earlier`, a look at the same one.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let both = self.buckets.iter().zip(&earlier.buckets);
        Histogram {
            buckets: both.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The time, in ns, that so large a share of the times did not exceed; within a bucket they count as evenly spread.
    /// `None` when nothing was counted. Times above 17 s count as 17 s, those below 0.3 us as 0.3 us.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let wanted = share * self.count() as f64;
        let mut below = 0.0;
        for (index, &count) in self.buckets.iter().enumerate() {
            let within = count as f64;
            if count > 0 && below + within >= wanted {
                let lower = bucket_lower_ns(index);
                let part = ((wanted - below) / within).clamp(0.0, 1.0);
                return Some(lower as f64 + part * bucket_width_ns(lower) as f64);
            }
            below += within;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_lie_end_to_end() {
        for index in 0..GAP_BUCKETS - 1 {
            let lower = bucket_lower_ns(index);
            assert_eq!(lower + bucket_width_ns(lower), bucket_lower_ns(index + 1));
        }
    }

    #[test]
    fn a_time_is_counted_in_the_bucket_that_holds_it() {
        for ns in [0, 271, 272, 1_000, 9_999, u64::MAX] {
            let mut one = Histogram::default();
            one.count_one(ns);
            let [lowest, highest] = [0.0, 1.0].map(|share| one.quantile_ns(share).unwrap());
            assert!(highest - lowest <= f64::max(lowest / 15.0, 16.0));
            let is_held = lowest <= ns as f64 && (ns as f64) < highest;
            assert!(
                is_held || ns == 0 || ns == u64::MAX,
                "{ns}: {lowest} to {highest}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted_since() {
        let mut earlier = Histogram::default();
        assert_eq!(earlier.quantile_ns(0.5), None);
        let mut buckets = [0; GAP_BUCKETS];
        // 2^10 ns and one sixteenth.
        buckets[2 * GAP_PARTS + 1] = 100;
        earlier.add(&buckets);
        // 2^20 ns.
        buckets[12 * GAP_PARTS] = 1;
        let mut later = earlier.clone();
        later.add(&buckets);
        let since = later.since(&earlier);
        assert_eq!(since.count(), 101);
        let median = since.quantile_ns(0.5).unwrap();
        assert!((1_088.0..1_152.0).contains(&median), "{median}");
        assert!(since.quantile_ns(0.98).unwrap() < 1_152.0);
        assert!(since.quantile_ns(1.0).unwrap() > 1_048_576.0);
    }
}
