//! The first screen: the question, the answer in a sentence, the result of each workload in one line, and what it means.
//!
//! It fits a terminal of 24 lines and 80 columns with a prompt below it. Every workload has its line against every
//! reference, so no win hides a loss. Doubts about the lines are on the same screen.

use std::collections::BTreeSet;

use nicpoll_model::{
    Comparison, CountingCost, EventCounter, Measure, Metric, Study, TrialFigures, Verdict,
    WarningName, WorkUnit, WorkloadFacts,
};

use super::comparisons::{found, margin_percent, to_find_margin, value};
use super::phrases::{Shown, named, outcome};
use super::trials::{SettingPair, TrialGroup};
use crate::lists::{capital, distinct, grouped, joined, listed};
use crate::page::{Block, Ink, IntervalBar, IntervalGroup, Intervals, Part, Rank, Span};
use nicpoll_model::numbers::{MISSING, aligned, counted, figure, figure_or_missing, percent, span};

const NO_TIME: &str = "not compared: no time left (--workload asks for fewer)";

/// Writes the screen.
pub fn write(part: &mut Part, study: &Study) {
    part.title(Rank::Title, &study.question);
    write_below(part, study);
}

/// Writes the screen below the question.
pub fn write_below(part: &mut Part, study: &Study) {
    let pairs = SettingPair::of(study);
    let first = pairs.first().copied();
    for sentence in answer(study, first) {
        part.paragraph(Ink::Strong, sentence);
    }
    let run = [run(study), words(study)].into_iter();
    let run = run.filter(|words| !words.is_empty());
    part.paragraph(Ink::Faint, joined(run, "; "));
    let groups = pairs.iter().enumerate();
    let groups = groups.map(|(index, pair)| group(study, *pair, index == 0));
    part.blocks.push(Block::Intervals(Intervals {
        names: "traffic",
        groups: groups.collect(),
        right: columns(study)
            .map(|column| (column.head, column.width))
            .collect(),
    }));
    let meaning = meaning(study);
    if !meaning.is_empty() {
        part.heading("What this means here");
    }
    for (ink, sentence) in meaning {
        part.blocks.push(Block::Spare(ink, sentence));
    }
}

/// Returns the answer as a person would say it, for the first pair, which is dropped last.
fn answer(study: &Study, first: Option<SettingPair>) -> Vec<String> {
    let Some(pair) = first else {
        return vec![String::from("Nothing was compared.")];
    };
    if is_without_any(study) {
        return without_verdict(study).collect();
    }
    if is_all_open(study) {
        let pairs = SettingPair::of(study);
        let settings = distinct(pairs.iter().map(|it| it.setting));
        return vec![format!("Nothing is proven about {}.", named(&settings))];
    }
    match outcome_of(study, pair) {
        Some(outcome) => vec![outcome],
        None => vec![format!(
            "{} was not compared with {}.",
            pair.setting,
            pair.noun(study)
        )],
    }
}

/// A column right of the bars.
struct BarColumn {
    head: [&'static str; 2],
    width: usize,
    /// It shows the first of these metrics that was compared without a verdict.
    metrics: &'static [Metric],
    /// Tells whether a workload has it.
    is_shown: fn(&WorkloadFacts) -> bool,
}

const COLUMNS: [BarColumn; 3] = [
    BarColumn {
        head: ["CPU", "cost"],
        width: 7,
        metrics: &[
            Metric::CpuNsPerPacket,
            Metric::CpuNsPerByte,
            Metric::CpuBusy,
        ],
        is_shown: |facts| !facts.judged.iter().any(|it| it.measure() == Measure::Cost),
    },
    BarColumn {
        head: ["one-way", "delay"],
        width: 8,
        metrics: &[Metric::OneWayDelayP50Ns],
        is_shown: |facts| facts.asked_per_second.is_some(),
    },
    BarColumn {
        head: ["p99", "trip"],
        width: 6,
        metrics: &[Metric::RoundTripP99Ns],
        is_shown: |facts| facts.unit == WorkUnit::Transactions,
    },
];

/// Most columns that fit a terminal.
const COLUMNS_MAX: usize = 2;

/// Returns the columns for which a comparison of the study has a figure.
fn columns(study: &Study) -> impl Iterator<Item = &'static BarColumn> {
    let found = COLUMNS.iter().filter(|column| {
        let workloads = study
            .workloads
            .iter()
            .filter(|facts| (column.is_shown)(facts));
        let workloads: Vec<&String> = workloads.map(|facts| &facts.workload).collect();
        study.comparisons.iter().any(|one| {
            !one.primary
                && column.metrics.contains(&one.metric)
                && one.ratio.or(one.share_difference).is_some()
                && workloads.contains(&&one.workload)
        })
    });
    found.take(COLUMNS_MAX)
}

