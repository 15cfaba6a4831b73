//! How long a frame takes on the line, without losing a fraction of a nanosecond.

use nicpoll_model::line::{Line, LineError, Packet};

const NS_PER_SECOND: u128 = 1_000_000_000;

/// The line one way, for frames of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// Whole nanoseconds of a frame with preamble and gap.
    frame_ns: u64,
    /// What is left over, in parts of `bits_per_second` of a nanosecond.
    frame_rest: u64,
    bits_per_second: u64,
    /// When the last frame has passed.
    free_at_ns: u64,
    free_rest: u64,
}

impl Wire {
    /// For packets of one kind.
    pub(crate) fn new(line: &Line, packet: Packet) -> Result<Self, LineError> {
        let cost = line.cost(packet)?;
        let bits_per_second = line.bits_per_second.get();
        let parts = u128::from(8 * cost.line_bytes) * NS_PER_SECOND;
        Ok(Wire {
            // A frame of the longest length takes half a second on the slowest line.
            frame_ns: (parts / u128::from(bits_per_second)) as u64,
            frame_rest: (parts % u128::from(bits_per_second)) as u64,
            bits_per_second,
            free_at_ns: 0,
            free_rest: 0,
        })
    }

    /// Time of one frame, cut to whole nanoseconds, at least one.
    pub(crate) fn frame_ns(&self) -> u64 {
        self.frame_ns.max(1)
    }

    /// Time of one frame, exact to a float's precision.
    pub(crate) fn frame_seconds(&self) -> f64 {
        let rest = self.frame_rest as f64 / self.bits_per_second as f64;
        (self.frame_ns as f64 + rest) / 1e9
    }

    /// Puts a frame on the line as soon as it is free. Returns when it has passed.
    pub(crate) fn carry(&mut self, now_ns: u64) -> u64 {
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
            let line = Line::new(bits).unwrap();
            let mut wire = Wire::new(&line, Packet::Frame { bytes: 64 }).unwrap();
            let passed = (0..rate + 10).filter(|_| wire.carry(0) <= 1_000_000_000);
            assert_eq!(passed.count(), rate);
        }
    }

    #[test]
    fn an_idle_line_starts_when_the_frame_comes() {
        let line = Line::new(1_000_000_000).unwrap();
        let mut wire = Wire::new(&line, Packet::Frame { bytes: 64 }).unwrap();
        assert_eq!(wire.carry(1000), 1672);
        assert_eq!(wire.carry(1000), 2344);
        assert_eq!(wire.carry(9000), 9672);
    }
}
