//! The first screen: the result of each workload in one line, and what it means.
//!
//! It fits a terminal of 24 lines and 80 columns with a prompt below it. Every workload of the study has its line
//! against every reference, so no win hides a loss. What makes the lines doubtful is on the same screen.

use nicpoll_model::{Comparison, Metric, Study, Verdict, WarningName, WorkUnit};

use super::comparisons::{found, margin_percent, to_find_margin, value};
use super::trials::{Group, Pair};
use crate::lists::{capital, distinct, grouped, listed};
use crate::page::{Block, Ink, Interval, IntervalGroup, Intervals, Level, Part, Span};
use nicpoll_model::numbers::{MISSING, aligned, counted, figure_or_missing, span};

const NO_TIME: &str = "not compared: no time left (--workload asks for fewer)";

/// Writes the screen.
pub fn write(part: &mut Part, study: &Study) {
    part.title(Level::Browser, &study.question);
    part.title(Level::Lead, title(study));
    let pairs = Pair::of(study).into_iter().enumerate();
    let groups = pairs.map(|(index, pair)| group(study, pair, index == 0));
    part.blocks.push(Block::Intervals(Intervals {
        groups: groups.collect(),
        right: columns(study)
            .map(|column| (column.head, column.width))
            .collect(),
    }));
    part.heading("What this means here");
    for (ink, sentence) in meaning(study) {
        part.blocks.push(Block::Spare(ink, sentence));
    }
}

/// A column right of the bars.
struct Column {
    head: [&'static str; 2],
    width: usize,
    /// Its ratio is that of the first of these metrics that was compared.
    metrics: &'static [Metric],
    /// Whether a study has it.
    is_shown: fn(&Study) -> bool,
}

const COLUMNS: [Column; 2] = [
    Column {
        head: ["CPU time", "a packet"],
        width: 9,
        metrics: &[Metric::CpuNsPerPacket, Metric::CpuNsPerByte],
        is_shown: |_| true,
    },
    Column {
        head: ["round", "trip"],
        width: 7,
        metrics: &[Metric::RoundTripP50Ns],
        is_shown: |study| {
            let mut workloads = study.workloads.iter();
            workloads.any(|it| it.unit == WorkUnit::Transactions)
        },
    },
];

fn columns(study: &Study) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| (column.is_shown)(study))
}

/// The question, and how much was run to answer it.
fn title(study: &Study) -> String {
    let pair = Pair::of(study).first().copied();
    let question = match pair {
        Some(pair) if is_null(study, pair) => String::from("Is a setting unlike itself?"),
        Some(pair) => format!("Does {} pay here?", pair.setting),
        None => String::from("Nothing was compared."),
    };
    let kind = match study.lab.is_virtual {
        true => "virtual ",
        false => "",
    };
    format!(
        "{question} {} in {} over a {kind}link ({})",
        blocks(study),
        span(study.elapsed_seconds),
        study.lab.driver
    )
}

/// The blocks that were run; "2 of 3 blocks" where every workload had fewer than was planned.
fn blocks(study: &Study) -> String {
    let run = study.plan.workloads.iter();
    let most = run.map(|workload| study.blocks_run(workload)).max();
    let planned = counted(study.plan.blocks, "block");
    match most.filter(|most| *most < study.plan.blocks) {
        Some(most) => format!("{most} of {planned}"),
        None => planned,
    }
}

/// Whether two settings are one under two names, as a check of the instrument.
fn is_null(study: &Study, pair: Pair) -> bool {
    let of = |name: &str| {
        let mut settings = study.settings.iter();
        settings.find(|facts| facts.setting == name)
    };
    let both = of(pair.setting).zip(of(pair.reference));
    both.is_some_and(|(one, other)| one.description == other.description && one.is_same_as(other))
}

