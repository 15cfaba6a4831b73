//! What every plot has in common, be it a document of its own or a part of a report: the page, its axes and colours.
//!
//! What must hold: nothing that is named can break the document. On a screen 380 pixels wide every word is still
//! 9 pixels high or more, and none runs out of the page. The page says what it is to who cannot see it, and is dark
//! where the reader's other pages are. A discipline has the same colour in every plot.

mod axis;
mod colour;

use std::fmt::Write;

pub use self::axis::{Axis, LogAxis};
pub use self::colour::{COLOURS, colours};

pub const WIDTH: f64 = 600.0;
/// From here to `RIGHT` is the area of the curves.
pub const LEFT: f64 = 74.0;
pub const RIGHT: f64 = 580.0;
/// Height of letters, and of those of the title.
pub const TEXT: u32 = 15;
/// Height of letters within a page of HTML, whose margins leave a plot less room.
pub const LETTERS: u32 = 17;
const TITLE: u32 = 18;
/// A line of text with its gap.
pub const LINE: f64 = 20.0;
/// From the end of the diagonal up to its name.
const NAME_ABOVE: f64 = 6.0;
/// Mean width of a letter of a sans-serif font, in parts of its height, and something to spare.
const LETTER: f64 = 0.54;
/// What a dark page changes: paper, words, lines, and the black of the last curve.
pub const DARK: &str = "@media (prefers-color-scheme: dark) { .paper { fill: #15191e } text { fill: #e6e9ec } \
    .axis { stroke: #e6e9ec } .grid { stroke: #3b434c } .line6 { stroke: #fff } .mark6 { fill: #fff } }";

/// An empty page. `END` closes it.
pub fn page(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"{TEXT}\" fill=\"#222\">\n\
         <title>{}</title>\n<style>{DARK}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n",
        escaped(title)
    )
}

/// An empty drawing within a page of HTML, which has its style. `END` closes it. A reader finds `title` in place of what
/// is drawn.
pub fn drawing(height: f64, title: &str) -> String {
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"{LETTERS}\" \
         fill=\"#222\">\n<title>{}</title>\n",
        escaped(title)
    )
}

/// The end of a page.
pub const END: &str = "</svg>\n";

/// Where the heading of a page ends: its title, and where its figures come from.
pub fn below_heading(title: &str, facts: &str) -> f64 {
    let lines = wrapped(title, TITLE, LEFT).len() + wrapped(facts, TEXT, LEFT).len();
    16.0 + lines as f64 * (LINE + 1.0)
}

/// What the plot shows, and where its figures come from.
pub fn heading(svg: &mut String, title: &str, facts: &str) {
    let title = wrapped(title, TITLE, LEFT)
        .into_iter()
        .map(|line| (TITLE, line));
    let facts = wrapped(facts, TEXT, LEFT)
        .into_iter()
        .map(|line| (TEXT, line));
    for (number, (size, line)) in title.chain(facts).enumerate() {
        let y = 26.0 + number as f64 * (LINE + 1.0);
        text(svg, (LEFT, y), "start", size, &line);
    }
}

/// The lines of a text of that height that begins at `x`, so that none runs out of the page. They break at blanks,
/// and behind a colon or a comma.
pub fn wrapped(text: &str, size: u32, x: f64) -> Vec<String> {
    let most = ((WIDTH - 8.0 - x) / (LETTER * f64::from(size))) as usize;
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([' ', ':', ',']) {
        let line = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + word.trim_end().chars().count() <= most
        });
        match line {
            Some(line) => line.push_str(word),
            None => lines.push(String::from(word)),
        }
    }
    lines
        .iter()
        .map(|line| String::from(line.trim_end()))
        .collect()
}

pub fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
        escaped(text)
    );
}

/// The name of a vertical axis, read from below.
pub fn upright(svg: &mut String, (x, y): (u32, f64), name: &str) {
    let _ = writeln!(
        svg,
        "<text transform=\"translate({x} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escaped(name)
    );
}

/// How a line of that colour is drawn.
pub fn stroke(colour: usize) -> String {
    stroke_of(colour, 2.0)
}

/// How a line of that colour and width is drawn.
pub fn stroke_of(colour: usize, width: f64) -> String {
    let number = colour % COLOURS.len();
    format!(
        "fill=\"none\" class=\"line{number}\" stroke=\"{}\" stroke-width=\"{width}\"",
        COLOURS[number]
    )
}

/// How a mark of that colour is filled.
pub fn fill(colour: usize) -> String {
    let number = colour % COLOURS.len();
    format!("class=\"mark{number}\" fill=\"{}\"", COLOURS[number])
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// How the points of a curve look. Marks tell curves apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Index of its colour.
    pub colour: usize,
    /// Number of its mark.
    pub mark: usize,
}

/// Disc, square, triangle, diamond: the next curve's mark differs from the last one's.
pub fn mark(svg: &mut String, look: Look, (x, y): (f64, f64)) {
    let fill = fill(look.colour);
    let corners: &[(f64, f64)] = match look.mark % 4 {
        0 => {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" {fill}/>"
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
    let _ = writeln!(svg, "<polygon points=\"{}\" {fill}/>", path.join(" "));
}

/// A straight line of an axis, or of the grid behind the curves.
pub fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), is_axis: bool) {
    let (class, stroke) = if is_axis {
        ("axis", "#222")
    } else {
        ("grid", "#ddd")
    };
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
         stroke=\"{stroke}\"/>"
    );
}

