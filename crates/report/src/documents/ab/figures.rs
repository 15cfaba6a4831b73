//! Each block of a live comparison over time. Pairs that were set aside are not drawn.

use nicpoll_model::ab::{AbBlock, AbPair, LiveAb};
use nicpoll_model::numbers::{figure, figure_or_missing};

use crate::documents::study::plots::{capital, caption};
use crate::page::Figure;
use crate::plots::axis::Axis;
use crate::plots::curves::{Series, scatter, values};
use crate::plots::svg::looks;

/// A figure of a block: its name, and how it is read.
type Reading = (&'static str, fn(&AbBlock) -> Option<f64>);

const READINGS: [Reading; 5] = [
    ("busy cores", |block| block.window.busy_cores()),
    ("packets a second, both ways", |block| {
        Some(block.window.packets_per_second())
    }),
    ("context switches a second, whole machine", |block| {
        Some(block.context_switches? as f64 / block.window.seconds)
    }),
    ("interrupts a second, of the interface", |block| {
        Some(block.interrupts? as f64 / block.window.seconds)
    }),
    ("polls a second, of the interface", |block| {
        Some(block.polls? as f64 / block.window.seconds)
    }),
];

/// The plots that a comparison allows.
pub fn of(compared: &LiveAb) -> impl Iterator<Item = Figure> {
    let readings = READINGS.iter();
    readings.filter_map(|reading| over_time(compared, *reading))
}

/// A figure of each block over the time of the run; `None` when no block has it, or it is 0 in all.
fn over_time(compared: &LiveAb, (name, read): Reading) -> Option<Figure> {
    let names = [&*compared.reference.name, &*compared.judged.name];
    let blocks: [fn(&AbPair) -> &AbBlock; 2] = [|pair| &pair.reference, |pair| &pair.judged];
    let counting = || {
        let pairs = compared.pairs.iter();
        pairs.filter(|pair| pair.set_aside_because.is_none())
    };
    let arms = names.iter().zip(looks(&names)).zip(blocks);
    let series = arms.map(|((name, look), block)| {
        let blocks = counting().map(block);
        let points = blocks.filter_map(|block| Some((block.start_seconds, read(block)?)));
        Series {
            points: points.collect(),
            ..Series::named(name, look)
        }
    });
    let series: Vec<Series> = series.collect();
    let y = Axis::around_all(values(&series))?;
    values(&series).find(|value| *value > 0.0)?;
    let times = series.iter().flat_map(|one| &one.points);
    let end = times.map(|(time, _)| *time).fold(0.0, f64::max);
    let svg = scatter(
        &format!("{name} in each block, over time"),
        (Axis::up_to(end), "seconds since the first block"),
        (y, name.split(',').next().unwrap_or(name)),
        &series,
    );
    let rows = counting().map(|pair| {
        let cells = blocks.map(|block| figure_or_missing(read(block(pair))));
        let time = figure(pair.reference.start_seconds.min(pair.judged.start_seconds));
        [time].into_iter().chain(cells).collect()
    });
    let mut caption = caption("A mark is a block.", &y);
    let aside = compared.pairs.len() - counting().count();
    if aside > 0 {
        caption += &format!(" Pairs that were set aside, which are not drawn: {aside}.");
    }
    let head = ["pair from, s", names[0], names[1]];
    Some(Figure::new(capital(name), caption, svg, head, rows))
}
