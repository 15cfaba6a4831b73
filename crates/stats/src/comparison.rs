//! Compares two settings by one metric: estimate, intervals, verdict, power and sensitivity.
//!
//! Figures compare the setting with the reference as measured; only the verdict considers which direction is better.
//! The primary estimate takes every pair under the setting that was asked for. The sensitivity analysis repeats it
//! with the pairs proven to have run as asked, and with missing pairs as the worst and as the best; a verdict is
//! given only when all of these agree. All are always computed.

pub(crate) mod unpaired;

use nicpoll_model::{
    Comparison, Ends, IntervalMethod, Metric, MetricKind, Scenario, Sensitivity, Verdict,
};

use crate::interval::{
    Confidence, Interval, NoInterval, Pair, log_differences, mean_interval, none_seen_at_most,
    point_differences, ratio_of, trimmed_interval,
};
use crate::method::{Power, estimate_by, interval_by, p_by, planned_method};
use crate::order::Seed;
use crate::series::lag_one_p;
use crate::verdict::{InvalidMargin, Margin, verdict};

/// What is compared, and how strictly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast<'a> {
    /// The workload that was run.
    pub workload: &'a str,
    /// The metric of the pairs' values.
    pub metric: Metric,
    /// The setting that is judged.
    pub setting: &'a str,
    /// The setting that it is judged against.
    pub reference: &'a str,
    /// One pair for each block, in the order of the blocks. Values that were not measured are missing, never 0 or
    /// infinite.
    pub pairs: &'a [Pair],
    /// Planned blocks: with the confidence they decide the method.
    pub blocks_planned: usize,
    /// For a primary metric, which gets a verdict, its margin: a ratio, or points for metrics
    /// compared in points. `None` for the other metrics.
    pub primary_margin: Option<f64>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// The seed of the draws behind p values and power.
    pub seed: Seed,
    /// Which trials are proven to have run as asked: a verdict must not depend on it. `None` where there is nothing
    /// to prove.
    pub proofs: Option<Proofs<'a>>,
    /// For shares of events: the chances in all trials of the setting, and of the reference.
    pub chances: Option<[u64; 2]>,
}

