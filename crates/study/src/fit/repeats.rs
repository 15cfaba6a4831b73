//! Which repeats count, and when there are enough of them.
//!
//! What must hold: a repeat is left out only for what came from outside (other programs, the hypervisor), never for
//! what it measured. A cost that differs from repeat to repeat is measured more often, for a bounded time; if it still
//! does it is told as a range.

use nicpoll_model::CpuStates;

use super::probe::Probe;
use super::{Block, costs};
use crate::error::StudyError;

/// What other programs may take of the two processors in a probe; beyond that its repeat is measured again.
const OTHERS_MAX: f64 = 0.15;
/// What the hypervisor may keep of the two processors over a repeat. Processors that sleep and wake by the timer
/// look stolen for a tenth of the time, so that a single probe says nothing: a repeat has all kinds.
const STEAL_MAX: f64 = 0.15;
/// How far apart the middle half of repeats may lie, of the middle one.
const SPREAD_MAX: f64 = 0.30;
/// Differences that no cost is known to, in nanoseconds.
const SPREAD_NS: f64 = 200.0;

/// What took the processors away from a repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    /// Other programs had this part of them in a probe.
    Others(f64),
    /// The hypervisor kept this part of them over the repeat.
    Steal(f64),
}

impl Disturbance {
    /// The worst of a repeat, when that is too much for it to count.
    fn of(block: &Block) -> Option<Self> {
        let others = block.probes().filter_map(Probe::others_ratio);
        let others = others.reduce(f64::max).filter(|ratio| *ratio > OTHERS_MAX);
        let steal = block.steal_ratio.filter(|ratio| *ratio > STEAL_MAX);
        let others = others.map(Disturbance::Others);
        others.or(steal.map(Disturbance::Steal))
    }

    /// What is said when it never ends.
    fn refusal(self, spoilt: u32) -> StudyError {
        let (who, ratio, remedy) = match self {
            Disturbance::Others(ratio) => (
                "other programs took",
                ratio,
                "stop them, or give nicpoll other processors (taskset -c), and run it again",
            ),
            Disturbance::Steal(ratio) => (
                "the hypervisor kept",
                ratio,
                "this virtual machine's processors are not its own; run it again when its host is less busy",
            ),
        };
        StudyError::Unexpected(format!(
            "{who} up to {:.0} % of the two processors while costs were measured, {spoilt} times: nothing that was \
             measured counts; {remedy}",
            100.0 * ratio
        ))
    }
}

/// The part of processors that the hypervisor kept; `None` without processors.
pub fn steal_ratio(states: &[CpuStates]) -> Option<f64> {
    let stolen: f64 = states.iter().map(|core| core.steal).sum();
    (!states.is_empty()).then(|| stolen / states.len() as f64)
}

/// Whether the middle half of repeats is one cost: of five the middle three, of three all.
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

/// Measures `planned` repeats that count, and up to as many more while a cost does not agree with itself. `measure`
/// is told which repeat begins, and how many there are to be.
///
/// # Errors
/// That of a repeat; when more than `planned` were disturbed from outside.
pub fn collect(
    planned: u32,
    mut measure: impl FnMut(u32, u32) -> Result<Block, StudyError>,
) -> Result<Vec<Block>, StudyError> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut wanted = planned;
    let mut spoilt = 0;
    while (blocks.len() as u32) < wanted {
        let block = measure(blocks.len() as u32 + 1, wanted)?;
        if let Some(disturbance) = Disturbance::of(&block) {
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

fn every_cost_agrees(blocks: &[Block]) -> bool {
    let costs = costs::of(blocks);
    costs.iter().all(|cost| cost.is_repeatable != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(wake_ns: f64) -> Block {
        Block {
            wake_ns,
            small: Probe {
                wall_ns: 1e8,
                ..Probe::default()
            },
            ..Block::default()
        }
    }

    fn disturbed(others: f64, steal: f64) -> Block {
        let mut block = block(1000.0);
        block.small.others_ns = others * 2.0 * block.small.wall_ns;
        block.steal_ratio = Some(steal);
        block
    }

    /// Repeats in the order in which they come; the last one comes again.
    fn collected(planned: u32, repeats: &[Block]) -> (Result<Vec<Block>, StudyError>, usize) {
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
        assert_eq!(Disturbance::of(&block(1000.0)), None);
        assert_eq!(Disturbance::of(&disturbed(0.1, 0.1)), None);
        assert!(matches!(
            Disturbance::of(&disturbed(0.8, 0.0)),
            Some(Disturbance::Others(ratio)) if (ratio - 0.8).abs() < 1e-9
        ));
        let stolen = Disturbance::of(&disturbed(0.0, 0.3));
        assert_eq!(stolen, Some(Disturbance::Steal(0.3)));
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

        let wild: Vec<Block> = [1000.0, 9000.0, 1100.0, 8000.0, 1000.0, 9000.0]
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
            user: 0.0,
            nice: 0.0,
            system: 0.0,
            irq: 0.0,
            softirq: 0.0,
            idle: 1.0 - steal,
            steal,
        };
        assert_eq!(steal_ratio(&[core(0.5), core(0.0)]), Some(0.25));
        assert_eq!(steal_ratio(&[]), None);
    }
}
