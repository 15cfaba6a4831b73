//! The end of the report: where polling wins, where it loses and where nothing is proven, side by
//! side.
//!
//! What must hold: every workload of the study stands in exactly one row of each column, so that no
//! win can hide a loss.

use nicpoll_model::{Setting, Study, Workload};

use super::differences::{margin_percent, value};
use super::page::{Align, Ink, Page, Row};
use crate::figures::{Group, Outcome, PAIRS, Pair};
use crate::numbers::figure_or_missing;

pub fn write(page: &mut Page, study: &Study) {
    page.heading("Summary: does polling pay?");
    let heads = PAIRS
        .map(|pair| format!("against {}", pair.reference))
        .to_vec();
    let mut rows = vec![Row::new("polling", heads, Ink::Strong)];
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
    let sentences: Vec<String> = PAIRS
        .into_iter()
        .filter_map(|pair| it_depends(study, pair))
        .chain(latency(study))
        .collect();
    if !sentences.is_empty() {
        page.blank();
    }
    for sentence in sentences {
        page.paragraph(Ink::Plain, &sentence);
    }
}

fn outcome(study: &Study, pair: Pair, workload: Workload) -> Outcome {
    Outcome::of(
        pair.judged(study, workload)
            .and_then(|comparison| comparison.verdict),
    )
}

/// The workloads with one outcome, one below the other. The three main rows are there even when
/// they are empty.
fn rows_for(study: &Study, label: &str, wanted: Outcome, ink: Ink) -> Vec<Row> {
    let columns = PAIRS.map(|pair| -> Vec<String> {
        study
            .plan
            .workloads
            .iter()
            .filter(|workload| outcome(study, pair, **workload) == wanted)
            .map(|workload| match pair.judged(study, *workload) {
                Some(comparison) => format!("{workload:<7} {}", value(study, comparison)),
                None => format!("{workload:<7} not compared"),
            })
            .collect()
    });
    let always = matches!(wanted, Outcome::Win | Outcome::Open | Outcome::Loss);
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    (0..height.max(usize::from(always)))
        .map(|line| {
            let cells = columns.each_ref().map(|column| {
                let none = if line == 0 { "nowhere" } else { "" };
                let cell = column.get(line).map_or(none, String::as_str);
                let ink = if column.is_empty() { Ink::Faint } else { ink };
                (cell.to_string(), ink)
            });
            Row {
                label: String::from(if line == 0 { label } else { "" }),
                cells: cells.to_vec(),
                ink: Ink::Plain,
            }
        })
        .collect()
}

/// Says so when polling wins under one workload and loses under another.
fn it_depends(study: &Study, pair: Pair) -> Option<String> {
    let with = |wanted: [Outcome; 2]| -> Vec<&str> {
        study
            .plan
            .workloads
            .iter()
            .filter(|workload| wanted.contains(&outcome(study, pair, **workload)))
            .map(|workload| workload.name())
            .collect()
    };
    let wins = with([Outcome::Win, Outcome::SmallWin]);
    let losses = with([Outcome::Loss, Outcome::SmallLoss]);
    (!wins.is_empty() && !losses.is_empty()).then(|| {
        format!(
            "Against {} it depends on the traffic: polling wins under {} and loses under {}.",
            pair.reference,
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

/// The round trips of each setting; nothing when they were not measured.
fn latency(study: &Study) -> Option<String> {
    let medians = Setting::ALL.map(|setting| {
        Group::of(study, Workload::Rr, setting)
            .median(|trial| Some(trial.round_trip?.p50_ns as f64 / 1e3))
    });
    medians.iter().any(Option::is_some).then(|| {
        let parts: Vec<String> = Setting::ALL
            .into_iter()
            .zip(medians)
            .map(|(setting, median)| format!("{} us under {setting}", figure_or_missing(median)))
            .collect();
        format!("A median round trip (rr) takes {}.", parts.join(", "))
    })
}
