//! From the pairs of one metric to everything that is said about it.
//!
//! What must hold: [`Comparison`]'s fields mean what its documentation says. Its figures compare the
//! setting with the reference as they are; only the verdict looks at which way is better.

use nicpoll_model::{Comparison, Ends, IntervalMethod, Metric, MetricKind, Verdict};

use crate::confidence::Confidence;
use crate::independence::{DEPENDENT_BELOW_P, lag_one_p};
use crate::method::{estimate_by, interval_by, p_values_by, planned_method};
use crate::none_seen::none_seen_at_most;
use crate::order::Seed;
use crate::paired::{Interval, Pair, log_differences, mean_interval, point_differences, ratio_of};
use crate::power::Power;
use crate::sensitivity::{Proofs, sensitivity, settled};
use crate::trimmed::trimmed_interval;
use crate::verdict::{InvalidMargin, Margin, PValues, verdict};

/// What is compared, and how strictly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast<'a> {
    /// The workload that was run.
    pub workload: &'a str,
    /// The metric that the pairs are values of.
    pub metric: Metric,
    /// The setting that is judged.
    pub setting: &'a str,
    /// The setting that it is judged against.
    pub reference: &'a str,
    /// One pair of each block, in the order of the blocks; a failed trial's value is the worst that there
    /// is, and one that an event from outside voids is missing.
    pub pairs: &'a [Pair],
    /// Blocks that were planned: with the confidence they decide the method.
    pub blocks_planned: usize,
    /// For a primary metric, which gets a verdict, its margin: a ratio, or points for metrics
    /// compared in points. `None` for the other metrics.
    pub primary_margin: Option<f64>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// What the draws behind p values and power follow from.
    pub seed: Seed,
    /// Which trials are proven to have run as asked: a verdict must not hang on it. `None` where nothing
    /// is to be proven.
    pub proofs: Option<Proofs<'a>>,
    /// For shares of events: how many chances the trials of either setting had together.
    pub chances: Option<[u64; 2]>,
}

/// Compares two settings by one metric.
///
/// A pair with a value that has no meaning leaves all figures null and a primary metric inconclusive;
/// [`log_differences`] and [`point_differences`] say which pair it is. Missing pairs are left out and
/// counted. Below the fewest blocks of the method the estimate stands without an interval.
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
    let rule = Rule::of(contrast, margin);
    let found = rule.apply(contrast.pairs);
    let lag_one_p = lag_one_p(&found.differences, contrast.seed);
    let are_blocks_dependent = lag_one_p.is_some_and(|p| p < DEPENDENT_BELOW_P);
    // Whether a difference is sure enough to matter is asked of the pairs that were measured, once: a missing one that
    // counts as the worst has the utmost rank, and no study of 16 blocks would be sure.
    let says = |of: &Found| {
        let word = rule.word(of, &found.p_values)?;
        Some(match are_blocks_dependent {
            true => word.without_weight(),
            false => word,
        })
    };
    let sensitivity = contrast
        .proofs
        .filter(|_| margin.is_some())
        .map(|proofs| sensitivity(&rule, contrast.pairs, proofs, says));
    let power = margin.and_then(|_| rule.power(&found.differences, contrast.seed));
    let none_seen = rule.none_seen(contrast, &found.differences);
    let shown = none_seen.map_or(found.shown(kind), |(_, shown)| shown);
    let (of_ratio, of_points) = match kind {
        MetricKind::Ratio => (shown, Shown::default()),
        MetricKind::Points => (Shown::default(), shown),
    };
    let beside = |interval: Option<Interval>| interval.map_or(Ends::default(), |it| it.ends(kind));
    Ok(Comparison {
        workload: contrast.workload.to_owned(),
        metric: contrast.metric,
        kind,
        primary: margin.is_some(),
        factor: None,
        setting: contrast.setting.to_owned(),
        reference: contrast.reference.to_owned(),
        left_out: Vec::new(),
        blocks: count(contrast.pairs, false),
        missing_blocks: count(contrast.pairs, true),
        method: rule.method,
        ratio: of_ratio.estimate,
        ratio_low: of_ratio.ends.low,
        ratio_high: of_ratio.ends.high,
        share_difference: of_points.estimate,
        share_difference_low: of_points.ends.low,
        share_difference_high: of_points.ends.high,
        confidence_ratio: contrast.confidence.level(),
        verdict: says(&found).map(|word| settled(word, sensitivity.as_ref())),
        difference_p: found.p_values.deciding,
        holm_p: None,
        paired_t: beside(mean_interval(&found.differences, contrast.confidence).ok()),
        trimmed_t: beside(trimmed_interval(&found.differences, contrast.confidence)),
        lag_one_p,
        are_blocks_dependent,
        found_nine_in_ten_ratio: power
            .as_ref()
            .and_then(|power| power.found_in(contrast.blocks_planned))
            .and_then(|effect| reported(kind, effect)),
        blocks_to_find_margin: power
            .zip(margin)
            .and_then(|(power, margin)| power.blocks_to_find(margin.as_difference())),
        none_seen_of: none_seen.map(|(chances, _)| chances),
        sensitivity,
    })
}

