//! The livelock curve: what a sweep delivered, every discipline on one plot, as SVG.
//!
//! What must hold: the plot stands alone. It names its axes with their units, its curves and where they
//! come from. Curves differ in colour and in mark, so that they can be told apart without colour.

use std::fmt::Write;

use nicpoll_model::sim::{SimPoint, SimSweep};

use super::delivered_unit;
use super::sweep::{axis, discipline, disciplines, host};
use crate::plot::{self, Axis, Frame, LEFT, LINE, Look, RIGHT, TEXT, mark, text, wrapped};

/// Height of the area of the curves.
const AREA: f64 = 330.0;
/// From there to the legend.
const BELOW: f64 = 76.0;
/// From a legend's mark to its name.
const LEGEND_NAME: f64 = 36.0;

/// A sweep as an SVG document.
pub fn plot_sweep(sweep: &SimSweep) -> String {
    let names = disciplines(sweep);
    let colours = plot::colours(&names);
    let (title, facts) = heading(sweep);
    let top = plot::below_heading(&title, &facts) + 8.0;
    let bottom = top + AREA;
    let of_legend = |name: &&str| wrapped(name, TEXT, LEFT + LEGEND_NAME).len();
    let lines: usize = names.iter().map(of_legend).sum();
    let mut svg = plot::page(bottom + BELOW + LINE * lines as f64, &title);
    plot::heading(&mut svg, &title, &facts);
    let frame = frame(sweep, top, bottom);
    frame.grid(&mut svg, 19.0);
    let middle = (LEFT + RIGHT) / 2.0;
    let x_name = axis(&sweep.parameter);
    text(&mut svg, (middle, bottom + 44.0), "middle", TEXT, &x_name);
    let middle = (top + bottom) / 2.0;
    let unit = delivered_unit(&sweep.workload);
    plot::upright(&mut svg, (20, middle), &format!("delivered {unit}"));
    if sweep.parameter == "offered" {
        plot::diagonal(&mut svg, &frame);
    }
    let mut y = bottom + BELOW;
    for (index, name) in names.iter().enumerate() {
        let points = sweep.points.iter();
        let own: Vec<_> = points
            .filter(|point| discipline(&point.plan) == *name)
            .collect();
        let look = Look {
            colour: colours[index],
            mark: index,
        };
        curve(&mut svg, &frame, look, &own);
        legend(&mut svg, look, &mut y, name);
    }
    svg.push_str(plot::END);
    svg
}

/// What the plot shows, and where its figures come from.
fn heading(sweep: &SimSweep) -> (String, String) {
    let title = match sweep.parameter.as_str() {
        "offered" => String::from("Delivered against offered load"),
        other => format!("Delivered against {other}"),
    };
    let Some(point) = sweep.points.first() else {
        return (title, String::new());
    };
    let plan = &point.plan;
    let facts = format!(
        "simulated: host {}, {}, {} s a point, seed {}",
        host(plan),
        sweep.workload,
        plan.seconds,
        plan.seed
    );
    (title, facts)
}

fn frame(sweep: &SimSweep, top: f64, bottom: f64) -> Frame {
    let most = |of: fn(&SimPoint) -> f64| sweep.points.iter().map(of).fold(0.0, f64::max);
    Frame {
        x: Axis::up_to(most(|point| point.value)),
        y: Axis::up_to(most(|point| point.figures.delivered_pps)),
        top,
        bottom,
        letters: TEXT,
    }
}

fn curve(svg: &mut String, frame: &Frame, look: Look, points: &[&SimPoint]) {
    let points = points.iter();
    let figures = points.map(|point| (point.value, point.figures.delivered_pps));
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" {}/>",
        frame.points(figures.clone()),
        plot::stroke(look.colour)
    );
    for (x, y) in figures {
        mark(svg, look, (frame.x(x), frame.y(y)));
    }
}

/// A curve's line of the legend at `y`, which then is where the next one stands.
fn legend(svg: &mut String, look: Look, y: &mut f64, name: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" {}/>",
        LEFT + 28.0,
        plot::stroke(look.colour)
    );
    mark(svg, look, (LEFT + 14.0, *y));
    for line in wrapped(name, TEXT, LEFT + LEGEND_NAME) {
        text(svg, (LEFT + LEGEND_NAME, *y + 5.0), "start", TEXT, &line);
        *y += LINE;
    }
}
