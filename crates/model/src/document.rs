//! Parts that several documents share: sides, protocols, origin, the frame of a run, time distributions.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Defines an enum by one row per value: its documentation, its name in Rust and its name in text.
macro_rules! named {
    ($(#[$of_enum:meta])* pub enum $enum:ident {
        $($(#[$of_value:meta])* $value:ident = $name:literal,)*
    }) => {
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        $(#[$of_enum])*
        pub enum $enum {
            $($(#[$of_value])* $value,)*
        }

        impl $enum {
            /// Every value, in the order of the table.
            pub const ALL: [$enum; [$($name),*].len()] = [$($enum::$value),*];

            /// Returns the name used in text.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$value => $name,)* }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use named;

/// The unit in which the work of a workload is counted, and by which its CPU time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkUnit {
    /// Bytes of a stream, whose lost packets are retransmitted.
    Bytes,
    /// Datagrams, one way.
    Datagrams,
    /// Requests with their responses.
    Transactions,
}

named! {
    /// The end of the link at which a figure was counted.
    #[serde(rename_all = "lowercase")]
    pub enum Side {
        /// The host that sends the workload (in `rr`: the one that asks).
        Sender = "sender",
        /// The host that receives the workload (in `rr`: the one that answers).
        Receiver = "receiver",
    }
}

impl Side {
    /// Returns the other end.
    pub fn other(self) -> Side {
        self.of(Side::Receiver, Side::Sender)
    }

    /// Returns what belongs to this end.
    pub fn of<T>(self, sender: T, receiver: T) -> T {
        match self {
            Side::Sender => sender,
            Side::Receiver => receiver,
        }
    }
}

named! {
    /// What carries a stream, or requests and responses.
    #[serde(rename_all = "lowercase")]
    pub enum Protocol {
        /// A byte stream on a connection.
        Tcp = "TCP",
        /// Datagrams.
        Udp = "UDP",
    }
}

/// The program that made a document, its command line, and its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
}

/// The machine of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Identifies the machine: its host name and eight hexadecimal digits of a hash of `/etc/machine-id`, which do not
    /// reveal the id. Null without such a file, and in a report.
    #[serde(default)]
    pub machine: Option<String>,
    /// Kernel release and version.
    pub kernel: String,
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// CPUs on which this process may run.
    pub cpus: Vec<u32>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Frequency governor of each core; empty when the kernel shows none.
    pub governors: Vec<String>,
    /// `/proc/cmdline` settings that affect measurements: `mitigations`, `preempt`, `isolcpus`, ...
    pub boot_options: Vec<String>,
    /// Sysctls that affect receiving, by name.
    pub sysctls: Vec<(String, String)>,
}

impl HostFacts {
    /// Removes the fields that identify the machine to strangers.
    pub fn leave_out_names(&mut self) {
        self.machine = None;
    }
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument<S, I, E> {
    /// Name and version of this layout.
    pub schema: String,
    /// The request, and how it is carried out.
    pub start: S,
    /// One record per interval.
    pub intervals: Vec<I>,
    /// The result.
    pub end: E,
}

/// Why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Line in the text, from 1.
    pub line: usize,
    /// The error, and the correct form.
    pub message: String,
}

impl FileError {
    /// An error at a span of a text, in bytes.
    pub fn at(text: &str, span: Range<usize>, message: String) -> Self {
        let before = text.as_bytes().get(..span.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError { line, message }
    }
}

/// Buckets per octave (from a power of two of nanoseconds to the next).
const PARTS: u64 = 16;

/// Times counted in buckets, each a sixteenth of its octave wide: 3 % to 6 % of the time. Only buckets with entries are
/// listed, shortest times first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeDistribution {
    /// End of each bucket: all times in it are below.
    pub below_ns: Vec<u64>,
    /// Number of times in each bucket.
    pub entries: Vec<u64>,
}

impl TimeDistribution {
    /// Counts times, given with their frequencies in any order.
    pub fn of(times: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut times: Vec<(u64, u64)> = times
            .into_iter()
            .map(|(ns, count)| (end_ns(ns), count))
            .collect();
        times.sort_unstable();
        let mut distribution = TimeDistribution::default();
        for (end, count) in times {
            match distribution.entries.last_mut() {
                Some(sum) if distribution.below_ns.last() == Some(&end) => *sum += count,
                _ => {
                    distribution.below_ns.push(end);
                    distribution.entries.push(count);
                }
            }
        }
        distribution
    }

    /// Merges two distributions.
    #[must_use]
    pub fn and(&self, other: &TimeDistribution) -> Self {
        let buckets = self.buckets().chain(other.buckets());
        // A bucket's end belongs to the next bucket.
        TimeDistribution::of(buckets.map(|(below, count)| (below - 1, count)))
    }

    /// Iterates over each bucket's end and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.below_ns.iter().copied();
        ends.zip(self.entries.iter().copied())
    }

    /// Iterates over bucket ends and the share of all times below each: the empirical distribution function.
    pub fn shares_below(&self) -> impl Iterator<Item = (u64, f64)> {
        let all = self.entries.iter().sum::<u64>().max(1) as f64;
        self.buckets().scan(0, move |sum, (below, count)| {
            *sum += count;
            Some((below, *sum as f64 / all))
        })
    }

    /// Returns the time below which at least this share of all times lies, to the width of a bucket; `None` without
    /// times.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let mut buckets = self.shares_below();
        let found = buckets.find(|(_, below)| *below >= share && *below > 0.0);
        found.map(|(below, _)| below)
    }
}

/// Returns the end of the bucket that holds a time.
fn end_ns(ns: u64) -> u64 {
    // Below 16 ns, each nanosecond has its own bucket.
    let octave = 1 << ns.max(PARTS).ilog2();
    let width = octave / PARTS;
    (ns / width + 1).saturating_mul(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_sixteenth_of_its_octave_wide() {
        for (ns, end) in [
            (0, 1),
            (15, 16),
            (16, 17),
            (1023, 1024),
            (1024, 1088),
            (1087, 1088),
        ] {
            assert_eq!(end_ns(ns), end, "{ns}");
        }
        assert!(end_ns(u64::MAX) > u64::MAX - (1 << 60));
        for ns in (100..100_000_000).step_by(9_999) {
            let end = end_ns(ns);
            assert!(ns < end && (end - ns) as f64 <= 0.0625 * ns as f64, "{ns}");
        }
    }

    #[test]
    fn the_share_below_a_time_grows_to_one() {
        let distribution = TimeDistribution::of([(2000, 1), (1000, 5), (1005, 2)]);
        assert_eq!(distribution.below_ns, [1024, 2048]);
        let shares: Vec<(u64, f64)> = distribution.shares_below().collect();
        assert_eq!(shares, [(1024, 0.875), (2048, 1.0)]);
        let quantiles = [0.0, 0.875, 0.9, 1.0].map(|share| distribution.quantile_ns(share));
        assert_eq!(quantiles, [1024, 1024, 2048, 2048].map(Some));
        assert_eq!(TimeDistribution::default().quantile_ns(0.5), None);
        let both = distribution.and(&TimeDistribution::of([(1000, 8)]));
        assert_eq!(both.entries, [15, 1]);
        assert_eq!(both.below_ns, distribution.below_ns);
    }
}
