//! When the other host sends.

use crate::chance::Chance;
use crate::trace::Trace;
use crate::workload::{Pattern, Workload};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The times at which packets are handed over for the line.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pattern: Pattern,
    rate_pps: u64,
    /// Whole nanoseconds from packet to packet, on average.
    gap_ns: u64,
    /// What is left over, in parts of `rate_pps` of a nanosecond.
    gap_rest: u64,
    rest: u64,
    frame_ns: u64,
    next_ns: u64,
    /// Start of the current pulse, and what is left of it.
    pulse_ns: u64,
    pulse_left: u64,
    /// What a pulse's packets leave over, in parts of [`NS_PER_SECOND`] of a packet.
    pulse_rest: u128,
    chance: Chance,
    /// Of a trace: the next packet's place, and when this time round began.
    place: usize,
    round_ns: u64,
}

impl Source {
    /// `None` when no other host sends. `frame_ns` is a datagram's time on the line.
    pub(crate) fn new(workload: &Workload, frame_ns: u64, seed: u64) -> Option<Self> {
        let rate_pps = workload.rate_pps?;
        let mut source = Source {
            pattern: workload.pattern,
            rate_pps,
            gap_ns: NS_PER_SECOND / rate_pps,
            gap_rest: NS_PER_SECOND % rate_pps,
            rest: 0,
            frame_ns,
            next_ns: 0,
            pulse_ns: 0,
            pulse_left: 0,
            pulse_rest: 0,
            chance: Chance::new(seed),
            place: 0,
            round_ns: 0,
        };
        if let Pattern::Trace { .. } = workload.pattern {
            // A trace has its own start.
            return Some(source);
        }
        // The clocks of two hosts have no common start.
        let phase = match workload.pattern {
            Pattern::Pulses { period_ns } => period_ns,
            _ => source.gap_ns.max(1),
        };
        source.next_ns = source.chance.below(phase);
        source.pulse_ns = source.next_ns;
        source.advance();
        Some(source)
    }

    /// When the next packet is sent.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The next packet's payload, where packets differ.
    pub(crate) fn payload_bytes(&self) -> Option<u32> {
        match self.pattern {
            Pattern::Trace { trace, .. } => Some(trace.packets()[self.place].payload_bytes),
            _ => None,
        }
    }

    /// The next packet has been sent.
    pub(crate) fn advance(&mut self) {
        match self.pattern {
            Pattern::Constant => self.next_ns += self.gap(),
            Pattern::Poisson => {
                let gap_ns = self.gap();
                self.next_ns = self.next_ns.saturating_add(self.chance.exponential(gap_ns));
            }
            Pattern::Pulses { period_ns } => self.advance_in_pulse(period_ns),
            Pattern::Trace { trace, repeats } => self.advance_in_trace(trace, repeats),
            Pattern::Blast
            | Pattern::IperfUdp { .. }
            | Pattern::IperfTcp(_)
            | Pattern::RequestResponse => {
                self.next_ns = u64::MAX;
            }
        }
    }

    /// The mean gap; what is cut off adds up to a nanosecond now and then.
    fn gap(&mut self) -> u64 {
        self.rest += self.gap_rest;
        let carried = self.rest >= self.rate_pps;
        if carried {
            self.rest -= self.rate_pps;
        }
        self.gap_ns + u64::from(carried)
    }

    fn advance_in_trace(&mut self, trace: &Trace, repeats: bool) {
        if self.place + 1 < trace.packets().len() {
            self.place += 1;
        } else if repeats {
            self.place = 0;
            self.round_ns = self.round_ns.saturating_add(trace.period_ns());
        } else {
            self.next_ns = u64::MAX;
            return;
        }
        let at_ns = trace.packets()[self.place].at_ns;
        self.next_ns = self.round_ns.saturating_add(at_ns);
    }

    fn advance_in_pulse(&mut self, period_ns: u64) {
        if self.pulse_left > 0 {
            self.pulse_left -= 1;
            self.next_ns += self.frame_ns;
            return;
        }
        let mut packets = 0;
        while packets == 0 {
            self.pulse_ns += period_ns;
            self.pulse_rest += u128::from(self.rate_pps) * u128::from(period_ns);
            packets = (self.pulse_rest / u128::from(NS_PER_SECOND)) as u64;
            self.pulse_rest %= u128::from(NS_PER_SECOND);
        }
        // A pulse that outlasts its period runs into the next one.
        self.next_ns = self.pulse_ns.max(self.next_ns + self.frame_ns);
        self.pulse_left = packets - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(workload: &str, seconds: u64) -> Vec<u64> {
        let workload = Workload::parse(workload).unwrap();
        let mut source = Source::new(&workload, 672, 1).unwrap();
        let mut times = Vec::new();
        while source.next_ns() < seconds * NS_PER_SECOND {
            times.push(source.next_ns());
            source.advance();
        }
        assert!(times.is_sorted());
        times
    }

    #[test]
    fn a_constant_rate_is_kept_to_the_packet() {
        let sent = times("constant:rate=70001", 3).len();
        assert!(sent.abs_diff(3 * 70_001) <= 1, "{sent}");
    }

    #[test]
    fn random_times_have_their_rate() {
        let sent = times("poisson:rate=100k", 2).len() as f64;
        // Four standard deviations.
        assert!((sent - 200e3).abs() < 4.0 * 200e3f64.sqrt(), "{sent}");
    }

    #[test]
    fn pulses_carry_the_rate_in_bursts() {
        let times = times("pulses:rate=50500:period=1ms", 2);
        assert!(times.len().abs_diff(101_000) <= 51, "{}", times.len());
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let breaks = gaps.filter(|gap| *gap > 672).count();
        // The first pulse comes within two periods and has no break before it.
        assert!((1997..2000).contains(&breaks), "{breaks}");
    }
}
