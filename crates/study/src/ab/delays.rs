//! Delays under both settings: of packets on their way to programs, and of these programs on their way to a CPU.
//!
//! What must hold: the programs that measure run from before the first block to after the last one, so that both
//! settings are measured alike. A quantile stands on enough packets, and on stamps whose error is known, or there is
//! none.

use std::collections::BTreeMap;

use nicpoll_model::Unseen;
use nicpoll_model::ab::{AbDelay, AbDelayKind, AbStamps};
use nicpoll_observe::{BpfError, Histogram, PacketDelays, RunQueue, Stamped, TimedPrograms};

use super::meter::{ExactReading, Instance, Reading};
use super::programs::is_receiver;
use super::stamps::Stamps;

/// So many packets a second are followed; more cost CPU time and tell nothing more.
const FOLLOWED_PER_SECOND: f64 = 2_000.0;
/// Delays below which a block has no median.
const FOR_MEDIAN: u64 = 10;
/// Delays below which it has no 99th percentile.
const FOR_P99: u64 = 100;

/// What measures delays; nothing where it cannot be.
#[derive(Default)]
pub struct Delays {
    packets: Option<PacketDelays>,
    stamps: Stamps,
    waits: Option<RunQueue>,
}

impl Delays {
    /// Begins to measure those of packets of the instances, which have so many a second, and of threads. `own` is this
    /// process, as the account of CPU time numbers it. Returns also what cannot be seen.
    pub fn begin(
        instances: &[Instance],
        packets_per_second: f64,
        own: Option<u32>,
    ) -> (Self, Vec<Unseen>) {
        let (stamps, clocks, mut unseen) = Stamps::of(instances);
        let mut seen = |what: &str, error: BpfError| {
            unseen.push(Unseen {
                what: String::from(what),
                why: error.to_string(),
            });
        };
        let one_in = (packets_per_second / FOLLOWED_PER_SECOND).ceil() as u32;
        let packets = PacketDelays::begin(&stamps.by_instance(instances.iter()), one_in, clocks);
        let packets = packets.map_err(|error| seen("delays of packets", error));
        let own = own.unwrap_or(std::process::id());
        let waits = RunQueue::begin(own, own == std::process::id());
        let waits = waits.map_err(|error| seen(AbDelayKind::RunQueue.describe(), error));
        let delays = Delays {
            packets: packets.ok(),
            stamps,
            waits: waits.ok(),
        };
        unseen.extend(delays.packets.iter().flat_map(PacketDelays::unseen));
        (delays, unseen)
    }

    /// Follows packets of these instances from now on.
    pub fn watch<'a>(
        &mut self,
        instances: impl Iterator<Item = &'a Instance>,
    ) -> Result<(), BpfError> {
        match &mut self.packets {
            Some(packets) => packets.watch(&self.stamps.by_instance(instances)),
            None => Ok(()),
        }
    }

    /// Times threads of the programs that have to do with the traffic now.
    pub fn watch_programs(&mut self, now: &ExactReading) -> Result<(), BpfError> {
        let (Some(waits), Some(of_traffic)) = (&mut self.waits, &now.of_traffic) else {
            return Ok(());
        };
        let receivers = now.threads.iter().filter(|thread| is_receiver(thread));
        let all = of_traffic.iter().copied();
        waits.watch(all.chain(receivers.map(|thread| thread.pid)))
    }

    /// The programs in the kernel.
    pub fn timed(&self) -> impl Iterator<Item = &dyn TimedPrograms> {
        let packets = self.packets.iter().map(|one| one as &dyn TimedPrograms);
        packets.chain(self.waits.iter().map(|one| one as &dyn TimedPrograms))
    }

    /// All delays so far.
    pub fn read(&self) -> Result<BTreeMap<AbDelayKind, Histogram>, BpfError> {
        let packets = self.packets.as_ref().map(PacketDelays::read).transpose()?;
        let mut all = packets.unwrap_or_default();
        if let Some(waits) = &self.waits {
            all.insert(AbDelayKind::RunQueue, waits.read()?);
        }
        Ok(all)
    }

    /// What the time stamps of cards were good for in the delays that were read before.
    pub fn stamped(&self) -> Result<Option<Stamped>, BpfError> {
        let stamped = self.packets.as_ref().map(PacketDelays::stamped);
        Ok(stamped.transpose()?.flatten())
    }
}

/// The delays between two readings, of the kinds that have enough.
pub fn delays(first: &Reading, last: &Reading) -> Vec<AbDelay> {
    let both = first.stamped.as_ref().zip(last.stamped.as_ref());
    let one = |(kind, now): (&AbDelayKind, &Histogram)| {
        let since = now.since(first.delays.get(kind)?);
        let stamps = match kind.is_from_wire() {
            true => Some(both.and_then(|(first, last)| last.since(first, *kind))?),
            false => None,
        };
        of(*kind, &since, stamps)
    };
    last.delays.iter().filter_map(one).collect()
}

fn of(kind: AbDelayKind, delays: &Histogram, stamps: Option<AbStamps>) -> Option<AbDelay> {
    let samples = delays.count();
    let p50_ns = delays.quantile_ns(0.5).filter(|_| samples >= FOR_MEDIAN)?;
    Some(AbDelay {
        kind,
        samples,
        p50_ns,
        p99_ns: delays.quantile_ns(0.99).filter(|_| samples >= FOR_P99),
        stamps,
    })
}

#[cfg(test)]
mod tests;
