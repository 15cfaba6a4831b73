//! Derives the cost of each kind of work from probes; decides which repeats count, and when there are enough.
//!
//! A repeat is left out only for external causes (other programs, the hypervisor), never for what it measured. A cost that
//! differs between repeats is measured more often, for a bounded time; if it still differs it is reported as a range.

use nicpoll_lab::LabError;
use nicpoll_model::CpuStates;
use nicpoll_model::sim::{HostCost, MeasuredCost};
use nicpoll_stats::Summary;

use crate::measure::probe::{ProbeBlock, WorkProbe};
use crate::search::solved;

/// From 64 to 1470 bytes, in KiB.
const MORE_KIB: f64 = (1470.0 - 64.0) / 1024.0;

/// Events of the CPU account per kind of work, as whole events: half of an event's time falls into the work. A send
/// enters and leaves the call, and the software interrupt in it.
const EVENTS_IN_SEND: f64 = 2.0;

const EVENTS_OUTSIDE: f64 = 1.0;

const EVENTS_IN_POLL: f64 = 1.0;

const EVENTS_IN_INTERRUPT: f64 = 1.0;

/// Leaving the call that returned, entering the next one, and half of a switch twice.
const EVENTS_IN_TAKE_UP: f64 = 3.0;

/// Returns every kind's cost, with its range over the repeats.
pub fn measured_costs(blocks: &[ProbeBlock]) -> Vec<MeasuredCost> {
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
    // A cost of zero or less is the scatter of a small one.
    let summary = Summary::of(values).filter(|summary| summary.median > 0.0);
    MeasuredCost {
        cost,
        ns: summary.map(|summary| summary.median),
        min_ns: summary.map(|summary| summary.min),
        max_ns: summary.map(|summary| summary.max),
        is_repeatable: summary.map(|_| agree(values)),
        repeats: values.len() as u32,
    }
}

/// Returns the share of the two processors that other programs took, over all probes.
pub fn others_ratio(blocks: &[ProbeBlock]) -> Option<f64> {
    let all = || blocks.iter().flat_map(ProbeBlock::probes);
    let wall_ns: f64 = all().map(|probe| probe.wall_ns).sum();
    let others_ns: f64 = all().map(|probe| probe.others_ns).sum();
    (wall_ns > 0.0).then(|| others_ns / (2.0 * wall_ns))
}

/// Returns the share of the two processors that the hypervisor kept, over all repeats, which have the same length.
pub fn steal_ratio(blocks: &[ProbeBlock]) -> Option<f64> {
    let seen: Vec<f64> = blocks
        .iter()
        .filter_map(|block| block.steal_ratio)
        .collect();
    (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
}

/// The costs from one repeat.
struct Solved<'a> {
    block: &'a ProbeBlock,
    event_ns: f64,
    /// Costs of a poll under load, and of a packet in it; the cost of waking is known.
    receiving: Option<[f64; 2]>,
    /// Costs of resuming after a wait, and of reading a packet.
    reading: Option<[f64; 2]>,
}

impl<'a> Solved<'a> {
    fn of(block: &'a ProbeBlock, event_ns: f64) -> Self {
        let others = block.timed.iter().chain(&block.paced);
        let loaded: Vec<_> = others.chain([&block.small]).collect();
        let receiving = loaded
            .iter()
            .map(|probe| receiving_row(probe, block.wake_ns));
        let reading = loaded.iter().map(|probe| reading_row(probe));
        Solved {
            block,
            event_ns,
            receiving: costs(&receiving.collect::<Vec<_>>()),
            reading: costs(&reading.collect::<Vec<_>>()),
        }
    }

    fn less(&self, ns: f64, events: f64) -> f64 {
        ns - events * self.event_ns
    }

