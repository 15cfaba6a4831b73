//! Figures over time, or over a load, as SVG: panels below each other that share their horizontal axis.
//!
//! What must hold: a chart stands alone. It names its axes with their units, its curves and where they
//! come from. Curves of one panel differ in colour and in dashes, so that they can be told apart without
//! colour; a curve of the same name has the same colour and dashes in every panel.

use std::fmt::Write;

use crate::plot::{self, Axis, Frame, LEFT, LINE, RIGHT, TEXT, text};

const PANEL: f64 = 190.0;
/// From panel to panel.
const GAP: f64 = 34.0;
/// From the last panel to the legend: the axis and its name.
const BELOW: f64 = 72.0;
/// A legend's line before the name.
const LEGEND_NAME: f64 = 48.0;
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// Curves over time or a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Where its figures come from.
    pub facts: String,
    /// Name of the horizontal axis, with its unit.
    pub x_name: String,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Curves of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Name of the quantity, with its unit.
    pub y_name: String,
    /// Drawn in this order.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Time or load, and quantity, neither below 0, in the order of the first.
    pub points: Vec<(f64, f64)>,
}

/// A chart as an SVG document.
pub fn plot_chart(chart: &Chart) -> String {
    let names = names(chart);
    let colours = plot::colours(&names);
    let panels = chart.panels.len() as f64;
    let first = plot::below_heading(&chart.title, &chart.facts) + 8.0;
    let bottom = first + panels * PANEL + (panels - 1.0).max(0.0) * GAP;
    let height = bottom + BELOW + names.len() as f64 * LINE;
    let mut svg = plot::page(height, &chart.title);
    plot::heading(&mut svg, &chart.title, &chart.facts);
    let x = Axis::up_to(greatest(chart.panels.iter(), |(time, _)| time));
    for (index, panel) in chart.panels.iter().enumerate() {
        let top = first + index as f64 * (PANEL + GAP);
        let y = Axis::up_to(greatest([panel].into_iter(), |(_, quantity)| quantity));
        let bottom = top + PANEL;
        let frame = Frame {
            x,
            y,
            top,
            bottom,
            letters: TEXT,
        };
        frame.grid(&mut svg, 19.0);
        plot::upright(&mut svg, (22, (top + bottom) / 2.0), &panel.y_name);
        for curve in &panel.curves {
            let index = names.iter().position(|name| *name == curve.name);
            let points = frame.points(curve.points.iter().copied());
            let index = index.unwrap_or(0);
            let stroke = stroke(colours[index], index);
            let _ = writeln!(svg, "<polyline points=\"{points}\" {stroke}/>");
        }
    }
    let middle = (LEFT + RIGHT) / 2.0;
    text(
        &mut svg,
        (middle, bottom + 44.0),
        "middle",
        TEXT,
        &chart.x_name,
    );
    for (index, name) in names.iter().enumerate() {
        let top = bottom + BELOW + LINE * index as f64;
        legend(&mut svg, &stroke(colours[index], index), top, name);
    }
    svg.push_str(plot::END);
    svg
}

/// Every curve's name once.
fn names(chart: &Chart) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for curve in chart.panels.iter().flat_map(|panel| &panel.curves) {
        if !names.contains(&curve.name.as_str()) {
            names.push(&curve.name);
        }
    }
    names
}

fn greatest<'a>(panels: impl Iterator<Item = &'a Panel>, of: fn((f64, f64)) -> f64) -> f64 {
    let curves = panels.flat_map(|panel| &panel.curves);
    let points = curves.flat_map(|curve| &curve.points);
    points.map(|point| of(*point)).fold(0.0, f64::max)
}

fn stroke(colour: usize, index: usize) -> String {
    let dashes = DASHES[index % DASHES.len()];
    format!(
        "{} stroke-dasharray=\"{}\"",
        plot::stroke(colour),
        if dashes.is_empty() { "none" } else { dashes }
    )
}

fn legend(svg: &mut String, stroke: &str, y: f64, name: &str) {
    let end = LEFT + LEGEND_NAME - 8.0;
    let _ = writeln!(
        svg,
        "<polyline points=\"{LEFT:.1},{y:.1} {end:.1},{y:.1}\" {stroke}/>"
    );
    text(svg, (LEFT + LEGEND_NAME, y + 5.0), "start", TEXT, name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::COLOURS;

    #[test]
    fn a_curve_keeps_its_colour_in_every_panel_and_names_are_escaped() {
        let curve = |name: &str| Curve {
            name: String::from(name),
            points: vec![(0.0, 1.0), (10.0, 3.0)],
        };
        let panel = |curves| Panel {
            y_name: String::from("a < b"),
            curves,
        };
        let svg = plot_chart(&Chart {
            title: String::from("t"),
            facts: String::from("f"),
            x_name: String::from("x"),
            panels: vec![
                panel(vec![curve("one"), curve("two")]),
                panel(vec![curve("two")]),
            ],
        });
        let with = |colour: &str| svg.lines().filter(|line| line.contains(colour)).count();
        // Each curve once a panel, and once in the legend.
        assert_eq!(with(COLOURS[0]), 2);
        assert_eq!(with(COLOURS[1]), 3);
        assert!(svg.contains("a &lt; b"));
    }
}
