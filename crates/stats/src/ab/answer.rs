//! The answer of a live comparison, from its pairs of blocks.
//!
//! The verdict follows from the intervals in the answer. Where the setting does not move the load, it is the verdict
//! on the difference at equal load. Otherwise three figures must agree: the difference at equal load, the plain
//! difference, and CPU time per byte, since a setting that saves CPU time by carrying less saves nothing. CPU time is
//! never below 0: where the cost of counting exceeds all that was counted, 0 is used, and where that happens often
//! there is no verdict.

use nicpoll_model::ab::{
    AbAnswer, AbCarryOver, AbCores, AbCpuCost, AbEndCause, AbLoad, AbNoVerdict, AbPair, AbPlan,
    AbRatio, AbTimeNeeded, AbWindow,
};
use nicpoll_model::{Measure, Verdict};

use crate::ab::fit::{LoadFit, LoadedDifference};
use crate::ab::load::{delays, load, mean_of, typical_ratio};
use crate::ab::plan::CARRY_OVER_SHARE;
use crate::interval::{
    Confidence, Interval, Pair, log_differences, mean_interval, student_quantile,
};
use crate::verdict::{Margin, verdict};

/// Degrees of freedom that the fit uses.
const FITTED: usize = 3;
/// With more degrees of freedom the quantile no longer changes by a part in ten thousand, and takes ever longer to find.
const DEGREES_MAX: usize = 10_000;
/// Share of pairs that may have a block below the cost of counting. With more of them their zeros would decide the
/// answer.
const BELOW_COUNTING_MAX: f64 = 0.1;
/// Rounds in which the number of pairs and its quantile settle.
const ROUNDS: usize = 4;

/// Returns the answer from the pairs so far. `end` is how the run ended, or `None` while it goes on.
pub fn answer(pairs: &[AbPair], plan: &AbPlan, end: Option<AbEndCause>) -> AbAnswer {
    let confidence = Confidence::new(plan.confidence_ratio).unwrap_or(Confidence::PERCENT_95);
    let counting: Vec<&AbPair> = pairs
        .iter()
        .filter(|pair| pair.set_aside_because.is_none())
        .collect();
    let load = load(&counting, confidence, plan.margin_ratio);
    let cpu = cpu_cost(&counting, plan, confidence);
    let no_verdict = reasons_against(&counting, plan, end, load.as_ref(), cpu.as_ref());
    let judge = Judge {
        confidence,
        margin: plan.margin_ratio,
    };
    let both = load.as_ref().zip(cpu.as_ref());
    let both = both.filter(|_| no_verdict.is_empty());
    let verdict = both.map(|(load, cpu)| judge.word(load, cpu));
    AbAnswer {
        pairs: length(counting.len()),
        set_aside_pairs: length(pairs.len() - counting.len()),
        is_recommended: !plan.is_null && load.is_some_and(|load| is_recommended(verdict, &load)),
        delays: delays(&counting, confidence),
        load,
        cpu,
        measure: Some(Measure::Cost),
        verdict,
        no_verdict,
    }
}