    fn cost(&self, cost: HostCost) -> Option<f64> {
        let ProbeBlock {
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

    /// Returns the median over the timeouts.
    fn empty_poll_ns(&self) -> Option<f64> {
        let empty = self.block.empty.iter();
        let each = empty.filter_map(|(_, probe)| per(probe.net_rx_ns, probe.polls.polls()));
        let summary = Summary::of(&each.collect::<Vec<_>>())?;
        Some(self.less(summary.median, EVENTS_IN_POLL))
    }

    /// Takes the shortest timeout: with the fastest rounds other timer interrupts matter least.
    fn timer_interrupt_ns(&self) -> Option<f64> {
        let empty = self.block.empty.iter();
        let (_, fastest) = empty.min_by_key(|(timeout_ns, _)| *timeout_ns)?;
        let (entries, ns) = fastest.timer?;
        Some(self.less(per(ns, entries)?, EVENTS_IN_INTERRUPT))
    }

    /// Returns the median over the timeouts.
    fn timer_delay_ns(&self) -> Option<f64> {
        let late = self.block.empty.iter().filter_map(|(timeout_ns, probe)| {
            let gap_ns = per(probe.wall_ns - probe.net_rx_ns, probe.polls.rounds)?;
            Some(gap_ns - *timeout_ns as f64 - self.timer_interrupt_ns().unwrap_or(0.0))
        });
        let summary = Summary::of(&late.collect::<Vec<_>>())?;
        Some(summary.median)
    }
}

/// Returns the receiving work of a probe, without the wake-ups.
fn receiving_row(probe: &WorkProbe, wake_ns: f64) -> CountedRun<2> {
    CountedRun {
        counts: [probe.polls.polls() as f64, probe.polls.frames as f64],
        ns: probe.net_rx_ns - wake_ns * probe.receiver.slices,
    }
}

fn reading_row(probe: &WorkProbe) -> CountedRun<2> {
    CountedRun {
        counts: [probe.receiver.slices, probe.polls.frames as f64],
        ns: probe.receiver.total_ns(),
    }
}

/// Returns the time of a row's counts at these costs.
fn predicted<const N: usize>(row: &CountedRun<N>, costs: &[f64; N]) -> f64 {
    row.counts
        .iter()
        .zip(costs)
        .map(|(count, cost)| count * cost)
        .sum()
}

/// Returns the time per packet of a probe; `None` without packets.
fn each(ns: f64, probe: &WorkProbe) -> Option<f64> {
    per(ns, probe.polls.frames)
}

fn per(ns: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| ns / count as f64)
}

/// A run: counts of each kind of work, and their total time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedRun<const N: usize> {
    /// How often each kind was done.
    pub counts: [f64; N],
    /// Total time, in nanoseconds.
    pub ns: f64,
}

/// With a smaller pivot a kind of work cannot be separated from the others.
const PIVOT_MIN: f64 = 1e-9;

/// Returns the cost of each kind of work in nanoseconds, with the least sum of squared relative errors. `None` when
/// the runs do not separate the kinds, or hold no time.
pub fn costs<const N: usize>(rows: &[CountedRun<N>]) -> Option<[f64; N]> {
    let timed = rows.iter().filter(|row| row.ns > 0.0);
    let rates: Vec<_> = timed
        .map(|row| row.counts.map(|count| count / row.ns))
        .collect();
    let product = |i: usize, j: usize| rates.iter().map(|of| of[i] * of[j]).sum::<f64>();
    // Columns are scaled first.
    let scale: [f64; N] = std::array::from_fn(|i| product(i, i).sqrt());
    if scale.iter().any(|scale| scale.is_nan() || *scale <= 0.0) {
        return None;
    }
    let equation = |i: usize| {
        let left = (0..N).map(|j| product(i, j) / (scale[i] * scale[j]));
        let right = rates.iter().map(|of| of[i]).sum::<f64>() / scale[i];
        left.chain([right]).collect()
    };
    let found = solved((0..N).map(equation).collect(), PIVOT_MIN)?;
    Some(std::array::from_fn(|i| found[i] / scale[i]))
}

/// Most that other programs may take of the two processors in a probe; beyond that its repeat is measured again.
const OTHERS_MAX: f64 = 0.15;

/// Most that the hypervisor may keep of the two processors over a repeat. Processors that sleep and wake by the timer
/// look stolen for a tenth of the time: a single probe tells nothing, a repeat has all kinds.
const STEAL_MAX: f64 = 0.15;

/// Largest spread of the middle half of repeats, relative to the median.
const SPREAD_MAX: f64 = 0.30;