/// Returns the measures on the screen: those with a verdict, and those of the columns.
pub fn measures(study: &Study) -> BTreeSet<Measure> {
    let judged = study.comparisons.iter().filter(|one| one.primary);
    let judged = judged.map(|one| one.metric);
    let others = columns(study).flat_map(|column| column.metrics).copied();
    judged.chain(others).map(Metric::measure).collect()
}

/// Returns how much was run, and over which link.
fn run(study: &Study) -> String {
    let kind = if study.lab.is_virtual { "virtual " } else { "" };
    format!(
        "{} in {} over a {kind}link ({})",
        blocks(study),
        span(study.elapsed_seconds),
        study.lab.driver
    )
}

/// Returns the blocks that were run; "2 of 3 blocks" if every workload had fewer than planned.
fn blocks(study: &Study) -> String {
    let (most, planned) = (study.blocks_most(), counted(study.plan.blocks, "block"));
    match most < study.plan.blocks {
        true => format!("{most} of {planned}"),
        false => planned,
    }
}

/// Returns the lines of a pair. A pair without any comparison, unless it is the first, says so in one line.
fn group(study: &Study, pair: SettingPair, is_first: bool) -> IntervalGroup {
    let mut lines = Vec::new();
    for facts in &study.workloads {
        match intervals(study, pair, &facts.workload) {
            Err(why) => lines.push((named_with_rate(facts), Err(why))),
            Ok(own) => {
                let names = [named_with_rate(facts)].into_iter();
                let names = names.chain(std::iter::repeat(String::new()));
                lines.extend(names.zip(own.into_iter().map(|(_, line)| Ok(line))));
            }
        }
    }
    let is_judged = is_first || lines.iter().any(|(_, line)| line.is_ok());
    IntervalGroup {
        title: pair.title(study),
        lines,
        no_lines: (!is_judged).then_some(NO_TIME),
    }
}

/// Returns a workload's name with its rate: `udp 20k/s`. Workloads of a sweep have the rate in their name.
fn named_with_rate(facts: &WorkloadFacts) -> String {
    let asked = facts.asked_per_second.filter(|_| facts.load.is_none());
    asked.map_or(facts.workload.clone(), |rate| {
        let rate = match rate {
            10_000.. => format!("{}k", ((rate as f64 / 100.0).round() / 10.0)),
            rate => rate.to_string(),
        };
        format!("{} {rate}/s", facts.workload)
    })
}

/// Returns the comparisons that the screen shows of two settings under a workload: those with a verdict. If both
/// deliver all of a paced load, a sentence says so instead of a line.
fn shown<'a>(study: &'a Study, pair: SettingPair<'a>, workload: &'a str) -> Vec<&'a Comparison> {
    let judged: Vec<&Comparison> = pair.judged_all(study, workload).collect();
    let is_told = deliver_all(study, pair, workload) && judged.len() > 1;
    judged
        .into_iter()
        .filter(|one| !(is_told && is_share(one)))
        .collect()
}

/// Returns whether about as much of a paced load arrives under both settings.
fn is_share(one: &Comparison) -> bool {
    (one.metric, one.verdict) == (Metric::DeliveredRatio, Some(Verdict::Equivalent))
}

/// Delivered share that counts as all.
const ALL_RATIO: f64 = 0.999;

/// Returns whether both settings deliver all of a paced load.
fn deliver_all(study: &Study, pair: SettingPair, workload: &str) -> bool {
    let settings = pair.settings();
    let mut both = settings.iter().flat_map(|(one, other)| [*one, *other]);
    let is_judged = pair.judged_all(study, workload).any(is_share);
    is_judged
        && both.all(|setting| {
            let group = TrialGroup::of(study, workload, setting);
            let least = group.range(|it| {
                Some(it.delivered_packets? as f64 / it.offered_packets.filter(|it| *it > 0)? as f64)
            });
            least.is_some_and(|(least, _)| least >= ALL_RATIO)
        })
}