/// The lines of a pair. One without any comparison, which is not the first, says so in one line.
fn group(study: &Study, pair: Pair, is_first: bool) -> IntervalGroup {
    let workloads = study.workloads.iter().map(|it| &it.workload);
    let lines = workloads.map(|it| (it.clone(), interval(study, pair, it)));
    let lines: Vec<_> = lines.collect();
    let is_judged = is_first || lines.iter().any(|(_, line)| line.is_ok());
    IntervalGroup {
        title: pair.title(study),
        lines,
        no_lines: (!is_judged).then_some(NO_TIME),
    }
}

/// The result of two settings under one workload.
///
/// # Errors
///
/// Why there is none.
pub fn interval(study: &Study, pair: Pair, workload: &str) -> Result<Interval, &'static str> {
    let judged = pair.judged(study, workload);
    let judged = judged.ok_or(match gave_up(study, pair, workload) {
        true => NO_TIME,
        false => "not compared",
    })?;
    let cost = |column: &Column| {
        let found = column.metrics.iter().find_map(|metric| {
            let mut all = pair.all(study, workload);
            all.find(|one| one.metric == *metric)?.ratio
        });
        found.map_or(String::from(MISSING), |ratio| {
            aligned([ratio], &[]).concat() + "x"
        })
    };
    let ends = [judged.ratio_low, judged.ratio, judged.ratio_high];
    Ok(Interval {
        word: word(judged.verdict),
        ink: Ink::of(judged.verdict),
        value: value(study, judged),
        // Without any end there is no interval to draw.
        span: Span::of(ends).filter(|span| span.low.or(span.high).is_some()),
        right: columns(study).map(cost).collect(),
    })
}

/// Whether a comparison was given up that is this one, or has a part in it.
fn gave_up(study: &Study, pair: Pair, workload: &str) -> bool {
    let settings = pair.settings();
    let mut dropped = study.dropped.iter().map(|gone| &gone.comparison);
    dropped.any(|gone| {
        gone.workload == workload && settings.contains(&(&gone.setting, &gone.reference))
    })
}

/// The verdict in a word. What is better or worse, but perhaps too little to matter, has its own.
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

/// What the lines mean, in sentences, the most important first.
fn meaning(study: &Study) -> Vec<(Ink, String)> {
    let pairs = Pair::of(study).into_iter();
    let outcomes = pairs.filter_map(|pair| outcome(study, pair));
    let sentences: [(Ink, Vec<String>); 7] = [
        (Ink::Unsure, without_verdict(study).collect()),
        (Ink::Plain, outcomes.collect()),
        (Ink::Unsure, doubts(study).collect()),
        (Ink::Unsure, in_force(study).collect()),
        (Ink::Plain, latencies(study).collect()),
        (Ink::Plain, unproven(study).into_iter().collect()),
        (Ink::Plain, weak_words(study).into_iter().collect()),
    ];
    let all = sentences.into_iter();
    all.flat_map(|(ink, all)| all.into_iter().map(move |one| (ink, one)))
        .collect()
}

/// Where the judged setting wins, loses, and where nothing is proven. `None` when nothing was compared.
fn outcome(study: &Study, pair: Pair) -> Option<String> {
    let with = |ink: Ink| -> Vec<&str> {
        let workloads = study.plan.workloads.iter().map(String::as_str);
        workloads
            .filter(|workload| {
                let judged = pair.judged(study, workload);
                judged.is_some_and(|one| Ink::of(one.verdict) == ink)
            })
            .collect()
    };
    let parts = [
        ("delivers more under", with(Ink::Good)),
        ("less under", with(Ink::Bad)),
        ("the same under", with(Ink::Plain)),
    ];
    let mut said: Vec<String> = parts
        .iter()
        .filter(|(_, workloads)| !workloads.is_empty())
        .map(|(what, workloads)| format!("{what} {}", named(workloads)))
        .collect();
    let first = said.first_mut();
    if let Some(first) = first.filter(|first| !first.starts_with("delivers")) {
        *first = format!("delivers {first}");
    }
    let against = against(study, pair);
    let open = with(Ink::Unsure);
    if said.is_empty() {
        return (!open.is_empty())
            .then(|| format!("{against} nothing is proven about {}.", pair.setting));
    }
    let is_mixed = parts[..2]
        .iter()
        .all(|(_, workloads)| !workloads.is_empty());
    let depends = match is_mixed {
        true => " it depends on the traffic:",
        false => ",",
    };
    let rest = match open.is_empty() {
        true => String::new(),
        false => format!("; nothing is proven under {}", named(&open)),
    };
    let said = said.join(", ");
    Some(format!("{against}{depends} {} {said}{rest}.", pair.setting))
}

