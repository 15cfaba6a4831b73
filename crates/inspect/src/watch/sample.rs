//! Samples: differences of two readings, without I/O.

use std::collections::BTreeMap;

use nicpoll_model::{
    CoreStateTimes, CpuSource, CpuStates, Drops, LossPlace, WatchCost, WatchCounter, WatchDrops,
    WatchFlow, WatchInterface, WatchInterrupt, WatchPolls, WatchSample,
};
use nicpoll_observe::{Account, InterfaceCounters, LinkCounters, PollRhythm};

use super::read::{InterfacePolls, WatchReading};
use crate::discipline::{of_rhythm, without_polls};
use crate::interrupts::{description, is_storm};

/// The IP and UDP counters that are shown.
const PROTOCOLS: [&str; 18] = [
    "Ip.InReceives",
    "Ip.InDelivers",
    "Ip.ForwDatagrams",
    "Ip.OutRequests",
    "Udp.InDatagrams",
    "Udp.InErrors",
    "Udp.NoPorts",
    "Udp.RcvbufErrors",
    "Udp.OutDatagrams",
    "Ip6InReceives",
    "Ip6InDelivers",
    "Ip6OutForwDatagrams",
    "Ip6OutRequests",
    "Udp6InDatagrams",
    "Udp6InErrors",
    "Udp6NoPorts",
    "Udp6RcvbufErrors",
    "Udp6OutDatagrams",
];

/// State kept between intervals.
pub struct History {
    began: WatchReading,
    then: Option<WatchReading>,
    interfaces: BTreeMap<u32, InterfaceHistory>,
    cpu_times: BTreeMap<u32, CoreStateTimes>,
    dropped: BTreeMap<LossPlace, u64>,
}

/// Of one interface.
#[derive(Default)]
struct InterfaceHistory {
    rx: Peak,
    tx: Peak,
    polls: Option<PollRhythm>,
}

/// Greatest rates of one direction so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Peak {
    packets_per_second: Option<f64>,
    bytes_per_second: Option<f64>,
}