/// The results of two settings under one workload, a line for each metric that gets a verdict.
///
/// # Errors
///
/// Why there is none.
pub fn intervals(
    study: &Study,
    pair: SettingPair,
    workload: &str,
) -> Result<Vec<(Metric, IntervalBar)>, &'static str> {
    let judged = shown(study, pair, workload);
    if judged.is_empty() {
        return Err(match gave_up(study, pair, workload) {
            true => NO_TIME,
            false => "not compared",
        });
    }
    let is_slowed = slowed(study, workload).is_some();
    let marked = |text: String, metric: Metric| match is_slowed && metric.measure() == Measure::Cost
    {
        true => text + "*",
        false => text,
    };
    let cell = |column: &BarColumn| {
        let found = column.metrics.iter().find_map(|metric| {
            let mut all = pair.all(study, workload).filter(|one| !one.primary);
            let one = all.find(|one| one.metric == *metric)?;
            let ratio = one.ratio.map(|ratio| aligned([ratio], &[]).concat() + "x");
            let points = || Some(format!("{:+.0} pt", 100.0 * one.share_difference?));
            Some(marked(ratio.or_else(points)?, *metric))
        });
        let facts = study.workloads.iter().find(|it| it.workload == workload);
        let found = found.filter(|_| facts.is_some_and(column.is_shown));
        found.unwrap_or(String::from(MISSING))
    };
    let lines = judged.iter().enumerate().map(|(index, one)| {
        let ends = [one.ratio_low, one.ratio, one.ratio_high];
        let right = columns(study).map(|column| match index {
            0 => cell(column),
            _ => String::new(),
        });
        let line = IntervalBar {
            measure: one.metric.measure().name(),
            word: word(one.verdict),
            ink: Ink::of(one.verdict),
            value: marked(value(study, one), one.metric),
            // Without an end there is no interval to draw.
            span: Span::of(ends).filter(|span| span.low.or(span.high).is_some()),
            right: right.collect(),
        };
        (one.metric, line)
    });
    Ok(lines.collect())
}

/// Share by which counting CPU time may slow the traffic before the figure gets a star.
const SLOWED_FROM: f64 = 0.05;

/// Returns the greatest share of a workload's rate that counting CPU time took, if it is at least [`SLOWED_FROM`].
fn slowed(study: &Study, workload: &str) -> Option<f64> {
    let costs = study.counting_costs.iter();
    let costs = costs.filter(|it| it.counter == EventCounter::CpuTime && it.workload == workload);
    let is_seen = |it: &&CountingCost| it.delivered_ratio_high.is_some_and(|high| high < 1.0);
    let taken = costs
        .filter(is_seen)
        .filter_map(|it| Some(1.0 - it.delivered_ratio?));
    taken
        .filter(|taken| *taken >= SLOWED_FROM)
        .max_by(f64::total_cmp)
}

/// Returns whether this comparison, or a part of it, was dropped.
fn gave_up(study: &Study, pair: SettingPair, workload: &str) -> bool {
    let settings = pair.settings();
    let mut dropped = study.dropped.iter().map(|gone| &gone.comparison);
    dropped.any(|gone| {
        gone.workload == workload && settings.contains(&(&gone.setting, &gone.reference))
    })
}

/// Returns the verdict in a word; differences that may be too small to matter have words of their own.
pub fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::BetterAndItMatters) => "wins",
        Some(Verdict::Better) => "better",
        Some(Verdict::Equivalent) => "same",
        Some(Verdict::NoDifferenceProven) => "not proven",
        Some(Verdict::DependsOnWhatCounts) => "depends",
        Some(Verdict::Worse) => "worse",
        Some(Verdict::WorseAndItMatters) => "loses",
        Some(Verdict::Inconclusive) | None => "no verdict",
    }
}

