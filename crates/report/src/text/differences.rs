//! How settings compare: a sentence for each comparison that was named in advance, and a table with
//! the others.
//!
//! What must hold: only primary metrics get verdict words, and every ratio stands beside its
//! interval.

use nicpoll_model::{
    Comparison, MainEffect, Metric, MetricKind, Study, TrialFigures, Verdict, WorkUnit,
    WorkloadFacts,
};

use super::page::{Align, Ink, Page, Row};
use super::scrutiny;
use crate::figures::{Group, Pair};
use crate::numbers::{MISSING, aligned, counted, figure, figure_or_missing, percent};

/// Width of the widest label.
const LABEL: usize = 24;

/// One sentence for each pair of settings.
pub fn write_sentences(page: &mut Page, study: &Study, workload: &str) {
    for pair in Pair::of(study) {
        match pair.judged(study, workload) {
            Some(comparison) => page.paragraph(
                Ink::of(comparison.verdict),
                &sentence(study, comparison, pair),
            ),
            None => page.paragraph(
                Ink::Unsure,
                &format!(
                    "{workload}{}: {} and {} were not compared.",
                    over(pair, &[]),
                    pair.setting,
                    pair.noun(study)
                ),
            ),
        }
    }
}

/// Over what levels of a factor are compared, and which pairs of settings that leaves out; empty where settings are.
fn over(pair: Pair, left_out: &[(String, String)]) -> String {
    let all = |effect: &MainEffect| {
        let combinations = effect.settings.len();
        let (of, without) = match left_out {
            [] => (combinations.to_string(), String::new()),
            gone => {
                let left = combinations.saturating_sub(gone.len());
                let named = gone
                    .iter()
                    .map(|(one, other)| format!("{one} against {other}"));
                let named: Vec<String> = named.collect();
                (
                    format!("{left} of {combinations}"),
                    format!(" (given up: {})", named.join(", ")),
                )
            }
        };
        format!(
            ", {} over {of} combinations of the other factors{without}",
            effect.factor
        )
    };
    pair.effect.map_or(String::new(), all)
}

fn sentence(study: &Study, comparison: &Comparison, pair: Pair) -> String {
    let Comparison {
        workload, setting, ..
    } = comparison;
    let reference = pair.noun(study);
    let over = over(pair, &comparison.left_out);
    let Some(ratio) = comparison.ratio else {
        let why = match comparison.blocks {
            0 => "no block counts",
            _ => "a figure is missing, or most trials failed",
        };
        return format!("{workload}{over}: {setting} and {reference} cannot be compared: {why}.");
    };
    let (times, interval) = match (comparison.ratio_low, comparison.ratio_high) {
        (Some(low), Some(high)) => {
            let [low, ratio, high] = aligned([low, ratio, high], &thresholds(study, comparison));
            (ratio, format!("interval {low} to {high}"))
        }
        (Some(low), None) => {
            let [low, ratio] = aligned([low, ratio], &thresholds(study, comparison));
            (ratio, format!("{low} or more"))
        }
        _ => {
            let [ratio] = aligned([ratio], &[]);
            (ratio, String::from("no interval"))
        }
    };
    let what = if comparison.metric == Metric::TransactionsPerSecond {
        format!("made {times} times the transactions that {reference} did")
    } else {
        format!("delivered {times} times what {reference} did")
    };
    let ending = ending(study, comparison);
    let price = price(study, comparison, pair);
    format!("{workload}{over}: {setting} {what} ({interval}): {ending}{price}")
}

/// The verdict, and what would help when there is none.
fn ending(study: &Study, comparison: &Comparison) -> String {
    let margin = margin_percent(study);
    match comparison.verdict {
        None => String::from("not judged."),
        Some(verdict @ (Verdict::Better | Verdict::Worse)) if comparison.are_blocks_dependent => {
            format!("{verdict}; whether it matters cannot be said, as blocks are not independent.")
        }
        Some(verdict @ (Verdict::Better | Verdict::Worse))
            if is_beyond_margin(study, comparison) =>
        {
            format!("{verdict}, but not surely enough to say that it matters.")
        }
        Some(verdict @ (Verdict::Better | Verdict::Worse)) => {
            format!("{verdict}, perhaps by less than {margin} %.")
        }
        Some(Verdict::Equivalent) => format!("equivalent, within {margin} % either way."),
        Some(Verdict::NoDifferenceProven) => {
            format!("no difference proven.{}", power(study, comparison))
        }
        Some(Verdict::DependsOnWhatCounts) => {
            String::from("no difference proven: it depends on what counts (see below).")
        }
        Some(Verdict::Inconclusive) => match comparison.blocks {
            1 => String::from("inconclusive, as only 1 block counts."),
            blocks => format!("inconclusive, as {blocks} blocks leave no interval."),
        },
        Some(verdict) => format!("{verdict}."),
    }
}

