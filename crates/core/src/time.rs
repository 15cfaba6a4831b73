//! Moments of whatever clock the caller has.

/// A moment, in nanoseconds since an origin of the caller's choice. It never runs backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    ns: u64,
}

impl Time {
    /// `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Time { ns }
    }

    /// `us` microseconds after the origin.
    pub const fn from_us(us: u64) -> Self {
        Time {
            ns: us.saturating_mul(1000),
        }
    }

    /// Nanoseconds after the origin.
    pub const fn ns(self) -> u64 {
        self.ns
    }

    /// Whole microseconds after the origin: what `microuptime` gives the original.
    pub const fn us(self) -> u64 {
        self.ns / 1000
    }

    /// Microseconds since `earlier`, as the original takes the difference of two readings.
    pub(crate) fn us_since(self, earlier: Time) -> i64 {
        self.us().wrapping_sub(earlier.us()) as i64
    }
}
