//! How settings compare: a sentence for each comparison that was named in advance, and a table with
//! the others.
//!
//! What must hold: only primary metrics get verdict words, and every ratio stands beside its
//! interval.

use nicpoll_model::{
    Comparison, Metric, MetricKind, Study, TrialFigures, Verdict, WorkUnit, WorkloadFacts,
};

use super::page::{Align, Ink, Page, Row};
use crate::figures::{Group, Pair};
use crate::numbers::{MISSING, aligned, counted, figure_or_missing};

/// Width of the widest label.
const LABEL: usize = 24;
/// Below this a study has no intervals.
pub(super) const BLOCKS_FOR_INTERVAL: u32 = 3;

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
                    "{workload}: {} and {} were not compared.",
                    pair.setting,
                    pair.noun(study)
                ),
            ),
        }
    }
}

fn sentence(study: &Study, comparison: &Comparison, pair: Pair) -> String {
    let Comparison {
        workload, setting, ..
    } = comparison;
    let reference = pair.noun(study);
    let Some(ratio) = comparison.ratio else {
        let why = if comparison.blocks == 0 {
            ""
        } else {
            ", as a figure is missing or 0"
        };
        return format!(
            "{workload}: {setting} and {reference} cannot be compared{why}: {}",
            ending(study, comparison)
        );
    };
    let (times, interval) = match (comparison.ratio_low, comparison.ratio_high) {
        (Some(low), Some(high)) => {
            let [low, ratio, high] = aligned([low, ratio, high], &thresholds(study, comparison));
            (ratio, format!("interval {low} to {high}"))
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
    format!("{workload}: {setting} {what} ({interval}): {ending}{price}")
}

/// The verdict, and what would help when there is none.
fn ending(study: &Study, comparison: &Comparison) -> String {
    let margin = margin_percent(study);
    match (comparison.verdict, comparison.blocks_to_resolve_margin) {
        (None, _) => String::from("not judged."),
        (Some(verdict @ (Verdict::Better | Verdict::Worse)), _) => {
            format!("{verdict}, perhaps by less than {margin} %.")
        }
        (Some(Verdict::Equivalent), _) => format!("equivalent, within {margin} % either way."),
        (Some(Verdict::NoDifferenceProven), Some(blocks)) => format!(
            "no difference proven; to resolve {margin} % it would take about {}.",
            counted(blocks, "block")
        ),
        (Some(Verdict::Inconclusive), _) if comparison.blocks < BLOCKS_FOR_INTERVAL => format!(
            "inconclusive, as {} and an interval needs {BLOCKS_FOR_INTERVAL}.",
            match comparison.blocks {
                0 => String::from("no block counts"),
                1 => String::from("only 1 block counts"),
                blocks => format!("only {blocks} blocks count"),
            }
        ),
        (Some(verdict), _) => format!("{verdict}."),
    }
}

/// What the setting costs in latency; empty for one-way workloads.
fn price(study: &Study, comparison: &Comparison, pair: Pair) -> String {
    if comparison.metric != Metric::TransactionsPerSecond {
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
        both(|trial| Some(trial.round_trip?.p50_ns as f64 / 1e3)),
        both(|trial| Some(trial.round_trip?.p99_ns as f64 / 1e3))
    )
}

/// The margin of the study in percent.
pub fn margin_percent(study: &Study) -> String {
    let [margin] = aligned([(study.plan.margin - 1.0) * 100.0], &[]);
    margin.trim_end_matches('0').trim_end_matches('.').into()
}

/// The ratios at which a comparison's verdict changes; none when it gets none.
fn thresholds(study: &Study, comparison: &Comparison) -> Vec<f64> {
    let margin = study.plan.margin;
    match comparison.verdict {
        Some(_) => vec![1.0, margin, 1.0 / margin],
        None => vec![],
    }
}

/// The pairs side by side: the primary metric with its verdict, the others with intervals only.
pub fn write_table(page: &mut Page, study: &Study, facts: &WorkloadFacts) {
    let workload = &facts.workload;
    let pairs = Pair::of(study);
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
    let heads = pairs
        .iter()
        .map(|pair| format!("{} / {}", pair.setting, pair.reference))
        .collect();
    let mut rows = vec![Row::new("compared [interval]", heads, Ink::Strong)];
    for (metric, compared) in primary {
        let name = label(metric, facts.unit).to_string();
        rows.push(ratio_row(study, name, &compared, Ink::Plain));
        rows.push(verdict_row(&compared));
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
        let words = verdict.map_or(String::from(MISSING), |verdict| verdict.to_string());
        (words, Ink::of(verdict))
    });
    Row {
        label: String::from("  verdict"),
        cells: cells.collect(),
        ink: Ink::Plain,
    }
}

/// The difference as a ratio, `1.48x [1.40, 1.57]`, or in percentage points, `-1.2 pt [-1.4, -1.0]`.
pub fn value(study: &Study, comparison: &Comparison) -> String {
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
                comparison.difference_low,
                comparison.difference,
                comparison.difference_high,
            ]
            .map(|share| Some(share? * 100.0)),
            &[0.0],
            " pt",
            signed,
        ),
    }
}

fn with_interval(
    [low, middle, high]: [Option<f64>; 3],
    thresholds: &[f64],
    unit: &str,
    write: fn(&str) -> String,
) -> String {
    let Some(middle) = middle else {
        return String::from(MISSING);
    };
    let (Some(low), Some(high)) = (low, high) else {
        let [middle] = aligned([middle], &[]).map(|value| write(&value));
        return format!("{middle}{unit} [no interval]");
    };
    let [low, middle, high] = aligned([low, middle, high], thresholds).map(|value| write(&value));
    format!("{middle}{unit} [{low}, {high}]")
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
