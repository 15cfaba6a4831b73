//! Computes from readings what a block carried and cost. Pure: readings in, a block out.
//!
//! All figures of a block are from the same two readings. A counter that was not read at both is null. A quantile needs
//! enough packets, and time stamps with a known error.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::ab::{AbBlock, AbCpu, AbDelay, AbDelayKind, AbQueue, AbStamps, AbWindow};
use nicpoll_model::{CpuSource, CpuStates, Drops};
use nicpoll_observe::{
    Account, CpuTimes, Histogram, InterruptLine, LinkCounters, PollRhythm, TaskTimes, ThreadTimes,
};
use nicpoll_switch::Target;

use crate::meter::{Instance, Queues, Reading, is_receiver};

/// Number of delays below which a block has no median.
const FOR_MEDIAN: u64 = 10;

/// Number of delays below which it has no 99th percentile.
const FOR_P99: u64 = 100;

/// The delays between two readings, of the kinds that have enough.
pub fn delays(first: &Reading, last: &Reading) -> Vec<AbDelay> {
    let both = first.stamped.as_ref().zip(last.stamped.as_ref());
    let one = |(kind, now): (&AbDelayKind, &Histogram)| {
        let since = now.since(first.delays.get(kind)?);
        let stamps = match kind.is_from_wire() {
            true => Some(both.and_then(|(first, last)| last.since(first, *kind))?),
            false => None,
        };
        delay_between(*kind, &since, stamps)
    };
    last.delays.iter().filter_map(one).collect()
}

fn delay_between(
    kind: AbDelayKind,
    delays: &Histogram,
    stamps: Option<AbStamps>,
) -> Option<AbDelay> {
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

/// Returns the CPU time of foreign threads between two lists of all threads. `own` is this process, `of_traffic` are
/// processes with sockets; without them only `own` is foreign.
pub fn foreign_time(
    before: &[ThreadTimes],
    after: &[ThreadTimes],
    own: u32,
    of_traffic: Option<&BTreeSet<u32>>,
) -> TaskTimes {
    let before: BTreeMap<u32, TaskTimes> = before
        .iter()
        .map(|thread| (thread.tid, thread.times))
        .collect();
    let is_foreign = |thread: &&ThreadTimes| {
        let is_of_traffic = of_traffic.is_none_or(|pids| pids.contains(&thread.pid));
        thread.pid == own || !is_receiver(thread) && !is_of_traffic
    };
    let used = |thread: &ThreadTimes| {
        let then = before.get(&thread.tid).copied().unwrap_or_default();
        let now = thread.times;
        TaskTimes {
            user_ns: now.user_ns.saturating_sub(then.user_ns),
            nice_ns: now.nice_ns.saturating_sub(then.nice_ns),
            system_ns: now.system_ns.saturating_sub(then.system_ns),
        }
    };
    let foreign = after.iter().filter(is_foreign).map(used);
    foreign.fold(TaskTimes::default(), TaskTimes::plus)
}

/// Names under which the kernel or drivers count the packets of a queue, the best first.
const PACKETS: [&str; 5] = ["rx_packets", "packets", "pkts", "cnt", "pkt_n"];

/// The queues of a block: those with driver counters or a known instance.
pub fn queues(
    first: &Reading,
    last: &Reading,
    members: &[Target],
    instances: &[Instance],
) -> Vec<AbQueue> {
    let told = instances
        .iter()
        .filter_map(|instance| Some((instance.ifindex, instance.queue?)));
    let all: BTreeSet<(u32, u32)> = last.queues.keys().copied().chain(told).collect();
    let line = |(ifindex, queue): (u32, u32)| {
        let mut members = members.iter().map(|member| &member.interface);
        let interface = members.find(|member| member.ifindex == ifindex)?;
        let instance = instances
            .iter()
            .find(|it| it.ifindex == ifindex && it.queue == Some(queue));
        let own = instance.map(|instance| instance.napi_id);
        let polls = own.and_then(|id| polls(first, last, |it| it.napi_id == id, instances));
        let counters = counted(&first.queues, &last.queues, (ifindex, queue));
        Some(AbQueue {
            interface: interface.name.clone(),
            queue,
            napi_id: own,
            rx_packets: PACKETS.iter().find_map(|name| counters.get(*name).copied()),
            interrupts: instance.and_then(|it| interrupts_of(first, last, std::iter::once(it))),
            polls: polls.as_ref().map(|polls| polls.polls),
            polled_packets: polls.as_ref().map(|polls| polls.frames),
            counters,
        })
    };
    all.into_iter().filter_map(line).collect()
}

fn counted(first: &Queues, last: &Queues, queue: (u32, u32)) -> BTreeMap<String, u64> {
    let (Some(before), Some(after)) = (first.get(&queue), last.get(&queue)) else {
        return BTreeMap::new();
    };
    let grown = |(name, count): (&String, &u64)| {
        let since = count.checked_sub(*before.get(name)?)?;
        Some((name.clone(), since))
    };
    after.iter().filter_map(grown).collect()
}

/// Readings of one block.
pub struct Readings<'a> {
    /// From the start of the run to the write that began the block, in seconds.
    pub start_seconds: f64,
    /// Length of the block.
    pub duration_seconds: f64,
    /// The part at its start that no figure includes.
    pub left_out_seconds: f64,
    /// CPU time of counting, in cores.
    pub counting_cores: f64,
    /// Reading after the part that is left out.
    pub first: &'a Reading,
    /// Reading after twice that part; `None` if the block was too short.
    pub later: Option<&'a Reading>,
    /// Reading at its end.
    pub last: &'a Reading,
}

