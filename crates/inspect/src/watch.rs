//! `nicpoll watch`: samples of a host at intervals. Each sample includes the cost of watching.
//!
//! `read` takes a reading, `sample` computes a sample from two.

mod read;
mod sample;

use std::time::{Duration, Instant};

use nicpoll_model::{Origin, WATCH_SCHEMA, WatchCost, WatchEnd, WatchSample, WatchStart};
use nicpoll_sys::privilege;

use self::read::WatchReader;
use self::sample::History;
use crate::error::InspectError;

pub use self::read::bpf_cpu_ratio;

/// Every this many intervals the kernel times the BPF programs for a moment; timing has a cost, too.
const TIMED_EVERY: u64 = 10;
/// Longest time for which it times them.
const TIMED: Duration = Duration::from_millis(100);

/// The interfaces to watch, and the interval.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Names of interfaces; empty for all but the loopback.
    pub interfaces: Vec<String>,
    /// Length of an interval.
    pub interval: Duration,
    /// Back-to-back handler entries from which on interrupts are a storm; 0: detection is off.
    pub storm_threshold: u64,
}

/// A running watch of the namespace in which it was started.
pub struct Watch {
    start: WatchStart,
    reader: WatchReader,
    history: History,
    interval: Duration,
    /// End of the present interval.
    due: Instant,
    intervals: u64,
    elapsed_seconds: f64,
    bpf_cpu_ratio: Option<f64>,
    process_cpu_seconds: f64,
}

impl Watch {
    /// Starts counting. `netns` is the name of the caller's namespace if it was entered by name.
    ///
    /// # Errors
    /// When a name is not that of an interface, or the counters cannot be read.
    pub fn begin(
        options: &WatchOptions,
        origin: Origin,
        netns: Option<&str>,
    ) -> Result<Self, InspectError> {
        privilege::require_proc()?;
        let mut reader = WatchReader::new(&options.interfaces, options.storm_threshold)?;
        let history = History::new(reader.read()?);
        Ok(Watch {
            start: WatchStart {
                schema: String::from(WATCH_SCHEMA),
                origin,
                netns: netns.map(String::from),
                interval_seconds: options.interval.as_secs_f64(),
                storm_threshold_entries: options.storm_threshold,
                unseen: reader.unseen().to_vec(),
            },
            reader,
            history,
            interval: options.interval,
            due: Instant::now() + options.interval,
            intervals: 0,
            elapsed_seconds: 0.0,
            bpf_cpu_ratio: None,
            process_cpu_seconds: 0.0,
        })
    }

    /// Returns the start of the document.
    pub fn start(&self) -> &WatchStart {
        &self.start
    }

    /// Returns the number of completed intervals.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    /// Waits for the end of an interval and returns its sample. `wait` gets the time until which to wait; if it returns
    /// `false`, the watch is over and the result is `None`.
    ///
    /// # Errors
    /// Those of `wait`, or when a counter can no longer be read.
    pub fn interval<E: From<InspectError>>(
        &mut self,
        wait: impl FnOnce(Instant) -> Result<bool, E>,
    ) -> Result<Option<WatchSample>, E> {
        if self.intervals.is_multiple_of(TIMED_EVERY) {
            self.time_programs();
        }
        if !wait(self.due)? {
            return Ok(None);
        }
        // Intervals missed during suspend are skipped.
        self.due = (self.due + self.interval).max(Instant::now());
        let sample = self.history.sample(self.reader.read()?, self.bpf_cpu_ratio);
        self.intervals += 1;
        self.elapsed_seconds = sample.elapsed_seconds;
        self.process_cpu_seconds += sample.cost.process_cpu_ratio * sample.seconds;
        Ok(Some(sample))
    }

    /// Lets the kernel time the programs for a moment.
    fn time_programs(&mut self) {
        let time = TIMED.min(self.interval / 10);
        // After a failed timing the last result is kept.
        if let Ok(ratio @ Some(_)) = self.reader.bpf_cpu_ratio(time) {
            self.bpf_cpu_ratio = ratio;
        }
    }

    /// Returns the end of the document: duration and cost.
    pub fn end(&self) -> WatchEnd {
        WatchEnd {
            elapsed_seconds: self.elapsed_seconds,
            intervals: self.intervals,
            cost: (self.intervals > 0).then(|| WatchCost {
                process_cpu_ratio: self.process_cpu_seconds / self.elapsed_seconds,
                bpf_cpu_ratio: self.bpf_cpu_ratio,
            }),
        }
    }
}
