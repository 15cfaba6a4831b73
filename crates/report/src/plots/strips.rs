//! Strips below each other that share their horizontal axis, each with its name above it. A name may be long; it wraps,
//! and the strip moves down.

use super::axis::Axis;
use super::svg::{self, LETTERS, WIDTH, text, wrapped};

/// Left and right end of the axis.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 566.0;
/// Left end of names.
const NAME: f64 = 8.0;
/// A line of a name.
pub const LINE: f64 = 22.0;

/// A drawing of strips.
pub struct Strips {
    /// The drawing so far.
    pub svg: String,
    /// Top of the next name.
    pub y: f64,
}

impl Strips {
    /// Starts without strips.
    pub fn new() -> Self {
        Strips {
            svg: String::new(),
            y: 4.0,
        }
    }

    /// Returns the position of a share of the axis.
    pub fn x(share: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * share
    }

    /// Draws a name, and reserves a strip of that height below it. Returns the strip's middle.
    pub fn next(&mut self, name: &str, height: f64) -> f64 {
        self.name(name);
        let middle = self.y + 8.0 + height / 2.0;
        self.y += height + 16.0;
        middle
    }

    /// Draws only a name.
    pub fn name(&mut self, name: &str) {
        for line in wrapped(name, LETTERS, NAME) {
            self.y += LINE;
            text(&mut self.svg, (NAME, self.y - 4.0), "start", LETTERS, &line);
        }
    }

    /// Ends the drawing; `title` is for screen readers.
    pub fn end(self, title: &str) -> String {
        svg::drawing(self.y, title) + &self.svg + svg::END
    }

    /// Ends the drawing with an axis below, and its name.
    pub fn end_with(self, title: &str, axis: &Axis, axis_name: &str) -> String {
        let bottom = self.y;
        let names = wrapped(axis_name, LETTERS, NAME);
        let height = bottom + 28.0 + LINE * names.len() as f64 + 6.0;
        let mut svg = svg::drawing(height, title);
        for tick in axis.ticks() {
            let x = Strips::x(axis.share(tick.figure));
            svg::line(&mut svg, (x, 0.0), (x, bottom), false);
            text(&mut svg, (x, bottom + 20.0), "middle", LETTERS, &tick.label);
        }
        svg += &self.svg;
        svg::line(&mut svg, (LEFT, bottom), (RIGHT, bottom), true);
        for (index, line) in names.iter().enumerate() {
            let y = bottom + 28.0 + LINE * (index + 1) as f64 - 4.0;
            text(&mut svg, (WIDTH / 2.0, y), "middle", LETTERS, line);
        }
        svg + svg::END
    }
}