/// Makes the block of its readings.
pub fn block(readings: &Readings<'_>, members: &[Target], instances: &[Instance]) -> AbBlock {
    let (first, last) = (readings.first, readings.last);
    let cores = readings.counting_cores;
    let polls = polls(first, last, |_| true, instances);
    let account = Account {
        before: &first.host,
        after: &last.host,
    };
    let sampled = last.sampled.since(&first.sampled, &last.sampled.cores());
    AbBlock {
        start_seconds: readings.start_seconds,
        duration_seconds: readings.duration_seconds,
        left_out_seconds: readings.left_out_seconds,
        window: window(first, last, members, cores),
        later_window: readings
            .later
            .map(|later| window(later, last, members, cores)),
        interrupts: interrupts_of(first, last, instances.iter()),
        receive_softirqs: grown(first.receive_softirqs, last.receive_softirqs),
        polls: polls.as_ref().map(|polls| polls.polls),
        polled_packets: polls.as_ref().map(|polls| polls.frames),
        dropped_packets: account.drops(),
        context_switches: Some(sampled.context_switches),
        retransmitted_segments: grown(retransmitted(first), retransmitted(last)),
        delays: delays(first, last),
        queues: queues(first, last, members, instances),
    }
}

/// Returns the TCP segments that were retransmitted since boot.
pub fn retransmitted(reading: &Reading) -> Option<u64> {
    reading.host.protocols.get("Tcp.RetransSegs").copied()
}

/// Returns the lost packets of all known places.
pub fn lost(drops: &Drops) -> u64 {
    drops.0.values().flatten().sum()
}

/// Returns the growth of a counter.
pub fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Returns the members' traffic and CPU time between two readings, less `counting_cores`, the cost of counting.
pub fn window(
    first: &Reading,
    last: &Reading,
    members: &[Target],
    counting_cores: f64,
) -> AbWindow {
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    let sum = |count: fn(&LinkCounters) -> u64| -> u64 {
        let of = |member: &Target| {
            let counters = |reading: &Reading| {
                let interfaces = reading.host.interfaces.as_ref()?;
                Some(count(&interfaces.get(&member.interface.ifindex)?.link))
            };
            grown(counters(first), counters(last)).unwrap_or(0)
        };
        members.iter().map(of).sum()
    };
    AbWindow {
        seconds,
        rx_packets: sum(|link| link.rx_packets),
        tx_packets: sum(|link| link.tx_packets),
        rx_bytes: sum(|link| link.rx_bytes),
        tx_bytes: sum(|link| link.tx_bytes),
        cpu: Some(AbCpu {
            counting_seconds: counting_cores * seconds,
            steal_seconds: steal_seconds(first, last, seconds),
            ..cpu_between(first, last, seconds)
        }),
    }
}

fn cpu_between(first: &Reading, last: &Reading, seconds: f64) -> AbCpu {
    let (before, after) = (&first.threads, &last.threads);
    let of_traffic = before.of_traffic.as_ref().zip(after.of_traffic.as_ref());
    let of_traffic: Option<BTreeSet<u32>> =
        of_traffic.map(|(before, after)| before.union(after).copied().collect());
    let foreign = foreign_time(
        &before.times,
        &after.times,
        after.own_process,
        of_traffic.as_ref(),
    );
    let in_seconds = |ns: u64| ns as f64 / 1e9;
    let foreign_user = in_seconds(foreign.user_ns + foreign.nice_ns);
    let foreign_system = in_seconds(foreign.system_ns);
    let foreign_seconds = in_seconds(foreign.total_ns());
    let Some((before, after)) = first.exact.as_ref().zip(last.exact.as_ref()) else {
        let sampled = sampled_between(first, last, seconds);
        // Samples divide the two otherwise than the scheduler's clock does, which knows their sum.
        let own = sampled.user_seconds + sampled.system_seconds - foreign_seconds;
        let user_seconds = (sampled.user_seconds - foreign_user).clamp(0.0, own.max(0.0));
        return AbCpu {
            user_seconds,
            system_seconds: own - user_seconds,
            foreign_seconds,
            ..sampled
        };
    };
    let cores = after.since(before, &after.cores());
    let sum = |ns: fn(&CpuTimes) -> u64| in_seconds(cores.iter().map(ns).sum());
    AbCpu {
        source: CpuSource::Exact,
        user_seconds: (sum(|core| core.user_ns + core.nice_ns) - foreign_user).max(0.0),
        system_seconds: (sum(|core| core.system_ns) - foreign_system).max(0.0),
        irq_seconds: sum(|core| core.irq_ns),
        softirq_seconds: sum(CpuTimes::softirq_total_ns),
        foreign_seconds,
        ..AbCpu::default()
    }
}

