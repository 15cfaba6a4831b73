//! From the pairs of one metric to everything that is said about it.
//!
//! What must hold: [`Comparison`]'s fields mean what its documentation says. Its figures compare the
//! setting with the reference as they are; only the verdict looks at which way is better.

use nicpoll_model::{Comparison, Metric, MetricKind, Verdict};

use crate::bootstrap::bca_interval;
use crate::confidence::Confidence;
use crate::moments;
use crate::order::Seed;
use crate::paired::{Interval, Pair, log_differences, mean_interval, point_differences, ratio_of};
use crate::resolution::blocks_to_resolve;
use crate::sign_flip::sign_flip_p;
use crate::verdict::{InvalidMargin, Margin, verdict};

/// Blocks from which on the sign-flip p value is given: with fewer it cannot fall below 5 %.
pub const SIGN_FLIP_BLOCKS_MIN: usize = 6;

/// Blocks from which on the bootstrap is given: with fewer it has too little to draw from.
pub const BCA_BLOCKS_MIN: usize = 10;

/// Resamples of the bootstrap: about 20 beyond each end at a confidence of 0.996.
pub const BCA_RESAMPLES: u32 = 10_000;

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
    /// One pair of each block in which both trials count.
    pub pairs: &'a [Pair],
    /// For a primary metric, which gets a verdict, its margin: a ratio, or points for metrics
    /// compared in points. `None` for the other metrics.
    pub primary_margin: Option<f64>,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// What the bootstrap draws from.
    pub seed: Seed,
}

/// Compares two settings by one metric.
///
/// A pair without a difference, because a value is missing or has no logarithm, leaves all figures
/// null and a primary metric inconclusive; [`log_differences`] and [`point_differences`] say which
/// pair it is. Below three blocks the estimate stands without an interval. The bootstrap's interval
/// is on the scale of the estimate: ratios or points.
///
/// # Errors
///
/// [`InvalidMargin`] when the margin does not fit the metric.
pub fn compare(contrast: &Contrast<'_>) -> Result<Comparison, InvalidMargin> {
    let Contrast {
        metric, confidence, ..
    } = *contrast;
    let kind = metric.kind();
    let margin = contrast
        .primary_margin
        .map(|margin| Margin::new(kind, margin))
        .transpose()?;
    let differences = match kind {
        MetricKind::Ratio => log_differences(contrast.pairs),
        MetricKind::Points => point_differences(contrast.pairs),
    };
    // Of no differences nothing can be computed, which is what holds when one of them is missing.
    let differences = differences.unwrap_or_default();

    let estimate = moments::mean(&differences).and_then(|mean| reported(kind, mean));
    let interval = mean_interval(&differences, confidence)
        .ok()
        .and_then(|interval| reported_interval(kind, interval));
    let word = margin.map(|margin| {
        let oriented = interval.map(|interval| oriented(metric, interval));
        verdict(oriented.as_ref(), &margin)
    });
    let bca = (differences.len() >= BCA_BLOCKS_MIN)
        .then(|| bca_interval(&differences, confidence, contrast.seed, BCA_RESAMPLES))
        .flatten()
        .and_then(|interval| reported_interval(kind, interval));

    let figures = [
        estimate,
        interval.map(|it| it.low),
        interval.map(|it| it.high),
    ];
    let (of_ratio, of_points) = match kind {
        MetricKind::Ratio => (figures, [None; 3]),
        MetricKind::Points => ([None; 3], figures),
    };
    Ok(Comparison {
        workload: contrast.workload.to_owned(),
        metric,
        kind,
        primary: margin.is_some(),
        setting: contrast.setting.to_owned(),
        reference: contrast.reference.to_owned(),
        blocks: u32::try_from(contrast.pairs.len()).unwrap_or(u32::MAX),
        ratio: of_ratio[0],
        ratio_low: of_ratio[1],
        ratio_high: of_ratio[2],
        difference: of_points[0],
        difference_low: of_points[1],
        difference_high: of_points[2],
        confidence: confidence.level(),
        verdict: word,
        sign_flip_p: (differences.len() >= SIGN_FLIP_BLOCKS_MIN)
            .then(|| sign_flip_p(&differences))
            .flatten(),
        bca_low: bca.map(|interval| interval.low),
        bca_high: bca.map(|interval| interval.high),
        blocks_to_resolve_margin: margin
            .filter(|_| word == Some(Verdict::NoDifferenceProven))
            .and_then(|margin| blocks_to_resolve(&differences, &margin, confidence)),
    })
}

/// A mean difference on the scale that is reported; `None` when that scale cannot hold it.
fn reported(kind: MetricKind, difference: f64) -> Option<f64> {
    match kind {
        MetricKind::Ratio => ratio_of(difference),
        MetricKind::Points => Some(difference),
    }
}

/// An interval for a mean difference on the scale that is reported.
fn reported_interval(kind: MetricKind, interval: Interval) -> Option<Interval> {
    match kind {
        MetricKind::Ratio => interval.exponentiated(),
        MetricKind::Points => Some(interval),
    }
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
