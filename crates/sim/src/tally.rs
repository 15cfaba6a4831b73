//! What is counted during a run, in space that does not grow with its length.

use hdrhistogram::Histogram;
use nicpoll_model::rr::Latency;
use nicpoll_model::sim::{SimNapi, SimPlace, SimStorm};

/// Latencies are told up to this; longer ones count as this long.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Samples that must lie beyond a percentile for it to be told.
const SAMPLES_BEYOND: u64 = 10;

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) offered: u64,
    pub(crate) delivered: u64,
    losses: [u64; SimPlace::ALL.len()],
    /// Frames that passed the line.
    pub(crate) line_frames: u64,
    pub(crate) interrupts: u64,
    latencies: Histogram<u64>,
    last_transit_ns: Option<u64>,
    jitter_ns: f64,
    has_jitter: bool,
    pub(crate) storm: SimStorm,
    pub(crate) napi: SimNapi,
    pub(crate) cycles: Cycles,
}

/// The poller's cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    pub(crate) count: u64,
    pub(crate) asked: u64,
    pub(crate) burst_sum: u64,
    pub(crate) burst_min: Option<u32>,
    pub(crate) burst_max: Option<u32>,
    /// Cycles whose burst was all that it may be.
    pub(crate) at_burst_max: u64,
}

impl Cycles {
    pub(crate) fn begin(&mut self, burst: u32, limit: u32) {
        self.count += 1;
        self.burst_sum += u64::from(burst);
        self.burst_min = Some(self.burst_min.map_or(burst, |least| least.min(burst)));
        self.burst_max = Some(self.burst_max.map_or(burst, |most| most.max(burst)));
        self.at_burst_max += u64::from(burst >= limit);
    }
}

impl Default for Tally {
    fn default() -> Self {
        let latencies = Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS);
        Tally {
            offered: 0,
            delivered: 0,
            losses: [0; SimPlace::ALL.len()],
            line_frames: 0,
            interrupts: 0,
            latencies: latencies.expect("constant bounds that the histogram accepts"),
            last_transit_ns: None,
            jitter_ns: 0.0,
            has_jitter: false,
            storm: SimStorm::default(),
            napi: SimNapi::default(),
            cycles: Cycles::default(),
        }
    }
}

impl Tally {
    pub(crate) fn lose(&mut self, place: SimPlace) {
        self.losses[place as usize] += 1;
    }

    pub(crate) fn lost(&self, place: SimPlace) -> u64 {
        self.losses[place as usize]
    }

    /// A packet has arrived where it was to go.
    pub(crate) fn deliver(&mut self, transit_ns: u64, latency_ns: u64) {
        self.delivered += 1;
        self.latencies.saturating_record(latency_ns.max(1));
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            let step = transit_ns.abs_diff(last) as f64;
            self.jitter_ns += (step - self.jitter_ns) / 16.0;
            self.has_jitter = true;
        }
    }

    pub(crate) fn jitter_ns(&self) -> Option<f64> {
        self.has_jitter.then_some(self.jitter_ns)
    }

    /// What can be said of so many latencies.
    pub(crate) fn latency(&self) -> Latency {
        let samples = self.latencies.len();
        // One in `share` lies beyond the percentile.
        let percentile = |quantile, share| {
            let is_told = samples >= SAMPLES_BEYOND * share;
            is_told.then(|| self.latencies.value_at_quantile(quantile))
        };
        let has_any = samples > 0;
        Latency {
            samples,
            min_ns: has_any.then(|| self.latencies.min()),
            p50_ns: percentile(0.5, 2),
            p90_ns: percentile(0.9, 10),
            p99_ns: percentile(0.99, 100),
            p999_ns: percentile(0.999, 1000),
            max_ns: has_any.then(|| self.latencies.max()),
            mean_ns: has_any.then(|| self.latencies.mean()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_sixteenth_of_each_step_smoothed() {
        let mut tally = Tally::default();
        assert_eq!(tally.jitter_ns(), None);
        tally.deliver(1000, 1);
        assert_eq!(tally.jitter_ns(), None);
        tally.deliver(1160, 1);
        assert_eq!(tally.jitter_ns(), Some(10.0));
        tally.deliver(1160, 1);
        assert_eq!(tally.jitter_ns(), Some(9.375));
        tally.deliver(1000, 1);
        assert_eq!(tally.jitter_ns(), Some(9.375 + (160.0 - 9.375) / 16.0));
    }
}
