//! The comparisons of a plan.
//!
//! Only measured pairs are compared. A trial that failed, ran without its setting in force or was disturbed from
//! outside has no figure, and drops only its own pairs. A verdict takes as many pairs as its method needs; a
//! comparison without one says what happened to the trials. A trial that delivered nothing has a figure: 0.
//! Comparisons, level and method are fixed before the first trial.

use std::collections::BTreeMap;

use nicpoll_model::{
    Comparison, CountingCost, EventCounter, MainEffect, Measure, Metric, MetricKind, Plan, Trial,
};
use nicpoll_stats::order::Seed;
use nicpoll_stats::{
    Confidence, Contrast, InvalidMargin, Pair, Proofs, compare, holm, ratio_interval,
};

use crate::design::measures::metrics;
use crate::design::{Design, Versus};

/// Adds the cost of CPU accounting: the trials' delivered rate in the CPU window relative to the measured window. The
/// order of the two alternates.
pub fn add_pairs_of_trials(costs: &mut [CountingCost], trials: &[Trial]) {
    let mut pairs: BTreeMap<(&str, &str), Vec<Pair>> = BTreeMap::new();
    for trial in trials {
        let figures = trial.result();
        let cpu = figures.and_then(|figures| figures.cpu.as_ref());
        let of_both = (trial.workload.as_str(), trial.setting.as_str());
        pairs.entry(of_both).or_default().push(Pair {
            setting: cpu.and_then(|cpu| cpu.delivered_bits_per_second),
            reference: figures.map(|figures| figures.delivered_bits_per_second),
        });
    }
    for cost in costs {
        let of_both = (cost.workload.as_str(), cost.setting.as_str());
        if let (EventCounter::CpuTime, Some(pairs)) = (cost.counter, pairs.get(&of_both)) {
            let pairs = pairs.clone();
            set_ratio(cost, &pairs);
        }
    }
}

pub fn set_ratio(cost: &mut CountingCost, pairs: &[Pair]) {
    let ratio = ratio_interval(pairs, Confidence::PERCENT_95).ok();
    cost.delivered_ratio = ratio.map(|ratio| ratio.estimate);
    cost.delivered_ratio_low = ratio.map(|ratio| ratio.low);
    cost.delivered_ratio_high = ratio.map(|ratio| ratio.high);
    cost.pairs = pairs.len() as u32;
}

/// Makes all comparisons of the plan: of settings, and of factor levels over all combinations of the other factors.
pub fn compare_all(
    design: &Design,
    plan: &Plan,
    trials: &[Trial],
    seed: Seed,
) -> Result<Vec<Comparison>, InvalidMargin> {
    let effects = design.main_effects();
    let mut comparisons = Vec::new();
    for workload in &design.workloads {
        let name = &workload.name;
        let measured = metrics(workload);
        let of_settings = design.contrasts.iter();
        let of_settings = of_settings.map(|it| ComparedTrials::of(trials, name, it));
        let of_levels = effects.iter();
        let of_levels = of_levels.filter_map(|it| ComparedTrials::over(trials, name, it));
        for compared in of_settings.chain(of_levels) {
            let judged = match plan.judged(name, compared.pair) {
                [] => vec![measured[0]],
                judged => judged.to_vec(),
            };
            for &metric in &judged {
                comparisons.push(compared.compare(plan, metric, true, seed)?);
            }
            for &metric in measured.iter().filter(|it| !judged.contains(it)) {
                comparisons.push(compared.compare(plan, metric, false, seed)?);
            }
        }
    }
    with_holm(&mut comparisons, plan.family_comparisons);
    Ok(comparisons)
}

/// Corrects the p values of primary comparisons for their number (Holm).
fn with_holm(comparisons: &mut [Comparison], family: u32) {
    let primary = |one: &&mut Comparison| one.primary;
    let p_values = comparisons.iter().filter(|one| one.primary);
    let p_values: Vec<Option<f64>> = p_values.map(|one| one.difference_p).collect();
    let corrected = holm(&p_values, family as usize);
    for (one, p) in comparisons.iter_mut().filter(primary).zip(corrected) {
        one.holm_p = p;
    }
}

/// Returns the margin of a metric: 5 % of a ratio, or 5 points.
pub(crate) fn margin_of(kind: MetricKind, margin: f64) -> f64 {
    match kind {
        MetricKind::Ratio => margin,
        MetricKind::Points => margin - 1.0,
    }
}

/// Compares two settings under one workload by one metric, which gets a verdict.
pub(crate) fn compare_pair(
    plan: &Plan,
    trials: &[Trial],
    workload: &str,
    versus: &Versus,
    metric: Metric,
    seed: Seed,
) -> Result<Comparison, InvalidMargin> {
    ComparedTrials::of(trials, workload, versus).compare(plan, metric, true, seed)
}

/// Fewest combinations of other factors for an average. A single one has its own comparison.
const COMBINATIONS_MIN: usize = 2;