/// Whether the whole interval of a ratio lies beyond the margin.
fn is_beyond_margin(study: &Study, comparison: &Comparison) -> bool {
    let margin = study.plan.margin;
    let (low, high) = (comparison.ratio_low, comparison.ratio_high);
    low.is_some_and(|low| low >= margin) || high.is_some_and(|high| high <= margin.recip())
}

/// What such a plan finds, and what the margin would take; empty when the scatter is unknown.
fn power(study: &Study, comparison: &Comparison) -> String {
    let Some(found) = found(comparison) else {
        return String::new();
    };
    let margin = margin_percent(study);
    let more = match comparison.blocks_to_find_margin {
        Some(blocks) => format!("{margin} % would take about {}", counted(blocks, "block")),
        None => format!("{margin} % is out of its reach"),
    };
    format!(" Nine times in ten such a run finds a difference of {found}; {more}.")
}

/// The least difference that such a plan finds nine times in ten: in percent, or as a ratio when it is
/// great.
pub fn found(comparison: &Comparison) -> Option<String> {
    let found = comparison.found_nine_in_ten_ratio?;
    Some(match comparison.kind {
        MetricKind::Points => format!("{} pt", figure(found * 100.0)),
        MetricKind::Ratio if found < 2.0 => format!("{} %", percent(found - 1.0)),
        MetricKind::Ratio => format!("{}x", aligned([found], &[])[0]),
    })
}

/// What the setting costs in latency; empty for one-way workloads, and for levels that stand in several settings.
fn price(study: &Study, comparison: &Comparison, pair: Pair) -> String {
    if comparison.metric != Metric::TransactionsPerSecond || pair.effect.is_some() {
        return String::new();
    }
    let judged = Group::of(study, &comparison.workload, pair.setting);
    let other = Group::of(study, &comparison.workload, pair.reference);
    let both = |read: fn(&TrialFigures) -> Option<f64>| {
        format!(
            "{} us against {} us",
            figure_or_missing(judged.median(read)),
            figure_or_missing(other.median(read))
        )
    };
    format!(
        " The median round trip is {}, the 99th percentile {}.",
        both(|trial| Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3)),
        both(|trial| Some(trial.round_trip?.quantiles.p99_ns? as f64 / 1e3))
    )
}

/// The margin of the study in percent.
pub fn margin_percent(study: &Study) -> String {
    let [margin] = aligned([(study.plan.margin - 1.0) * 100.0], &[]);
    margin.trim_end_matches('0').trim_end_matches('.').into()
}

/// The ratios at which a comparison's verdict changes; none when it gets none.
pub fn thresholds(study: &Study, comparison: &Comparison) -> Vec<f64> {
    let margin = study.plan.margin;
    match comparison.verdict {
        Some(_) => vec![1.0, margin, 1.0 / margin],
        None => vec![],
    }
}

/// The pairs side by side: the primary metric with its verdict, the others with intervals only.
pub fn write_table(page: &mut Page, study: &Study, facts: &WorkloadFacts) {
    let compared = |pair: &Pair| pair.judged(study, &facts.workload).is_some();
    let pairs: Vec<Pair> = Pair::of(study).into_iter().filter(compared).collect();
    if pairs.is_empty() {
        return;
    }
    page.blank();
    let workload = &facts.workload;
    let mut metrics: Vec<Metric> = Vec::new();
    for comparison in pairs.iter().flat_map(|pair| pair.all(study, workload)) {
        if !metrics.contains(&comparison.metric) {
            metrics.push(comparison.metric);
        }
    }
    let (primary, secondary): (Vec<_>, Vec<_>) = metrics
        .into_iter()
        .map(|metric| {
            let of_pair = |pair| {
                Pair::all(pair, study, workload).find(|comparison| comparison.metric == metric)
            };
            (
                metric,
                pairs.iter().copied().map(of_pair).collect::<Vec<_>>(),
            )
        })
        .partition(|(_, compared)| compared.iter().flatten().any(|found| found.primary));
    let heads = pairs.iter().map(|pair| pair.head()).collect();
    let mut rows = vec![Row::new("compared [interval]", heads, Ink::Strong)];
    for (metric, compared) in primary {
        let name = label(metric, facts.unit).to_string();
        rows.push(ratio_row(study, name, &compared, Ink::Plain));
        rows.push(verdict_row(&compared));
        rows.extend(scrutiny::rows(study, &compared));
    }
    for (more, direction) in [(true, "more"), (false, "less")] {
        let title = format!("secondary, no verdict; {direction} is better");
        let mut of_direction: Vec<Row> = secondary
            .iter()
            .filter(|(metric, _)| metric.more_is_better() == more)
            .map(|(metric, compared)| {
                let name = format!("  {}", label(*metric, facts.unit));
                ratio_row(study, name, compared, Ink::Faint)
            })
            .collect();
        if !of_direction.is_empty() {
            rows.push(Row::new(title, vec![], Ink::Faint));
            rows.append(&mut of_direction);
        }
    }
    page.table(&rows, LABEL, Align::Left);
}

