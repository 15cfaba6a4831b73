//! Rings that would fill up between two polls, at the rate of the moment.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::apply::Switch;
use crate::facts::Facts;
use crate::knob::table;
use crate::request::Values;
use crate::resolve::ResolveError;

/// How long arrivals are counted.
const COUNTING: Duration = Duration::from_millis(200);

/// A ring that fills up between two polls.
#[derive(Clone, Debug, PartialEq)]
pub struct Overflow {
    /// The interface.
    pub interface: String,
    /// Slots of all receive rings together.
    pub slots: u64,
    /// What arrives between two polls at the rate seen.
    pub packets_per_period: f64,
    /// A period that would fit, in ns.
    pub fitting_period_ns: u64,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "warning: {} receives {:.0} packets per period now, and its rings have {} slots, so packets will be \
             lost; a period of {} us would fit",
            self.interface,
            self.packets_per_period,
            self.slots,
            self.fitting_period_ns / 1_000
        )
    }
}

impl Switch {
    /// Counts arrivals for a moment when a timer is to be set, and names the interfaces whose rings it is too slow for.
    /// `facts` were gathered just before.
    pub fn overflows(
        &mut self,
        facts: &[Facts],
        values: &Values,
    ) -> Result<Vec<Overflow>, ResolveError> {
        let period_ns = values.number(&table::GRO_FLUSH_TIMEOUT);
        let Some(period_ns) = period_ns.filter(|&ns| ns > 0) else {
            return Ok(Vec::new());
        };
        let started = Instant::now();
        thread::sleep(COUNTING);
        let mut found = Vec::new();
        for facts in facts {
            let links = self.links(facts.target.netns_inode)?;
            let elapsed = started.elapsed().as_secs_f64();
            let mut links = links.iter();
            let ifindex = facts.target.interface.ifindex;
            let Some(now) = links.find(|link| link.interface.ifindex == ifindex) else {
                continue;
            };
            let arrived = now.rx_packets.saturating_sub(facts.link.rx_packets);
            found.extend(overflow(facts, arrived as f64 / elapsed, period_ns));
        }
        Ok(found)
    }
}

/// Whether the rate seen would overflow the rings between two polls of this period.
fn overflow(facts: &Facts, packets_per_second: f64, period_ns: u64) -> Option<Overflow> {
    let slots = u64::from(facts.ring_slots?) * (facts.napis().len().max(1) as u64);
    let packets_per_period = packets_per_second * period_ns as f64 / 1e9;
    (packets_per_period > slots as f64).then(|| Overflow {
        interface: facts.target.interface.name.clone(),
        slots,
        packets_per_period,
        fitting_period_ns: (slots as f64 / packets_per_second * 1e9) as u64,
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
        assert_eq!(found.slots, 2048);
        assert_eq!(found.fitting_period_ns, 1_024_000);
        assert!((found.packets_per_period - 4000.0).abs() < 1e-6);
        let mut silent = card();
        silent.ring_slots = None;
        assert_eq!(overflow(&silent, 2e6, 2_000_000), None);
    }
}