/// The trials of a comparison under one workload, block by block: one of each setting, or of all combinations with two
/// levels of a factor.
struct ComparedTrials<'a> {
    workload: &'a str,
    factor: Option<&'a str>,
    setting: &'a str,
    reference: &'a str,
    /// The settings that the plan names for it; for levels of a factor, those of one combination.
    pair: (&'a str, &'a str),
    /// The trials of complete blocks; the judged setting's first.
    blocks: Vec<[Vec<&'a Trial>; 2]>,
}

impl<'a> ComparedTrials<'a> {
    fn of(trials: &'a [Trial], workload: &'a str, versus: &'a Versus) -> Self {
        let pairs = vec![(&*versus.setting, &*versus.reference)];
        ComparedTrials {
            workload,
            factor: None,
            setting: &versus.setting,
            reference: &versus.reference,
            pair: pairs[0],
            blocks: blocks(trials, workload, &pairs),
        }
    }

    /// Compares two levels over the combinations of the other factors. `None` with fewer than two.
    fn over(trials: &'a [Trial], workload: &'a str, effect: &'a MainEffect) -> Option<Self> {
        let pairs = effect.settings.iter();
        let pairs: Vec<_> = pairs.map(|(one, other)| (&**one, &**other)).collect();
        (pairs.len() >= COMBINATIONS_MIN).then(|| ComparedTrials {
            workload,
            factor: Some(&effect.factor),
            setting: &effect.level,
            reference: &effect.reference,
            pair: pairs[0],
            blocks: blocks(trials, workload, &pairs),
        })
    }

    fn compare(
        &self,
        plan: &Plan,
        metric: Metric,
        is_primary: bool,
        seed: Seed,
    ) -> Result<Comparison, InvalidMargin> {
        let value = |trial: &Trial| value(trial, metric);
        let blocks = self.blocks.iter();
        let pairs: Vec<Pair> = blocks
            .map(|[setting, reference]| Pair {
                setting: mean_value(setting, metric, value),
                reference: mean_value(reference, metric, value),
            })
            .collect();
        let margin = margin_of(metric.kind(), plan.margin_ratio);
        let blocks = self.blocks.iter();
        let is_proven: Vec<bool> = blocks
            .map(|arms| arms.iter().flatten().all(|it| is_as_asked(it)))
            .collect();
        let confidence = if is_primary {
            Confidence::for_family(plan.family_comparisons)
        } else {
            Confidence::PERCENT_95
        };
        let compared = compare(&Contrast {
            workload: self.workload,
            metric,
            setting: self.setting,
            reference: self.reference,
            pairs: &pairs,
            blocks_planned: plan.blocks as usize,
            primary_margin: is_primary.then_some(margin),
            confidence,
            seed,
            proofs: Some(Proofs {
                is_proven: &is_proven,
                setting: self.in_force(0),
                reference: self.in_force(1),
            }),
            chances: (metric == Metric::LossRatio).then(|| [self.offered(0), self.offered(1)]),
        })?;
        Ok(Comparison {
            no_verdict: compared.no_verdict.map(|why| self.why_none(metric, &why)),
            factor: self.factor.map(String::from),
            ..compared
        })
    }

    /// Returns why there is no verdict: what happened to most trials, the most frequent reason, and the number of
    /// pairs.
    fn why_none(&self, metric: Metric, otherwise: &str) -> String {
        let trials: Vec<&Trial> = self.arm(0).chain(self.arm(1)).collect();
        let happened = what_happened(&trials, metric).map(|what| what + "; ");
        happened.unwrap_or_default() + otherwise
    }

    fn arm(&self, arm: usize) -> impl Iterator<Item = &'a Trial> {
        self.blocks.iter().flat_map(move |arms| &arms[arm]).copied()
    }

    /// Returns the trials of one arm that are not void, and those of them whose setting was in force.
    fn in_force(&self, arm: usize) -> [u32; 2] {
        let kept = || self.arm(arm).filter(|trial| trial.validity.is_kept());
        let in_force = kept().filter(|trial| trial.is_in_force());
        [kept().count() as u32, in_force.count() as u32]
    }

    /// Returns the datagrams that one arm offered in trials whose account closes.
    fn offered(&self, arm: usize) -> u64 {
        self.arm(arm)
            .filter(|trial| trial.loss_ratio().is_some())
            .filter_map(|trial| trial.result()?.offered_packets)
            .sum()
    }
}

