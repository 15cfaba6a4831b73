//! A line for each receive queue of a block: its polls, its interrupts, and what the driver counts for it.
//!
//! What must hold: a counter that was not there at both readings, or that began anew between them, is in no line.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::ab::AbQueue;
use nicpoll_observe::queue_counters;
use nicpoll_switch::Control;

use super::block::{Member, interrupts_of, polls};
use super::meter::{Instance, Reading};

/// Counters by name, of each receive queue: that is its interface's index and its number.
pub type Queues = BTreeMap<(u32, u32), BTreeMap<String, u64>>;

/// Names under which the kernel or drivers count the packets of a queue, the best first.
const PACKETS: [&str; 5] = ["rx_packets", "packets", "pkts", "cnt", "pkt_n"];

/// Reads what the drivers of the members count, and what the kernel asks them for. Nothing where they do not tell.
pub fn read<'a>(
    control: &mut Control,
    members: impl Iterator<Item = (u32, Option<&'a str>)>,
) -> Queues {
    let mut queues = Queues::new();
    for (ifindex, name) in members {
        let own = name.and_then(|name| queue_counters(name).ok());
        for (queue, counters) in own.unwrap_or_default() {
            queues.entry((ifindex, queue)).or_default().extend(counters);
        }
        let asked = control.queue_statistics(ifindex).unwrap_or_default();
        for (queue, counters) in asked {
            let counters = counters
                .into_iter()
                .map(|(name, count)| (String::from(name), count));
            queues.entry((ifindex, queue)).or_default().extend(counters);
        }
    }
    queues
}

/// The lines of a block: queues that the driver counts for, or whose instance it tells.
pub fn queues(
    first: &Reading,
    last: &Reading,
    members: &[Member],
    instances: &[Instance],
) -> Vec<AbQueue> {
    let told = instances
        .iter()
        .filter_map(|instance| Some((instance.ifindex, instance.queue?)));
    let all: BTreeSet<(u32, u32)> = last.queues.keys().copied().chain(told).collect();
    let line = |(ifindex, queue): (u32, u32)| {
        let (_, interface) = members.iter().find(|(index, _)| *index == ifindex)?;
        let instance = instances
            .iter()
            .find(|it| it.ifindex == ifindex && it.queue == Some(queue));
        let own = instance.map(|instance| instance.napi_id);
        let polls = own.and_then(|id| polls(first, last, |it| it.napi_id == id, instances));
        let counters = counted(&first.queues, &last.queues, (ifindex, queue));
        Some(AbQueue {
            interface: interface.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

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
