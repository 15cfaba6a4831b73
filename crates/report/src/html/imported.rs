//! Imported trials: the terminal's page, and a plot of each workload.
//!
//! What must hold: the first screen says that the trials are imported and not paired.

use std::collections::HashMap;

use maud::{Markup, html};
use nicpoll_model::{Imported, ImportedTrial};

use super::blocks_of;
use super::figure::Figure;
use super::plots::scatter::{Series, looks, scatter};
use super::{blocks, plots::CUT};
use crate::numbers::figure;
use crate::plot::{Axis, Look};
use crate::text::imported;
use crate::text::page::Block;

/// The answer, the trials of each workload, and what the terminal's page says of them.
pub fn of_imported(document: &Imported) -> Markup {
    let page = blocks_of(|page| imported::write(page, document));
    let mut parts = page.chunk_by(|_, next| !matches!(next, Block::Heading(_)));
    let (title, answer) = match parts.next().and_then(<[Block]>::split_first) {
        Some((Block::Heading(title), answer)) => (title.as_str(), answer),
        _ => ("", &[][..]),
    };
    let settings = document.settings();
    let looks = settings.iter().copied().zip(looks(&settings)).collect();
    let end = f64::from(document.trials.last().map_or(1, |it| it.sequence));
    let figures: Vec<Figure> = document
        .by_workload()
        .into_iter()
        .filter_map(|(workload, trials)| of_workload(workload, &trials, &looks, end))
        .collect();
    html! {
        header id="answer" {
            h1 { (title) }
            (blocks::of(&answer.iter().collect::<Vec<_>>()))
        }
        section id="trials" {
            h2 { "Trial by trial" }
            div.figures { @for figure in &figures { (figure.markup()) } }
        }
        section id="figures" { (blocks::of(&parts.flatten().collect::<Vec<_>>())) }
    }
}

/// The rates of a workload's trials in the order of the text, the last of which has the number `end`.
fn of_workload(
    workload: &str,
    trials: &[&ImportedTrial],
    looks: &HashMap<&str, Look>,
    end: f64,
) -> Option<Figure> {
    let is_bits = trials.iter().all(|it| it.quantity == "bits_per_second");
    let (name, scale) = if is_bits {
        ("Mbit/s", 1e-6)
    } else {
        ("packets a second", 1.0)
    };
    let by_setting = ImportedTrial::by_setting(trials.iter().copied()).into_iter();
    let mut series: Vec<Series> = by_setting
        .map(|(name, of)| {
            let points = of.iter();
            let points = points.filter_map(|it| Some((f64::from(it.sequence), it.value? * scale)));
            Series {
                name,
                look: looks[name],
                points: points.collect(),
            }
        })
        .filter(|one| !one.points.is_empty())
        .collect();
    // As everywhere else in the document.
    series.sort_by_key(|one| one.look.mark);
    let values = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|(_, value)| *value)
    };
    let most = values().reduce(f64::max).filter(|most| *most > 0.0)?;
    let y = Axis::around(values().fold(most, f64::min), most);
    let svg = scatter(
        &format!("{workload}: {name} of each imported trial"),
        (Axis::up_to(end), "trial, in the order of the text"),
        (y, name),
        &series,
    );
    let rows = trials.iter().filter_map(|it| {
        let value = figure(it.value? * scale);
        Some(vec![
            it.sequence.to_string(),
            it.setting.clone(),
            value,
            it.place.line.to_string(),
        ])
    });
    let mut caption = String::from("A mark is an imported trial. They took no turns.");
    if !y.is_from_zero() {
        caption += CUT;
    }
    Some(Figure {
        title: format!("{workload}, {name}"),
        caption,
        svg,
        rows: rows.collect(),
        head: ["trial", "setting", name, "line"]
            .map(String::from)
            .to_vec(),
    })
}
