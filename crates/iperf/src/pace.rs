//! How much to send.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// For a time.
    Time(Duration),
    /// A number of bytes of payload.
    Bytes(u64),
}

impl Amount {
    /// Until interrupted (-t 0).
    pub const ENDLESS: Amount = Amount::Time(Duration::MAX);
}

/// Has the calling thread's sleeps end when they are over, rather than up to 50 µs later so that the
/// kernel may join wake-ups.
pub(super) fn make_sleeps_exact() {
    // What it costs to go without is said by the rate and the gaps that are reached.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
