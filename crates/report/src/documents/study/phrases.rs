//! Verdicts in sentences: a table of phrases with a row for each metric.

use std::borrow::Borrow;
use std::fmt::Display;

use nicpoll_model::numbers::percent;
use nicpoll_model::{Comparison, Metric, MetricKind, Verdict};

use crate::lists::{capital, distinct};

/// The words for one metric.
struct Phrase {
    /// The subject; empty: the setting itself.
    subject: &'static str,
    verb: &'static str,
    more: &'static str,
    less: &'static str,
    /// The form for twice as much and more.
    times: &'static str,
    same: &'static str,
    /// The words after the first amount.
    object: &'static str,
}

/// Returns the words for a metric; `is_asked` if its traffic is requests.
fn phrase_of(metric: Metric, is_asked: bool) -> Phrase {
    let name = match (metric, is_asked) {
        (Metric::CpuNsPerPacket, true) => "cpu_ns_per_request",
        _ => metric.name(),
    };
    let rows = include_str!("phrases.txt").lines();
    let mut rows = rows.filter_map(|row| row.split_once('|'));
    let row = rows.find(|(of, _)| *of == name);
    let mut words = row.map_or("", |(_, words)| words).split('|');
    let mut next = || words.next().unwrap_or_default();
    Phrase {
        subject: next(),
        verb: next(),
        more: next(),
        less: next(),
        times: next(),
        same: next(),
        object: next(),
    }
}

impl Phrase {
    /// Formats an amount: `23 % less`, `10 times as long`, `94 points less`.
    fn amount(&self, one: &Comparison) -> Option<String> {
        let word = |is_more: bool| if is_more { self.more } else { self.less };
        if one.kind == MetricKind::Points {
            let points = 100.0 * one.share_difference?;
            let word = word(points > 0.0);
            return Some(format!("{} points {word}", short(points.abs())));
        }
        Some(match one.ratio? {
            ratio if ratio >= 2.0 => format!("{} {}", short(ratio), self.times),
            ratio if ratio >= 1.0 => format!("{} % {}", percent(ratio - 1.0), self.more),
            ratio => format!("{} % {}", percent(1.0 - ratio), self.less),
        })
    }
}

/// Formats a ratio with two digits or, from 10 on, without a fraction.
fn short(ratio: f64) -> String {
    match format!("{ratio:.1}") {
        text if text.len() <= 3 => String::from(text.trim_end_matches(".0")),
        _ => format!("{ratio:.0}"),
    }
}

/// A judged comparison of the first screen, and whether its traffic is requests.
pub type Shown<'a> = (&'a Comparison, bool);

/// Sums up the verdicts of two settings in one sentence, the greatest difference first; `None` if nothing was
/// compared.
pub fn outcome(setting: &str, against: Option<String>, shown: &[Shown]) -> Option<String> {
    let metrics = distinct(shown.iter().map(|(one, is_asked)| (one.metric, *is_asked)));
    let mut clauses: Vec<(f64, Clause)> = metrics
        .into_iter()
        .filter_map(|(metric, is_asked)| {
            let own: Vec<&Comparison> = shown
                .iter()
                .filter(|(one, own)| (one.metric, *own) == (metric, is_asked))
                .map(|(one, _)| *one)
                .collect();
            let greatest = own.iter().map(|one| weight(one)).fold(0.0, f64::max);
            Some((greatest, clause(&phrase_of(metric, is_asked), &own)?))
        })
        .collect();
    clauses.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut said = Vec::new();
    for (index, (_, (is_of_setting, words))) in clauses.iter().enumerate() {
        let subject = match (*is_of_setting, index) {
            (true, 0) => format!("{setting} "),
            (true, _) => String::from("it "),
            (false, 0) => format!("under {setting}, "),
            (false, _) => String::new(),
        };
        said.push(subject + words);
    }
    said.extend(open(setting, said.is_empty(), shown));
    let said = said.join("; ");
    let against = against.map_or(String::new(), |against| format!("{against}, "));
    (!said.is_empty()).then(|| capital(&format!("{against}{said}.")))
}

/// Whether the setting is the subject, and the words.
type Clause = (bool, String);

/// Returns the size of a proven difference: the distance of the ratio from 1; without a difference 0.
fn weight(one: &Comparison) -> f64 {
    let size = match one.kind {
        MetricKind::Ratio => one.ratio.map_or(f64::MAX, |ratio| ratio.ln().abs()),
        MetricKind::Points => one.share_difference.unwrap_or(0.0).abs(),
    };
    if is_different(one) { size } else { 0.0 }
}

fn is_different(one: &Comparison) -> bool {
    one.verdict
        .is_some_and(|it| it.is_decided() && it != Verdict::Equivalent)
}

