//! Delays against what was offered, on an axis of equal ratios: they differ by powers of ten.

use nicpoll_model::Sweep;

use super::{Drawn, Read, rows_of, series_of};
use crate::html::plots::scatter::{self, BOTTOM, TOP};
use crate::plot::{self, Axis, LEFT, LETTERS, LogAxis, RIGHT, mark, short, text};

/// The curves of a delay; `None` when no rate has it.
pub fn curve(sweep: &Sweep, (unit, name): (&str, &str), read: Read) -> Option<Drawn> {
    let series = series_of(sweep, read);
    let all = || series.iter().flat_map(|one| &one.points);
    let delays = || all().map(|(_, delay)| *delay);
    let (least, most) = (delays().reduce(f64::min)?, delays().reduce(f64::max)?);
    let across = Axis::up_to(all().map(|(offered, _)| *offered).reduce(f64::max)?);
    let up = LogAxis::over(least, most);
    let x = |offered: f64| LEFT + across.along(offered, RIGHT - LEFT);
    let y = |delay: f64| BOTTOM - (BOTTOM - TOP) * up.share(delay);
    let title = format!("{}: {name} against what was offered", sweep.sweep);
    let mut svg = plot::drawing(scatter::height(series.len()), &title);
    for tick in across.ticks() {
        plot::line(&mut svg, (x(tick), TOP), (x(tick), BOTTOM), tick == 0.0);
        let place = (x(tick), BOTTOM + 22.0);
        text(&mut svg, place, "middle", LETTERS, &short(tick));
    }
    for tick in up.decades(0.09) {
        plot::line(&mut svg, (LEFT, y(tick)), (RIGHT, y(tick)), false);
        let place = (LEFT - 8.0, y(tick) + 5.0);
        text(&mut svg, place, "end", LETTERS, &short(tick));
    }
    scatter::names(&mut svg, &format!("offered, {unit}"), name);
    for one in &series {
        let places = one.points.iter();
        let places: Vec<_> = places
            .map(|(offered, delay)| format!("{:.1},{:.1}", x(*offered), y(*delay)))
            .collect();
        let stroke = plot::stroke(one.look.colour);
        svg += &format!("<polyline points=\"{}\" {stroke}/>\n", places.join(" "));
        for (offered, delay) in &one.points {
            mark(&mut svg, one.look, (x(*offered), y(*delay)));
        }
    }
    scatter::legend(&mut svg, &series);
    let rows = rows_of(&series);
    Some(Drawn {
        svg: svg + plot::END,
        rows,
    })
}
