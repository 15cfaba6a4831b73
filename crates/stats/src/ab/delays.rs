//! Delays under both settings: quantiles of blocks, as ratios within pairs.
//!
//! What must hold: a delay grows with the load, so it is adjusted for the load of its blocks as CPU time is; the
//! ratio is then a typical one, since a single stall can make one block's 99th percentile any size.

use nicpoll_model::ab::{AbBlock, AbDelay, AbDelayAnswer, AbDelayKind, AbPair, AbQuantile};

use super::fit::{LoadFit, LoadedDifference};
use super::load::typical_ratio;
use crate::confidence::Confidence;

/// Every kind and quantile that a pair has on both sides, in the order of their declaration.
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
        value(delay, quantile).filter(|ns| *ns > 0.0)
    };
    let measured: Vec<(f64, f64, &AbPair)> = pairs
        .iter()
        .filter_map(|pair| Some((of(&pair.judged)?, of(&pair.reference)?, *pair)))
        .collect();
    let differences: Vec<LoadedDifference> = measured
        .iter()
        .map(|(judged, reference, pair)| LoadedDifference {
            difference: judged.ln() - reference.ln(),
            judged_load: pair.judged.window.packets_per_second(),
            reference_load: pair.reference.window.packets_per_second(),
        })
        .collect();
    let fit = LoadFit::of(&differences, confidence);
    let adjusted = fit.map(|fit| fit.adjusted(&differences));
    Some(AbDelayAnswer {
        kind,
        quantile,
        pairs: u32::try_from(measured.len()).unwrap_or(u32::MAX),
        reference_ns: median(measured.iter().map(|it| it.1))?,
        judged_ns: median(measured.iter().map(|it| it.0))?,
        ratio: adjusted.and_then(|adjusted| typical_ratio(&adjusted, confidence)),
    })
}

fn value(delay: &AbDelay, quantile: AbQuantile) -> Option<f64> {
    match quantile {
        AbQuantile::P50 => Some(delay.p50_ns),
        AbQuantile::P99 => delay.p99_ns,
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Some(crate::Summary::of(&values)?.median)
}
