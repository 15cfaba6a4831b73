//! Figures over two axes: curves and marks, with a legend below.

use nicpoll_model::numbers::figure;

use super::axis::Axis;
use super::svg::{self, CurveLook, LEFT, LETTERS, RIGHT, mark, text};
use crate::lists;

/// Top and bottom of the curves' area, within a page of HTML.
pub const TOP: f64 = 14.0;
const BOTTOM: f64 = TOP + 236.0;
/// Distance from the area to the legend.
const BELOW: f64 = 68.0;
/// A line of the legend.
const LINE: f64 = 24.0;
/// Distance from the end of the diagonal up to its name.
const NAME_ABOVE: f64 = 6.0;

/// An area of curves, which maps figures to positions on the page.
pub struct PlotFrame {
    pub x: Axis,
    pub y: Axis,
    pub top: f64,
    pub bottom: f64,
    /// Height of the letters at its axes.
    pub letters: u32,
}

impl PlotFrame {
    pub fn x(&self, figure: f64) -> f64 {
        LEFT + self.x.along(figure, RIGHT - LEFT)
    }

    pub fn y(&self, figure: f64) -> f64 {
        self.bottom - self.y.along(figure, self.bottom - self.top)
    }

    /// Draws the lines of both axes with their figures, those of the horizontal axis `below` the area.
    pub fn grid(&self, svg: &mut String, below: f64) {
        for tick in self.x.ticks() {
            let x = self.x(tick.figure);
            svg::line(svg, (x, self.top), (x, self.bottom), tick.is_first);
            let place = (x, self.bottom + below);
            text(svg, place, "middle", self.letters, &tick.label);
        }
        for tick in self.y.ticks() {
            let y = self.y(tick.figure);
            svg::line(svg, (LEFT, y), (RIGHT, y), tick.is_first);
            if !tick.label.is_empty() {
                let place = (LEFT - 8.0, y + 5.0);
                text(svg, place, "end", self.letters, &tick.label);
            }
        }
    }

    /// A curve through figures.
    pub fn curve(
        &self,
        svg: &mut String,
        figures: impl IntoIterator<Item = (f64, f64)>,
        stroke: &str,
    ) {
        let places = figures.into_iter().map(|(x, y)| (self.x(x), self.y(y)));
        svg::curve(svg, places, stroke);
    }

    /// Draws the line on which everything offered is delivered, for axes of the same unit from 0. Its name is above
    /// its end, and needs the room of [`above_diagonal`] over the area.
    pub fn diagonal(&self, svg: &mut String) {
        let end = self.x.end().min(self.y.end());
        let (x, y) = (self.x(end), self.y(end));
        let stroke = "stroke=\"#888\" stroke-dasharray=\"3 4\"";
        svg::straight(svg, "", (self.x(0.0), self.y(0.0)), (x, y), stroke);
        // On the side with room for the words: the axis's figures are on the left.
        let (x, anchor) = match x < (LEFT + RIGHT) / 2.0 {
            true => (x + 8.0, "start"),
            false => (x - 8.0, "end"),
        };
        let place = (x, y - NAME_ABOVE);
        text(svg, place, anchor, self.letters, "all delivered");
    }
}

/// Returns the distance from the end of the diagonal up to the top of its name, for letters of that height.
pub fn above_diagonal(letters: u32) -> f64 {
    NAME_ABOVE + f64::from(letters)
}

/// Marks that belong together.
pub struct Marks<'a> {
    /// Their name in the legend.
    pub name: &'a str,
    pub look: CurveLook,
    /// Their positions.
    pub points: Vec<(f64, f64)>,
}

impl<'a> Marks<'a> {
    /// Makes a series; one without points is drawn elsewhere as a curve, and only named in the legend.
    pub fn of(name: &'a str, look: CurveLook, points: Vec<(f64, f64)>) -> Self {
        Marks { name, look, points }
    }

    /// Returns its row of a table: its name, and its points with `x` formatted.
    pub fn row(&self, x: fn(f64) -> String) -> Vec<String> {
        let points = self.points.iter();
        let points = points.map(|(at, value)| format!("{}: {}", x(*at), figure(*value)));
        vec![String::from(self.name), lists::joined(points, "; ")]
    }
}

/// Returns all values of some series.
pub fn values<'a>(series: &'a [Marks]) -> impl Iterator<Item = f64> + Clone + 'a {
    let points = series.iter().flat_map(|one| &one.points);
    points.map(|(_, value)| *value)
}

/// A drawing of curves within a page.
pub struct Curves {
    pub svg: String,
    pub frame: PlotFrame,
}

impl Curves {
    /// Draws both axes with their names, and reserves room for a legend of this many lines and above the area.
    /// `title` is for screen readers.
    pub fn new(
        title: &str,
        (x, x_name): (Axis, &str),
        (y, y_name): (Axis, &str),
        above: f64,
        legend: usize,
    ) -> Self {
        let height = BOTTOM + BELOW - 6.0 + LINE * legend as f64;
        let mut svg = svg::drawing(height, title);
        let frame = PlotFrame {
            x,
            y,
            top: TOP + above,
            bottom: BOTTOM,
            letters: LETTERS,
        };
        frame.grid(&mut svg, 22.0);
        if !y_name.is_empty() {
            svg::upright(&mut svg, (15, f64::midpoint(TOP, BOTTOM)), y_name);
        }
        let place = (f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0);
        text(&mut svg, place, "middle", LETTERS, x_name);
        Curves { svg, frame }
    }

    /// A curve through figures.
    pub fn curve(&mut self, figures: impl IntoIterator<Item = (f64, f64)>, stroke: &str) {
        self.frame.curve(&mut self.svg, figures, stroke);
    }

    /// Ends the drawing with the marks of these series over its curves, and their names in the legend.
    pub fn end(self, series: &[Marks]) -> String {
        let Curves { mut svg, frame } = self;
        for one in series {
            for (x, y) in &one.points {
                mark(&mut svg, one.look, (frame.x(*x), frame.y(*y)));
            }
        }
        for (index, one) in series.iter().enumerate() {
            let y = BOTTOM + BELOW + LINE * index as f64;
            mark(&mut svg, one.look, (LEFT + 6.0, y));
            let place = (LEFT + 20.0, y + 6.0);
            text(&mut svg, place, "start", LETTERS, one.name);
        }
        svg + svg::END
    }
}

/// Draws marks alone.
pub fn scatter(title: &str, x: (Axis, &str), y: (Axis, &str), series: &[Marks]) -> String {
    Curves::new(title, x, y, 0.0, series.len()).end(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::svg::TEXT;

    #[test]
    fn the_name_of_a_steep_diagonal_is_not_on_the_figures_of_the_axis() {
        for (delivered, anchor) in [(5.0, "start"), (200.0, "end")] {
            let frame = PlotFrame {
                x: Axis::up_to(200.0),
                y: Axis::up_to(delivered),
                top: 100.0,
                bottom: 400.0,
                letters: TEXT,
            };
            let mut svg = String::new();
            frame.diagonal(&mut svg);
            let words = svg.lines().find(|line| line.starts_with("<text")).unwrap();
            let anchor = format!("text-anchor=\"{anchor}\"");
            assert!(words.contains(&anchor), "{words}");
        }
    }
}
