//! The end of the report: where polling wins, where it loses and where nothing is proven, side by
//! side.
//!
//! What must hold: every workload of the study stands in exactly one row of each column, so that no
//! win can hide a loss.

use nicpoll_model::{Study, WorkUnit};

use super::differences::{margin_percent, value};
use super::page::{Align, Ink, Page, Row};
use crate::figures::{Group, Outcome, Pair};
use crate::numbers::figure_or_missing;

pub fn write(page: &mut Page, study: &Study) {
    let pairs = Pair::of(study);
    // The plan of a demo judges one setting, against each of the others.
    let judged = pairs.first().map_or("", |pair| pair.setting);
    page.heading(&format!("Summary: does {judged} pay?"));
    let heads = pairs
        .iter()
        .map(|pair| format!("against {}", pair.reference));
    let mut rows = vec![Row::new(judged, heads.collect(), Ink::Strong)];
    let margin = margin_percent(study);
    rows.extend(rows_for(study, "wins", Outcome::Win, Ink::Good));
    rows.extend(rows_for(
        study,
        &format!("wins, maybe <{margin} %"),
        Outcome::SmallWin,
        Ink::Good,
    ));
    rows.extend(rows_for(
        study,
        &format!("same within {margin} %"),
        Outcome::Equal,
        Ink::Plain,
    ));
    rows.extend(rows_for(
        study,
        "nothing proven",
        Outcome::Open,
        Ink::Unsure,
    ));
    rows.extend(rows_for(
        study,
        &format!("loses, maybe <{margin} %"),
        Outcome::SmallLoss,
        Ink::Bad,
    ));
    rows.extend(rows_for(study, "loses", Outcome::Loss, Ink::Bad));
    page.table(&rows, 0, Align::Left);
    let sentences: Vec<String> = pairs
        .into_iter()
        .filter_map(|pair| it_depends(study, pair))
        .chain(latencies(study))
        .collect();
    if !sentences.is_empty() {
        page.blank();
    }
    for sentence in sentences {
        page.paragraph(Ink::Plain, &sentence);
    }
}

fn outcome(study: &Study, pair: Pair, workload: &str) -> Outcome {
    Outcome::of(
        pair.judged(study, workload)
            .and_then(|comparison| comparison.verdict),
    )
}

/// The workloads with one outcome, one below the other. The three main rows are there even when
/// they are empty.
fn rows_for(study: &Study, label: &str, wanted: Outcome, ink: Ink) -> Vec<Row> {
    let column = |pair: Pair| -> Vec<String> {
        study
            .plan
            .workloads
            .iter()
            .filter(|workload| outcome(study, pair, workload) == wanted)
            .map(|workload| match pair.judged(study, workload) {
                Some(comparison) => format!("{workload:<7} {}", value(study, comparison)),
                None => format!("{workload:<7} not compared"),
            })
            .collect()
    };
    let columns: Vec<_> = Pair::of(study).into_iter().map(column).collect();
    let always = matches!(wanted, Outcome::Win | Outcome::Open | Outcome::Loss);
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    (0..height.max(usize::from(always)))
        .map(|line| {
            let cells = columns.iter().map(|column| {
                let none = if line == 0 { "nowhere" } else { "" };
                let cell = column.get(line).map_or(none, String::as_str);
                let ink = if column.is_empty() { Ink::Faint } else { ink };
                (cell.to_string(), ink)
            });
            Row {
                label: String::from(if line == 0 { label } else { "" }),
                cells: cells.collect(),
                ink: Ink::Plain,
            }
        })
        .collect()
}

/// Says so when a setting wins under one workload and loses under another.
fn it_depends(study: &Study, pair: Pair) -> Option<String> {
    let with = |wanted: [Outcome; 2]| -> Vec<&str> {
        study
            .plan
            .workloads
            .iter()
            .filter(|workload| wanted.contains(&outcome(study, pair, workload)))
            .map(String::as_str)
            .collect()
    };
    let wins = with([Outcome::Win, Outcome::SmallWin]);
    let losses = with([Outcome::Loss, Outcome::SmallLoss]);
    (!wins.is_empty() && !losses.is_empty()).then(|| {
        format!(
            "Against {} it depends on the traffic: {} wins under {} and loses under {}.",
            pair.reference,
            pair.setting,
            listed(&wins),
            listed(&losses)
        )
    })
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The round trips of each setting, for each workload that measured any.
fn latencies(study: &Study) -> Vec<String> {
    let timed = study.workloads.iter();
    let timed = timed.filter(|facts| facts.unit == WorkUnit::Transactions);
    timed
        .filter_map(|facts| latency(study, &facts.workload))
        .collect()
}

fn latency(study: &Study, workload: &str) -> Option<String> {
    let median = |group: &Group| group.median(|trial| Some(trial.round_trip?.p50_ns as f64 / 1e3));
    let groups = Group::of_workload(study, workload);
    let medians: Vec<_> = groups.iter().map(median).collect();
    medians.iter().any(Option::is_some).then(|| {
        let parts: Vec<String> = study
            .settings
            .iter()
            .zip(medians)
            .map(|(facts, median)| {
                let setting = &facts.setting;
                format!("{} us under {setting}", figure_or_missing(median))
            })
            .collect();
        format!(
            "A median round trip ({workload}) takes {}.",
            parts.join(", ")
        )
    })
}