/// Returns what happened to most of the trials without a figure, with the most frequent reason; `None` if all have one.
pub(crate) fn what_happened(trials: &[&Trial], metric: Metric) -> Option<String> {
    let mut reasons = BTreeMap::<_, BTreeMap<&str, u32>>::new();
    for (what, why) in trials.iter().filter_map(|trial| unmeasured(trial, metric)) {
        *reasons.entry(what).or_default().entry(why).or_default() += 1;
    }
    let counted = reasons.into_iter();
    let counted = counted.map(|(what, whys)| (whys.values().sum::<u32>(), what, whys));
    let (count, what, whys) = counted.max_by_key(|(count, ..)| *count)?;
    let colon = match whys.len() {
        1 => ": ",
        _ => ", most often: ",
    };
    let most = whys.into_iter().max_by_key(|(_, count)| *count);
    let why = most.map_or("", |(why, _)| why);
    let all = trials.len();
    Some(format!("{count} of {all} trials {what}{colon}{why}"))
}

/// Returns why a trial has no figure: what happened to it, and the reason.
fn unmeasured(trial: &Trial, metric: Metric) -> Option<(&'static str, &str)> {
    let validity = &trial.validity;
    let figures = trial.result();
    let is_nothing = figures.is_some_and(|it| it.delivered_bits_per_second == 0.0);
    let cpu = figures.and_then(|it| it.cpu.as_ref());
    let cpu = cpu.filter(|_| metric.measure() == Measure::Cost);
    let window = cpu.map(|it| &it.validity);
    let found = [
        ("were disturbed", validity.external.as_deref()),
        ("failed", validity.failure.as_deref()),
        (
            "ran without their setting in force",
            validity
                .unproven
                .as_deref()
                .filter(|_| !trial.is_in_force()),
        ),
        (
            "delivered nothing",
            (is_nothing && of_nothing(metric).is_none()).then_some("it has no such figure"),
        ),
        (
            "were disturbed while their CPU time was counted",
            window.and_then(|it| it.external.as_deref()),
        ),
        (
            "failed while their CPU time was counted",
            window.and_then(|it| it.failure.as_deref().or(it.ledger_void.as_deref())),
        ),
    ];
    found.into_iter().find_map(|(what, why)| Some((what, why?)))
}

/// Returns the trials of the blocks that have all settings of all pairs.
fn blocks<'a>(
    trials: &'a [Trial],
    workload: &str,
    pairs: &[(&str, &str)],
) -> Vec<[Vec<&'a Trial>; 2]> {
    let find = |block: u32, setting: &str| {
        trials.iter().find(|trial| {
            (trial.block, trial.workload.as_str(), trial.setting.as_str())
                == (block, workload, setting)
        })
    };
    let last = trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    let blocks = (1..=last).filter_map(|block| {
        let judged = pairs.iter().map(|(setting, _)| find(block, setting));
        let reference = pairs.iter().map(|(_, reference)| find(block, reference));
        Some([
            judged.collect::<Option<_>>()?,
            reference.collect::<Option<_>>()?,
        ])
    });
    blocks.collect()
}

/// Averages one side's trials of a block: by logs for ratios, plainly for points. If one is missing, so is the mean;
/// a rate of 0 makes a mean of 0.
fn mean_value(
    trials: &[&Trial],
    metric: Metric,
    value: impl Fn(&Trial) -> Option<f64>,
) -> Option<f64> {
    let values: Option<Vec<f64>> = trials.iter().map(|trial| value(trial)).collect();
    let values = values?;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / trials.len() as f64;
    Some(match (&values[..], metric.kind()) {
        ([value], _) => *value,
        (_, MetricKind::Ratio) => mean(&mut values.iter().map(|it| it.ln())).exp(),
        (_, MetricKind::Points) => mean(&mut values.iter().copied()),
    })
}

/// Returns whether a trial ran as its setting asks, in rhythm if it has one, as far as anything shows. A failure counts
/// for the setting.
fn is_as_asked(trial: &Trial) -> bool {
    let validity = &trial.validity;
    validity.is_kept() && (validity.unproven.is_none() || trial.is_unwatched())
}

/// Returns a trial's value of a metric; `None` if it was not measured. A trial that failed, was disturbed from
/// outside, or ran without its setting in force has no figure. One that delivered nothing was measured: its rate is
/// 0, its loss 1.
pub(crate) fn value(trial: &Trial, metric: Metric) -> Option<f64> {
    let figures = trial.figures.as_deref();
    let figures = figures.filter(|_| trial.validity.is_kept())?;
    if figures.delivered_bits_per_second == 0.0 {
        return of_nothing(metric);
    }
    if trial.validity.failure.is_some() || !trial.is_in_force() {
        return None;
    }
    match metric {
        Metric::LossRatio => trial.loss_ratio(),
        metric => metric.figure(figures),
    }
}

/// Returns the value of a metric in a trial that delivered nothing.
fn of_nothing(metric: Metric) -> Option<f64> {
    match metric {
        Metric::DeliveredBitsPerSecond | Metric::TransactionsPerSecond | Metric::DeliveredRatio => {
            Some(0.0)
        }
        Metric::LossRatio => Some(1.0),
        // No request was answered.
        Metric::RoundTripP50Ns => Some(f64::INFINITY),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
