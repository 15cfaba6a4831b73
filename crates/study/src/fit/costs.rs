//! From probes to costs: what each kind of work takes, in each repeat and over all.

use nicpoll_model::sim_fit_host::{HostCost, MeasuredCost};
use nicpoll_stats::Summary;

use super::Block;
use super::probe::Probe;
use super::regression::{self, Row};
use super::repeats;

/// From 64 to 1470 bytes.
const MORE_KIB: f64 = (1470.0 - 64.0) / 1024.0;
/// Events of the account of which half of the time falls into a kind of work, counted as whole ones: into the call
/// and into the software interrupt in it, and out of both.
const EVENTS_IN_SEND: f64 = 2.0;
const EVENTS_OUTSIDE: f64 = 1.0;
const EVENTS_IN_POLL: f64 = 1.0;
const EVENTS_IN_INTERRUPT: f64 = 1.0;
/// Out of the call that returned, into the next one, and half of a switch twice.
const EVENTS_IN_TAKE_UP: f64 = 3.0;

/// Every kind's cost, with its ends over the repeats.
pub fn of(blocks: &[Block]) -> Vec<MeasuredCost> {
    let event_ns: Vec<f64> = blocks.iter().filter_map(|block| block.event_ns).collect();
    let event_ns = Summary::of(&event_ns).map_or(0.0, |summary| summary.median);
    let solved: Vec<Solved> = blocks
        .iter()
        .map(|block| Solved::of(block, event_ns))
        .collect();
    let cost = |cost| {
        let values = solved.iter().filter_map(|solved| solved.cost(cost));
        over_repeats(cost, &values.collect::<Vec<_>>())
    };
    HostCost::ALL.map(cost).to_vec()
}

fn over_repeats(cost: HostCost, values: &[f64]) -> MeasuredCost {
    // A cost of nothing or less is what scatter makes of a small one.
    let summary = Summary::of(values).filter(|summary| summary.median > 0.0);
    MeasuredCost {
        cost,
        ns: summary.map(|summary| summary.median),
        min_ns: summary.map(|summary| summary.min),
        max_ns: summary.map(|summary| summary.max),
        is_repeatable: summary.map(|_| repeats::agree(values)),
        repeats: values.len() as u32,
    }
}

/// What other programs took of the two processors in all looks together.
pub fn others_ratio(blocks: &[Block]) -> Option<f64> {
    let all = || blocks.iter().flat_map(Block::probes);
    let wall_ns: f64 = all().map(|probe| probe.wall_ns).sum();
    let others_ns: f64 = all().map(|probe| probe.others_ns).sum();
    (wall_ns > 0.0).then(|| others_ns / (2.0 * wall_ns))
}

/// What the hypervisor kept of the two processors, over all repeats; they are of one length.
pub fn steal_ratio(blocks: &[Block]) -> Option<f64> {
    let seen: Vec<f64> = blocks
        .iter()
        .filter_map(|block| block.steal_ratio)
        .collect();
    (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
}

/// What one repeat says.
struct Solved<'a> {
    block: &'a Block,
    event_ns: f64,
    /// Of a poll under load, a packet in it; waking is known.
    receiving: Option<[f64; 2]>,
    /// Of taking up a wait, a packet.
    reading: Option<[f64; 2]>,
}

impl<'a> Solved<'a> {
    fn of(block: &'a Block, event_ns: f64) -> Self {
        let others = block.timed.iter().chain(&block.paced);
        let loaded: Vec<_> = others.chain([&block.small]).collect();
        let receiving = loaded
            .iter()
            .map(|probe| receiving_row(probe, block.wake_ns));
        let reading = loaded.iter().map(|probe| reading_row(probe));
        Solved {
            block,
            event_ns,
            receiving: regression::costs(&receiving.collect::<Vec<_>>()),
            reading: regression::costs(&reading.collect::<Vec<_>>()),
        }
    }

    fn less(&self, ns: f64, events: f64) -> f64 {
        ns - events * self.event_ns
    }