/// Returns the meaning of the lines in sentences, the most important first.
fn meaning(study: &Study) -> Vec<(Ink, String)> {
    let pairs = SettingPair::of(study).into_iter().skip(1);
    let outcomes = pairs.filter_map(|pair| outcome_of(study, pair));
    // If nothing has a verdict or nothing is proven, the answer above says so.
    let is_told = is_without_any(study);
    let is_said = is_told || is_all_open(study);
    let sentences: [(Ink, Vec<String>); 9] = [
        (Ink::Unsure, disturbed(study).into_iter().collect()),
        (
            Ink::Unsure,
            without_verdict(study).filter(|_| !is_told).collect(),
        ),
        (Ink::Unsure, doubts(study).collect()),
        (Ink::Unsure, dependent(study).collect()),
        (Ink::Unsure, in_force(study).collect()),
        (Ink::Unsure, counting(study).into_iter().collect()),
        (Ink::Plain, outcomes.filter(|_| !is_said).collect()),
        (Ink::Plain, latencies(study).collect()),
        (Ink::Plain, unproven(study).into_iter().collect()),
    ];
    let all = sentences.into_iter();
    all.flat_map(|(ink, all)| all.into_iter().map(move |one| (ink, one)))
        .collect()
}

/// Sums up the verdicts of a pair. `None` if nothing was compared.
fn outcome_of(study: &Study, pair: SettingPair) -> Option<String> {
    let facts = study.workloads.iter();
    let shown: Vec<Shown> = facts
        .clone()
        .flat_map(|facts| {
            let own = shown(study, pair, &facts.workload).into_iter();
            let is_asked = facts.unit == WorkUnit::Transactions;
            own.map(move |one| (one, is_asked))
        })
        .collect();
    let is_one = SettingPair::of(study).len() == 1;
    let against = (!is_one).then(|| against(study, pair));
    let said = outcome(pair.setting, against, &shown)?;
    let compared: Vec<&str> = facts
        .map(|it| &*it.workload)
        .filter(|it| pair.judged(study, it).is_some())
        .collect();
    let all_of = compared.iter().copied();
    let all_of: Vec<&str> = all_of.filter(|it| deliver_all(study, pair, it)).collect();
    let said = said.trim_end_matches('.');
    Some(match all_of.len() {
        0 => format!("{said}."),
        all if all == compared.len() => format!("{said}; both deliver all."),
        _ => format!("{said}; both deliver all of {}.", named(&all_of)),
    })
}

/// Returns a sentence about the cost of counting CPU time, if it is not small.
fn counting(study: &Study) -> Option<String> {
    let workloads = study.workloads.iter();
    let slowed = workloads.filter_map(|it| Some((&it.workload, slowed(study, &it.workload)?)));
    let parts: Vec<String> = slowed
        .map(|(workload, taken)| format!("{workload} by {} %", percent(taken)))
        .collect();
    (!parts.is_empty()).then(|| {
        let parts = named(&parts);
        format!("* Counting CPU time slowed {parts}: costs are about as much too high.")
    })
}

/// Returns the reference of a pair, as the beginning of a sentence.
fn against(study: &Study, pair: SettingPair) -> String {
    let Some(effect) = pair.effect else {
        return format!("Against {}", pair.noun(study));
    };
    let mut judged = study.plan.workloads.iter();
    let is_whole = judged.all(|workload| {
        let judged = pair.judged(study, workload);
        judged.is_none_or(|one| one.left_out.is_empty())
    });
    let combinations = match is_whole {
        true => format!(
            "{} combinations of the other factors",
            effect.settings.len()
        ),
        false => String::from("the other factors' combinations that were not given up"),
    };
    format!("Over {combinations}, against {}", pair.reference)
}

/// Returns the warnings that make the lines above doubtful, as sentences.
fn doubts(study: &Study) -> impl Iterator<Item = String> {
    let is_weighty = |name| {
        matches!(
            name,
            WarningName::ForeignWork
                | WarningName::DependentBlocks
                | WarningName::LimitCameFirst
                | WarningName::Interrupted
        )
    };
    let warnings = study.warnings.iter();
    let weighty = warnings.filter(move |warning| is_weighty(warning.name));
    weighty.map(|warning| capital(&warning.text) + ".")
}

/// Returns what disturbed all trials of a setting under a workload, and the remedy.
fn disturbed(study: &Study) -> Option<String> {
    let trials = study.trials.iter();
    let groups = grouped(trials.map(|it| ((&it.workload, &it.setting), it.validity.is_kept())));
    let is_void = |(_, are_kept): &(_, Vec<bool>)| !are_kept.contains(&true);
    groups.iter().find(|group| is_void(group))?;
    let mut warnings = study.warnings.iter();
    let warning = warnings.find(|warning| warning.name == WarningName::VoidTrials)?;
    Some(capital(&warning.text) + ".")
}