/// Smaller differences are below the resolution of any cost, in nanoseconds.
const SPREAD_NS: f64 = 200.0;

/// What disturbed a repeat: who took the processors, their share, and the remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RepeatDisturbance(&'static str, f64, &'static str);

impl RepeatDisturbance {
    /// Returns the worst disturbance of a repeat, if the repeat cannot count for it.
    fn of(block: &ProbeBlock) -> Option<Self> {
        let others = block.probes().filter_map(WorkProbe::others_ratio);
        let others = others.reduce(f64::max).filter(|ratio| *ratio > OTHERS_MAX);
        if let Some(ratio) = others {
            let remedy =
                "stop them, or give nicpoll other processors (taskset -c), and run it again";
            return Some(RepeatDisturbance("other programs took", ratio, remedy));
        }
        let steal = block.steal_ratio.filter(|ratio| *ratio > STEAL_MAX)?;
        let remedy = "this virtual machine's processors are not its own; run it again when its host is less busy";
        Some(RepeatDisturbance("the hypervisor kept", steal, remedy))
    }

    /// Returns the error when repeats are disturbed again and again.
    fn refusal(self, spoilt: u32) -> LabError {
        let RepeatDisturbance(who, ratio, remedy) = self;
        LabError::Unexpected(format!(
            "{who} up to {:.0} % of the two processors while costs were measured, {spoilt} times: the \
             measurements are discarded; {remedy}",
            100.0 * ratio
        ))
    }
}

/// Returns the share of processors that the hypervisor kept; `None` without processors.
pub fn stolen_ratio(states: &[CpuStates]) -> Option<f64> {
    let stolen: f64 = states.iter().map(|core| core.steal_ratio).sum();
    (!states.is_empty()).then(|| stolen / states.len() as f64)
}

/// Whether the middle half of repeats agrees: of five the middle three, of three all.
pub fn agree(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let outside = sorted.len() / 4;
    let half = &sorted[outside..sorted.len() - outside];
    let (Some(least), Some(greatest)) = (half.first(), half.last()) else {
        return true;
    };
    let middle = sorted[sorted.len() / 2];
    greatest - least <= (SPREAD_MAX * middle).max(SPREAD_NS)
}

/// Measures `planned` repeats that count, and up to as many more while a cost differs between repeats. `measure` gets
/// the number of the repeat, and of those planned.
///
/// # Errors
/// That of a repeat; when more than `planned` were disturbed.
pub fn collect(
    planned: u32,
    mut measure: impl FnMut(u32, u32) -> Result<ProbeBlock, LabError>,
) -> Result<Vec<ProbeBlock>, LabError> {
    let mut blocks: Vec<ProbeBlock> = Vec::new();
    let mut wanted = planned;
    let mut spoilt = 0;
    while (blocks.len() as u32) < wanted {
        let block = measure(blocks.len() as u32 + 1, wanted)?;
        if let Some(disturbance) = RepeatDisturbance::of(&block) {
            spoilt += 1;
            if spoilt > planned {
                return Err(disturbance.refusal(spoilt));
            }
            continue;
        }
        blocks.push(block);
        let is_whole = blocks.len() as u32 == wanted;
        if is_whole && wanted < 2 * planned && !every_cost_agrees(&blocks) {
            wanted += 1;
        }
    }
    Ok(blocks)
}

fn every_cost_agrees(blocks: &[ProbeBlock]) -> bool {
    let costs = measured_costs(blocks);
    costs.iter().all(|cost| cost.is_repeatable != Some(false))
}

#[cfg(test)]
mod costs_tests {
    use super::*;
    use crate::measure::probe::ThreadWork;
    use nicpoll_observe::PollCounts;

    const POLL_NS: f64 = 900.0;
    const PACKET_NS: f64 = 1100.0;
    const DOOR_NS: f64 = 500.0;
    const WAKE_NS: f64 = 1500.0;
    const TAKE_UP_NS: f64 = 2500.0;
    const READ_NS: f64 = 400.0;
    const KIB_NS: f64 = 256.0;

