//! The comparisons under a workload: a sentence for each planned one, and a table with the others.
//!
//! Only primary metrics get verdict words. Every ratio stands next to its interval, and the rows below a verdict show
//! its basis.

use nicpoll_model::numbers::{MISSING, aligned, counted, figure, figure_or_missing, percent};
use nicpoll_model::{
    Comparison, Ends, IntervalMethod, MainEffect, Metric, MetricKind, Scenario, Sensitivity, Study,
    TrialFigures, Verdict, WorkUnit, WorkloadFacts,
};

use super::trials::{SettingPair, TrialGroup};
use crate::lists::{distinct, listed};
use crate::page::{Align, Cell, Ink, Part, Row, Table};

/// Width of the widest label.
const LABEL: usize = 24;

/// Writes a sentence for each pair of settings.
pub fn write_sentences(part: &mut Part, study: &Study, workload: &str) {
    for pair in SettingPair::of(study) {
        for comparison in pair.judged_all(study, workload) {
            let ink = Ink::of(comparison.verdict);
            part.paragraph(ink, sentence(study, comparison, pair));
        }
        if pair.judged(study, workload).is_none() {
            let (over, setting, noun) = (over(pair, &[]), pair.setting, pair.noun(study));
            part.warn(format!(
                "{workload}{over}: {setting} and {noun} were not compared."
            ));
        }
    }
}

/// Returns the combinations over which levels of a factor are compared, and the pairs of settings left out; empty for
/// settings.
fn over(pair: SettingPair, left_out: &[(String, String)]) -> String {
    let all = |effect: &MainEffect| {
        let combinations = effect.settings.len();
        let (of, without) = match left_out {
            [] => (combinations.to_string(), String::new()),
            gone => {
                let left = combinations.saturating_sub(gone.len());
                let named = gone.iter();
                let named = listed(named.map(|(one, other)| format!("{one} against {other}")));
                let without = format!(" (given up: {named})");
                (format!("{left} of {combinations}"), without)
            }
        };
        let factor = &effect.factor;
        format!(", {factor} over {of} combinations of the other factors{without}")
    };
    pair.effect.map_or(String::new(), all)
}

fn sentence(study: &Study, comparison: &Comparison, pair: SettingPair) -> String {
    let Comparison {
        workload, setting, ..
    } = comparison;
    let reference = pair.noun(study);
    let over = over(pair, &comparison.left_out);
    if comparison.share_difference.is_some() {
        let (what, found) = (comparison.metric.facts().label, value(study, comparison));
        let ending = ending(study, comparison);
        return format!(
            "{workload}{over}: {what} of {setting} against {reference}: {found}: {ending}"
        );
    }
    let Some(ratio) = comparison.ratio else {
        let ending = match comparison.verdict {
            Some(verdict) if verdict.is_decided() => format!(
                "one of them is 0 in most blocks, or without end: {}",
                ending(study, comparison)
            ),
            _ => ending(study, comparison),
        };
        return format!("{workload}{over}: {setting} and {reference} have no ratio: {ending}");
    };
    let thresholds = thresholds(study, comparison);
    let (times, interval) = match (comparison.ratio_low, comparison.ratio_high) {
        (Some(low), Some(high)) => {
            let [low, ratio, high] = aligned([low, ratio, high], &thresholds);
            (ratio, format!("interval {low} to {high}"))
        }
        (Some(low), None) => {
            let [low, ratio] = aligned([low, ratio], &thresholds);
            (ratio, format!("{low} or more"))
        }
        _ => {
            let [ratio] = aligned([ratio], &[]);
            (ratio, String::from("no interval"))
        }
    };
    let what = match comparison.metric {
        Metric::TransactionsPerSecond => {
            format!("made {times} times the transactions that {reference} did")
        }
        Metric::DeliveredBitsPerSecond => format!("delivered {times} times what {reference} did"),
        metric => {
            let label = metric.facts().label;
            format!("had {times} times the {label} that {reference} had")
        }
    };
    let ending = ending(study, comparison);
    let price = price(study, comparison, pair);
    format!("{workload}{over}: {setting} {what} ({interval}): {ending}{price}")
}

