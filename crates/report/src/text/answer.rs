//! The first screen: what came out, for each workload in one line, and what it means.
//!
//! What must hold: it fits a terminal of 24 lines and 80 columns with a prompt below it. Every workload of
//! the study has its line against every reference, so that no win can hide a loss. What makes the lines
//! doubtful stands on the same screen.

use std::collections::BTreeSet;

use nicpoll_model::{
    Comparison, Ends, Metric, Study, Verdict, WarningName, WorkUnit, WorkloadFacts,
};

use super::bar::{BAR, Scale, Span};
use super::columns::{CPU, Columns, WIDTH, WORD, shortened, shortened_apart};
use super::differences::{found, margin_percent, value};
use super::page::{Ink, Page, wrapped};
use crate::figures::{Group, Outcome, Pair};
use crate::numbers::{MISSING, aligned, counted, figure_or_missing, span};

/// Lines of a terminal, less the prompt.
const LINES: usize = 23;
const NO_TIME: &str = "not compared: no time left (--workload asks for fewer)";

/// Writes the screen. `is_alone` when nothing follows it.
pub fn write(page: &mut Page, study: &Study, is_alone: bool) {
    let above = page.lines();
    page.heading(&title(study));
    let columns = Columns::of(study, page.width());
    let scale = Scale::of(&spans(study));
    let names: Vec<&str> = study
        .workloads
        .iter()
        .map(|it| it.workload.as_str())
        .collect();
    let names = shortened_apart(&names, columns.name - 1);
    for (index, pair) in Pair::of(study).into_iter().enumerate() {
        let is_judged = study
            .workloads
            .iter()
            .any(|it| pair.judged(study, &it.workload).is_some());
        if index > 0 && !is_judged {
            let against = format!("{}: ", pair.title(study));
            page.cells(&[(against, Ink::Strong), (String::from(NO_TIME), Ink::Unsure)]);
            continue;
        }
        write_head(page, study, pair, columns, (index == 0).then_some(&scale));
        for (facts, name) in study.workloads.iter().zip(&names) {
            write_workload(page, study, (pair, facts), name, columns, &scale);
        }
    }
    page.heading("What this means here");
    let rest = if is_alone {
        "Details: the same command without --brief."
    } else {
        "Details follow. To see this screen alone: --brief."
    };
    let free = (above + LINES - 1).saturating_sub(page.lines());
    write_meaning(page, study, free);
    page.paragraph(Ink::Faint, rest);
}