/// From the end of [`diagonal`] up to the top of its name, for letters of that height.
pub fn above_diagonal(letters: u32) -> f64 {
    NAME_ABOVE + f64::from(letters)
}

/// Where everything offered would be delivered, on axes of the same unit that begin at 0. Its name stands above its end,
/// which needs the room of [`above_diagonal`] over the area.
pub fn diagonal(svg: &mut String, frame: &Frame) {
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
    // On the side that has room for the words: the figures of the axis are on the left.
    let (x, anchor) = match frame.x(end) {
        x if x < (LEFT + RIGHT) / 2.0 => (x + 8.0, "start"),
        x => (x - 8.0, "end"),
    };
    let place = (x, frame.y(end) - NAME_ABOVE);
    text(svg, place, anchor, frame.letters, "all delivered");
}

/// An area of curves: from figures to places on the page.
pub struct Frame {
    pub x: Axis,
    pub y: Axis,
    pub top: f64,
    pub bottom: f64,
    /// Height of the letters at its axes.
    pub letters: u32,
}

impl Frame {
    pub fn x(&self, figure: f64) -> f64 {
        LEFT + self.x.along(figure, RIGHT - LEFT)
    }

    pub fn y(&self, figure: f64) -> f64 {
        self.bottom - self.y.along(figure, self.bottom - self.top)
    }

    /// The lines of both axes with their figures, those of the horizontal one so far `below` the area.
    pub fn grid(&self, svg: &mut String, below: f64) {
        for tick in self.x.ticks() {
            let x = self.x(tick);
            let is_first = tick == self.x.min;
            line(svg, (x, self.top), (x, self.bottom), is_first);
            let place = (x, self.bottom + below);
            text(svg, place, "middle", self.letters, &short(tick));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            line(svg, (LEFT, y), (RIGHT, y), tick == self.y.min);
            text(
                svg,
                (LEFT - 8.0, y + 5.0),
                "end",
                self.letters,
                &short(tick),
            );
        }
    }

    /// Figures as the places of a `points` attribute.
    pub fn points(&self, figures: impl Iterator<Item = (f64, f64)>) -> String {
        let places: Vec<_> = figures
            .map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y)))
            .collect();
        places.join(" ")
    }
}

/// `60k`, `1.5M`.
pub fn short(value: f64) -> String {
    // Steps are exact multiples; what their sum adds in the last digits is cut.
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    if value >= 1e6 {
        format!("{}M", rounded(value / 1e6))
    } else if value >= 1e3 {
        format!("{}k", rounded(value / 1e3))
    } else {
        rounded(value).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_at_an_axis_are_short() {
        assert_eq!(short(60_000.0), "60k");
        assert_eq!(short(1_500_000.0), "1.5M");
        assert_eq!(short(0.0), "0");
    }

    /// Sizes of letters, and how far each text reaches, as far as that is known from its beginning.
    fn words(svg: &str) -> Vec<(f64, f64)> {
        let number = |line: &str, name: &str| -> Option<f64> {
            let value = line.split_once(&format!("{name}=\""))?.1;
            value.split('"').next()?.parse().ok()
        };
        let texts = svg.lines().filter(|line| line.starts_with("<text"));
        texts
            .map(|line| {
                let size = number(line, "font-size").unwrap_or(f64::from(TEXT));
                let letters = line.split(['>', '<']).nth(2).unwrap().chars().count();
                let long = letters as f64 * size * 0.5;
                let is_start = line.contains("\"start\"");
                let x = number(line, " x").filter(|_| is_start);
                (size, x.unwrap_or(0.0) + long)
            })
            .collect()
    }

    #[test]
    fn the_name_of_a_steep_diagonal_does_not_lie_on_the_figures_of_the_axis() {
        for (delivered, anchor) in [(5.0, "start"), (200.0, "end")] {
            let frame = Frame {
                x: Axis::up_to(200.0),
                y: Axis::up_to(delivered),
                top: 100.0,
                bottom: 400.0,
                letters: TEXT,
            };
            let mut svg = String::new();
            diagonal(&mut svg, &frame);
            let words = svg.lines().find(|line| line.starts_with("<text")).unwrap();
            assert!(
                words.contains(&format!("text-anchor=\"{anchor}\"")),
                "{words}"
            );
        }
    }

    #[test]
    fn a_long_heading_is_legible_on_a_narrow_screen_and_stays_on_the_page() {
        let title = "Two controllers while a packet costs four times as much, ticks 250 to 400, and then again";
        let facts = "simulated: host generic, poisson:payload=64:ip=4:clients=100:links=4, 1 s a point, seed 1";
        let mut svg = page(100.0, title);
        heading(&mut svg, title, facts);
        let words = words(&svg);
        assert!(words.len() > 3);
        for (size, end) in words {
            assert!(size * 380.0 / WIDTH >= 9.0, "{size}");
            assert!(end <= WIDTH, "{end}");
        }
        assert!(svg.contains(&format!("<title>{title}</title>")));
        assert!(svg.contains("prefers-color-scheme: dark"));
        assert!(below_heading(title, facts) > below_heading("short", "facts"));
    }

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escaped("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