/// Returns the verdict, or what would help to reach one.
fn ending(study: &Study, comparison: &Comparison) -> String {
    let margin = margin_percent(study);
    match comparison.verdict {
        None => String::from("not judged."),
        Some(verdict @ (Verdict::Better | Verdict::Worse))
            if is_beyond_margin(study, comparison) =>
        {
            format!("{verdict}, but not surely enough to say that it matters.")
        }
        Some(verdict @ (Verdict::Better | Verdict::Worse)) => {
            format!("{verdict}, perhaps by less than {margin} %.")
        }
        Some(Verdict::Equivalent) => {
            let surely = surely([comparison.ratio_low, comparison.ratio_high]);
            format!("equivalent, within {margin} % either way{surely}.")
        }
        Some(Verdict::NoDifferenceProven) => {
            format!("no difference proven.{}", power(study, comparison))
        }
        Some(Verdict::DependsOnWhatCounts) => {
            String::from("no difference proven: it depends on what counts (see below).")
        }
        Some(Verdict::Inconclusive) => {
            let why = comparison.no_verdict.as_deref();
            format!("no verdict: {}.", why.unwrap_or("too few blocks count"))
        }
        Some(verdict) => format!("{verdict}."),
    }
}

/// Returns the side of 1 on which the whole interval of a ratio lies, and how far from it; empty if it contains 1.
pub fn surely(ends: [Option<f64>; 2]) -> String {
    let [Some(low), Some(high)] = ends else {
        return String::new();
    };
    let (word, ends) = match (low > 1.0, high < 1.0) {
        (true, _) => ("more", [low - 1.0, high - 1.0]),
        (_, true) => ("less", [1.0 - high, 1.0 - low]),
        _ => return String::new(),
    };
    let [least, most] = aligned(ends.map(|share| 100.0 * share), &[]);
    format!(", though surely {word}, by {least} to {most} %")
}

/// Returns whether the whole interval of a ratio lies beyond the margin.
fn is_beyond_margin(study: &Study, comparison: &Comparison) -> bool {
    let margin = study.plan.margin_ratio;
    let (low, high) = (comparison.ratio_low, comparison.ratio_high);
    low.is_some_and(|low| low >= margin) || high.is_some_and(|high| high <= margin.recip())
}

/// Returns the difference that such a plan finds, and the blocks that the margin would take; empty if the scatter is
/// unknown.
fn power(study: &Study, comparison: &Comparison) -> String {
    let Some(found) = found(comparison) else {
        return String::new();
    };
    let more = to_find_margin(study, comparison);
    format!(" Nine times in ten such a run finds a difference of {found}; {more}.")
}

/// Returns the blocks needed to find a difference as great as the margin.
pub fn to_find_margin(study: &Study, comparison: &Comparison) -> String {
    let margin = margin_percent(study);
    match comparison.blocks_to_find_margin {
        Some(blocks) => format!("{margin} % would take about {}", counted(blocks, "block")),
        None => format!("{margin} % is out of its reach"),
    }
}

/// Returns the smallest difference that such a plan finds nine times in ten: in percent, or as a ratio if it is
/// large.
pub fn found(comparison: &Comparison) -> Option<String> {
    let found = comparison.found_nine_in_ten_ratio?;
    Some(match comparison.kind {
        MetricKind::Points => format!("{} pt", figure(found * 100.0)),
        MetricKind::Ratio if found < 2.0 => format!("{} %", percent(found - 1.0)),
        MetricKind::Ratio => format!("{}x", aligned([found], &[])[0]),
    })
}

/// Returns the setting's cost in latency; empty for one-way workloads, and for levels of several settings.
fn price(study: &Study, comparison: &Comparison, pair: SettingPair) -> String {
    let is_timed = matches!(
        comparison.metric,
        Metric::TransactionsPerSecond | Metric::RoundTripP50Ns
    );
    if !is_timed || pair.effect.is_some() {
        return String::new();
    }
    let judged = TrialGroup::of(study, &comparison.workload, pair.setting);
    let other = TrialGroup::of(study, &comparison.workload, pair.reference);
    let both = |read: fn(&TrialFigures) -> Option<f64>| {
        let [judged, other] = [&judged, &other].map(|it| figure_or_missing(it.median(read)));
        format!("{judged} us against {other} us")
    };
    format!(
        " The median round trip is {}, the 99th percentile {}.",
        both(|trial| Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3)),
        both(|trial| Some(trial.round_trip?.quantiles.p99_ns? as f64 / 1e3))
    )
}

