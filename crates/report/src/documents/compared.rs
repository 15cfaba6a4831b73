//! Two results side by side: the verdict first, then its interval as a bar, then the values.
//!
//! Unpaired comparisons are labelled. Outliers and changes in a series are named with their positions, but no value
//! is left out. `hosts` has one study on several hosts.

mod hosts;

use nicpoll_model::numbers::{aligned, figure, figure_or_missing};
use nicpoll_model::{
    Compared, ComparedAlone, ComparedMethod, ComparedSets, ComparedSide, Ends, Metric, MetricKind,
    Verdict,
};

use super::study::comparisons::surely;
use crate::fields::{filled, stated};
use crate::lists::{capital, joined, listed};
use crate::page::{Align, Document, Ink, Medium, Page, Part, Rank, Row, Scale, Span, Table};

/// P value below which one of the three tests of a series has a finding.
const SERIES_BELOW_P: f64 = nicpoll_stats::SERIES_BELOW_P;
/// The note on unpaired comparisons.
const NOT_PAIRED: &str = "Not paired: what changed between the two, besides what was meant to, is in the ratio. Runs \
    that take turns, as in 'nicpoll study run', leave it out.";
/// Width of the labels.
const LABEL: usize = 22;

impl Document for Compared {
    fn page(&self) -> Page<'_> {
        let first = self.comparisons.first();
        let title = first.map_or(String::from("Nothing to compare"), |sets| {
            format!("{} against {}", sets.judged.name, sets.reference.name)
        });
        let mut page = Page::new(&title);
        page.links = super::stored::home();
        page.linked(Medium::Html, ("answer", ""), |part| {
            part.title(Rank::Browser, title);
        });
        page.part(Medium::All, |part| write(part, self));
        page
    }
}

fn write(part: &mut Part, compared: &Compared) {
    let comparisons = &compared.comparisons;
    for difference in &compared.differences {
        part.item("! ", Ink::Unsure, format!("{}.", capital(difference)));
    }
    if !compared.differences.is_empty() {
        part.blank();
    }
    for (index, sets) in comparisons.iter().enumerate() {
        if index > 0 {
            part.blank();
        }
        let ink = Ink::of(Some(sets.verdict));
        part.paragraph(ink, sentence(sets, compared.margin_ratio));
        bar(part, sets);
        part.blank();
        part.table(table(sets));
        part.blank();
        part.say(method(sets, comparisons.len()));
        for note in notes(sets) {
            part.item("! ", Ink::Unsure, note);
        }
    }
    let is_unpaired = comparisons.iter().any(|it| !it.method.is_paired());
    let notes = is_unpaired.then(|| String::from(NOT_PAIRED)).into_iter();
    if comparisons.len() > 1 {
        part.blank();
    }
    for note in notes.chain(alone(&compared.alone)) {
        part.item("! ", Ink::Unsure, note);
    }
}

/// Returns a sentence about what was not compared, for each result that has it.
fn alone(alone: &[ComparedAlone]) -> impl Iterator<Item = String> {
    let of_one = alone.chunk_by(|one, other| one.result == other.result);
    of_one.map(|own| {
        let names = own
            .iter()
            .map(|it| filled("{workload} under {setting}", it));
        let them = if own.len() == 1 { "it" } else { "them" };
        let (only, names) = (&own[0].result, listed(names));
        format!("Not compared, as only {only} has {them}: {names}.")
    })
}

/// Returns the result of a comparison in a sentence.
pub fn sentence(sets: &ComparedSets, margin: f64) -> String {
    let ComparedSets {
        judged,
        reference,
        verdict,
        ..
    } = sets;
    let of = match joined(stated(sets, &["{workload}", "{measure}"]), ", ") {
        of if of.is_empty() => of,
        of => of + ": ",
    };
    let (judged, reference) = (&judged.name, &reference.name);
    let what = quantity(&sets.quantity);
    let why = sets.no_verdict.as_ref();
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    let ends = [sets.interval.low, sets.interval.high];
    let word = match verdict {
        Verdict::Inconclusive => String::from("no verdict"),
        Verdict::Equivalent => format!("{verdict}{}", surely(ends)),
        verdict => verdict.to_string(),
    };
    if let Some(difference) = sets.share_difference {
        let points = points([ends[0], Some(difference), ends[1]], margin);
        return format!("{of}{word}: {what} of {judged} against {reference}: {points}{why}.");
    }
    let Some(ratio) = sets.ratio else {
        let why = match verdict {
            Verdict::Inconclusive => why,
            // A word without a ratio: whole sets of one side are.
            _ => String::from(": the values of one of them are 0, or without end"),
        };
        return format!("{of}{word}: {judged} and {reference} have no ratio{why}.");
    };
    let thresholds = [1.0, margin, 1.0 / margin];
    let (times, interval) = match ends {
        [Some(low), Some(high)] => {
            let [low, ratio, high] = aligned([low, ratio, high], &thresholds);
            (ratio, format!("interval {low} to {high}"))
        }
        [Some(low), None] => {
            let [low, ratio] = aligned([low, ratio], &thresholds);
            (ratio, format!("interval from {low} on"))
        }
        [None, _] => {
            let [ratio] = aligned([ratio], &thresholds);
            (ratio, format!("no interval{why}"))
        }
    };
    format!("{of}{word}: {judged} has {times} times the {what} of {reference} ({interval}).")
}

