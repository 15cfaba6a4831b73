//! From readings to what a block carried and cost. Pure: readings in, a block out.
//!
//! What must hold: all figures of a block are of its window, between the same two readings. A counter that was not
//! read at both is null.

use std::collections::BTreeSet;

use nicpoll_model::Drops;
use nicpoll_model::ab::{AbBlock, AbCpu, AbWindow};
use nicpoll_observe::{Account, InterruptLine, LinkCounters, PollRhythm, TaskTimes};

use super::delays::delays;
use super::meter::{ExactReading, Instance, Reading};
use super::programs::foreign_time;
use super::queues::queues;

/// A member: its index and its name.
pub type Member = (u32, String);

/// The readings of one block.
pub struct Readings<'a> {
    /// After the part that is left out.
    pub first: &'a Reading,
    /// After twice that part; `None` when the block was too short.
    pub later: Option<&'a Reading>,
    /// At its end.
    pub last: &'a Reading,
}

/// When and how a block ran.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From the start of the run to the write that began the block, in seconds.
    pub start_seconds: f64,
    /// Its whole length.
    pub duration_seconds: f64,
    /// The part at its beginning that is in no figure.
    pub left_out_seconds: f64,
    /// What counting took meanwhile, in cores.
    pub counting_cores: f64,
}

/// What a block carried and cost.
pub fn block(
    times: Times,
    readings: &Readings<'_>,
    members: &[Member],
    instances: &[Instance],
) -> AbBlock {
    let (first, last) = (readings.first, readings.last);
    let cores = times.counting_cores;
    let polls = polls(first, last, |_| true, instances);
    let account = Account {
        before: &first.host,
        after: &last.host,
    };
    let sampled = last.sampled.since(&first.sampled, &last.sampled.cores());
    AbBlock {
        start_seconds: times.start_seconds,
        duration_seconds: times.duration_seconds,
        left_out_seconds: times.left_out_seconds,
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

/// TCP segments that were sent again since the machine was started.
pub fn retransmitted(reading: &Reading) -> Option<u64> {
    reading.host.protocols.get("Tcp.RetransSegs").copied()
}

/// All packets lost, wherever it is known.
pub fn lost(drops: &Drops) -> u64 {
    drops.0.values().flatten().sum()
}

/// By how much a counter grew.
pub(super) fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// What the members carried and what was used between two readings, when counting took so many cores.
pub fn window(
    first: &Reading,
    last: &Reading,
    members: &[Member],
    counting_cores: f64,
) -> AbWindow {
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    let sum = |count: fn(&LinkCounters) -> u64| -> u64 {
        let of = |(ifindex, _): &Member| {
            let counters = |reading: &Reading| {
                let interfaces = reading.host.interfaces.as_ref()?;
                Some(count(&interfaces.get(ifindex)?.link))
            };
            grown(counters(first), counters(last)).unwrap_or(0)
        };
        members.iter().map(of).sum()
    };
    let cpu = first.exact.as_ref().zip(last.exact.as_ref());
    AbWindow {
        seconds,
        rx_packets: sum(|link| link.rx_packets),
        tx_packets: sum(|link| link.tx_packets),
        rx_bytes: sum(|link| link.rx_bytes),
        tx_bytes: sum(|link| link.tx_bytes),
        cpu: cpu.map(|(before, after)| AbCpu {
            counting_seconds: counting_cores * seconds,
            steal_seconds: steal_seconds(first, last, seconds),
            ..cpu_between(before, after)
        }),
    }
}

fn cpu_between(before: &ExactReading, after: &ExactReading) -> AbCpu {
    let cores = after.cores.since(&before.cores, &after.cores.cores());
    let of_traffic: Option<BTreeSet<u32>> = before
        .of_traffic
        .as_ref()
        .zip(after.of_traffic.as_ref())
        .map(|(before, after)| before.union(after).copied().collect());
    let foreign: TaskTimes = foreign_time(
        &before.threads,
        &after.threads,
        after.own_process,
        of_traffic.as_ref(),
    );
    let sum = |ns: fn(&nicpoll_observe::CpuTimes) -> u64| cores.iter().map(ns).sum::<u64>();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let user = sum(|core| core.user_ns + core.nice_ns);
    AbCpu {
        user_seconds: seconds(user.saturating_sub(foreign.user_ns + foreign.nice_ns)),
        system_seconds: seconds(sum(|core| core.system_ns).saturating_sub(foreign.system_ns)),
        irq_seconds: seconds(sum(|core| core.irq_ns)),
        softirq_seconds: seconds(sum(|core| core.softirq_total_ns())),
        foreign_seconds: seconds(foreign.total_ns()),
        ..AbCpu::default()
    }
}

fn steal_seconds(first: &Reading, last: &Reading, seconds: f64) -> f64 {
    let delta = last.sampled.since(&first.sampled, &last.sampled.cores());
    delta.states.iter().map(|core| core.steal * seconds).sum()
}

/// What the chosen instances did; `None` where polls are not watched.
pub(super) fn polls(
    first: &Reading,
    last: &Reading,
    is_chosen: impl Fn(&Instance) -> bool,
    instances: &[Instance],
) -> Option<PollRhythm> {
    let (before, after) = (first.rhythms.as_ref()?, last.rhythms.as_ref()?);
    let chosen = instances.iter().filter(|instance| is_chosen(instance));
    let each = chosen.filter_map(|instance| {
        let id = instance.napi_id;
        Some(after.get(&id)?.since(before.get(&id)?))
    });
    Some(each.fold(PollRhythm::default(), |sum, one| sum.plus(&one)))
}

/// Hardware interrupts of instances; `None` when none of them has one, as of a virtual device.
pub(super) fn interrupts_of<'a>(
    first: &Reading,
    last: &Reading,
    instances: impl Iterator<Item = &'a Instance>,
) -> Option<u64> {
    let numbers: BTreeSet<u32> = instances.filter_map(|instance| instance.irq).collect();
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