/// Returns the margin of the study in percent.
pub fn margin_percent(study: &Study) -> String {
    let [margin] = aligned([(study.plan.margin_ratio - 1.0) * 100.0], &[]);
    margin.trim_end_matches('0').trim_end_matches('.').into()
}

/// Returns the ratios at which a comparison's verdict changes; none if it gets no verdict.
fn thresholds(study: &Study, comparison: &Comparison) -> Vec<f64> {
    let margin = study.plan.margin_ratio;
    match comparison.verdict {
        Some(_) => vec![1.0, margin, 1.0 / margin],
        None => vec![],
    }
}

/// The comparisons of all pairs by one metric.
type MetricComparisons<'a> = Vec<Option<&'a Comparison>>;

/// Returns a table of the pairs side by side: the primary metric with its verdict, the others with intervals only.
/// `None` if nothing was compared.
pub fn table(study: &Study, facts: &WorkloadFacts) -> Option<Table> {
    let workload = &facts.workload;
    let compared = |pair: &SettingPair| pair.judged(study, workload).is_some();
    let pairs: Vec<SettingPair> = SettingPair::of(study)
        .into_iter()
        .filter(compared)
        .collect();
    pairs.first()?;
    let all = pairs.iter().flat_map(|pair| pair.all(study, workload));
    let metrics = distinct(all.map(|one| one.metric)).into_iter();
    let of_metric = |metric: Metric| -> (Metric, MetricComparisons) {
        let of_pairs = pairs.iter().map(|pair| {
            let mut all = pair.all(study, workload);
            all.find(|comparison| comparison.metric == metric)
        });
        (metric, of_pairs.collect())
    };
    let is_primary = |(_, compared): &(Metric, MetricComparisons)| {
        compared.iter().flatten().any(|found| found.primary)
    };
    let (primary, secondary): (Vec<_>, Vec<_>) = metrics.map(of_metric).partition(is_primary);
    let heads = pairs.iter().map(|pair| pair.head());
    let primary = primary.iter().flat_map(|(metric, compared)| {
        let name = label(*metric, facts.unit);
        let ratio = row(name, compared, Ink::Plain, |one| value(study, one));
        let verdict = [ratio, verdict_row(compared)].into_iter();
        verdict.chain(details(study, compared))
    });
    let mut table = Table::new("compared [interval]", heads, Align::Left).with(LABEL, primary);
    for (more, direction) in [(true, "more"), (false, "less")] {
        let own = secondary.iter();
        let own = own.filter(|(metric, _)| metric.more_is_better() == more);
        let rows = own.map(|(metric, compared)| {
            let name = format!("  {}", label(*metric, facts.unit));
            row(&name, compared, Ink::Faint, |one| value(study, one))
        });
        let rows: Vec<Row> = rows.collect();
        if !rows.is_empty() {
            let title = format!("secondary, no verdict; {direction} is better");
            table.rows.push(Row::group(title, Ink::Faint));
            table.rows.extend(rows);
        }
    }
    Some(table)
}

/// Makes a row with a text for each comparison.
fn row(
    name: &str,
    compared: &MetricComparisons,
    ink: Ink,
    cell: impl Fn(&Comparison) -> String,
) -> Row {
    let cells = compared.iter();
    let cells = cells.map(|found| found.map_or(String::from(MISSING), &cell));
    Row::new(name, cells, ink)
}

fn verdict_row(compared: &MetricComparisons) -> Row {
    let cells = compared.iter().map(|found| {
        let verdict = found.and_then(|comparison| comparison.verdict);
        let words = verdict.map_or(String::from(MISSING), in_short);
        Cell::new(words, Ink::of(verdict))
    });
    Row {
        label: Cell::new("  verdict", Ink::Plain),
        cells: cells.collect(),
    }
}

/// Returns a verdict that fits into a column.
fn in_short(verdict: Verdict) -> String {
    match verdict {
        Verdict::DependsOnWhatCounts => String::from("depends on what counts"),
        verdict => verdict.to_string(),
    }
}