/// Time that was not idle, divided among the states as the ticks found them.
fn sampled_between(first: &Reading, last: &Reading, seconds: f64) -> AbCpu {
    let delta = last.sampled.since(&first.sampled, &last.sampled.cores());
    let cores = delta.states_in(seconds);
    let sum = |ratio: fn(&CpuStates) -> f64| cores.iter().map(ratio).sum::<f64>() * seconds;
    AbCpu {
        source: CpuSource::TickSampled,
        user_seconds: sum(|core| core.user_ratio + core.nice_ratio),
        system_seconds: sum(|core| core.system_ratio),
        irq_seconds: sum(|core| core.irq_ratio),
        softirq_seconds: sum(|core| core.softirq_ratio),
        ..AbCpu::default()
    }
}

fn steal_seconds(first: &Reading, last: &Reading, seconds: f64) -> f64 {
    let delta = last.sampled.since(&first.sampled, &last.sampled.cores());
    delta
        .states
        .iter()
        .map(|core| core.steal_ratio * seconds)
        .sum()
}

/// Polls of the chosen instances; `None` if polls are not watched, or none can be.
pub fn polls(
    first: &Reading,
    last: &Reading,
    is_chosen: impl Fn(&Instance) -> bool,
    instances: &[Instance],
) -> Option<PollRhythm> {
    let (before, after) = (first.rhythms.as_ref()?, last.rhythms.as_ref()?);
    let mut chosen = instances.iter().filter(|instance| is_chosen(instance));
    let chosen = std::iter::once(chosen.next()?).chain(chosen);
    let each = chosen.filter_map(|instance| {
        let id = instance.napi_id;
        Some(after.get(&id)?.since(before.get(&id)?))
    });
    Some(each.fold(PollRhythm::default(), |sum, one| sum.plus(&one)))
}

/// Hardware interrupts of instances; `None` if they have none, as of a virtual device.
pub fn interrupts_of<'a>(
    first: &Reading,
    last: &Reading,
    instances: impl Iterator<Item = &'a Instance>,
) -> Option<u64> {
    let numbers: BTreeSet<u32> = instances.flat_map(|one| &one.irqs).copied().collect();
    let total = |reading: &Reading| {
        let is_own = |line: &&InterruptLine| {
            let number = line.irq.parse();
            number.is_ok_and(|number: u32| numbers.contains(&number))
        };
        let lines = reading.interrupts.as_ref()?.iter();
        Some(lines.filter(is_own).map(InterruptLine::total).sum())
    };
    match numbers.is_empty() {
        true => None,
        false => grown(total(first), total(last)),
    }
}

#[cfg(test)]
mod queues_tests {
    use super::*;
    use crate::meter::Queues;
    use nicpoll_observe::ThreadTimes;

    fn thread(tid: u32, pid: u32, name: &str, system_ns: u64) -> ThreadTimes {
        ThreadTimes {
            tid,
            pid,
            starter_pid: None,
            name: String::from(name),
            times: TaskTimes {
                system_ns,
                ..TaskTimes::default()
            },
            slices: 1,
        }
    }

    #[test]
    fn threads_without_sockets_and_this_program_are_foreign() {
        let threads = |ns: u64| {
            [
                thread(1, 1, "nicpoll", ns),
                thread(2, 2, "server", 10 * ns),
                thread(3, 3, "cc1", 100 * ns),
                thread(4, 4, "ksoftirqd/0", 1_000 * ns),
                thread(5, 5, "kworker/0:1", 10_000 * ns),
            ]
        };
        let foreign = |of_traffic: Option<&BTreeSet<u32>>| {
            foreign_time(&threads(1), &threads(3), 1, of_traffic).system_ns
        };
        assert_eq!(foreign(Some(&BTreeSet::from([1, 2]))), 2 * 10_101);
        assert_eq!(foreign(None), 2);
    }

    #[test]
    fn a_counter_counts_when_it_was_there_before_and_did_not_begin_anew() {
        let at = |counts: &[(&str, u64)]| {
            let named = counts
                .iter()
                .map(|(name, count)| (String::from(*name), *count));
            Queues::from([((2, 0), named.collect())])
        };
        let before = at(&[("packets", 100), ("drops", 9)]);
        let after = at(&[("packets", 130), ("drops", 2), ("new", 5)]);
        let grown = counted(&before, &after, (2, 0));
        assert_eq!(grown, BTreeMap::from([(String::from("packets"), 30)]));
        assert!(counted(&before, &after, (2, 1)).is_empty());
    }
}
