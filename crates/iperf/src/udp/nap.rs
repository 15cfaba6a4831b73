//! When a receiver of datagrams lets some gather.
//!
//! A receiver that is faster than its sender waits after every datagram, and is woken for every
//! datagram: the waking is done by the core that delivers, which is dearer than the datagram. One that
//! naps instead finds several, and nobody had to wake it. Times of arrival are the kernel's and not
//! changed by it.
//!
//! What must hold: a receiver naps only while datagrams come so fast that several gather, for so short a time that
//! even a socket buffer of the usual size holds what comes, and never before it can read several with one call: it
//! would fall behind by all that gathered.

use std::time::{Duration, Instant};

/// Datagrams that follow each other faster than this, on average, are let gather.
const FAST_GAP: Duration = Duration::from_micros(10);
/// They are let gather for this long: the usual buffer of 208 KiB holds about 250 small datagrams, which come in it at five
/// million a second.
const NAP: Duration = Duration::from_micros(50);

/// Looks at how fast datagrams come.
pub(super) struct Nap {
    previous: Instant,
}

impl Nap {
    pub(super) fn new(now: Instant) -> Self {
        Nap { previous: now }
    }

    /// How long to nap after a call that had room for `datagrams_max` and returned `datagrams` `now`; `None` when not
    /// at all: more may be there already, or they come slowly.
    pub(super) fn after(
        &mut self,
        datagrams: u32,
        datagrams_max: u32,
        now: Instant,
    ) -> Option<Duration> {
        let elapsed = now.duration_since(self.previous);
        self.previous = now;
        // A call that returns fewer has left none.
        let has_emptied_socket = datagrams < datagrams_max / 2;
        (has_emptied_socket && elapsed < FAST_GAP * datagrams).then_some(NAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fast_stream_is_let_gather() {
        let begun = Instant::now();
        let mut nap = Nap::new(begun);
        let us = |us| begun + Duration::from_micros(us);
        assert_eq!(nap.after(0, 32, us(1)), None);
        assert_eq!(nap.after(1, 32, us(10)), Some(NAP));
        assert_eq!(nap.after(1, 32, us(20)), None);
        assert_eq!(nap.after(15, 32, us(169)), Some(NAP));
        assert_eq!(nap.after(15, 32, us(320)), None);
        assert_eq!(nap.after(64, 32, us(650)), None);
    }

    #[test]
    fn nobody_naps_who_reads_one_datagram_a_call() {
        let begun = Instant::now();
        let mut nap = Nap::new(begun);
        for call in 1..100 {
            assert_eq!(nap.after(1, 1, begun + Duration::from_micros(call)), None);
        }
    }
}
