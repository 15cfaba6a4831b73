//! When a study has measured enough: once every interval is as narrow as was asked for.
//!
//! What must hold: nothing but the width of the intervals decides, never where they lie: a study that stopped once a
//! difference showed would find one where there is none.

use nicpoll_model::{Comparison, Plan, Study};

/// Blocks before the first look.
pub(crate) const BLOCKS_MIN: u32 = 3;

/// Whether every comparison with a verdict has an interval, and none is wider than `width`, a share of its estimate.
pub(crate) fn are_narrow(comparisons: &[Comparison], width: f64) -> bool {
    let mut primary = comparisons.iter().filter(|one| one.primary).peekable();
    primary.peek().is_some() && primary.all(|one| width_of(one).is_some_and(|own| own <= width))
}

/// The width of an interval as a share of its estimate; `None` while it has no end.
fn width_of(comparison: &Comparison) -> Option<f64> {
    let (low, high) = comparison.ratio_low.zip(comparison.ratio_high)?;
    let width = (high - low) / comparison.ratio?;
    width.is_finite().then_some(width)
}

/// That a study's time was over before its intervals were narrow enough; `None` when they were, or nothing was asked.
pub(crate) fn fell_short(study: &Study) -> Option<String> {
    let width = asked(&study.plan)?;
    let primary = study.comparisons.iter().filter(|one| one.primary);
    let wide: Vec<(&Comparison, Option<f64>)> = primary
        .map(|one| (one, width_of(one)))
        .filter(|(_, own)| own.is_none_or(|own| own > width))
        .collect();
    let widest = wide.iter().max_by(|(_, one), (_, other)| {
        let of = |width: &Option<f64>| width.unwrap_or(f64::INFINITY);
        of(one).total_cmp(&of(other))
    });
    let (comparison, own) = widest?;
    let own = own.map_or_else(
        || String::from("has no interval yet"),
        |own| format!("is {:.0} % wide", 100.0 * own),
    );
    Some(format!(
        "THE LIMIT CAME FIRST: intervals {:.1} % wide were asked for, and {} of {} {} not there: {} under {} against \
         {} {own}. Give the study longer (at_most), or ask for less",
        100.0 * width,
        wide.len(),
        study.comparisons.iter().filter(|one| one.primary).count(),
        if wide.len() == 1 { "is" } else { "are" },
        comparison.workload,
        comparison.setting,
        comparison.reference
    ))
}

/// The width at which a plan ends.
pub(crate) fn asked(plan: &Plan) -> Option<f64> {
    plan.stop_width_ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(ends: Option<[f64; 2]>) -> Comparison {
        let ends = ends.map_or([None, None], |ends| ends.map(Some));
        let none = serde_json::json!({"low": null, "high": null});
        let comparison = serde_json::json!({
            "workload": "rr", "metric": "transactions_per_second", "kind": "ratio", "primary": true,
            "setting": "on", "reference": "off", "blocks": 9, "missing_blocks": 0,
            "method": "hodges_lehmann", "ratio": 2.0, "ratio_low": ends[0], "ratio_high": ends[1],
            "share_difference": null, "share_difference_low": null, "share_difference_high": null,
            "confidence_ratio": 0.95, "verdict": null, "difference_p": null, "holm_p": null,
            "paired_t": none, "trimmed_t": none, "lag_one_p": null, "are_blocks_dependent": false,
            "found_nine_in_ten_ratio": null, "blocks_to_find_margin": null, "none_seen_of": null,
            "sensitivity": null,
        });
        serde_json::from_value(comparison).unwrap()
    }

    #[test]
    fn only_the_width_decides_and_never_where_an_interval_lies() {
        // 4 % of the estimate, wherever it is.
        for ends in [[1.98, 2.06], [0.5, 0.58], [0.96, 1.04]] {
            assert!(are_narrow(&[comparison(Some(ends))], 0.05));
            assert!(!are_narrow(&[comparison(Some(ends))], 0.03));
        }
        let narrow = comparison(Some([1.99, 2.01]));
        // One that is wide, or has no interval yet, keeps the others from ending the study.
        assert!(!are_narrow(
            &[narrow.clone(), comparison(Some([1.0, 2.0]))],
            0.05
        ));
        assert!(!are_narrow(&[narrow.clone(), comparison(None)], 0.05));
        assert!(!are_narrow(&[], 0.05));
        let secondary = Comparison {
            primary: false,
            ..comparison(None)
        };
        assert!(are_narrow(&[narrow, secondary], 0.05));
    }
}
