//! The load of both settings: the first result, since the rest depends on it.
//!
//! What must hold: a load is compared by the ratio within pairs, which a jump or a drift of the load between
//! pairs cannot touch. A block that carried nothing has the worst rank and not the least size.

use nicpoll_model::ab::{AbLoad, AbPair, AbRatio, AbWindow};

use crate::confidence::Confidence;
use crate::moments;
use crate::paired::{Interval, Pair, log_differences};
use crate::signed_rank::signed_rank_interval;

/// The load of the pairs; `None` without pairs.
pub(crate) fn load(pairs: &[&AbPair], confidence: Confidence, margin: f64) -> Option<AbLoad> {
    let packets = |window: &AbWindow| window.packets_per_second();
    let bytes = |window: &AbWindow| window.bytes() as f64 / window.seconds;
    let by_packets = ratio_of_rates(pairs, confidence, packets);
    let by_bytes = ratio_of_rates(pairs, confidence, bytes);
    let both = [by_packets, by_bytes];
    Some(AbLoad {
        reference_packets_per_second: mean_of(pairs, |pair| packets(&pair.reference.window))?,
        judged_packets_per_second: mean_of(pairs, |pair| packets(&pair.judged.window))?,
        reference_bytes_per_second: mean_of(pairs, |pair| bytes(&pair.reference.window))?,
        judged_bytes_per_second: mean_of(pairs, |pair| bytes(&pair.judged.window))?,
        packets: by_packets,
        bytes: by_bytes,
        is_equal: both
            .iter()
            .all(|it| it.is_some_and(|it| is_within(it, margin))),
        is_moved: both.iter().flatten().any(|it| excludes_one(*it)),
    })
}

/// The mean of a figure over pairs.
pub(crate) fn mean_of(pairs: &[&AbPair], figure: impl Fn(&AbPair) -> f64) -> Option<f64> {
    let figures: Vec<f64> = pairs.iter().map(|pair| figure(pair)).collect();
    moments::mean(&figures)
}

fn ratio_of_rates(
    pairs: &[&AbPair],
    confidence: Confidence,
    rate: impl Fn(&AbWindow) -> f64,
) -> Option<AbRatio> {
    let rates: Vec<Pair> = pairs
        .iter()
        .map(|pair| Pair::measured(rate(&pair.judged.window), rate(&pair.reference.window)))
        .filter(|pair| (pair.setting, pair.reference) != (Some(0.0), Some(0.0)))
        .collect();
    typical_ratio(&log_differences(&rates).ok()?, confidence)
}

/// The typical ratio of differences of logarithms: Hodges and Lehmann's estimate with the signed ranks' interval.
pub(crate) fn typical_ratio(differences: &[f64], confidence: Confidence) -> Option<AbRatio> {
    as_ratio(signed_rank_interval(differences, confidence).ok()?)
}

fn as_ratio(interval: Interval) -> Option<AbRatio> {
    let Interval {
        estimate,
        low,
        high,
        ..
    } = interval.exponentiated()?;
    estimate.is_finite().then_some(AbRatio {
        ratio: estimate,
        ratio_low: Some(low).filter(|low| *low > 0.0),
        ratio_high: Some(high).filter(|high| high.is_finite()),
    })
}

fn is_within(ratio: AbRatio, margin: f64) -> bool {
    let most = 1.0 + margin;
    matches!((ratio.ratio_low, ratio.ratio_high), (Some(low), Some(high))
        if most.recip() <= low && high <= most)
}

fn excludes_one(ratio: AbRatio) -> bool {
    ratio.ratio_low.is_some_and(|low| low > 1.0) || ratio.ratio_high.is_some_and(|high| high < 1.0)
}
