//! The livelock curve: what a sweep delivered, every discipline on one plot, as SVG.
//!
//! What must hold: the plot stands alone. It names its axes with their units, its curves and where they
//! come from. Curves differ in colour and in mark, so that they can be told apart without colour.

use std::fmt::Write;

use nicpoll_model::sim::{SimPoint, SimSweep};

use super::delivered_unit;
use super::svg::{self, Axis, COLOURS, Frame, LEFT, RIGHT, text};
use super::sweep::{axis, discipline, disciplines, host};

/// The area of the curves.
const TOP: f64 = 64.0;
const BOTTOM: f64 = 440.0;
/// The legend, below.
const LEGEND_TOP: f64 = 516.0;
const LEGEND_LINE: f64 = 22.0;
/// A name longer than this does not fit into half of the width.
const NAME_CHARS_MAX: usize = 46;

/// A sweep as an SVG document.
pub fn plot_sweep(sweep: &SimSweep) -> String {
    let names = disciplines(sweep);
    let has_long_name = names.iter().any(|name| name.len() > NAME_CHARS_MAX);
    let columns = if has_long_name { 1 } else { 2 };
    let lines = names.len().div_ceil(columns);
    let height = LEGEND_TOP + LEGEND_LINE * (lines as f64 + 1.0);
    let mut svg = svg::page(height);
    titles(&mut svg, sweep);
    let frame = frame(sweep);
    frame.grid(&mut svg, 19.0);
    let middle = (LEFT + RIGHT) / 2.0;
    let x_name = axis(&sweep.parameter);
    text(&mut svg, (middle, BOTTOM + 44.0), "middle", 13, &x_name);
    let middle = (TOP + BOTTOM) / 2.0;
    let unit = delivered_unit(&sweep.workload);
    svg::upright(&mut svg, (20, middle), &format!("delivered {unit}"));
    if sweep.parameter == "offered" {
        diagonal(&mut svg, &frame);
    }
    for (index, name) in names.iter().enumerate() {
        let points = sweep.points.iter();
        let own: Vec<_> = points
            .filter(|point| discipline(&point.plan) == *name)
            .collect();
        curve(&mut svg, &frame, index, &own);
        legend(&mut svg, index, columns, name);
    }
    svg.push_str(svg::END);
    svg
}

fn titles(svg: &mut String, sweep: &SimSweep) {
    let Some(point) = sweep.points.first() else {
        return;
    };
    let plan = &point.plan;
    let title = match sweep.parameter.as_str() {
        "offered" => String::from("Delivered against offered load"),
        other => format!("Delivered against {other}"),
    };
    let facts = format!(
        "simulated: host {}, {}, {} s a point, seed {}",
        host(plan),
        sweep.workload,
        plan.seconds,
        plan.seed
    );
    svg::titles(svg, &title, &facts);
}

fn frame(sweep: &SimSweep) -> Frame {
    let most = |of: fn(&SimPoint) -> f64| sweep.points.iter().map(of).fold(0.0, f64::max);
    Frame {
        x: Axis::up_to(most(|point| point.value)),
        y: Axis::up_to(most(|point| point.figures.delivered_pps)),
        top: TOP,
        bottom: BOTTOM,
    }
}

/// Where everything offered would be delivered.
fn diagonal(svg: &mut String, frame: &Frame) {
    let end = frame.x.max.min(frame.y.max);
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\" \
         stroke-dasharray=\"3 4\"/>",
        frame.x(0.0),
        frame.y(0.0),
        frame.x(end),
        frame.y(end)
    );
    let place = (frame.x(end) + 6.0, frame.y(end) + 14.0);
    text(svg, place, "start", 12, "all delivered");
}

fn curve(svg: &mut String, frame: &Frame, index: usize, points: &[&SimPoint]) {
    let colour = COLOURS[index % COLOURS.len()];
    let points = points.iter();
    let figures = points.map(|point| (point.value, point.figures.delivered_pps));
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        frame.points(figures.clone())
    );
    for (x, y) in figures {
        mark(svg, index, (frame.x(x), frame.y(y)));
    }
}

/// Disc, square, triangle, diamond: the next curve's mark differs from the last one's.
fn mark(svg: &mut String, index: usize, (x, y): (f64, f64)) {
    let colour = COLOURS[index % COLOURS.len()];
    let corners: &[(f64, f64)] = match index % 4 {
        0 => {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
            );
            return;
        }
        1 => &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
        2 => &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
        _ => &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)],
    };
    let path: Vec<_> = corners
        .iter()
        .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy))
        .collect();
    let _ = writeln!(
        svg,
        "<polygon points=\"{}\" fill=\"{colour}\"/>",
        path.join(" ")
    );
}

fn legend(svg: &mut String, index: usize, columns: usize, name: &str) {
    let colour = COLOURS[index % COLOURS.len()];
    let column = (RIGHT - LEFT) / columns as f64;
    let x = LEFT + column * (index % columns) as f64;
    let y = LEGEND_TOP + LEGEND_LINE * (index / columns) as f64;
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
         stroke-width=\"2\"/>",
        x + 28.0
    );
    mark(svg, index, (x + 14.0, y));
    text(svg, (x + 36.0, y + 4.0), "start", 13, name);
}