fn ratio_row(study: &Study, name: String, compared: &[Option<&Comparison>], ink: Ink) -> Row {
    let cells = compared.iter();
    let cells = cells.map(|found| found.map_or(String::from(MISSING), |one| value(study, one)));
    Row::new(name, cells.collect(), ink)
}

fn verdict_row(compared: &[Option<&Comparison>]) -> Row {
    let cells = compared.iter().map(|found| {
        let verdict = found.and_then(|comparison| comparison.verdict);
        let words = verdict.map_or(String::from(MISSING), in_short);
        (words, Ink::of(verdict))
    });
    Row {
        label: String::from("  verdict"),
        cells: cells.collect(),
        ink: Ink::Plain,
    }
}

/// A verdict that fits into a column.
pub fn in_short(verdict: Verdict) -> String {
    match verdict {
        Verdict::DependsOnWhatCounts => String::from("depends on what counts"),
        verdict => verdict.to_string(),
    }
}

/// The difference as a ratio, `1.48x [1.40, 1.57]`, or in percentage points, `-1.2 pt [-1.4, -1.0]`.
pub fn value(study: &Study, comparison: &Comparison) -> String {
    if comparison.none_seen_of.is_some() {
        return none_seen(comparison);
    }
    match comparison.kind {
        MetricKind::Ratio => with_interval(
            [
                comparison.ratio_low,
                comparison.ratio,
                comparison.ratio_high,
            ],
            &thresholds(study, comparison),
            "x",
            str::to_string,
        ),
        MetricKind::Points => with_interval(
            [
                comparison.share_difference_low,
                comparison.share_difference,
                comparison.share_difference_high,
            ]
            .map(|share| Some(share? * 100.0)),
            &[0.0],
            " pt",
            signed,
        ),
    }
}

pub fn with_interval(
    [low, middle, high]: [Option<f64>; 3],
    thresholds: &[f64],
    unit: &str,
    write: fn(&str) -> String,
) -> String {
    let Some(middle) = middle else {
        return String::from(MISSING);
    };
    match (low, high) {
        (Some(low), Some(high)) => {
            let values = aligned([low, middle, high], thresholds);
            let [low, middle, high] = values.map(|value| write(&value));
            format!("{middle}{unit} [{low}, {high}]")
        }
        (Some(low), None) => {
            let [low, middle] = aligned([low, middle], thresholds).map(|value| write(&value));
            format!("{middle}{unit} [{low}, any]")
        }
        (None, _) => {
            let [middle] = aligned([middle], &[]).map(|value| write(&value));
            format!("{middle}{unit} [no interval]")
        }
    }
}

/// A share of events of which none was seen: what their lack allows.
fn none_seen(comparison: &Comparison) -> String {
    let ends = [
        comparison.share_difference_low,
        comparison.share_difference_high,
    ];
    let most = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
    format!("none seen, at most {} pt", figure(100.0 * most))
}

/// A plus sign tells a difference from a share.
fn signed(number: &str) -> String {
    let above_zero = number.chars().any(|c| matches!(c, '1'..='9')) && !number.starts_with('-');
    let plus = if above_zero { "+" } else { "" };
    format!("{plus}{number}")
}

fn label(metric: Metric, unit: WorkUnit) -> &'static str {
    match metric {
        Metric::DeliveredBitsPerSecond => "delivered",
        Metric::TransactionsPerSecond => "transactions/s",
        Metric::RoundTripP50Ns => "round trip p50",
        Metric::RoundTripP99Ns => "round trip p99",
        Metric::RoundTripP999Ns => "round trip p99.9",
        Metric::LossRatio => "loss",
        Metric::JitterSeconds => "jitter",
        Metric::CpuBusy => "CPU busy, all together",
        Metric::CpuNsPerPacket if unit == WorkUnit::Transactions => "CPU ns per transaction",
        Metric::CpuNsPerPacket => "CPU ns per packet",
        Metric::CpuNsPerByte => "CPU ns per byte",
        Metric::ContextSwitchesPerSecond => "context switches/s",
    }
}