impl History {
    /// Starts with a first reading.
    pub fn new(began: WatchReading) -> Self {
        History {
            began,
            then: None,
            interfaces: BTreeMap::new(),
            cpu_times: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    /// Computes the sample since the previous reading. `bpf_cpu_ratio` is passed through.
    pub fn sample(&mut self, now: WatchReading, bpf_cpu_ratio: Option<f64>) -> WatchSample {
        let then = self.then.as_ref().unwrap_or(&self.began);
        let seconds = now.at.duration_since(then.at).as_secs_f64();
        let (cpu_source, cpu, switches) = cpu(then, &now);
        let account = Account {
            before: &then.namespace,
            after: &now.namespace,
        };
        let used = |reading: &WatchReading| reading.process.user + reading.process.system;
        let used = used(&now).saturating_sub(used(then));
        let sample = WatchSample {
            elapsed_seconds: now.at.duration_since(self.began.at).as_secs_f64(),
            seconds,
            interfaces: interfaces(then, &now, seconds, &mut self.interfaces),
            cpu_source,
            cpu,
            cpu_times: add_times(&mut self.cpu_times, &self.began, &now),
            context_switches_per_second: switches as f64 / seconds,
            interrupts: interrupts(then, &now, seconds),
            drops: add_drops(&mut self.dropped, &account.drops(), seconds),
            protocols: protocols(&self.began, then, &now, seconds),
            cost: WatchCost {
                process_cpu_ratio: used.as_secs_f64() / seconds,
                bpf_cpu_ratio,
            },
        };
        self.then = Some(now);
        sample
    }
}

fn interfaces(
    then: &WatchReading,
    now: &WatchReading,
    seconds: f64,
    histories: &mut BTreeMap<u32, InterfaceHistory>,
) -> Option<Vec<WatchInterface>> {
    let listed = now.namespace.interfaces.as_ref()?;
    let before = then.namespace.interfaces.as_ref();
    let watched = now.watched.iter().filter_map(|ifindex| {
        let counters = listed.get(ifindex)?;
        let before = before.and_then(|before| before.get(ifindex));
        let polls = now.polls.as_ref().and_then(|polls| polls.get(ifindex));
        let history = histories.entry(*ifindex).or_default();
        Some(interface(
            *ifindex, before, counters, polls, seconds, history,
        ))
    });
    Some(watched.collect())
}

fn interface(
    ifindex: u32,
    before: Option<&InterfaceCounters>,
    now: &InterfaceCounters,
    polls: Option<&InterfacePolls>,
    seconds: f64,
    history: &mut InterfaceHistory,
) -> WatchInterface {
    let direction = |counts: fn(&LinkCounters) -> (u64, u64), peak| {
        let before = before.map(|before| counts(&before.link));
        flow(before, counts(&now.link), seconds, peak)
    };
    let rx = direction(|link| (link.rx_packets, link.rx_bytes), &mut history.rx);
    let tx = direction(|link| (link.tx_packets, link.tx_bytes), &mut history.tx);
    let rhythm = polls.and_then(|polls| polls.rhythm.as_ref());
    if let Some(rhythm) = rhythm {
        history.polls = Some(history.polls.take().unwrap_or_default().plus(rhythm));
    }
    let finding = rhythm.map(|rhythm| {
        if rhythm.polls == 0 {
            let has_napi = polls.is_some_and(|polls| polls.has_napi);
            let kind = polls.map_or("", |polls| polls.kind.as_str());
            without_polls(has_napi, kind, rx.packets_per_second)
        } else {
            // Only the reason would need the timeout.
            of_rhythm(rhythm, 0)
        }
    });
    WatchInterface {
        name: now.name.clone(),
        ifindex,
        rx,
        tx,
        discipline: finding.map(|finding| finding.discipline),
        polls_per_second: rhythm.map(|rhythm| rhythm.polls as f64 / seconds),
        packets_per_poll: rhythm
            .filter(|rhythm| rhythm.polls > 0)
            .map(|rhythm| rhythm.frames as f64 / rhythm.polls as f64),
        packets_histogram: rhythm.map(|rhythm| rhythm.work.clone()),
        polls: history.polls.as_ref().map(|polls| WatchPolls {
            polls_by_cpu: polls.polls_by_cpu.clone(),
            packets: polls.frames,
            packets_histogram: polls.work.clone(),
        }),
    }
}

/// Computes the rates of one direction.
fn flow(
    before: Option<(u64, u64)>,
    (packets, bytes): (u64, u64),
    seconds: f64,
    peak: &mut Peak,
) -> WatchFlow {
    let rate = |before: Option<u64>, now: u64| Some(now.checked_sub(before?)? as f64 / seconds);
    let packets_per_second = rate(before.map(|before| before.0), packets);
    let bytes_per_second = rate(before.map(|before| before.1), bytes);
    let greater = |peak: Option<f64>, rate: Option<f64>| match (peak, rate) {
        (Some(peak), Some(rate)) => Some(peak.max(rate)),
        (peak, rate) => peak.or(rate),
    };
    peak.packets_per_second = greater(peak.packets_per_second, packets_per_second);
    peak.bytes_per_second = greater(peak.bytes_per_second, bytes_per_second);
    WatchFlow {
        packets_per_second,
        bytes_per_second,
        peak_packets_per_second: peak.packets_per_second,
        peak_bytes_per_second: peak.bytes_per_second,
        total_packets: packets,
        total_bytes: bytes,
    }
}

/// Returns each core's states. Steal time, which no event shows, is always taken from `/proc/stat`.
fn cpu(then: &WatchReading, now: &WatchReading) -> (CpuSource, Vec<CpuStates>, u64) {
    let sampled = now.cpu.since(&then.cpu, &now.cpu.cores());
    let (Some(before), Some(after)) = (&then.exact, &now.exact) else {
        return (
            CpuSource::TickSampled,
            sampled.states,
            sampled.context_switches,
        );
    };
    let steal = |core: u32| {
        let states = sampled.states.iter().find(|states| states.core == core);
        states.map_or(0.0, |states| states.steal_ratio)
    };
    let times = after.since(before, &after.cores());
    let states = times.iter().map(|times| times.shares(steal(times.core)));
    (CpuSource::Exact, states.collect(), sampled.context_switches)
}

/// Returns each core's time since the start. A running state's time is extrapolated, and the next event can take some of
/// it back; what was told once stays.
fn add_times(
    told: &mut BTreeMap<u32, CoreStateTimes>,
    began: &WatchReading,
    now: &WatchReading,
) -> Option<Vec<CoreStateTimes>> {
    let (before, after) = (began.exact.as_ref()?, now.exact.as_ref()?);
    for times in after.since(before, &after.cores()) {
        let told = told.entry(times.core).or_default();
        *told = times.by_state().not_below(*told);
    }
    Some(told.values().copied().collect())
}

fn interrupts(
    then: &WatchReading,
    now: &WatchReading,
    seconds: f64,
) -> Option<Vec<WatchInterrupt>> {
    let before = then.interrupts.as_deref().unwrap_or_default();
    let lines = now.interrupts.as_ref()?.iter();
    let came = lines.filter(|line| line.total() > 0).map(|line| {
        let earlier = before.iter().find(|earlier| earlier.irq == line.irq);
        let grown = earlier.map(|earlier| line.total().saturating_sub(earlier.total()));
        WatchInterrupt {
            irq: line.irq.clone(),
            description: description(line),
            total_interrupts: line.total(),
            interrupts_per_second: grown.map(|grown| grown as f64 / seconds),
            is_storm: is_storm(
                &line.irq,
                then.storms.as_ref(),
                now.storms.as_ref(),
                &now.unseen_vectors,
            ),
        }
    });
    Some(came.collect())
}

fn add_drops(
    dropped: &mut BTreeMap<LossPlace, u64>,
    found: &Drops,
    seconds: f64,
) -> Vec<WatchDrops> {
    let add = |(&place, &packets): (&LossPlace, &Option<u64>)| {
        if let Some(packets) = packets {
            *dropped.entry(place).or_default() += packets;
        }
        WatchDrops {
            place,
            packets: dropped.get(&place).copied(),
            packets_per_second: packets.map(|packets| packets as f64 / seconds),
        }
    };
    found.0.iter().map(add).collect()
}

fn protocols(
    began: &WatchReading,
    then: &WatchReading,
    now: &WatchReading,
    seconds: f64,
) -> Vec<WatchCounter> {
    let counter = |name: &&str| {
        let of = |reading: &WatchReading| reading.namespace.protocols.get(*name).copied();
        let count = of(now)?;
        Some(WatchCounter {
            name: String::from(*name),
            events: count.checked_sub(of(began)?)?,
            events_per_second: count.checked_sub(of(then)?)? as f64 / seconds,
        })
    };
    PROTOCOLS.iter().filter_map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_stays_and_a_counter_that_began_anew_has_no_rate() {
        let mut peak = Peak::default();
        let first = flow(Some((0, 0)), (100, 6_000), 2.0, &mut peak);
        assert_eq!(first.packets_per_second, Some(50.0));
        let second = flow(Some((100, 6_000)), (110, 7_000), 1.0, &mut peak);
        assert_eq!(second.packets_per_second, Some(10.0));
        assert_eq!(second.peak_packets_per_second, Some(50.0));
        assert_eq!(second.peak_bytes_per_second, Some(3_000.0));
        let restarted = flow(Some((110, 7_000)), (3, 180), 1.0, &mut peak);
        assert_eq!(
            (restarted.packets_per_second, restarted.total_packets),
            (None, 3)
        );
        assert_eq!(restarted.peak_packets_per_second, Some(50.0));
        assert_eq!(flow(None, (3, 180), 1.0, &mut peak).bytes_per_second, None);
    }

    #[test]
    fn drops_add_up_over_the_intervals_that_could_be_told() {
        let mut dropped = BTreeMap::new();
        let qdisc = |packets| Drops([(LossPlace::SendQueue, packets)].into());
        let place = |drops: Vec<WatchDrops>| {
            let mut all = drops.into_iter();
            all.find(|drops| drops.place == LossPlace::SendQueue)
                .unwrap()
        };
        let none = place(add_drops(&mut dropped, &qdisc(None), 1.0));
        assert_eq!((none.packets, none.packets_per_second), (None, None));
        add_drops(&mut dropped, &qdisc(Some(4)), 1.0);
        let missing = place(add_drops(&mut dropped, &qdisc(None), 1.0));
        assert_eq!(
            (missing.packets, missing.packets_per_second),
            (Some(4), None)
        );
        let more = place(add_drops(&mut dropped, &qdisc(Some(6)), 2.0));
        assert_eq!(
            (more.packets, more.packets_per_second),
            (Some(10), Some(3.0))
        );
    }
}
