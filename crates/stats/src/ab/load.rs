//! The load and the delays under both settings, as ratios within pairs.
//!
//! A jump or a drift of the load between pairs does not affect a ratio within a pair. A block that carried nothing
//! has the worst rank. Delays grow with the load, so they are adjusted for it as CPU time is; the ratio is a typical
//! one, since a single stall can make one block's 99th percentile any size.

use nicpoll_model::Measure;
use nicpoll_model::ab::{
    AbBlock, AbDelayAnswer, AbDelayKind, AbLoad, AbPair, AbQuantile, AbRatio, AbWindow,
};

use crate::ab::fit::{LoadFit, LoadedDifference};
use crate::interval::{Confidence, Pair, log_differences};
use crate::rank::signed_rank_interval;
use crate::summary;

/// Returns the load of the pairs; `None` without pairs.
pub(crate) fn load(pairs: &[&AbPair], confidence: Confidence, margin: f64) -> Option<AbLoad> {
    let packets = |window: &AbWindow| window.packets_per_second();
    let bytes = |window: &AbWindow| window.bytes() as f64 / window.seconds;
    let by_packets = ratio_of_rates(pairs, confidence, packets);
    let by_bytes = ratio_of_rates(pairs, confidence, bytes);
    let both = [by_packets, by_bytes];
    let is_equal = |it: &Option<AbRatio>| it.is_some_and(|it| is_within(it, margin));
    Some(AbLoad {
        measure: Some(Measure::Rate),
        reference_packets_per_second: mean_of(pairs, |pair| packets(&pair.reference.window))?,
        judged_packets_per_second: mean_of(pairs, |pair| packets(&pair.judged.window))?,
        reference_bytes_per_second: mean_of(pairs, |pair| bytes(&pair.reference.window))?,
        judged_bytes_per_second: mean_of(pairs, |pair| bytes(&pair.judged.window))?,
        packets: by_packets,
        bytes: by_bytes,
        is_equal: both.iter().all(is_equal),
        is_moved: both.iter().flatten().any(|it| excludes_one(*it)),
    })
}

/// Returns the mean of a figure over pairs.
pub(crate) fn mean_of(pairs: &[&AbPair], figure: impl Fn(&AbPair) -> f64) -> Option<f64> {
    let figures: Vec<f64> = pairs.iter().map(|pair| figure(pair)).collect();
    summary::mean(&figures)
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

/// Returns the typical ratio from differences of logarithms: Hodges and Lehmann's estimate with the signed ranks'
/// interval.
pub(crate) fn typical_ratio(differences: &[f64], confidence: Confidence) -> Option<AbRatio> {
    let interval = signed_rank_interval(differences, confidence).ok()?;
    let ratios = interval.exponentiated()?;
    ratios.estimate.is_finite().then_some(AbRatio {
        ratio: ratios.estimate,
        ratio_low: Some(ratios.low).filter(|low| *low > 0.0),
        ratio_high: Some(ratios.high).filter(|high| high.is_finite()),
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

/// Returns the delays of every kind and quantile that pairs have on both sides, in the order of declaration.
pub(crate) fn delays(pairs: &[&AbPair], confidence: Confidence) -> Vec<AbDelayAnswer> {
    let mut kinds: Vec<AbDelayKind> = pairs
        .iter()
        .flat_map(|pair| &pair.reference.delays)
        .map(|delay| delay.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
        .into_iter()
        .flat_map(|kind| [AbQuantile::P50, AbQuantile::P99].map(|quantile| (kind, quantile)))
        .filter_map(|(kind, quantile)| delay(pairs, kind, quantile, confidence))
        .collect()
}

fn delay(
    pairs: &[&AbPair],
    kind: AbDelayKind,
    quantile: AbQuantile,
    confidence: Confidence,
) -> Option<AbDelayAnswer> {
    let of = |block: &AbBlock| {
        let delay = block.delays.iter().find(|delay| delay.kind == kind)?;
        let ns = match quantile {
            AbQuantile::P50 => Some(delay.p50_ns),
            AbQuantile::P99 => delay.p99_ns,
        };
        ns.filter(|ns| *ns > 0.0)
    };
    let measured: Vec<(f64, f64, &AbPair)> = pairs
        .iter()
        .filter_map(|pair| Some((of(&pair.judged)?, of(&pair.reference)?, *pair)))
        .collect();
    let differences: Vec<LoadedDifference> = measured
        .iter()
        .map(|(judged, reference, pair)| {
            let (ours, theirs) = (&pair.judged.window, &pair.reference.window);
            LoadedDifference::of(judged.ln() - reference.ln(), ours, theirs)
        })
        .collect();
    let fit = LoadFit::of(&differences, confidence);
    let adjusted = fit.map(|fit| fit.adjusted(&differences));
    Some(AbDelayAnswer {
        measure: Some(kind.measure()),
        kind,
        quantile,
        pairs: u32::try_from(measured.len()).unwrap_or(u32::MAX),
        reference_ns: summary::median(&measured.iter().map(|it| it.1).collect::<Vec<_>>())?,
        judged_ns: summary::median(&measured.iter().map(|it| it.0).collect::<Vec<_>>())?,
        ratio: adjusted.and_then(|adjusted| typical_ratio(&adjusted, confidence)),
    })
}
