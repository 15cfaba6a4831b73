//! Warnings before a timer is set: the period overflows rings, or costs too much CPU.

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::numbers::duration_text;

use super::change::Switch;
use crate::error::SwitchError;
use crate::knob::table;
use crate::plan::InterfaceFacts;
use crate::request::KnobValues;

/// How long arrivals are counted in a first glance.
const GLANCE: Duration = Duration::from_millis(50);
/// How long arrivals are counted if a ring may overflow.
const COUNTING: Duration = Duration::from_millis(200);
/// The real rate may be this many times the rate of a glance: packets come in bursts.
const GLANCE_FACTOR: f64 = 10.0;
/// CPU time of a round that finds nothing: interrupt, softirq, poll, and setting the timer again. Measured on a virtual
/// machine, where 31,000 rounds a second took 34 % of a CPU; hardware is faster.
const ROUND_NS: u64 = 10_000;
/// Share of a CPU above which idle rounds cause a warning.
const IDLE_SHARE_MAX: f64 = 0.5;

impl Switch {
    /// Returns warnings about a command's values. Counts arrivals for a moment, longer if a ring may overflow. `facts`
    /// must have been gathered just before.
    pub fn warnings(
        &mut self,
        facts: &[InterfaceFacts],
        values: &KnobValues,
    ) -> Result<Vec<String>, SwitchError> {
        let period_ns = values.number(&table::GRO_FLUSH_TIMEOUT);
        let Some(period_ns) = period_ns.filter(|&ns| ns > 0) else {
            return Ok(Vec::new());
        };
        let mut found: Vec<String> = facts
            .iter()
            .filter_map(|facts| busy_timer(facts, period_ns))
            .collect();
        let started = Instant::now();
        thread::sleep(GLANCE);
        let mut rates = self.arrivals_per_second(facts, started)?;
        let may_fill = |(facts, rate): (&InterfaceFacts, &f64)| {
            overflow(facts, GLANCE_FACTOR * rate, period_ns).is_some()
        };
        if facts.iter().zip(&rates).any(may_fill) {
            thread::sleep(COUNTING - GLANCE);
            rates = self.arrivals_per_second(facts, started)?;
        }
        let told = facts.iter().zip(rates);
        found.extend(told.filter_map(|(facts, rate)| overflow(facts, rate, period_ns)));
        Ok(found)
    }

    /// Packets per second that each interface received since its facts were gathered; 0 if it is gone.
    fn arrivals_per_second(
        &mut self,
        facts: &[InterfaceFacts],
        since: Instant,
    ) -> Result<Vec<f64>, SwitchError> {
        let rate = |facts: &InterfaceFacts| {
            let links = self.links(facts.asked.target.netns_inode)?;
            let elapsed = since.elapsed().as_secs_f64();
            let ifindex = facts.asked.target.interface.ifindex;
            let mut links = links.iter();
            let now = links.find(|link| link.interface.ifindex == ifindex);
            let before = facts.link.rx_packets.unwrap_or(0);
            let now = now.and_then(|now| now.rx_packets);
            let arrived = now.map_or(0, |now| now.saturating_sub(before));
            Ok(arrived as f64 / elapsed)
        };
        facts.iter().map(rate).collect()
    }
}

/// Warns if idle rounds of this period take much of a CPU.
fn busy_timer(facts: &InterfaceFacts, period_ns: u64) -> Option<String> {
    let cpu_share = ROUND_NS as f64 / (ROUND_NS as f64 + period_ns as f64);
    (cpu_share > IDLE_SHARE_MAX).then(|| {
        format!(
            "warning: with a period of {} the rounds of each NAPI instance of {} take about {:.0} % of a \
             CPU even without traffic, if a round takes {} as on a virtual machine; with 100us they take about 10 %",
            duration_text(period_ns),
            facts.asked.target.interface.name,
            100.0 * cpu_share,
            duration_text(ROUND_NS)
        )
    })
}

/// Warns if this packet rate would overflow the rings between two polls.
fn overflow(facts: &InterfaceFacts, packets_per_second: f64, period_ns: u64) -> Option<String> {
    let slots = u64::from(facts.ring_slots?) * (facts.napis().len().max(1) as u64);
    let packets_per_period = packets_per_second * period_ns as f64 / 1e9;
    let fitting_period_us = (slots as f64 / packets_per_second * 1e6) as u64;
    (packets_per_period > slots as f64).then(|| {
        format!(
            "warning: {} receives {packets_per_period:.0} packets per period now, and its rings have \
             {slots} slots, so packets will be lost; a period of {fitting_period_us} us would fit",
            facts.asked.target.interface.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::card;

    #[test]
    fn a_ring_that_would_overflow_is_told_with_the_period_that_fits() {
        let facts = card();
        // Two rings of 1024 slots: 2 M packets/s fill them in 1.024 ms.
        assert_eq!(overflow(&facts, 2e6, 1_000_000), None);
        let found = overflow(&facts, 2e6, 2_000_000).unwrap();
        let text = found;
        assert!(text.contains("4000 packets per period"), "{text}");
        assert!(
            text.contains("2048 slots") && text.contains("1024 us"),
            "{text}"
        );
        let mut silent = card();
        silent.ring_slots = None;
        assert_eq!(overflow(&silent, 2e6, 2_000_000), None);
    }

    #[test]
    fn a_period_shorter_than_a_round_is_told_with_what_it_takes() {
        let text = busy_timer(&card(), 10).unwrap();
        assert!(text.contains("about 100 % of a CPU"), "{text}");
        assert!(text.contains("period of 10 ns"), "{text}");
        assert_eq!(busy_timer(&card(), 20_000), None);
    }
}
