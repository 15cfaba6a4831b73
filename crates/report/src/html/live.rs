//! A live comparison: the terminal's page, and each block over time.
//!
//! What must hold: the first screen has the sentences of the terminal's answer. Pairs that were set aside are drawn as
//! such, and take part in nothing.

use maud::{Markup, html};
use nicpoll_model::ab::{AbBlock, LiveAb};

use super::figure::Figure;
use super::{blocks, blocks_of};
use crate::numbers::{MISSING, figure};
use crate::plot::{self, Axis, Frame, LEFT, LETTERS, Look, RIGHT, mark, text};
use crate::text::ab;
use crate::text::page::Block;

/// Height of the area of the marks.
const AREA: f64 = 230.0;
/// A line of the legend.
const LINE: f64 = 24.0;

/// The answer, the blocks over time, and what each setting used.
pub fn of_ab(compared: &LiveAb) -> Markup {
    let page = blocks_of(|page| ab::write(page, compared));
    let is_heading = |block: &&Block| matches!(block, Block::Heading(_));
    let second = page
        .iter()
        .enumerate()
        .skip(1)
        .find(|(_, block)| is_heading(block));
    let (answer, rest) = page.split_at(second.map_or(page.len(), |(index, _)| index));
    let (title, answer) = match answer.split_first() {
        Some((Block::Heading(title), answer)) => (title.as_str(), answer),
        _ => ("", answer),
    };
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
            (blocks::of(&answer.iter().collect::<Vec<_>>()))
        }
        section id="pairs" {
            h2 { "Block by block" }
            div.figures { @for figure in figures.iter().flatten() { (figure.markup()) } }
        }
        section { (blocks::of(&rest.iter().collect::<Vec<_>>())) }
    }
}

/// A figure of each block over the time of the run; `None` when no block has it, or it is 0 in all.
fn over_time(compared: &LiveAb, name: &str, read: fn(&AbBlock) -> Option<f64>) -> Option<Figure> {
    let arms: [(&str, fn(&nicpoll_model::ab::AbPair) -> &AbBlock); 2] = [
        (&compared.reference.name, |pair| &pair.reference),
        (&compared.judged.name, |pair| &pair.judged),
    ];
    let counting = || {
        compared
            .pairs
            .iter()
            .filter(|pair| pair.set_aside_because.is_none())
    };
    let points: Vec<Vec<(f64, f64)>> = arms
        .iter()
        .map(|(_, arm)| {
            let blocks = counting().map(arm);
            blocks
                .filter_map(|block| Some((block.start_seconds, read(block)?)))
                .collect()
        })
        .collect();
    let all = || points.iter().flatten().map(|(_, value)| *value);
    let most = all().reduce(f64::max).filter(|most| *most > 0.0)?;
    let end = points
        .iter()
        .flatten()
        .map(|(time, _)| *time)
        .fold(0.0, f64::max);
    let (top, bottom) = (14.0, 14.0 + AREA);
    let frame = Frame {
        x: Axis::up_to(end),
        y: Axis::around(all().fold(f64::INFINITY, f64::min), most),
        top,
        bottom,
        letters: LETTERS,
    };
    let mut svg = plot::drawing(
        bottom + 62.0 + 2.0 * LINE,
        &format!("{name} in each block, over time"),
    );
    frame.grid(&mut svg, 22.0);
    plot::upright(
        &mut svg,
        (20, f64::midpoint(top, bottom)),
        name.split(',').next().unwrap_or(name),
    );
    let middle = f64::midpoint(LEFT, RIGHT);
    text(
        &mut svg,
        (middle, bottom + 46.0),
        "middle",
        LETTERS,
        "seconds since the first block",
    );
    for (index, (points, (name, _))) in points.iter().zip(&arms).enumerate() {
        // The reference is what was there: interrupts or not.
        let look = Look {
            colour: 1 - index,
            mark: index,
        };
        for (time, value) in points {
            mark(&mut svg, look, (frame.x(*time), frame.y(*value)));
        }
        let at = bottom + 68.0 + LINE * index as f64;
        mark(&mut svg, look, (LEFT + 6.0, at));
        text(&mut svg, (LEFT + 20.0, at + 6.0), "start", LETTERS, name);
    }
    svg += plot::END;
    let aside = compared.pairs.len() - counting().count();
    let mut caption = String::from("A mark is a block.");
    if !frame.y.is_from_zero() {
        caption += " The axis does not begin at 0.";
    }
    if aside > 0 {
        caption += &format!(" Pairs that were set aside, which are not drawn: {aside}.");
    }
    let rows = counting().map(|pair| {
        let cells = arms
            .iter()
            .map(|(_, arm)| read(arm(pair)).map_or(String::from(MISSING), figure));
        let time = figure(pair.reference.start_seconds.min(pair.judged.start_seconds));
        [time].into_iter().chain(cells).collect()
    });
    Some(Figure {
        title: super::plots::capital(name),
        caption,
        svg,
        rows: rows.collect(),
        head: ["pair from, s", arms[0].0, arms[1].0]
            .map(String::from)
            .to_vec(),
    })
}
