//! A live comparison: the terminal's page, and each block over time.
//!
//! What must hold: the first screen has the sentences of the terminal's answer. Pairs that were set aside are drawn as
//! such, and take part in nothing.

use maud::{Markup, html};
use nicpoll_model::ab::{AbBlock, AbPair, LiveAb};

use super::figure::Figure;
use super::plots::scatter::{Series, looks, scatter};
use super::plots::{CUT, capital};
use super::{blocks, blocks_of};
use crate::numbers::{figure, figure_or_missing};
use crate::plot::Axis;
use crate::text::ab;
use crate::text::page::Block;

/// The answer, the blocks over time, and what each setting used.
pub fn of_ab(compared: &LiveAb) -> Markup {
    let page = blocks_of(|page| ab::write(page, compared));
    let mut parts = page.chunk_by(|_, next| !matches!(next, Block::Heading(_)));
    let (title, answer) = match parts.next().and_then(<[Block]>::split_first) {
        Some((Block::Heading(title), answer)) => (title.as_str(), answer),
        _ => ("", &[][..]),
    };
    // The last part says what to do, which a reader wants to know first.
    let advice = parts.next_back().unwrap_or_default();
    let figures = [
        over_time(compared, "busy cores", |block| block.window.busy_cores()),
        over_time(compared, "packets a second, both ways", |block| {
            Some(block.window.packets_per_second())
        }),
        over_time(
            compared,
            "context switches a second, whole machine",
            |block| Some(block.context_switches? as f64 / block.window.seconds),
        ),
        over_time(compared, "interrupts a second, of the interface", |block| {
            Some(block.interrupts? as f64 / block.window.seconds)
        }),
        over_time(compared, "polls a second, of the interface", |block| {
            Some(block.polls? as f64 / block.window.seconds)
        }),
    ];
    html! {
        header id="answer" {
            h1 { (title) }
            (blocks::of(&answer.iter().chain(advice).collect::<Vec<_>>()))
        }
        section id="pairs" {
            h2 { "Block by block" }
            div.figures { @for figure in figures.iter().flatten() { (figure.markup()) } }
        }
        section { (blocks::of(&parts.flatten().collect::<Vec<_>>())) }
    }
}

/// The name of a setting, and its block of a pair.
type Arm<'a> = (&'a str, fn(&AbPair) -> &AbBlock);

fn arms(compared: &LiveAb) -> [Arm<'_>; 2] {
    [
        (&compared.reference.name, |pair| &pair.reference),
        (&compared.judged.name, |pair| &pair.judged),
    ]
}

/// A figure of each block over the time of the run; `None` when no block has it, or it is 0 in all.
fn over_time(compared: &LiveAb, name: &str, read: fn(&AbBlock) -> Option<f64>) -> Option<Figure> {
    let arms = arms(compared);
    let counting = || {
        compared
            .pairs
            .iter()
            .filter(|pair| pair.set_aside_because.is_none())
    };
    let series: Vec<Series> = arms
        .iter()
        .zip(looks(&arms.map(|(name, _)| name)))
        .map(|((name, arm), look)| {
            let blocks = counting().map(arm);
            let points = blocks.filter_map(|block| Some((block.start_seconds, read(block)?)));
            let points = points.collect();
            Series { name, look, points }
        })
        .collect();
    let all = || series.iter().flat_map(|one| &one.points);
    let values = || all().map(|(_, value)| *value);
    let most = values().reduce(f64::max).filter(|most| *most > 0.0)?;
    let y = Axis::around(values().fold(most, f64::min), most);
    let end = all().map(|(time, _)| *time).fold(0.0, f64::max);
    let svg = scatter(
        &format!("{name} in each block, over time"),
        (Axis::up_to(end), "seconds since the first block"),
        (y, name.split(',').next().unwrap_or(name)),
        &series,
    );
    let rows = counting().map(|pair| {
        let cells = arms
            .iter()
            .map(|(_, arm)| figure_or_missing(read(arm(pair))));
        let time = figure(pair.reference.start_seconds.min(pair.judged.start_seconds));
        [time].into_iter().chain(cells).collect()
    });
    Some(Figure {
        title: capital(name),
        caption: caption(y, compared.pairs.len() - counting().count()),
        svg,
        rows: rows.collect(),
        head: ["pair from, s", arms[0].0, arms[1].0]
            .map(String::from)
            .to_vec(),
    })
}

fn caption(y: Axis, aside: usize) -> String {
    let mut caption = String::from("A mark is a block.");
    if !y.is_from_zero() {
        caption += CUT;
    }
    if aside > 0 {
        caption += &format!(" Pairs that were set aside, which are not drawn: {aside}.");
    }
    caption
}