    fn cost(&self, cost: HostCost) -> Option<f64> {
        let Block {
            small,
            large,
            nobody,
            ..
        } = self.block;
        let value = match cost {
            HostCost::OnePacketPoll => self.less(each(small.net_rx_ns, small)?, EVENTS_IN_POLL),
            HostCost::EmptyPoll => self.empty_poll_ns()?,
            HostCost::LoadedPoll => self.less(self.receiving?[0], EVENTS_IN_POLL),
            HostCost::BatchedPacket => self.receiving?[1],
            HostCost::BatchedKib => {
                let apart = predicted(&receiving_row(large, self.block.wake_ns), &self.receiving?);
                let waking_ns = self.block.wake_ns * large.receiver.slices;
                each(large.net_rx_ns - waking_ns - apart, large)? / MORE_KIB
            }
            HostCost::Delivery => {
                let waking_ns = self.block.wake_ns * small.receiver.slices;
                each(small.net_rx_ns - waking_ns, small)? - each(nobody.net_rx_ns, nobody)?
            }
            HostCost::Wake => self.block.wake_ns,
            HostCost::TakeUp => self.less(self.reading?[0], EVENTS_IN_TAKE_UP),
            HostCost::Read => self.reading?[1],
            HostCost::ReadKib => {
                let apart = predicted(&reading_row(large), &self.reading?);
                each(large.receiver.total_ns() - apart, large)? / MORE_KIB
            }
            HostCost::Send => self.less(each(small.sender.system_ns, small)?, EVENTS_IN_SEND),
            HostCost::SendKib => {
                let both =
                    each(large.sender.system_ns, large)? - each(small.sender.system_ns, small)?;
                both / MORE_KIB
            }
            HostCost::SendUser => self.less(each(small.sender.user_ns, small)?, EVENTS_OUTSIDE),
            HostCost::ThreadSwitch => self.block.switch_ns,
            HostCost::TimerInterrupt => self.timer_interrupt_ns()?,
            HostCost::TimerDelay => self.timer_delay_ns()?,
            HostCost::Tick => self.block.tick_ns?,
            HostCost::RoundTrip => self.block.round_trip_ns?,
        };
        value.is_finite().then_some(value)
    }

    /// The middle one of the timeouts.
    fn empty_poll_ns(&self) -> Option<f64> {
        let empty = self.block.empty.iter();
        let each = empty.filter_map(|(_, probe)| per(probe.net_rx_ns, probe.polls.polls()));
        let summary = Summary::of(&each.collect::<Vec<_>>())?;
        Some(self.less(summary.median, EVENTS_IN_POLL))
    }

    /// Where rounds come fastest, other interrupts of the timer count for least.
    fn timer_interrupt_ns(&self) -> Option<f64> {
        let empty = self.block.empty.iter();
        let (_, fastest) = empty.min_by_key(|(timeout_ns, _)| *timeout_ns)?;
        let (entries, ns) = fastest.timer?;
        Some(self.less(per(ns, entries)?, EVENTS_IN_INTERRUPT))
    }

    /// The middle one of the timeouts.
    fn timer_delay_ns(&self) -> Option<f64> {
        let late = self.block.empty.iter().filter_map(|(timeout_ns, probe)| {
            let gap_ns = per(probe.wall_ns - probe.net_rx_ns, probe.polls.rounds)?;
            Some(gap_ns - *timeout_ns as f64 - self.timer_interrupt_ns().unwrap_or(0.0))
        });
        let summary = Summary::of(&late.collect::<Vec<_>>())?;
        Some(summary.median)
    }
}

/// What is left when the wakings are taken out.
fn receiving_row(probe: &Probe, wake_ns: f64) -> Row<2> {
    Row {
        counts: [probe.polls.polls() as f64, probe.polls.frames as f64],
        ns: probe.net_rx_ns - wake_ns * probe.receiver.slices,
    }
}

fn reading_row(probe: &Probe) -> Row<2> {
    Row {
        counts: [probe.receiver.slices, probe.polls.frames as f64],
        ns: probe.receiver.total_ns(),
    }
}

/// What the counts of a row come to at these costs.
fn predicted<const N: usize>(row: &Row<N>, costs: &[f64; N]) -> f64 {
    row.counts
        .iter()
        .zip(costs)
        .map(|(count, cost)| count * cost)
        .sum()
}

/// Per packet of a probe; `None` without packets.
fn each(ns: f64, probe: &Probe) -> Option<f64> {
    per(ns, probe.polls.frames)
}

fn per(ns: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| ns / count as f64)
}

#[cfg(test)]
mod tests {
    use nicpoll_observe::PollCounts;

    use super::super::probe::ThreadWork;
    use super::*;

    const POLL_NS: f64 = 900.0;
    const PACKET_NS: f64 = 1100.0;
    const DOOR_NS: f64 = 500.0;
    const WAKE_NS: f64 = 1500.0;
    const TAKE_UP_NS: f64 = 2500.0;
    const READ_NS: f64 = 400.0;
    const KIB_NS: f64 = 256.0;

