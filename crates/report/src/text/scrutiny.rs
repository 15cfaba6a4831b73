//! What stands behind a verdict: the method, the intervals beside it, what such a plan finds, and what
//! other rules of what counts would say.
//!
//! What must hold: these rows explain the word above them and never replace it.

use nicpoll_model::{Comparison, Ends, IntervalMethod, Scenario, Sensitivity, Study};

use super::differences::{found, in_short, thresholds, with_interval};
use super::page::{Ink, Row};
use crate::numbers::{MISSING, figure_or_missing};

type Compared<'a> = [Option<&'a Comparison>];

/// The rows below a primary metric's verdict, one cell for each pair of settings.
pub fn rows(study: &Study, compared: &Compared<'_>) -> Vec<Row> {
    let cells = |label: &str, cell: &dyn Fn(&Comparison) -> String| {
        let texts = compared.iter();
        let texts = texts.map(|found| found.map_or(String::from(MISSING), cell));
        Row::new(format!("  {label}"), texts.collect(), Ink::Faint)
    };
    let ends = |one: &Comparison, Ends { low, high }: Ends| match low.or(high) {
        Some(_) => {
            let middle = one.ratio.or(one.share_difference);
            let shown = with_interval(
                [low, middle, high],
                &thresholds(study, one),
                "x",
                str::to_string,
            );
            shown
                .split_once(' ')
                .map_or(shown.clone(), |(_, ends)| String::from(ends))
        }
        None => String::from(MISSING),
    };
    let mut rows = vec![
        cells("interval by", &|one| {
            String::from(match one.method {
                IntervalMethod::HodgesLehmann => "ranks (Hodges-Lehmann)",
                IntervalMethod::PairedT => "paired t (even noise)",
            })
        }),
        cells("pairs that count", &|one| one.blocks.to_string()),
        cells("by paired t", &|one| ends(one, one.paired_t)),
        cells("by 20 % trimmed t", &|one| ends(one, one.trimmed_t)),
        cells("p value", &|one| figure_or_missing(one.difference_p)),
        cells("p value after Holm", &|one| figure_or_missing(one.holm_p)),
        cells("finds 9 times in 10", &|one| {
            found(one).unwrap_or(String::from(MISSING))
        }),
    ];
    let scenarios: [(&str, Read); 3] = [
        ("proven pairs only", |it| Some(it.proven_only)),
        ("missing as worst", |it| it.missing_as_worst),
        ("missing as best", |it| it.missing_as_best),
    ];
    for (label, read) in scenarios {
        let scenario = |one: &Comparison| one.sensitivity.as_ref().and_then(read);
        if compared
            .iter()
            .flatten()
            .any(|one| adds(one, scenario(one)))
        {
            rows.push(cells(label, &|one| {
                scenario(one).map_or(String::from(MISSING), |it| in_short(it.verdict))
            }));
        }
    }
    rows
}

type Read = fn(&Sensitivity) -> Option<Scenario>;

/// Whether a rule of what counts takes other pairs than the primary estimate does.
fn adds(comparison: &Comparison, scenario: Option<Scenario>) -> bool {
    scenario.is_some_and(|it| it.blocks != comparison.blocks)
}