/// Formats a difference of shares in percentage points, with its interval.
fn points([low, difference, high]: [Option<f64>; 3], margin: f64) -> String {
    let scaled = |end: Option<f64>| end.map(|end| 100.0 * end);
    let limit = 100.0 * (margin - 1.0);
    let thresholds = [0.0, limit, -limit];
    let difference = scaled(difference).unwrap_or_default();
    let signed = |text: String| match text.starts_with('-') {
        true => text,
        false => format!("+{text}"),
    };
    match (scaled(low), scaled(high)) {
        (Some(low), Some(high)) => {
            let [low, difference, high] = aligned([low, difference, high], &thresholds).map(signed);
            format!("{difference} points (interval {low} to {high})")
        }
        _ => {
            let [difference] = aligned([difference], &thresholds).map(signed);
            format!("{difference} points (no interval)")
        }
    }
}

fn quantity(name: &str) -> &str {
    match name {
        "bits_per_second" | "delivered_bits_per_second" => "bits a second",
        "packets_per_second" => "packets a second",
        "transactions_per_second" => "transactions a second",
        "delivered_ratio" => "share delivered",
        _ => metric(name).map_or("values", |metric| metric.facts().label),
    }
}

/// Returns a study's metric by its name; `None` for a file's quantity.
fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.name() == name)
}

fn bar(part: &mut Part, sets: &ComparedSets) {
    let ends = [sets.interval.low, sets.ratio, sets.interval.high];
    let Some(span) = Span::of(ends) else { return };
    let scale = Scale::of(&[span]);
    let name: String = sets.judged.name.chars().take(LABEL - 2).collect();
    let blank = " ".repeat(LABEL);
    part.line(vec![(blank, Ink::Plain), (scale.head(), Ink::Faint)]);
    part.line(vec![
        (format!("{name:<LABEL$}"), Ink::Plain),
        (scale.bar(span), Ink::of(Some(sets.verdict))),
    ]);
}

fn table(sets: &ComparedSets) -> Table {
    // Bits a second would be too wide for the page.
    let (unit, scale) = match quantity(&sets.quantity) {
        "bits a second" => ("Mbit/s", 1e6),
        _ => metric(&sets.quantity).map_or(("", 1.0), |metric| metric.facts().unit),
    };
    let head = ["n", "least", "median", "mean", "greatest", "deviation"];
    let rows = [&sets.reference, &sets.judged].map(|side| {
        let values = || side.values.iter().copied();
        let figures = [
            values().reduce(f64::min),
            side.median,
            side.mean,
            values().reduce(f64::max),
            side.standard_deviation,
        ];
        let figures = figures.map(|it| figure_or_missing(it.map(|it| it / scale)));
        let count = side.values.len().to_string();
        Row::plain(&side.name, [count].into_iter().chain(figures))
    });
    Table::faint(unit, head, Align::Right).with(LABEL, rows)
}

fn method(sets: &ComparedSets, family: usize) -> String {
    let level = figure(sets.confidence_ratio * 100.0);
    let mut text = match sets.judged.read_as == sets.reference.read_as {
        true => filled("Both were read as {judged/read_as}. ", sets),
        false => filled(
            "{reference/name} was read as {reference/read_as}, {judged/name} as {judged/read_as}. ",
            sets,
        ),
    };
    text += &format!("{level} % interval: {}", sets.method);
    if family > 1 {
        text += &format!(", widened for {family} comparisons");
    }
    if sets.method.is_paired() {
        text += &filled("; p {difference_p}", sets);
    } else {
        let (scale, none) = match sets.kind {
            MetricKind::Ratio => (1.0, 1.0),
            MetricKind::Points => (100.0, 0.0),
        };
        let ends = |ends: Ends| match (ends.low, ends.high) {
            (Some(low), Some(high)) => aligned([scale * low, scale * high], &[none]).join(" to "),
            _ => String::from("no interval"),
        };
        let (ranks, means) = (ends(sets.mann_whitney), ends(sets.welch));
        let tests = format!(
            ". Mann-Whitney: {ranks}, p {{mann_whitney_p}}; Welch's t: {means}, p {{welch_p}}"
        );
        text += &filled(&tests, sets);
    }
    if family > 1 {
        text += &filled("; after Holm p {holm_p}", sets);
    }
    text + "."
}

