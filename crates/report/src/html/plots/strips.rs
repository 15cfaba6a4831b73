//! Strips below each other that share their horizontal axis, each with its name above it.
//!
//! What must hold: a name may be long; it wraps, and the strip moves down.

use crate::plot::{self, LETTERS, WIDTH, text, wrapped};

/// Where the axis begins and ends.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 566.0;
/// Where names begin.
const NAME: f64 = 8.0;
/// A line of a name.
const LINE: f64 = 22.0;

/// Strips that are being drawn.
pub struct Strips {
    body: String,
    y: f64,
}

/// Where an axis has its lines: a place from 0 to 1, and what stands below it.
pub type Ticks = Vec<(f64, String)>;

impl Strips {
    /// None yet.
    pub fn new() -> Self {
        Strips {
            body: String::new(),
            y: 4.0,
        }
    }

    /// What is drawn goes here.
    pub fn body(&mut self) -> &mut String {
        &mut self.body
    }

    /// The place of a share of the axis.
    pub fn x(share: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * share
    }

    /// A name, and room for a strip of that height below it. Returns where its middle is.
    pub fn next(&mut self, name: &str, height: f64) -> f64 {
        self.name(name);
        let middle = self.y + 8.0 + height / 2.0;
        self.y += height + 16.0;
        middle
    }

    /// A name alone.
    pub fn name(&mut self, name: &str) {
        for line in wrapped(name, LETTERS, NAME) {
            self.y += LINE;
            text(
                &mut self.body,
                (NAME, self.y - 4.0),
                "start",
                LETTERS,
                &line,
            );
        }
    }

    /// Where the next name begins.
    pub fn y(&mut self) -> &mut f64 {
        &mut self.y
    }

    /// The drawing, with the axis below. `title` says what it shows to who cannot see it.
    pub fn end(self, title: &str, ticks: &Ticks, axis: &str) -> String {
        let bottom = self.y;
        let names = wrapped(axis, LETTERS, NAME);
        let height = match ticks.is_empty() {
            true => bottom,
            false => bottom + 28.0 + LINE * names.len() as f64 + 6.0,
        };
        let mut svg = plot::drawing(height, title);
        for (share, figure) in ticks {
            let x = Strips::x(*share);
            plot::line(&mut svg, (x, 0.0), (x, bottom), false);
            text(&mut svg, (x, bottom + 20.0), "middle", LETTERS, figure);
        }
        svg += &self.body;
        if !ticks.is_empty() {
            plot::line(&mut svg, (LEFT, bottom), (RIGHT, bottom), true);
            for (index, line) in names.iter().enumerate() {
                let y = bottom + 28.0 + LINE * (index + 1) as f64 - 4.0;
                text(&mut svg, (WIDTH / 2.0, y), "middle", LETTERS, line);
            }
        }
        svg + plot::END
    }
}
