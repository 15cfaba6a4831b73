//! How much may be on its way: slow start, congestion avoidance, and what a loss does (RFC 5681, RFC 3782).
//!
//! What must hold: the window is never below one segment, and a loss that three duplicates tell of halves
//! it once, however many segments of that window are lost.

/// Duplicates that tell of a loss (`tcprexmtthresh`).
const DUPLICATES_MIN: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    segment_bytes_max: u64,
    window: u64,
    slow_start_until: u64,
    duplicates: u64,
    is_recovering: bool,
    /// The end of what was sent when the last loss was seen (`snd_recover`).
    recover: Option<u64>,
}

/// What an acknowledgement leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing.
    No,
    /// The first byte that is not acknowledged is lost, and was not known to be.
    Found,
    /// So is the next one of the same window.
    Another,
}

impl Congestion {
    pub(super) fn new(segment_bytes_max: u64) -> Self {
        // RFC 3390 (`tcp_mss`).
        let first = (4 * segment_bytes_max).min(4380.max(2 * segment_bytes_max));
        Congestion {
            segment_bytes_max,
            window: first,
            slow_start_until: u64::MAX,
            duplicates: 0,
            is_recovering: false,
            recover: None,
        }
    }

    /// Bytes that may be on their way; two segments more while the first two duplicates tell that others
    /// have arrived (RFC 3042).
    pub(super) fn window(&self) -> u64 {
        let limited = if self.is_recovering {
            0
        } else {
            self.duplicates.min(DUPLICATES_MIN - 1)
        };
        self.window + limited * self.segment_bytes_max
    }

    /// A duplicate of the acknowledgement up to `una`, with the stream sent up to `sent`. `peer_window` is
    /// what the receiver has room for.
    pub(super) fn duplicate(&mut self, una: u64, sent: u64, peer_window: u64) -> Loss {
        if self.is_recovering {
            self.window += self.segment_bytes_max;
            return Loss::No;
        }
        self.duplicates += 1;
        if self.duplicates < DUPLICATES_MIN {
            return Loss::No;
        }
        // What follows a timeout are duplicates of its own segments (RFC 3782, 4).
        if self.recover.is_some_and(|recover| una <= recover) {
            self.duplicates = 0;
            return Loss::No;
        }
        self.halve(peer_window);
        self.is_recovering = true;
        self.recover = Some(sent);
        self.window = self.slow_start_until + DUPLICATES_MIN * self.segment_bytes_max;
        Loss::Found
    }

    /// What came was no duplicate.
    pub(super) fn forget_duplicates(&mut self) {
        if !self.is_recovering {
            self.duplicates = 0;
        }
    }

    /// `acked` more bytes are acknowledged, up to `una`, with the stream sent up to `sent`.
    pub(super) fn advance(&mut self, acked: u64, una: u64, sent: u64, peer_window: u64) -> Loss {
        let mss = self.segment_bytes_max;
        if self.is_recovering {
            if self.recover.is_some_and(|recover| una < recover) {
                // `tcp_newreno_partial_ack`
                self.window = self.window.saturating_sub(acked) + mss;
                return Loss::Another;
            }
            self.is_recovering = false;
            self.window = self.slow_start_until.min(sent - una + mss);
        } else if self.window < peer_window {
            // The original's fast path leaves a window alone that is not what holds it back.
            let in_slow_start = self.window <= self.slow_start_until;
            self.window += if in_slow_start {
                mss
            } else {
                (mss * mss / self.window).max(1)
            };
        }
        self.duplicates = 0;
        Loss::No
    }

    /// Nothing was acknowledged for too long, with the stream sent up to `sent` (`tcp_timer_rexmt`).
    pub(super) fn timeout(&mut self, sent: u64, peer_window: u64) {
        self.halve(peer_window);
        self.window = self.segment_bytes_max;
        self.duplicates = 0;
        self.is_recovering = false;
        self.recover = Some(sent);
    }

    fn halve(&mut self, peer_window: u64) {
        let mss = self.segment_bytes_max;
        let segments = self.window.min(peer_window) / 2 / mss;
        self.slow_start_until = segments.max(2) * mss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const WIDE: u64 = 1_000_000;

    #[test]
    fn the_first_window_is_that_of_rfc_3390() {
        for (mss, window) in [(536, 2144), (1095, 4380), (1448, 4380), (4000, 8000)] {
            assert_eq!(Congestion::new(mss).window(), window);
        }
    }

    #[test]
    fn it_doubles_each_round_trip_and_then_grows_by_a_segment() {
        let mut congestion = Congestion::new(MSS);
        assert_eq!(congestion.window(), 4 * MSS);
        for ack in 1..=4 {
            congestion.advance(MSS, ack * MSS, WIDE, WIDE);
        }
        assert_eq!(congestion.window(), 8 * MSS);
        congestion.slow_start_until = 8 * MSS - 1;
        for ack in 5..=12 {
            congestion.advance(MSS, ack * MSS, WIDE, WIDE);
        }
        let grown = congestion.window() - 8 * MSS;
        assert!((940..=MSS).contains(&grown), "{grown}");
        // The receiver's window is what holds it back.
        let held = congestion.window();
        congestion.advance(MSS, 13 * MSS, WIDE, held);
        assert_eq!(congestion.window(), held);
    }

    #[test]
    fn three_duplicates_halve_it_once_and_partial_answers_tell_of_more() {
        let mut congestion = Congestion::new(MSS);
        congestion.window = 20 * MSS;
        let (una, sent) = (10 * MSS, 30 * MSS);
        for limited in [21, 22] {
            assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::No);
            assert_eq!(congestion.window(), limited * MSS);
        }
        assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::Found);
        assert_eq!(congestion.window(), 13 * MSS);
        assert_eq!(congestion.duplicate(una, sent, WIDE), Loss::No);
        assert_eq!(congestion.window(), 14 * MSS);
        let partial = congestion.advance(5 * MSS, una + 5 * MSS, sent, WIDE);
        assert_eq!(partial, Loss::Another);
        assert_eq!(congestion.window(), 10 * MSS);
        let last = congestion.advance(15 * MSS, sent, sent + 10 * MSS, WIDE);
        assert_eq!(last, Loss::No);
        assert_eq!(congestion.window(), 10 * MSS);
        assert!(!congestion.is_recovering);
    }

    #[test]
    fn a_timeout_begins_anew_and_its_own_duplicates_tell_nothing() {
        let mut congestion = Congestion::new(MSS);
        congestion.window = 20 * MSS;
        congestion.timeout(30 * MSS, WIDE);
        assert_eq!(congestion.window(), MSS);
        assert_eq!(congestion.slow_start_until, 10 * MSS);
        for _ in 0..10 {
            assert_eq!(congestion.duplicate(30 * MSS, 40 * MSS, WIDE), Loss::No);
        }
        // A window that the receiver keeps small is halved from there, to two segments at least.
        congestion.timeout(50 * MSS, 3 * MSS);
        assert_eq!(congestion.slow_start_until, 2 * MSS);
    }
}