    /// Traffic on a machine that is made of these costs, `more_kib` longer than 64 bytes.
    fn traffic(polls: u64, frames: u64, wakes: f64, more_kib: f64) -> WorkProbe {
        let packets = frames as f64;
        let longer = packets * more_kib * KIB_NS;
        WorkProbe {
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

    fn empty(timeout_ns: u64) -> (u64, WorkProbe) {
        let rounds = 1000;
        let work_ns = 700.0 + 800.0;
        let late_ns = 20_000.0;
        let probe = WorkProbe {
            net_rx_ns: 800.0 * rounds as f64,
            timer: Some((rounds, 700.0 * rounds as f64)),
            wall_ns: rounds as f64 * (timeout_ns as f64 + late_ns + work_ns),
            ..traffic(rounds, 0, 0.0, 0.0)
        };
        (timeout_ns, probe)
    }

    fn block() -> ProbeBlock {
        let nobody = WorkProbe {
            net_rx_ns: 1000.0 * (POLL_NS + DOOR_NS),
            ..traffic(1000, 1000, 0.0, 0.0)
        };
        ProbeBlock {
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
        let costs = measured_costs(&[block(), block(), block()]);
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
        let costs = measured_costs(&[seen]);
        let send = ns(&costs, HostCost::Send).unwrap();
        assert!((send - 2000.0).abs() < 1e-6, "{send}");
    }

    #[test]
    fn scatter_around_nothing_is_no_cost() {
        let mut odd = block();
        odd.wake_ns = -30.0;
        let costs = measured_costs(&[odd]);
        assert_eq!(ns(&costs, HostCost::Wake), None);
        assert_eq!(measured_costs(&[]).len(), HostCost::ALL.len());
    }
}

#[cfg(test)]
mod regression_tests {
    use super::*;

    fn row<const N: usize>(counts: [f64; N], costs: [f64; N], error: f64) -> CountedRun<N> {
        let ns: f64 = counts
            .iter()
            .zip(costs)
            .map(|(count, cost)| count * cost)
            .sum();
        CountedRun {
            counts,
            ns: ns * error,
        }
    }

    #[test]
    fn costs_that_runs_were_made_of_are_found_again() {
        let made_of = [900.0, 1200.0, 2500.0];
        let runs = [
            [1500.0, 0.0, 0.0],
            [500.0, 40_000.0, 500.0],
            [50_000.0, 50_000.0, 48_000.0],
            [220_000.0, 220_000.0, 70_000.0],
        ];
        let rows = runs.map(|counts| row(counts, made_of, 1.0));
        let found = costs(&rows).unwrap();
        for (found, made_of) in found.iter().zip(made_of) {
            assert!((found / made_of - 1.0).abs() < 1e-6, "{found} of {made_of}");
        }
    }

    #[test]
    fn errors_of_a_few_per_cent_stay_so() {
        let made_of = [800.0, 150.0];
        let runs = [
            ([100.0, 100.0], 1.02),
            ([30.0, 300.0], 0.98),
            ([10.0, 900.0], 1.01),
        ];
        let rows = runs.map(|(counts, error)| row(counts, made_of, error));
        let found = costs(&rows).unwrap();
        for (found, made_of) in found.iter().zip(made_of) {
            assert!((found / made_of - 1.0).abs() < 0.08, "{found} of {made_of}");
        }
    }

    #[test]
    fn what_runs_do_not_tell_apart_has_no_costs() {
        let alike = [[10.0, 10.0], [500.0, 500.0]].map(|counts| row(counts, [3.0, 4.0], 1.0));
        assert_eq!(costs(&alike), None);
        let never = [[10.0, 0.0], [500.0, 0.0]].map(|counts| row(counts, [3.0, 4.0], 1.0));
        assert_eq!(costs(&never), None);
        assert_eq!(costs::<2>(&[]), None);
        let nothing = CountedRun {
            counts: [1.0, 2.0],
            ns: 0.0,
        };
        assert_eq!(costs(&[nothing]), None);
    }
}

#[cfg(test)]
mod repeats_tests {
    use super::*;

    fn block(wake_ns: f64) -> ProbeBlock {
        ProbeBlock {
            wake_ns,
            small: WorkProbe {
                wall_ns: 1e8,
                ..WorkProbe::default()
            },
            ..ProbeBlock::default()
        }
    }

    fn disturbed(others: f64, steal: f64) -> ProbeBlock {
        let mut block = block(1000.0);
        block.small.others_ns = others * 2.0 * block.small.wall_ns;
        block.steal_ratio = Some(steal);
        block
    }

    /// Collects these repeats in order; the last one is used again and again.
    fn collected(
        planned: u32,
        repeats: &[ProbeBlock],
    ) -> (Result<Vec<ProbeBlock>, LabError>, usize) {
        let mut count = 0;
        let blocks = collect(planned, |_, _| {
            let next = repeats[count.min(repeats.len() - 1)].clone();
            count += 1;
            Ok(next)
        });
        (blocks, count)
    }

    #[test]
    fn other_programs_and_the_hypervisor_spoil_a_repeat_and_a_little_of_both_does_not() {
        assert_eq!(RepeatDisturbance::of(&block(1000.0)), None);
        assert_eq!(RepeatDisturbance::of(&disturbed(0.1, 0.1)), None);
        for (block, by, part) in [
            (disturbed(0.8, 0.0), "other programs took", 0.8),
            (disturbed(0.0, 0.3), "the hypervisor kept", 0.3),
        ] {
            let RepeatDisturbance(who, ratio, _) = RepeatDisturbance::of(&block).unwrap();
            assert!(who == by && f64::abs(ratio - part) < 1e-9, "{who} {ratio}");
        }
    }

    #[test]
    fn a_spoilt_repeat_is_measured_again_and_a_machine_that_is_never_at_rest_refused() {
        let rest = block(1000.0);
        let repeats = [disturbed(0.8, 0.0), disturbed(0.0, 0.3), rest];
        let (blocks, count) = collected(3, &repeats);
        assert_eq!((blocks.unwrap().len(), count), (3, 5));

        let (blocks, count) = collected(3, &[disturbed(0.0, 0.4)]);
        let told = blocks.unwrap_err().to_string();
        assert_eq!(count, 4);
        assert!(told.contains("hypervisor kept up to 40 % of"), "{told}");
        let (blocks, _) = collected(3, &[disturbed(0.8, 0.4)]);
        let told = blocks.unwrap_err().to_string();
        assert!(told.contains("programs took up to 80 %"), "{told}");
        assert!(told.contains("taskset"), "{told}");
    }

    #[test]
    fn costs_that_differ_are_measured_more_often_and_then_told_as_a_range() {
        let (blocks, count) = collected(3, &[block(1000.0), block(1100.0), block(1200.0)]);
        assert_eq!((blocks.unwrap().len(), count), (3, 3));

        // One that was off is outside of the middle half of four.
        let (blocks, _) = collected(3, &[block(9000.0), block(1100.0), block(1200.0)]);
        let blocks = blocks.unwrap();
        assert_eq!(blocks.len(), 4);
        assert!(every_cost_agrees(&blocks));

        let wild: Vec<ProbeBlock> = [1000.0, 9000.0, 1100.0, 8000.0, 1000.0, 9000.0]
            .map(block)
            .to_vec();
        let (blocks, count) = collected(3, &wild);
        let blocks = blocks.unwrap();
        assert_eq!((blocks.len(), count), (6, 6));
        assert!(!every_cost_agrees(&blocks));
    }

    #[test]
    fn small_costs_may_differ_by_what_no_cost_is_known_to() {
        assert!(agree(&[100.0, 250.0, 290.0]));
        assert!(!agree(&[1000.0, 1500.0, 1600.0]));
        assert!(agree(&[]));
    }

    #[test]
    fn steal_is_that_of_both_processors() {
        let core = |steal| CpuStates {
            core: 0,
            user_ratio: 0.0,
            nice_ratio: 0.0,
            system_ratio: 0.0,
            irq_ratio: 0.0,
            softirq_ratio: 0.0,
            idle_ratio: 1.0 - steal,
            steal_ratio: steal,
        };
        assert_eq!(stolen_ratio(&[core(0.5), core(0.0)]), Some(0.25));
        assert_eq!(stolen_ratio(&[]), None);
    }
}