/// Returns the decided results of a metric under its workloads; `None` if nothing is decided.
fn clause(phrase: &Phrase, own: &[&Comparison]) -> Option<Clause> {
    let alike: Vec<&str> = own
        .iter()
        .filter(|one| one.verdict == Some(Verdict::Equivalent))
        .map(|one| &*one.workload)
        .collect();
    let different = own.iter().filter(|one| is_different(one));
    let is_of_setting = phrase.subject.is_empty();
    let Phrase { verb, object, .. } = *phrase;
    let part = |is_first, amount: &str, workload: &str| match (is_of_setting, is_first) {
        (true, true) => format!("{verb} {amount}{object} under {workload}"),
        (true, false) => format!("{amount} under {workload}"),
        (false, true) => format!("{} of {workload} {verb} {amount}", phrase.subject),
        (false, false) => format!("of {workload} {amount}"),
    };
    let mut parts = Vec::new();
    for one in different {
        // Without an amount nothing came under one of the two.
        let amount = phrase.amount(one);
        let amount = amount.unwrap_or_else(|| format!("infinitely {}", phrase.more));
        parts.push(part(parts.is_empty(), &amount, &one.workload));
    }
    if !alike.is_empty() {
        parts.push(part(parts.is_empty(), phrase.same, &named(&alike)));
    }
    (!parts.is_empty()).then(|| (is_of_setting, named(&parts)))
}

/// Returns where no difference is proven. The reason for a missing verdict is elsewhere.
fn open(setting: &str, is_all: bool, shown: &[Shown]) -> Option<String> {
    let is_open = |one: &Comparison| one.verdict.is_some_and(|it| !it.is_decided());
    let unproven = shown.iter().filter(|(one, _)| is_open(one));
    let under: Vec<String> = unproven
        .map(|(one, _)| format!("the {} of {}", one.metric.measure(), one.workload))
        .collect();
    if under.is_empty() {
        return None;
    }
    Some(match is_all && under.len() == shown.len() {
        true => format!("nothing is proven about {setting}"),
        false => format!("nothing is proven about {}", named(&under)),
    })
}

/// Joins words: `a`, `a and b`, `a, b and c`.
pub fn named(words: &[impl Borrow<str> + Display]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a comparison with this metric, ratio and verdict.
    fn one(workload: &str, metric: Metric, ratio: f64, verdict: Verdict) -> Comparison {
        let text = include_str!("../../../tests/golden/demo.json");
        let study: nicpoll_model::Study = serde_json::from_str(text).unwrap();
        Comparison {
            workload: String::from(workload),
            metric,
            kind: metric.kind(),
            ratio: (metric.kind() == MetricKind::Ratio).then_some(ratio),
            share_difference: (metric.kind() == MetricKind::Points).then_some(ratio),
            verdict: Some(verdict),
            ..study.comparisons[0].clone()
        }
    }

    #[test]
    fn every_metric_has_its_words() {
        for metric in Metric::ALL {
            for phrase in [false, true].map(|is_asked| phrase_of(metric, is_asked)) {
                let words = [
                    phrase.verb,
                    phrase.more,
                    phrase.less,
                    phrase.times,
                    phrase.same,
                ];
                assert!(words.iter().all(|word| !word.is_empty()), "{metric}");
            }
        }
    }

    #[test]
    fn verdicts_are_told_as_a_person_would() {
        use Verdict::*;
        let trip = one("session", Metric::RoundTripP50Ns, 10.08, WorseAndItMatters);
        let rate = one("small", Metric::DeliveredBitsPerSecond, 1.12, Better);
        let half = one("half", Metric::CpuNsPerPacket, 0.77, BetterAndItMatters);
        let full = one("full", Metric::CpuNsPerPacket, 1.01, Equivalent);
        let busy = one("flood", Metric::CpuBusy, -0.94, BetterAndItMatters);
        let wait = one("idle", Metric::RoundTripP50Ns, 4.26, WorseAndItMatters);
        let open = one("udp", Metric::DeliveredRatio, 0.99, NoDifferenceProven);
        for (shown, wanted) in [
            (
                vec![&half, &full],
                "Polling costs 23 % less CPU a packet under half and the same under full.",
            ),
            (
                vec![&rate, &trip],
                "Under polling, round trips of session are 10 times as long; it delivers 12 % more under small.",
            ),
            (
                vec![&busy, &open],
                "Polling keeps the CPU 94 points less busy under flood; nothing is proven about the delivery of udp.",
            ),
            (
                vec![&wait],
                "Under polling, round trips of idle are 4.3 times as long.",
            ),
            (vec![&open], "Nothing is proven about polling."),
        ] {
            let shown: Vec<Shown> = shown.into_iter().map(|one| (one, false)).collect();
            assert_eq!(outcome("polling", None, &shown).unwrap(), wanted);
        }
        assert_eq!(outcome("polling", None, &[]), None);
    }
}