/// Compares two settings by one metric.
///
/// A pair with an invalid value leaves all figures null and a primary metric inconclusive; [`log_differences`] and
/// `point_differences` name the pair. Missing pairs are left out and counted; so are pairs whose values have no
/// ratio, as when neither setting delivered anything. With fewer blocks than the method needs there is no interval,
/// and no verdict.
///
/// # Errors
///
/// [`InvalidMargin`] when the margin does not fit the metric.
pub fn compare(contrast: &Contrast<'_>) -> Result<Comparison, InvalidMargin> {
    let kind = contrast.metric.kind();
    let margin = contrast
        .primary_margin
        .map(|margin| Margin::new(kind, margin))
        .transpose()?;
    let rule = VerdictRule {
        metric: contrast.metric,
        method: planned_method(contrast.blocks_planned, contrast.confidence),
        confidence: contrast.confidence,
        margin,
    };
    let pairs = &comparable(contrast.pairs, kind)[..];
    let found = rule.apply(pairs);
    let lag_one_p = lag_one_p(&found.differences, contrast.seed);
    // The family shares its level, as it does that of the verdicts.
    let are_blocks_dependent = lag_one_p.is_some_and(|p| p < 2.0 * contrast.confidence.tail());
    let sensitivity = contrast
        .proofs
        .filter(|_| margin.is_some())
        .map(|proofs| sensitivity(&rule, pairs, found.interval.is_ok(), proofs));
    let power = margin.and_then(|_| rule.power(&found.differences, contrast.seed));
    let none_seen = rule.none_seen(contrast, &found.differences);
    let shown = none_seen.map_or(found.shown(kind), |(_, shown)| shown);
    let of = |wanted| [ShownEstimate::default(), shown][usize::from(kind == wanted)];
    let (of_ratio, of_points) = (of(MetricKind::Ratio), of(MetricKind::Points));
    let ends = |interval: Option<Interval>| interval.map_or(Ends::default(), |it| it.ends(kind));
    Ok(Comparison {
        workload: contrast.workload.to_owned(),
        metric: contrast.metric,
        measure: Some(contrast.metric.measure()),
        kind,
        primary: margin.is_some(),
        factor: None,
        setting: contrast.setting.to_owned(),
        reference: contrast.reference.to_owned(),
        left_out: Vec::new(),
        blocks: count(pairs, false),
        missing_blocks: count(pairs, true),
        method: rule.method,
        ratio: of_ratio.estimate,
        ratio_low: of_ratio.ends.low,
        ratio_high: of_ratio.ends.high,
        share_difference: of_points.estimate,
        share_difference_low: of_points.ends.low,
        share_difference_high: of_points.ends.high,
        confidence_ratio: contrast.confidence.level(),
        no_verdict: margin.and(found.interval.err()).map(|why| why.to_string()),
        verdict: rule
            .word(&found)
            .map(|word| settled(word, sensitivity.as_ref())),
        difference_p: found.difference_p,
        holm_p: None,
        paired_t: ends(mean_interval(&found.differences, contrast.confidence).ok()),
        trimmed_t: ends(trimmed_interval(&found.differences, contrast.confidence)),
        lag_one_p,
        are_blocks_dependent,
        found_nine_in_ten_ratio: power
            .as_ref()
            .and_then(|power| power.found_in(contrast.blocks_planned))
            .and_then(|effect| reported(kind, effect)),
        blocks_to_find_margin: power
            .zip(margin)
            .and_then(|(power, margin)| power.blocks_to_find(margin.difference)),
        none_seen_of: none_seen.map(|(chances, _)| chances),
        sensitivity,
    })
}

/// Replaces pairs without a ratio by missing ones: 0 to 0 has none, nor have two infinite times.
fn comparable(pairs: &[Pair], kind: MetricKind) -> Vec<Pair> {
    let is_extreme = |value: f64| value == 0.0 || value.is_infinite();
    let has_ratio = |pair: &Pair| {
        let is_alike = pair.setting == pair.reference;
        kind == MetricKind::Points || !is_alike || !pair.setting.is_some_and(is_extreme)
    };
    let missing = Pair {
        setting: None,
        reference: None,
    };
    let pairs = pairs.iter();
    pairs
        .map(|pair| if has_ratio(pair) { *pair } else { missing })
        .collect()
}

fn count(pairs: &[Pair], missing: bool) -> u32 {
    let alike = pairs.iter().filter(|pair| pair.is_missing() == missing);
    u32::try_from(alike.count()).unwrap_or(u32::MAX)
}

/// How pairs become a verdict: fixed by the plan, the same for every choice of the pairs that count.
pub(crate) struct VerdictRule {
    pub metric: Metric,
    pub method: IntervalMethod,
    confidence: Confidence,
    margin: Option<Margin>,
}

/// The results of pairs.
pub(crate) struct PairResults {
    differences: Vec<f64>,
    estimate: Option<f64>,
    interval: Result<Interval, NoInterval>,
    difference_p: Option<f64>,
}

/// An estimate with its ends on the reported scale.
#[derive(Clone, Copy, Default)]
pub(crate) struct ShownEstimate {
    pub estimate: Option<f64>,
    pub ends: Ends,
}

impl VerdictRule {
    /// Returns the results of these pairs.
    pub fn apply(&self, pairs: &[Pair]) -> PairResults {
        let kind = self.metric.kind();
        let differences = match kind {
            MetricKind::Ratio => log_differences(pairs),
            MetricKind::Points => point_differences(pairs),
        };
        // An invalid difference counts as no differences: nothing is computed from them.
        let differences = differences.unwrap_or_default();
        let interval = interval_by(self.method, &differences, self.confidence);
        let interval = interval.and_then(|interval| match kind {
            MetricKind::Ratio => interval.exponentiated().ok_or(NoInterval::OutOfRange),
            MetricKind::Points => Ok(interval),
        });
        PairResults {
            estimate: estimate_by(self.method, &differences),
            difference_p: p_by(self.method, &differences),
            differences,
            interval,
        }
    }