fn length(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

fn reasons_against(
    pairs: &[&AbPair],
    plan: &AbPlan,
    end: Option<AbEndCause>,
    load: Option<&AbLoad>,
    cpu: Option<&AbCpuCost>,
) -> Vec<AbNoVerdict> {
    let has_cpu = |pair: &&AbPair| cores(&pair.judged.window, &pair.reference.window).is_some();
    let measured = pairs.iter().filter(|pair| has_cpu(pair)).count();
    let is_idle = pairs
        .iter()
        .all(|pair| pair.reference.window.packets() + pair.judged.window.packets() == 0);
    let is_carried = |cpu: &AbCpuCost| cpu.carry_over.is_none_or(|it| it.is_found);
    let is_below = |cpu: &AbCpuCost| {
        f64::from(cpu.pairs_below_counting) > BELOW_COUNTING_MAX * f64::from(cpu.pairs)
    };
    let is_enough = length(measured) >= plan.pairs_min;
    let is_unfit = cpu.is_none() || load.is_none();
    let is_carried = cpu.is_some_and(is_carried);
    [
        (AbNoVerdict::Aborted, end.is_some_and(AbEndCause::is_abort)),
        (AbNoVerdict::NoCpuTime, !pairs.is_empty() && measured == 0),
        (AbNoVerdict::NoTraffic, !pairs.is_empty() && is_idle),
        (AbNoVerdict::BelowCounting, cpu.is_some_and(is_below)),
        (AbNoVerdict::TooFewPairs, !is_enough),
        (AbNoVerdict::CarryOver, is_enough && is_carried),
        (AbNoVerdict::NoFit, is_enough && is_unfit),
    ]
    .into_iter()
    .filter_map(|(reason, holds)| holds.then_some(reason))
    .collect()
}

/// Returns the busy cores of a window; 0 where they are below the cost of counting. `None` when they were not
/// counted. Leaving out the windows with 0 would leave out the cheapest ones, and favour the setting with fewer of
/// them.
fn busy(window: &AbWindow) -> Option<f64> {
    window.cpu.map(|_| window.busy_cores().unwrap_or(0.0))
}

/// Whether a window's busy time is below the cost of counting.
fn is_below_counting(window: &AbWindow) -> bool {
    window.cpu.is_some() && window.busy_cores().is_none()
}

/// Returns the busy cores under the judged setting and under the reference.
fn cores(judged: &AbWindow, reference: &AbWindow) -> Option<(f64, f64)> {
    Some((busy(judged)?, busy(reference)?))
}

fn difference(judged: &AbWindow, reference: &AbWindow) -> Option<LoadedDifference> {
    let (judged_cores, reference_cores) = cores(judged, reference)?;
    let loaded = LoadedDifference::of(judged_cores - reference_cores, judged, reference);
    // A window without length has no rates.
    let figures = [loaded.difference, loaded.judged_load, loaded.reference_load];
    let are_finite = figures.iter().all(|it| it.is_finite());
    are_finite.then_some(loaded)
}

fn cpu_cost(pairs: &[&AbPair], plan: &AbPlan, confidence: Confidence) -> Option<AbCpuCost> {
    let measured: Vec<&AbPair> = pairs
        .iter()
        .copied()
        .filter(|pair| cores(&pair.judged.window, &pair.reference.window).is_some())
        .collect();
    let differences: Vec<LoadedDifference> = measured
        .iter()
        .filter_map(|pair| difference(&pair.judged.window, &pair.reference.window))
        .collect();
    let fit = LoadFit::of(&differences, confidence)?;
    let plain: Vec<f64> = differences.iter().map(|it| it.difference).collect();
    let cores = |window: &AbWindow| busy(window).unwrap_or(0.0);
    let windows = |pair: &AbPair| [pair.judged.window, pair.reference.window];
    let below = measured.iter();
    let below = below.filter(|pair| windows(pair).iter().any(is_below_counting));
    let reference_cores = mean_of(&measured, |pair| cores(&pair.reference.window))?;
    let counting =
        |window: &AbWindow| window.cpu.unwrap_or_default().counting_seconds / window.seconds;
    let judged_counting = mean_of(&measured, |pair| counting(&pair.judged.window))?;
    let reference_counting = mean_of(&measured, |pair| counting(&pair.reference.window))?;
    let delta = &fit.delta;
    let per_packet = [delta.estimate, delta.low, delta.high].map(|it| it / fit.mean_load * 1e9);
    Some(AbCpuCost {
        measure: Some(Measure::Cost),
        source: measured[0].reference.window.cpu?.source,
        pairs: length(measured.len()),
        reference_cores,
        judged_cores: mean_of(&measured, |pair| cores(&pair.judged.window))?,
        equal_load: as_cores(&fit.delta),
        ns_per_added_packet: fit.beta * 1e9,
        ns_difference_per_packet: fit.gamma * 1e9,
        ns_per_packet: (fit.mean_load > 0.0).then_some(per_packet),
        total: as_cores(&mean_interval(&plain, confidence).ok()?),
        per_byte: typical_ratio(&per_byte(&measured), confidence),
        counting_cores_max: judged_counting.max(reference_counting),
        pairs_below_counting: length(below.count()),
        counting_cores_difference: judged_counting - reference_counting,
        carry_over: carry_over(&measured, confidence),
        time_needed: time_needed(
            &measured,
            &fit.delta,
            plan.margin_ratio * reference_cores,
            plan,
        ),
    })
}

fn as_cores(interval: &Interval) -> AbCores {
    AbCores {
        cores: interval.estimate,
        cores_low: interval.low,
        cores_high: interval.high,
    }
}

/// Returns CPU time per byte, as differences of logs within pairs. Pairs with a side that carried nothing have none.
fn per_byte(pairs: &[&AbPair]) -> Vec<f64> {
    let cost = |window: &AbWindow| {
        let bytes = window.bytes() as f64 / window.seconds;
        Some(window.busy_cores()? / bytes).filter(|cost| cost.is_finite())
    };
    let costs = pairs.iter().map(|pair| Pair {
        setting: cost(&pair.judged.window),
        reference: cost(&pair.reference.window),
    });
    log_differences(&costs.collect::<Vec<_>>()).unwrap_or_default()
}

/// Compares the estimate with that of the same pairs when twice as much is left out of each block. Leaving out more
/// moves any estimate a little, and more so with shorter blocks. So a move counts if it is more than a share of the
/// interval, and more than chance.
fn carry_over(pairs: &[&AbPair], confidence: Confidence) -> Option<AbCarryOver> {
    let both: Vec<(LoadedDifference, LoadedDifference)> = pairs
        .iter()
        .filter_map(|pair| {
            let (judged, reference) = (&pair.judged, &pair.reference);
            let later = difference(
                judged.later_window.as_ref()?,
                reference.later_window.as_ref()?,
            )?;
            Some((difference(&judged.window, &reference.window)?, later))
        })
        .collect();
    // A few long blocks do not speak for all.
    if both.len() * 2 < pairs.len() {
        return None;
    }
    let moves = both.iter().map(|(once, twice)| LoadedDifference {
        difference: twice.difference - once.difference,
        judged_load: twice.judged_load - once.judged_load,
        reference_load: twice.reference_load - once.reference_load,
    });
    let moves: Vec<LoadedDifference> = moves.collect();
    let (once, twice): (Vec<_>, Vec<_>) = both.into_iter().unzip();
    let once = LoadFit::of(&once, confidence)?.delta;
    let twice = LoadFit::of(&twice, confidence)?.delta;
    let by_chance = LoadFit::of(&moves, confidence)?.delta;
    let moved = (twice.estimate - once.estimate).abs();
    let length = once.high - once.low;
    let moved_ratio = match moved > 0.0 {
        true if length > 0.0 => moved / length,
        // Without scatter any move counts.
        true => 1.0,
        false => 0.0,
    };
    let excludes_none = by_chance.low > 0.0 || by_chance.high < 0.0;
    Some(AbCarryOver {
        later: as_cores(&twice),
        moved_ratio,
        is_found: moved_ratio > CARRY_OVER_SHARE && excludes_none,
    })
}

/// Estimates the time needed from the interval's length, never from its position.
fn time_needed(
    pairs: &[&AbPair],
    delta: &Interval,
    aim_cores: f64,
    plan: &AbPlan,
) -> Option<AbTimeNeeded> {
    let now = pairs.len();
    let half = (delta.high - delta.low) / 2.0;
    let error = half / student_quantile(now.checked_sub(FITTED)?, delta.confidence);
    let mut needed = now as f64;
    for _ in 0..ROUNDS {
        let degrees = (needed as usize).saturating_sub(FITTED);
        let degrees = degrees.clamp(1, DEGREES_MAX);
        let quantile = student_quantile(degrees, delta.confidence);
        needed = now as f64 * (quantile * error / aim_cores).powi(2);
        needed = needed.ceil().max(f64::from(plan.pairs_min));
    }
    let of_pair = mean_of(pairs, |pair| {
        pair.reference.duration_seconds + pair.judged.duration_seconds
    })?;
    (aim_cores > 0.0 && needed < f64::from(u32::MAX)).then_some(AbTimeNeeded {
        aim_cores,
        pairs: needed as u32,
        seconds: needed * of_pair,
    })
}

/// How verdicts follow from intervals, with less CPU time as better.
#[derive(Clone, Copy)]
struct Judge {
    confidence: Confidence,
    margin: f64,
}

impl Judge {
    fn word(self, load: &AbLoad, cpu: &AbCpuCost) -> Verdict {
        let of_cores = |cores: &AbCores| self.of_cores(cores, cpu.reference_cores);
        let equal_load = of_cores(&cpu.equal_load);
        if load.is_equal {
            return equal_load;
        }
        let total = of_cores(&cpu.total);
        let all = [equal_load, total, self.of_ratio(cpu.per_byte)];
        let direction = equal_load.without_weight();
        if all.iter().all(|it| *it == equal_load) {
            equal_load
        } else if all.iter().all(|it| it.without_weight() == direction) {
            direction
        } else {
            Verdict::NoDifferenceProven
        }
    }

    /// Returns the verdict on a difference of cores by Student's t, as a share of the reference's.
    fn of_cores(self, cores: &AbCores, reference_cores: f64) -> Verdict {
        let share = |cores: f64| cores / reference_cores;
        let saved = self
            .interval(-share(cores.cores_high), -share(cores.cores_low))
            .filter(|it| it.low.is_finite() && it.high.is_finite());
        Margin::points(self.margin).map_or(Verdict::Inconclusive, |margin| {
            verdict(saved.as_ref(), &margin)
        })
    }

    /// Returns the verdict on a typical ratio.
    fn of_ratio(self, ratio: Option<AbRatio>) -> Verdict {
        let inverted =
            ratio.and_then(|it| self.interval(it.ratio_high?.recip(), it.ratio_low?.recip()));
        Margin::ratio(1.0 + self.margin).map_or(Verdict::Inconclusive, |margin| {
            verdict(inverted.as_ref(), &margin)
        })
    }

    /// Makes an interval of these ends, for a verdict.
    fn interval(self, low: f64, high: f64) -> Option<Interval> {
        (low <= high).then(|| Interval {
            estimate: f64::midpoint(low, high),
            low,
            high,
            confidence: self.confidence,
            blocks: 0,
        })
    }
}

/// Whether to change to the judged setting: it saves, and does not carry less.
fn is_recommended(verdict: Option<Verdict>, load: &AbLoad) -> bool {
    let saves = verdict.is_some_and(|word| word.without_weight() == Verdict::Better);
    let below_one = |ratio: &AbRatio| ratio.ratio_high.is_some_and(|high| high < 1.0);
    let carries_less = !load.is_equal && load.bytes.as_ref().is_some_and(below_one);
    saves && !carries_less
}

#[cfg(test)]
mod tests;