/// Returns whether no comparison has a verdict: then the reasons are the answer.
fn is_without_any(study: &Study) -> bool {
    let mut judged = study.comparisons.iter().filter(|it| it.primary).peekable();
    judged.peek().is_some() && judged.all(|it| it.no_verdict.is_some())
}

/// Whether several pairs were compared and nothing is proven about any of them.
fn is_all_open(study: &Study) -> bool {
    let mut judged = study.comparisons.iter().filter(|it| it.primary).peekable();
    let is_judged = SettingPair::of(study).len() > 1 && judged.peek().is_some();
    is_judged && judged.all(|it| it.verdict == Some(Verdict::NoDifferenceProven))
}

/// Returns why workloads have no verdict: a sentence for each reason, with its workloads.
fn without_verdict(study: &Study) -> impl Iterator<Item = String> {
    let judged = |one: &Comparison| {
        let alike = study.comparisons.iter().filter(|it| {
            it.primary
                && (&it.workload, &it.setting, &it.reference)
                    == (&one.workload, &one.setting, &one.reference)
                && it.no_verdict != one.no_verdict
        });
        // The measure is named if another one has a verdict.
        alike.count() > 0
    };
    let reasons = study.comparisons.iter().filter_map(|it| {
        let on = judged(it).then(|| it.metric.measure());
        Some(((it.no_verdict.as_deref()?, on), it.workload.as_str()))
    });
    grouped(reasons).into_iter().map(|((why, on), workloads)| {
        let workloads = named(&distinct(workloads));
        let on = on.map_or(String::new(), |measure| format!(" on the {measure}"));
        format!("No verdict{on} under {workloads}: {why}.")
    })
}

/// Returns in how many trials a setting was in force, if one in ten or more ran without it; once, however often it is
/// compared.
fn in_force(study: &Study) -> impl Iterator<Item = String> {
    let judged = study.comparisons.iter();
    let judged = judged.filter(|one| one.no_verdict.is_none());
    let notes = judged.flat_map(|one| {
        let arms = one.sensitivity.iter().flat_map(|it| {
            let reference = (&one.reference, it.reference_in_force_trials);
            [(&one.setting, it.in_force_trials), reference]
        });
        let few = arms.filter(|(_, [trials, in_force])| 10 * in_force <= 9 * trials);
        few.map(move |(setting, [trials, in_force])| {
            let workload = &one.workload;
            format!(
                "{workload}: {setting} was proven in force in {in_force} of {trials} trials; the others have no figure."
            )
        })
    });
    distinct(notes).into_iter()
}

/// Returns the round trips of each setting, for each workload that measured them.
fn latencies(study: &Study) -> impl Iterator<Item = String> {
    let timed = study.workloads.iter();
    let timed = timed.filter(|facts| facts.unit == WorkUnit::Transactions);
    timed.filter_map(|facts| {
        let medians = study.settings.iter().map(|setting| {
            let group = TrialGroup::of(study, &facts.workload, &setting.setting);
            let p50 = group.median(|trial| Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3));
            (setting.setting.as_str(), p50)
        });
        let medians: Vec<(&str, Option<f64>)> = medians.collect();
        medians.iter().find(|(_, p50)| p50.is_some())?;
        let parts = medians.iter();
        let parts =
            parts.map(|(setting, p50)| format!("{} us under {setting}", figure_or_missing(*p50)));
        let (workload, parts) = (&facts.workload, listed(parts));
        let floor = floor(study, workload).unwrap_or_default();
        Some(format!(
            "A median round trip ({workload}) takes {parts}{floor}."
        ))
    })
}

/// Range of periods that counts as "about one" period longer.
const ABOUT_ONE: std::ops::RangeInclusive<f64> = 0.7..=1.4;

