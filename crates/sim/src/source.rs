//! When a host sends that goes by times of its own.

use crate::chance::Chance;
use crate::workload::{Pattern, TrafficModel};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The times at which packets are handed over for the line.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pattern: Pattern,
    /// Of all clients together, and how many there are.
    rate_pps: u64,
    clients: u64,
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
    /// What a pulse's packets leave over, in parts of [`NS_PER_SECOND`] times `clients` of a packet.
    pulse_rest: u128,
    chance: Chance,
    /// Of a trace: the next packet's place, and when this time round began.
    place: usize,
    round_ns: u64,
}

impl Source {
    /// That of one client, by number. `None` when no other host sends. `frame_ns` is a datagram's time on the
    /// line.
    pub(crate) fn new(
        workload: &TrafficModel,
        client: u16,
        frame_ns: u64,
        seed: u64,
    ) -> Option<Self> {
        let rate_pps = workload.rate_pps?;
        let clients = u64::from(workload.clients);
        let mut source = Source {
            pattern: workload.pattern.clone(),
            rate_pps,
            clients,
            gap_ns: clients * NS_PER_SECOND / rate_pps,
            gap_rest: clients * NS_PER_SECOND % rate_pps,
            rest: 0,
            frame_ns,
            next_ns: 0,
            pulse_ns: 0,
            pulse_left: 0,
            // A client with less than a packet a pulse sends in some, and each client in others.
            pulse_rest: u128::from(client) * u128::from(NS_PER_SECOND),
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
        match &self.pattern {
            Pattern::Trace { trace, .. } => Some(trace.packets()[self.place].payload_bytes),
            _ => None,
        }
    }

    /// The next packet has been sent.
    pub(crate) fn advance(&mut self) {
        match &self.pattern {
            Pattern::Constant => self.next_ns += self.gap(),
            Pattern::Poisson => {
                let gap_ns = self.gap();
                self.next_ns = self.next_ns.saturating_add(self.chance.exponential(gap_ns));
            }
            Pattern::Pulses { period_ns } => self.advance_in_pulse(*period_ns),
            Pattern::Trace { .. } => self.advance_in_trace(),
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

    fn advance_in_trace(&mut self) {
        let Pattern::Trace { trace, repeats } = &self.pattern else {
            return;
        };
        if self.place + 1 < trace.packets().len() {
            self.place += 1;
        } else if *repeats {
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
        let whole = u128::from(self.clients) * u128::from(NS_PER_SECOND);
        let a_pulse = u128::from(self.rate_pps) * u128::from(period_ns);
        // Those until there is a packet; at the lowest rates of the most clients far fewer than 2^64.
        let missing = whole.saturating_sub(self.pulse_rest);
        let pulses = missing.div_ceil(a_pulse).max(1) as u64;
        self.pulse_ns = self
            .pulse_ns
            .saturating_add(pulses.saturating_mul(period_ns));
        self.pulse_rest += u128::from(pulses) * a_pulse;
        let packets = (self.pulse_rest / whole) as u64;
        self.pulse_rest %= whole;
        // A pulse that outlasts its period runs into the next one.
        self.next_ns = self.pulse_ns.max(self.next_ns + self.frame_ns);
        self.pulse_left = packets - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(workload: &str, seconds: u64) -> Vec<u64> {
        let workload = TrafficModel::parse(workload).unwrap();
        let mut source = Source::new(&workload, 0, 672, 1).unwrap();
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