/// What was asked, and how much was run to find out.
pub fn title(study: &Study) -> String {
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
    match most.filter(|most| *most < study.plan.blocks) {
        Some(most) => format!("{most} of {}", counted(study.plan.blocks, "block")),
        None => counted(study.plan.blocks, "block"),
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

/// The spans of all comparisons with a verdict.
pub fn spans(study: &Study) -> Vec<Span> {
    let judged = study.comparisons.iter().filter(|one| one.primary);
    judged.filter_map(span_of).collect()
}

fn span_of(comparison: &Comparison) -> Option<Span> {
    let Ends { low, high } = ends(comparison);
    // Without any end there is no interval to draw.
    low.or(high)?;
    Some(Span {
        low,
        ratio: comparison.ratio?,
        high,
    })
}

fn ends(comparison: &Comparison) -> Ends {
    Ends {
        low: comparison.ratio_low,
        high: comparison.ratio_high,
    }
}

/// The line above a pair's workloads; the first names the columns.
fn write_head(page: &mut Page, study: &Study, pair: Pair, columns: Columns, scale: Option<&Scale>) {
    let against = pair.title(study);
    let names = columns.name + WORD + columns.value;
    match scale {
        Some(scale) => {
            let trip = |text: &str| format!("{text:>0$}", columns.trip);
            let above = format!(
                "{:names$}{:<half$} {:>half$}{:>CPU$}{}",
                format!("{:1$}rate [interval]", "", columns.name + WORD),
                "less",
                "more",
                "CPU time",
                trip(columns.if_trips("round")),
                half = BAR / 2
            );
            page.cells(&[(above, Ink::Strong)]);
            let against = shortened(&against, names - 1);
            let below = format!(
                "{against:<names$}{}{:>CPU$}{}",
                scale.head(),
                "a packet",
                trip(columns.if_trips("trip")),
            );
            page.cells(&[(below, Ink::Strong)]);
        }
        None => page.cells(&[(against, Ink::Strong)]),
    }
}

/// What the answer says of two settings under one workload.
pub struct Line {
    /// The verdict in a word.
    pub word: &'static str,
    /// How it stands out.
    pub ink: Ink,
    /// The ratio of rates with its interval, as text.
    pub value: String,
    /// The same for a bar; `None` without an interval.
    pub span: Option<Span>,
    /// The ratio of CPU time for each packet.
    pub cpu: String,
    /// The ratio of the median round trips.
    pub round_trip: String,
}

impl Line {
    /// The line of a pair.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(study: &Study, pair: Pair, workload: &str) -> Result<Self, &'static str> {
        let judged = pair.judged(study, workload);
        let judged = judged.ok_or(match gave_up(study, pair, workload) {
            true => NO_TIME,
            false => "not compared",
        })?;
        let cost = |metrics: &[Metric]| {
            let found = metrics.iter().find_map(|metric| {
                let mut all = pair.all(study, workload);
                all.find(|one| one.metric == *metric)?.ratio
            });
            let text = found.map(|ratio| format!("{}x", aligned([ratio], &[])[0]));
            text.unwrap_or(String::from(MISSING))
        };
        Ok(Line {
            word: word(judged.verdict),
            ink: Ink::of(judged.verdict),
            value: value(study, judged),
            span: span_of(judged),
            cpu: cost(&[Metric::CpuNsPerPacket, Metric::CpuNsPerByte]),
            round_trip: cost(&[Metric::RoundTripP50Ns]),
        })
    }
}

fn write_workload(
    page: &mut Page,
    study: &Study,
    (pair, facts): (Pair, &WorkloadFacts),
    name: &str,
    columns: Columns,
    scale: &Scale,
) {
    let name = (format!("{name:<0$}", columns.name), Ink::Plain);
    let line = match Line::of(study, pair, &facts.workload) {
        Ok(line) => line,
        Err(why) => {
            page.cells(&[name, (String::from(why), Ink::Unsure)]);
            return;
        }
    };
    let bar = line.span.map_or(" ".repeat(BAR), |span| scale.bar(span));
    page.cells(&[
        name,
        (format!("{:<WORD$}", line.word), line.ink),
        (
            format!("{:<width$}", line.value, width = columns.value),
            Ink::Plain,
        ),
        (bar, line.ink),
        (format!("{:>CPU$}", line.cpu), Ink::Plain),
        (
            format!(
                "{:>width$}",
                columns.if_trips(&line.round_trip),
                width = columns.trip
            ),
            Ink::Plain,
        ),
    ]);
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
fn word(verdict: Option<Verdict>) -> &'static str {
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

/// What the lines mean, in sentences, the weightiest first.
pub fn meaning(study: &Study) -> Vec<(Ink, String)> {
    let mut sentences: Vec<(Ink, String)> = Vec::new();
    let plain = |text| (Ink::Plain, text);
    let outcomes = Pair::of(study)
        .into_iter()
        .filter_map(|pair| outcome(study, pair));
    sentences.extend(outcomes.map(plain));
    sentences.extend(doubts(study).map(|text| (Ink::Unsure, text)));
    sentences.extend(on_asking(study).map(|text| (Ink::Unsure, text)));
    sentences.extend(latencies(study).map(plain));
    sentences.extend(unproven(study).map(plain));
    sentences.extend(weak_words(study).map(plain));
    sentences
}

/// As many sentences as there are lines for.
fn write_meaning(page: &mut Page, study: &Study, lines: usize) {
    let mut free = lines;
    for (ink, sentence) in meaning(study) {
        let takes = wrapped(&sentence, WIDTH - 4).len();
        if takes <= free {
            page.item("- ", ink, &sentence);
            free -= takes;
        }
    }
}

/// Where the judged setting wins, loses, and where nothing is proven. `None` when nothing was compared.
fn outcome(study: &Study, pair: Pair) -> Option<String> {
    let with = |wanted: &[Outcome]| -> Vec<&str> {
        let workloads = study.plan.workloads.iter().map(String::as_str);
        workloads
            .filter(|workload| {
                let judged = pair.judged(study, workload);
                judged.is_some_and(|one| wanted.contains(&Outcome::of(one.verdict)))
            })
            .collect()
    };
    let parts = [
        (
            "delivers more under",
            with(&[Outcome::Win, Outcome::SmallWin]),
        ),
        ("less under", with(&[Outcome::Loss, Outcome::SmallLoss])),
        ("the same under", with(&[Outcome::Equal])),
    ];
    let mut said: Vec<String> = parts
        .iter()
        .filter(|(_, workloads)| !workloads.is_empty())
        .map(|(what, workloads)| format!("{what} {}", listed(workloads)))
        .collect();
    if let Some(first) = said
        .first_mut()
        .filter(|first| !first.starts_with("delivers"))
    {
        *first = format!("delivers {first}");
    }
    let against = match pair.effect {
        None => format!("Against {}", pair.noun(study)),
        Some(effect) => {
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
    };
    let open = with(&[Outcome::Open]);
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
        false => format!("; nothing is proven under {}", listed(&open)),
    };
    Some(format!(
        "{against}{depends} {} {}{rest}.",
        pair.setting,
        said.join(", ")
    ))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The warnings that make the lines above doubtful.
fn doubts(study: &Study) -> impl Iterator<Item = String> {
    let is_weighty = |name| {
        matches!(
            name,
            WarningName::ForeignWork | WarningName::DependentBlocks | WarningName::LimitCameFirst
        )
    };
    let warnings = study.warnings.iter();
    warnings
        .filter(move |warning| is_weighty(warning.name))
        .map(|warning| sentence(&warning.text))
}

/// A warning's text as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    format!(
        "{}{}.",
        first.into_iter().flatten().collect::<String>(),
        letters.as_str()
    )
}

/// Where a setting was so often not in force that the verdict is on asking for it; once, however often it is compared.
fn on_asking(study: &Study) -> impl Iterator<Item = String> {
    let mut said = BTreeSet::new();
    let notes = study.comparisons.iter().filter_map(|comparison| {
        let sensitivity = comparison.sensitivity.as_ref()?;
        let arms = [
            (&comparison.setting, sensitivity.in_force_trials),
            (&comparison.reference, sensitivity.reference_in_force_trials),
        ];
        let (setting, [trials, in_force]) = arms
            .into_iter()
            .min_by(|(_, one), (_, other)| share(*one).total_cmp(&share(*other)))?;
        sensitivity.is_on_asking.then(|| {
            format!(
                "{}: {setting} was proven in force in {in_force} of {trials} trials only. The verdict is \
                 on asking for it, not on having it.",
                comparison.workload
            )
        })
    });
    notes.filter(move |note| said.insert(note.clone()))
}

fn share([trials, in_force]: [u32; 2]) -> f64 {
    f64::from(in_force) / f64::from(trials)
}

/// The round trips of each setting, for each workload that measured any.
fn latencies(study: &Study) -> impl Iterator<Item = String> {
    let timed = study.workloads.iter();
    timed
        .filter(|facts| facts.unit == WorkUnit::Transactions)
        .filter_map(|facts| {
            let medians: Vec<(&str, Option<f64>)> = study
                .settings
                .iter()
                .map(|setting| {
                    let group = Group::of(study, &facts.workload, &setting.setting);
                    let p50 = group
                        .median(|trial| Some(trial.round_trip?.quantiles.p50_ns? as f64 / 1e3));
                    (setting.setting.as_str(), p50)
                })
                .collect();
            medians.iter().find(|(_, p50)| p50.is_some())?;
            let parts: Vec<String> = medians
                .iter()
                .map(|(setting, p50)| format!("{} us under {setting}", figure_or_missing(*p50)))
                .collect();
            Some(format!(
                "A median round trip ({}) takes {}.",
                facts.workload,
                parts.join(", ")
            ))
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
    let margin = margin_percent(study);
    let more = match widest.blocks_to_find_margin {
        Some(blocks) => format!("{margin} % would take about {}", counted(blocks, "block")),
        None => format!("{margin} % is out of its reach"),
    };
    Some(format!(
        "\"not proven\" does not mean \"the same\": such a run finds a difference of {least} nine times in \
         ten ({}); {more}.",
        widest.workload
    ))
}

/// What `better` and `worse` hold back, where they stand. What dependent blocks hold back is said with them.
fn weak_words(study: &Study) -> Option<String> {
    let independent = study.comparisons.iter();
    let independent = independent.filter(|one| !one.are_blocks_dependent);
    let mut judged = independent.filter_map(|one| one.verdict);
    judged
        .any(|word| matches!(word, Verdict::Better | Verdict::Worse))
        .then(|| {
            let margin = margin_percent(study);
            format!(
                "\"better\" and \"worse\": there is a difference, but not surely one of {margin} %."
            )
        })
}
