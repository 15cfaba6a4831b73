//! How long a frame takes on the line, without losing a fraction of a nanosecond.

const NS_PER_SECOND: u64 = 1_000_000_000;

/// A line one way; both ways if it is half duplex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    bits_per_second: u64,
    /// Frames of this length, with preamble and gap, were carried last.
    line_bytes: u32,
    /// Whole nanoseconds of such a frame.
    frame_ns: u64,
    /// What is left over, in parts of `bits_per_second` of a nanosecond.
    frame_rest: u64,
    /// When the last frame has passed.
    free_at_ns: u64,
    free_rest: u64,
}

impl Wire {
    pub(crate) fn new(bits_per_second: u64) -> Self {
        Wire {
            bits_per_second,
            line_bytes: 0,
            frame_ns: 0,
            frame_rest: 0,
            free_at_ns: 0,
            free_rest: 0,
        }
    }

    fn measure(&mut self, line_bytes: u32) {
        // The longest frame and the fastest line are far from what 64 bits hold.
        let parts = 8 * u64::from(line_bytes) * NS_PER_SECOND;
        self.line_bytes = line_bytes;
        self.frame_ns = parts / self.bits_per_second;
        self.frame_rest = parts % self.bits_per_second;
    }

    /// Time of one frame, cut to whole nanoseconds, at least one.
    pub(crate) fn frame_ns(mut self, line_bytes: u32) -> u64 {
        self.measure(line_bytes);
        self.frame_ns.max(1)
    }

    /// What share of the line so many bytes are in a time.
    pub(crate) fn share(&self, line_bytes: u64, seconds: f64) -> f64 {
        8.0 * line_bytes as f64 / self.bits_per_second as f64 / seconds
    }

    /// Puts a frame on the line as soon as it is free. Returns when it has passed.
    pub(crate) fn carry(&mut self, now_ns: u64, line_bytes: u32) -> u64 {
        if line_bytes != self.line_bytes {
            self.measure(line_bytes);
        }
        if self.free_at_ns < now_ns {
            self.free_at_ns = now_ns;
            self.free_rest = 0;
        }
        self.free_at_ns += self.frame_ns;
        self.free_rest += self.frame_rest;
        if self.free_rest >= self.bits_per_second {
            self.free_rest -= self.bits_per_second;
            self.free_at_ns += 1;
        }
        self.free_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_carries_its_rate_to_the_frame() {
        for (bits, rate) in [(10_000_000_000, 14_880_952), (100_000_000, 148_809)] {
            let mut wire = Wire::new(bits);
            let passed = (0..rate + 10).filter(|_| wire.carry(0, 84) <= 1_000_000_000);
            assert_eq!(passed.count(), rate);
        }
    }

    #[test]
    fn an_idle_line_starts_when_the_frame_comes() {
        let mut wire = Wire::new(1_000_000_000);
        assert_eq!(wire.carry(1000, 84), 1672);
        assert_eq!(wire.carry(1000, 84), 2344);
        assert_eq!(wire.carry(9000, 1538), 9000 + 12_304);
    }
}