/// What a pair is judged against, as the beginning of a sentence.
fn against(study: &Study, pair: Pair) -> String {
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

/// `a`, `a and b`, `a, b and c`.
fn named(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The warnings that make the lines above doubtful, as sentences of their own.
fn doubts(study: &Study) -> impl Iterator<Item = String> {
    let is_weighty = |name| {
        matches!(
            name,
            WarningName::ForeignWork | WarningName::DependentBlocks | WarningName::LimitCameFirst
        )
    };
    let warnings = study.warnings.iter();
    let weighty = warnings.filter(move |warning| is_weighty(warning.name));
    weighty.map(|warning| capital(&warning.text) + ".")
}

/// Why workloads have no verdict: a sentence for each reason, with the workloads that it holds for.
fn without_verdict(study: &Study) -> impl Iterator<Item = String> {
    let reasons = study.comparisons.iter();
    let reasons = reasons.filter_map(|it| Some((it.no_verdict.as_deref()?, it.workload.as_str())));
    grouped(reasons).into_iter().map(|(why, workloads)| {
        let workloads = named(&distinct(workloads));
        format!("No verdict under {workloads}: {why}.")
    })
}

/// In how many trials a setting was in force, where one in ten or more ran without it; once, however often it is compared.
fn in_force(study: &Study) -> impl Iterator<Item = String> {
    let judged = study.comparisons.iter();
    let judged = judged.filter(|one| one.no_verdict.is_none());
    let notes = judged.flat_map(|one| {
        let arms = one.sensitivity.iter().flat_map(|it| {
            let reference = (&one.reference, it.reference_in_force_trials);
            [(&one.setting, it.in_force_trials), reference]
        });
        let few = arms.filter(|(_, [trials, in_force])| 10 * in_force <= 9 * trials);
        few.map(|(setting, [trials, in_force])| {
            let workload = &one.workload;
            format!(
                "{workload}: {setting} was proven in force in {in_force} of {trials} trials; the others have no figure."
            )
        })
    });
    distinct(notes).into_iter()
}

/// The round trips of each setting, for each workload that measured any.
fn latencies(study: &Study) -> impl Iterator<Item = String> {
    let timed = study.workloads.iter();
    let timed = timed.filter(|facts| facts.unit == WorkUnit::Transactions);
    timed.filter_map(|facts| {
        let medians = study.settings.iter().map(|setting| {
            let group = Group::of(study, &facts.workload, &setting.setting);
            let p50 = group.median(|trial| Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3));
            (setting.setting.as_str(), p50)
        });
        let medians: Vec<(&str, Option<f64>)> = medians.collect();
        medians.iter().find(|(_, p50)| p50.is_some())?;
        let parts = medians.iter();
        let parts =
            parts.map(|(setting, p50)| format!("{} us under {setting}", figure_or_missing(*p50)));
        let (workload, parts) = (&facts.workload, listed(parts));
        Some(format!("A median round trip ({workload}) takes {parts}."))
    })
}

/// What an unproven difference may still be.
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

/// What `better` and `worse` hold back, where they stand.
fn weak_words(study: &Study) -> Option<String> {
    let is_there = |word: &Verdict| {
        let mut judged = study.comparisons.iter();
        judged.any(|one| one.verdict == Some(*word))
    };
    let weak = [Verdict::Better, Verdict::Worse].into_iter();
    let words = weak.filter(is_there).map(|word| format!("\"{word}\""));
    let words: Vec<String> = words.collect();
    let margin = margin_percent(study);
    (!words.is_empty()).then(|| {
        let words = words.join(" and ");
        format!("{words}: there is a difference, but not surely one of {margin} %.")
    })
}