fn notes(sets: &ComparedSets) -> Vec<String> {
    let mut notes = Vec::new();
    if sets.method == ComparedMethod::Welch && sets.verdict != Verdict::Inconclusive {
        notes.push(String::from(
            "So few values cannot decide by ranks; four on either side can.",
        ));
    }
    for side in [&sets.reference, &sets.judged] {
        notes.extend(of_side(side));
    }
    notes
}

fn of_side(side: &ComparedSide) -> Vec<String> {
    let name = &side.name;
    let mut notes = Vec::new();
    if side.are_intervals {
        notes.push(format!(
            "{name} holds one run, and its intervals are the values: another run may differ by more. Compare three \
             runs or more."
        ));
    }
    if side.is_sent {
        notes.push(format!("{name} says what was sent: less may have arrived."));
    }
    let outliers = match side.outliers.len() {
        1 => "{name}: value {outliers:raw} lies far from the others. All count.",
        _ => "{name}: values {outliers:raw} lie far from the others. All count.",
    };
    notes.extend(stated(side, &[outliers]));
    let is_found = |p: Option<f64>| p.is_some_and(|p| p < SERIES_BELOW_P);
    let order = &side.order;
    let step = order.step_at.map(|at| format!("step at value {at}"));
    let found = [
        step.filter(|_| is_found(order.step_p)),
        is_found(order.drift_p).then(|| String::from("drift")),
        is_found(order.dependence_p).then(|| String::from("values depend on earlier ones")),
    ];
    let found = listed(found.into_iter().flatten());
    if !found.is_empty() {
        notes.push(format!(
            "{name}: the values are not alike from first to last ({found}): the interval may be too narrow."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TextOptions, render_text};

    #[test]
    fn what_is_compared_is_named_and_two_that_surely_differ_say_by_how_much() {
        for (low, high, surely) in [
            (0.998, 1.004, "equivalent: b"),
            (
                1.002,
                1.006,
                "equivalent, though surely more, by 0.20 to 0.60 %: b",
            ),
            (
                0.98,
                0.99,
                "equivalent, though surely less, by 1.00 to 2.00 %: b",
            ),
        ] {
            let side = |name: &str| {
                serde_json::json!({
                    "name": name, "read_as": "numbers", "values": [], "is_uneven": false, "outliers": [],
                    "are_intervals": false, "is_sent": false,
                })
            };
            let sets = serde_json::json!({
                "quantity": "bits_per_second", "more_is_better": true, "judged": side("b"), "reference": side("a"),
                "verdict": "equivalent", "ratio": 1.0, "method": "paired_t",
                "interval": {"low_ratio": low, "high_ratio": high}, "confidence_ratio": 0.95,
                "mann_whitney": {}, "welch": {},
            });
            let sets: ComparedSets = serde_json::from_value(sets).unwrap();
            let said = sentence(&sets, 1.05);
            assert!(said.starts_with(surely), "{said}");
            for (quantity, what) in [
                ("cpu_ns_per_packet", "times the CPU ns per packet of a"),
                ("round_trip_p50_ns", "times the round trip p50 of a"),
                ("delivered_ratio", "times the share delivered of a"),
                ("number", "times the values of a"),
            ] {
                let quantity = String::from(quantity);
                let sets = ComparedSets {
                    quantity,
                    ..sets.clone()
                };
                let said = sentence(&sets, 1.05);
                assert!(said.contains(what), "{said}");
            }
        }
    }

    #[test]
    fn a_share_is_told_in_points() {
        let all = [Some(0.0512), Some(0.09), Some(0.1321)];
        let told = points(all, 1.05);
        assert_eq!(told, "+9.0 points (interval +5.1 to +13.2)");
        let lone = points([None, Some(-0.09), None], 1.05);
        assert_eq!(lone, "-9.00 points (no interval)");
    }

    #[test]
    fn what_only_one_study_has_is_named_with_the_study() {
        let own = |result: &str, setting: &str| ComparedAlone {
            result: String::from(result),
            workload: String::from("rr"),
            setting: String::from(setting),
        };
        let compared = Compared {
            schema: String::from(nicpoll_model::COMPARED_SCHEMA),
            nicpoll_version: String::new(),
            argv: Vec::new(),
            margin_ratio: 1.05,
            comparisons: Vec::new(),
            alone: vec![own("8", "fast"), own("8", "slow"), own("7", "idle")],
            differences: vec![String::from("the kernel is 6.1 in 7 and 6.12 in 8")],
        };
        let text = render_text(&compared, &TextOptions::default());
        assert!(
            text.trim_start()
                .starts_with("! The kernel is 6.1 in 7 and 6.12 in 8."),
            "{text}"
        );
        assert!(
            text.contains("! Not compared, as only 8 has them: rr under fast, rr under slow.\n")
        );
        assert!(text.contains("! Not compared, as only 7 has it: rr under idle.\n"));
    }
}