/// Returns that the timer's period is the floor, if a setting adds about that to the round trip.
fn floor(study: &Study, workload: &str) -> Option<String> {
    let median = |setting: &str, read: fn(&TrialFigures) -> Option<f64>| {
        TrialGroup::of(study, workload, setting).median(read)
    };
    let trip = |setting: &str| median(setting, |it| Some(it.round_trip?.quantiles.p50_ns? as f64));
    let pairs = SettingPair::of(study)
        .into_iter()
        .flat_map(SettingPair::settings);
    let mut floors = pairs.filter_map(|(setting, reference)| {
        let period_ns = median(setting, |it| {
            Some(it.calibration.as_ref()?.period_ns as f64)
        })?;
        let more = (trip(setting)? - trip(reference)?) / period_ns;
        ABOUT_ONE.contains(&more).then(|| {
            let us = figure(period_ns / 1e3);
            format!("; the period of {setting}'s timer, {us} us, is the floor of what it adds")
        })
    });
    floors.next()
}

/// Returns how large an unproven difference may still be.
fn unproven(study: &Study) -> Option<String> {
    let open = study
        .comparisons
        .iter()
        .filter(|one| one.primary && one.verdict == Some(Verdict::NoDifferenceProven));
    let widest = open.max_by(|one, other| {
        let found = |it: &Comparison| it.found_nine_in_ten_ratio.unwrap_or(f64::INFINITY);
        found(one).total_cmp(&found(other))
    })?;
    let least = found(widest)?;
    let more = to_find_margin(study, widest);
    Some(format!(
        "\"not proven\" does not mean \"the same\": such a run finds a difference of {least} nine times in \
         ten ({}); {more}.",
        widest.workload
    ))
}

/// Verdicts with the meaning of their words; `{}` is the margin in percent. Why there is no verdict, and what one depends
/// on, are sentences of their own.
const MEANINGS: [(&[Verdict], &str); 4] = [
    (
        &[Verdict::BetterAndItMatters, Verdict::WorseAndItMatters],
        "surely by {} % or more",
    ),
    (
        &[Verdict::Better, Verdict::Worse],
        "surely a difference, perhaps of less than {} %",
    ),
    (&[Verdict::Equivalent], "surely less than {} % either way"),
    (
        &[Verdict::NoDifferenceProven],
        "the interval leaves it open",
    ),
];

/// Explains the words that the lines have.
fn words(study: &Study) -> String {
    let pairs = SettingPair::of(study).into_iter();
    let pairs = pairs.flat_map(|pair| study.workloads.iter().map(move |it| (pair, &it.workload)));
    let lines = pairs.flat_map(|(pair, workload)| shown(study, pair, workload));
    let there: Vec<Verdict> = lines.filter_map(|one| one.verdict).collect();
    let said = MEANINGS.iter().filter_map(|(verdicts, meaning)| {
        let verdicts = verdicts.iter().filter(|verdict| there.contains(verdict));
        let words = listed(verdicts.map(|verdict| word(Some(*verdict))));
        let meaning = meaning.replace("{}", &margin_percent(study));
        (!words.is_empty()).then(|| format!("{words}: {meaning}"))
    });
    joined(said, "; ")
}

/// Returns what each verdict that depends on what counts would be by each rule.
fn dependent(study: &Study) -> impl Iterator<Item = String> {
    let depends = |one: &&Comparison| one.verdict == Some(Verdict::DependsOnWhatCounts);
    let depends = study.comparisons.iter().filter(depends);
    let depends = depends.filter_map(|one| {
        let rules = one.sensitivity.as_ref()?;
        let missing = counted(one.missing_blocks, "missing pair");
        let proven = match rules.proven_only.blocks {
            all if all == one.blocks => String::from("from what was measured"),
            some => format!("from {} in force and in rhythm", counted(some, "pair")),
        };
        let (worst, best) = (rules.missing_as_worst, rules.missing_as_best);
        let rules = [
            (Some(rules.proven_only), proven),
            (worst, format!("with the {missing} taken as the worst")),
            (best, String::from("with them taken as the best")),
        ];
        let would = rules.into_iter().filter_map(|(rule, how)| {
            let verdict = rule?.verdict;
            (verdict != Verdict::Inconclusive).then(|| format!("\"{}\" {how}", word(Some(verdict))))
        });
        let versus = format!("{} against {}", one.setting, one.reference);
        Some(((one.metric.measure(), &one.workload, listed(would)), versus))
    });
    let alike = grouped(depends).into_iter();
    alike.map(|((measure, workload, would), versus)| {
        let versus = listed(versus);
        format!("\"depends\": the {measure} of {workload}, {versus}, would be {would}.")
    })
}