    /// Traffic on a machine that is made of these costs, `more_kib` longer than 64 bytes.
    fn traffic(polls: u64, frames: u64, wakes: f64, more_kib: f64) -> Probe {
        let packets = frames as f64;
        let longer = packets * more_kib * KIB_NS;
        Probe {
            polls: PollCounts {
                polls_by_cpu: vec![polls, 0],
                rounds: polls,
                empty_polls: 0,
                frames,
            },
            net_rx_ns: polls as f64 * POLL_NS + packets * PACKET_NS + wakes * WAKE_NS + longer,
            timer: None,
            sender: ThreadWork {
                user_ns: packets * 150.0,
                system_ns: packets * 2000.0 + longer,
                slices: 0.0,
            },
            receiver: ThreadWork {
                user_ns: 0.0,
                system_ns: wakes * TAKE_UP_NS + packets * READ_NS + longer,
                slices: wakes,
            },
            wall_ns: 1e8,
            others_ns: 0.0,
        }
    }

    fn empty(timeout_ns: u64) -> (u64, Probe) {
        let rounds = 1000;
        let work_ns = 700.0 + 800.0;
        let late_ns = 20_000.0;
        let probe = Probe {
            net_rx_ns: 800.0 * rounds as f64,
            timer: Some((rounds, 700.0 * rounds as f64)),
            wall_ns: rounds as f64 * (timeout_ns as f64 + late_ns + work_ns),
            ..traffic(rounds, 0, 0.0, 0.0)
        };
        (timeout_ns, probe)
    }

    fn block() -> Block {
        let nobody = Probe {
            net_rx_ns: 1000.0 * (POLL_NS + DOOR_NS),
            ..traffic(1000, 1000, 0.0, 0.0)
        };
        Block {
            empty: vec![empty(100_000), empty(1_000_000)],
            timed: vec![
                traffic(300, 4000, 300.0, 0.0),
                traffic(200, 9000, 190.0, 0.0),
            ],
            paced: vec![traffic(5000, 5000, 5000.0, 0.0)],
            small: traffic(20_000, 20_000, 6000.0, 0.0),
            large: traffic(18_000, 18_000, 5500.0, MORE_KIB),
            nobody,
            event_ns: Some(0.0),
            round_trip_ns: Some(48_000.0),
            switch_ns: 1800.0,
            wake_ns: WAKE_NS,
            tick_ns: None,
            steal_ratio: None,
        }
    }

    fn ns(costs: &[MeasuredCost], wanted: HostCost) -> Option<f64> {
        costs.iter().find(|cost| cost.cost == wanted).unwrap().ns
    }

    #[test]
    fn the_costs_that_probes_are_made_of_are_found_again() {
        let costs = of(&[block(), block(), block()]);
        for (cost, made_of) in [
            (HostCost::LoadedPoll, POLL_NS),
            (HostCost::EmptyPoll, 800.0),
            (HostCost::BatchedPacket, PACKET_NS),
            (HostCost::BatchedKib, KIB_NS),
            (HostCost::Delivery, PACKET_NS - DOOR_NS),
            (HostCost::Wake, WAKE_NS),
            (HostCost::TakeUp, TAKE_UP_NS),
            (HostCost::Read, READ_NS),
            (HostCost::ReadKib, KIB_NS),
            (HostCost::Send, 2000.0),
            (HostCost::SendKib, KIB_NS),
            (HostCost::SendUser, 150.0),
            (HostCost::ThreadSwitch, 1800.0),
            (HostCost::TimerInterrupt, 700.0),
            (HostCost::TimerDelay, 20_000.0),
            (HostCost::RoundTrip, 48_000.0),
        ] {
            let found = ns(&costs, cost).unwrap();
            assert!((found / made_of - 1.0).abs() < 1e-6, "{cost:?}: {found}");
        }
        assert_eq!(ns(&costs, HostCost::Tick), None);
        assert_eq!(others_ratio(&[block()]), Some(0.0));
    }

    #[test]
    fn what_the_account_itself_takes_is_no_cost() {
        let mut seen = block();
        let packets = seen.small.polls.frames as f64;
        seen.event_ns = Some(100.0);
        seen.small.sender.system_ns += packets * EVENTS_IN_SEND * 100.0;
        let costs = of(&[seen]);
        let send = ns(&costs, HostCost::Send).unwrap();
        assert!((send - 2000.0).abs() < 1e-6, "{send}");
    }

    #[test]
    fn scatter_around_nothing_is_no_cost() {
        let mut odd = block();
        odd.wake_ns = -30.0;
        let costs = of(&[odd]);
        assert_eq!(ns(&costs, HostCost::Wake), None);
        assert_eq!(of(&[]).len(), HostCost::ALL.len());
    }
}