fn count(pairs: &[Pair], missing: bool) -> u32 {
    let alike = pairs.iter().filter(|pair| pair.is_missing() == missing);
    u32::try_from(alike.count()).unwrap_or(u32::MAX)
}

/// How pairs become a word: fixed by the plan, the same for every rule of what counts.
pub(crate) struct Rule {
    pub metric: Metric,
    pub method: IntervalMethod,
    confidence: Confidence,
    margin: Option<Margin>,
}

/// What pairs come to.
pub(crate) struct Found {
    differences: Vec<f64>,
    estimate: Option<f64>,
    interval: Option<Interval>,
    p_values: PValues,
}

/// An estimate with its ends on the scale that is reported.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown {
    pub estimate: Option<f64>,
    pub ends: Ends,
}

impl Rule {
    fn of(contrast: &Contrast<'_>, margin: Option<Margin>) -> Self {
        Rule {
            metric: contrast.metric,
            method: planned_method(contrast.blocks_planned, contrast.confidence),
            confidence: contrast.confidence,
            margin,
        }
    }

    /// What these pairs come to.
    pub fn apply(&self, pairs: &[Pair]) -> Found {
        let kind = self.metric.kind();
        let differences = match kind {
            MetricKind::Ratio => log_differences(pairs),
            MetricKind::Points => point_differences(pairs),
        };
        // Of no differences nothing can be computed, which is what holds when one has no meaning.
        let differences = differences.unwrap_or_default();
        let interval = interval_by(self.method, &differences, self.confidence);
        let interval = interval.ok().and_then(|interval| match kind {
            MetricKind::Ratio => interval.exponentiated(),
            MetricKind::Points => Some(interval),
        });
        Found {
            estimate: estimate_by(self.method, &differences),
            p_values: p_values_by(self.method, &differences),
            differences,
            interval,
        }
    }

    /// What an interval says; `None` of metrics that get no verdict.
    pub fn word(&self, found: &Found, p_values: &PValues) -> Option<Verdict> {
        let interval = found.interval;
        let oriented = interval.map(|interval| oriented(self.metric, interval));
        Some(verdict(oriented.as_ref(), p_values, &self.margin?))
    }

    fn power(&self, differences: &[f64], seed: Seed) -> Option<Power> {
        Power::of(differences, self.method, self.confidence, seed)
    }

    /// Where no event was seen at all: how far the shares can lie apart even so.
    fn none_seen(&self, contrast: &Contrast<'_>, differences: &[f64]) -> Option<([u64; 2], Shown)> {
        let chances = contrast.chances?;
        let mut values = contrast
            .pairs
            .iter()
            .flat_map(|it| [it.setting, it.reference]);
        if differences.is_empty() || values.any(|value| value.is_some_and(|value| value != 0.0)) {
            return None;
        }
        let [setting, reference] = chances.map(|of| none_seen_at_most(of, self.confidence));
        let shown = Shown {
            estimate: Some(0.0),
            ends: Ends {
                low: Some(-reference),
                high: Some(setting),
            },
        };
        Some((chances, shown))
    }
}

impl Found {
    /// The estimate and the ends on the scale that is reported.
    pub fn shown(&self, kind: MetricKind) -> Shown {
        Shown {
            estimate: self.estimate.and_then(|it| reported(kind, it)),
            ends: self.interval.map_or(Ends::default(), |interval| Ends {
                low: Some(interval.low).filter(|it| it.is_finite()),
                high: Some(interval.high).filter(|it| it.is_finite()),
            }),
        }
    }
}

impl Interval {
    /// The ends of an interval for a difference on the scale that is reported.
    fn ends(&self, kind: MetricKind) -> Ends {
        Ends {
            low: reported(kind, self.low),
            high: reported(kind, self.high),
        }
    }
}

/// A difference on the scale that is reported; `None` when that scale cannot hold it.
fn reported(kind: MetricKind, difference: f64) -> Option<f64> {
    match kind {
        MetricKind::Ratio => ratio_of(difference),
        MetricKind::Points => Some(difference),
    }
    .filter(|figure| figure.is_finite())
}

/// A reported interval turned so that more is better.
fn oriented(metric: Metric, interval: Interval) -> Interval {
    match (metric.more_is_better(), metric.kind()) {
        (true, _) => interval,
        (false, MetricKind::Ratio) => interval.inverted(),
        (false, MetricKind::Points) => interval.negated(),
    }
}

#[cfg(test)]
mod tests;