    /// Returns the verdict from an interval; `None` for metrics that get none.
    pub fn word(&self, found: &PairResults) -> Option<Verdict> {
        let oriented = found
            .interval
            .ok()
            .map(|it| it.oriented(self.metric.kind(), self.metric.more_is_better()));
        Some(verdict(oriented.as_ref(), &self.margin?))
    }

    fn power(&self, differences: &[f64], seed: Seed) -> Option<Power> {
        Power::of(differences, self.method, self.confidence, seed)
    }

    /// Returns how far the shares may lie apart when no event was seen at all.
    fn none_seen(
        &self,
        contrast: &Contrast<'_>,
        differences: &[f64],
    ) -> Option<([u64; 2], ShownEstimate)> {
        let chances = contrast.chances?;
        let mut values = contrast
            .pairs
            .iter()
            .flat_map(|it| [it.setting, it.reference]);
        if differences.is_empty() || values.any(|value| value.is_some_and(|value| value != 0.0)) {
            return None;
        }
        let [setting, reference] = chances.map(|of| none_seen_at_most(of, self.confidence));
        let shown = ShownEstimate {
            estimate: Some(0.0),
            ends: Ends {
                low: Some(-reference),
                high: Some(setting),
            },
        };
        Some((chances, shown))
    }
}

impl PairResults {
    /// Returns the estimate and the ends on the reported scale.
    pub fn shown(&self, kind: MetricKind) -> ShownEstimate {
        ShownEstimate {
            estimate: self.estimate.and_then(|it| reported(kind, it)),
            ends: self.interval.map_or(Ends::default(), |interval| Ends {
                low: Some(interval.low).filter(|it| it.is_finite()),
                high: Some(interval.high).filter(|it| it.is_finite()),
            }),
        }
    }
}

impl Interval {
    /// Returns the ends of an interval for a difference on the reported scale.
    fn ends(&self, kind: MetricKind) -> Ends {
        Ends {
            low: reported(kind, self.low),
            high: reported(kind, self.high),
        }
    }
}

/// Returns a difference on the reported scale; `None` when that scale cannot represent it.
fn reported(kind: MetricKind, difference: f64) -> Option<f64> {
    match kind {
        MetricKind::Ratio => ratio_of(difference),
        MetricKind::Points => Some(difference),
    }
    .filter(|figure| figure.is_finite())
}

/// Which trials are proven to have run under their setting as asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proofs<'a> {
    /// For each pair, whether both its trials are proven.
    pub is_proven: &'a [bool],
    /// Trials of the judged setting, and how many of them are proven.
    pub setting: [u32; 2],
    /// The same for the reference.
    pub reference: [u32; 2],
}

/// Repeats a comparison with other choices of the pairs that count. Without a verdict of the measured pairs none has one.
fn sensitivity(
    rule: &VerdictRule,
    pairs: &[Pair],
    has_verdict: bool,
    proofs: Proofs<'_>,
) -> Sensitivity {
    let scenario = |pairs: &[Pair]| {
        let found = rule.apply(pairs);
        let shown = found.shown(rule.metric.kind());
        Scenario {
            blocks: pairs.iter().filter(|pair| !pair.is_missing()).count() as u32,
            estimate: shown.estimate,
            interval: shown.ends,
            verdict: rule
                .word(&found)
                .filter(|_| has_verdict)
                .unwrap_or(Verdict::Inconclusive),
        }
    };
    let proven = pairs.iter().zip(proofs.is_proven);
    let proven: Vec<Pair> = proven
        .filter(|(_, is)| **is)
        .map(|(pair, _)| *pair)
        .collect();
    // Student's interval cannot take the worst or best rank.
    let can_rank = rule.method == IntervalMethod::HodgesLehmann;
    let is_missing = can_rank && pairs.iter().any(Pair::is_missing);
    let filled = |with: Pair| {
        let filled = pairs.iter();
        let filled = filled.map(|pair| if pair.is_missing() { with } else { *pair });
        is_missing.then(|| scenario(&filled.collect::<Vec<_>>()))
    };
    let (worst, best) = extremes(rule.metric);
    Sensitivity {
        in_force_trials: proofs.setting,
        reference_in_force_trials: proofs.reference,
        proven_only: scenario(&proven),
        missing_as_worst: filled(worst),
        missing_as_best: filled(best),
    }
}