/// Formats the difference as a ratio, `1.48x [1.40, 1.57]`, or in percentage points, `-1.2 pt [-1.4, -1.0]`.
pub fn value(study: &Study, comparison: &Comparison) -> String {
    if comparison.none_seen_of.is_some() {
        return none_seen(comparison);
    }
    match comparison.kind {
        MetricKind::Ratio => {
            let ends = [
                comparison.ratio_low,
                comparison.ratio,
                comparison.ratio_high,
            ];
            let thresholds = thresholds(study, comparison);
            with_interval(ends, &thresholds, "x", str::to_string)
        }
        MetricKind::Points => {
            let ends = [
                comparison.share_difference_low,
                comparison.share_difference,
                comparison.share_difference_high,
            ];
            let percents = ends.map(|share| Some(share? * 100.0));
            with_interval(percents, &[0.0], " pt", signed)
        }
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

/// Returns the largest share of events that is possible although none was seen.
fn none_seen(comparison: &Comparison) -> String {
    let ends = [
        comparison.share_difference_low,
        comparison.share_difference_high,
    ];
    let most = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
    format!("none seen, at most {} pt", figure(100.0 * most))
}

/// Adds a plus sign, which distinguishes a difference from a share.
fn signed(number: &str) -> String {
    let above_zero = number.chars().any(|c| matches!(c, '1'..='9')) && !number.starts_with('-');
    let plus = if above_zero { "+" } else { "" };
    format!("{plus}{number}")
}

pub fn label(metric: Metric, unit: WorkUnit) -> &'static str {
    match (metric, unit) {
        (Metric::CpuNsPerPacket, WorkUnit::Transactions) => "CPU ns per transaction",
        (metric, _) => metric.facts().label,
    }
}

/// Reads the outcome under another rule for what counts.
type ScenarioOf = fn(&Sensitivity) -> Option<Scenario>;

/// Returns the basis of a verdict: the method, other intervals, the difference that such a plan finds, and the
/// verdict under other rules for what counts.
fn details(study: &Study, compared: &MetricComparisons) -> Vec<Row> {
    let cells = |label: &str, cell: &dyn Fn(&Comparison) -> String| {
        row(&format!("  {label}"), compared, Ink::Faint, cell)
    };
    let mut rows = vec![
        cells("interval by", &|one| {
            String::from(match one.method {
                IntervalMethod::HodgesLehmann => "ranks (Hodges-Lehmann)",
                IntervalMethod::PairedT => "paired t (even noise)",
            })
        }),
        cells("pairs that count", &|one| one.blocks.to_string()),
        cells("by paired t", &|one| ends(study, one, one.paired_t)),
        cells("by 20 % trimmed t", &|one| ends(study, one, one.trimmed_t)),
        cells("p value", &|one| figure_or_missing(one.difference_p)),
        cells("p value after Holm", &|one| figure_or_missing(one.holm_p)),
        cells("finds 9 times in 10", &|one| {
            found(one).unwrap_or(String::from(MISSING))
        }),
    ];
    let scenarios: [(&str, ScenarioOf); 3] = [
        ("proven pairs only", |it| Some(it.proven_only)),
        ("missing as worst", |it| it.missing_as_worst),
        ("missing as best", |it| it.missing_as_best),
    ];
    for (label, read) in scenarios {
        let scenario = |one: &Comparison| one.sensitivity.as_ref().and_then(read);
        // Only a rule with other pairs than the primary estimate adds information.
        let is_other = |one: &&Comparison| scenario(one).is_some_and(|it| it.blocks != one.blocks);
        if compared.iter().flatten().any(is_other) {
            rows.push(cells(label, &|one| {
                scenario(one).map_or(String::from(MISSING), |it| in_short(it.verdict))
            }));
        }
    }
    rows
}

/// Formats an interval alone, `[1.40, 1.57]`.
fn ends(study: &Study, one: &Comparison, Ends { low, high }: Ends) -> String {
    if low.or(high).is_none() {
        return String::from(MISSING);
    }
    let middle = one.ratio.or(one.share_difference);
    let thresholds = thresholds(study, one);
    let shown = with_interval([low, middle, high], &thresholds, "x", str::to_string);
    let ends = shown.split_once(' ').map(|(_, ends)| String::from(ends));
    ends.unwrap_or(shown)
}
