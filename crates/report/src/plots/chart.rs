//! A chart of figures over time or load, as a file of its own: panels below each other that share their horizontal
//! axis.
//!
//! A chart names its axes with units, its curves and their source. Curves of one panel differ in colour and dashes; a
//! curve has the same colour and dashes in every panel.

use super::axis::Axis;
use super::curves::PlotFrame;
use super::svg::{self, LEFT, LINE, RIGHT, TEXT, text};
use crate::lists::distinct;

const PANEL: f64 = 190.0;
/// Distance between panels.
const GAP: f64 = 34.0;
/// Distance from the last panel to the legend, for the axis and its name.
const BELOW: f64 = 72.0;
/// Width of a legend's line before the name.
const LEGEND_NAME: f64 = 48.0;
const DASHES: [&str; 4] = ["none", "7 4", "2 3", "9 3 2 3"];

/// Curves over time or a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// Source of its figures.
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
    /// Its curves, in the order of drawing.
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

/// Plots a chart as an SVG document.
pub fn plot_chart(chart: &Chart) -> String {
    let names = names(chart);
    let colours = svg::colours(&names);
    let strokes: Vec<String> = colours.into_iter().enumerate().map(stroke).collect();
    let panels = chart.panels.len() as f64;
    let first = svg::below_heading(&chart.title, &chart.facts) + 8.0;
    let bottom = first + panels * PANEL + (panels - 1.0).max(0.0) * GAP;
    let height = bottom + BELOW + names.len() as f64 * LINE;
    let mut svg = svg::page(height, &chart.title);
    svg::heading(&mut svg, &chart.title, &chart.facts);
    let x = Axis::up_to(greatest(&chart.panels, |(time, _)| time));
    for (index, panel) in chart.panels.iter().enumerate() {
        let top = first + index as f64 * (PANEL + GAP);
        let frame = PlotFrame {
            x,
            y: Axis::up_to(greatest([panel], |(_, quantity)| quantity)),
            top,
            bottom: top + PANEL,
            letters: TEXT,
        };
        frame.grid(&mut svg, 19.0);
        svg::upright(&mut svg, (22, top + PANEL / 2.0), &panel.y_name);
        for curve in &panel.curves {
            let index = names.iter().position(|name| *name == curve.name);
            let stroke = &strokes[index.unwrap_or(0)];
            frame.curve(&mut svg, curve.points.iter().copied(), stroke);
        }
    }
    let place = ((LEFT + RIGHT) / 2.0, bottom + 44.0);
    text(&mut svg, place, "middle", TEXT, &chart.x_name);
    for (index, name) in names.iter().enumerate() {
        let y = bottom + BELOW + LINE * index as f64;
        let line = [(LEFT, y), (LEFT + LEGEND_NAME - 8.0, y)];
        svg::curve(&mut svg, line.into_iter(), &strokes[index]);
        text(&mut svg, (LEFT + LEGEND_NAME, y + 5.0), "start", TEXT, name);
    }
    svg + svg::END
}

/// Returns every curve's name once.
fn names(chart: &Chart) -> Vec<&str> {
    let curves = chart.panels.iter().flat_map(|panel| &panel.curves);
    distinct(curves.map(|curve| curve.name.as_str()))
}

fn greatest<'a>(panels: impl IntoIterator<Item = &'a Panel>, of: fn((f64, f64)) -> f64) -> f64 {
    let curves = panels.into_iter().flat_map(|panel| &panel.curves);
    let points = curves.flat_map(|curve| &curve.points);
    points.map(|point| of(*point)).fold(0.0, f64::max)
}

/// Returns the stroke of a curve.
fn stroke((index, colour): (usize, usize)) -> String {
    let dashes = DASHES[index % DASHES.len()];
    format!("{} stroke-dasharray=\"{dashes}\"", svg::stroke(colour))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::svg::COLOURS;

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
        // Each curve is once in the panel and once in the legend.
        assert_eq!(with(COLOURS[0]), 2);
        assert_eq!(with(COLOURS[1]), 3);
        assert!(svg.contains("a &lt; b"));
    }
}