/// Returns the worst and the best possible pair for the judged setting.
fn extremes(metric: Metric) -> (Pair, Pair) {
    let [most, least] = match metric.kind() {
        MetricKind::Ratio => [f64::INFINITY, 1.0],
        MetricKind::Points => [1.0, 0.0],
    };
    let (more, less) = (Pair::measured(most, least), Pair::measured(least, most));
    match metric.more_is_better() {
        true => (less, more),
        false => (more, less),
    }
}

/// Returns the verdict on which the primary estimate and every sensitivity scenario agree.
///
/// If they differ only in "and it matters", that is dropped. A scenario without an interval does not count.
pub(crate) fn settled(word: Verdict, sensitivity: Option<&Sensitivity>) -> Verdict {
    let Some(sensitivity) = sensitivity else {
        return word;
    };
    let scenarios = [
        Some(sensitivity.proven_only),
        sensitivity.missing_as_worst,
        sensitivity.missing_as_best,
    ];
    let others = scenarios.into_iter().flatten().map(|it| it.verdict);
    let others = others.filter(|other| *other != Verdict::Inconclusive);
    others.fold(word, |word, other| {
        if word == Verdict::Inconclusive || word == other {
            word
        } else if word.without_weight() == other.without_weight() {
            word.without_weight()
        } else {
            Verdict::DependsOnWhatCounts
        }
    })
}

#[cfg(test)]
mod comparison_tests;

#[cfg(test)]
mod sensitivity_tests {
    use nicpoll_model::Ends;

    use super::*;

    fn scenario(verdict: Verdict) -> Scenario {
        Scenario {
            blocks: 16,
            estimate: None,
            interval: Ends::default(),
            verdict,
        }
    }

    fn settles(word: Verdict, proven: Verdict, worst: Option<Verdict>) -> Verdict {
        let sensitivity = Sensitivity {
            in_force_trials: [16, 16],
            reference_in_force_trials: [16, 16],
            proven_only: scenario(proven),
            missing_as_worst: worst.map(scenario),
            missing_as_best: worst.map(|_| scenario(word)),
        };
        settled(word, Some(&sensitivity))
    }

    #[test]
    fn a_word_stands_only_when_every_rule_gives_it() {
        use Verdict::*;
        assert_eq!(settles(Better, Better, None), Better);
        assert_eq!(
            settles(Better, NoDifferenceProven, None),
            DependsOnWhatCounts
        );
        assert_eq!(settles(Better, Better, Some(Worse)), DependsOnWhatCounts);
        assert_eq!(
            settles(NoDifferenceProven, Better, None),
            DependsOnWhatCounts
        );
        // Both are better: only "and it matters" depends on what counts.
        assert_eq!(settles(BetterAndItMatters, Better, None), Better);
        assert_eq!(settles(Worse, WorseAndItMatters, None), Worse);
    }

    #[test]
    fn what_has_no_interval_contradicts_nothing() {
        use Verdict::*;
        assert_eq!(settles(Better, Inconclusive, None), Better);
        assert_eq!(settles(Inconclusive, Better, None), Inconclusive);
    }
}
