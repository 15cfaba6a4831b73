//! What every plot has in common: the page, its axes and colours.
//!
//! What must hold: nothing that is named can break the document. On a screen 380 pixels wide every word is still
//! 9 pixels high or more, and none runs out of the page. The page says what it is to who cannot see it, and is dark
//! where the reader's other pages are.

use std::fmt::Write;

pub const WIDTH: f64 = 600.0;
/// From here to `RIGHT` is the area of the curves.
pub const LEFT: f64 = 74.0;
pub const RIGHT: f64 = 580.0;
/// Height of letters, and of those of the title.
pub const TEXT: u32 = 15;
const TITLE: u32 = 18;
/// A line of text with its gap.
pub const LINE: f64 = 20.0;
/// Mean width of a letter of a sans-serif font, in parts of its height, and something to spare.
const LETTER: f64 = 0.54;
/// Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is left out.
pub const COLOURS: [&str; 7] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];
/// About so many lines across.
const TICKS: f64 = 6.0;
/// What a dark page changes: paper, words, lines, and the black of the last curve.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) { .paper { fill: #15191e } text { fill: #e6e9ec } \
    .axis { stroke: #e6e9ec } .grid { stroke: #3b434c } .line6 { stroke: #fff } .mark6 { fill: #fff } }</style>";

/// An empty page. `END` closes it.
pub fn page(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"{TEXT}\" fill=\"#222\">\n\
         <title>{}</title>\n{DARK}\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n",
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

/// How a curve's line is drawn.
pub fn stroke(curve: usize) -> String {
    let number = curve % COLOURS.len();
    format!(
        "fill=\"none\" class=\"line{number}\" stroke=\"{}\" stroke-width=\"2\"",
        COLOURS[number]
    )
}

/// How a curve's marks are filled.
pub fn fill(curve: usize) -> String {
    let number = curve % COLOURS.len();
    format!("class=\"mark{number}\" fill=\"{}\"", COLOURS[number])
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// One axis from 0: its greatest figure, and how far apart its lines are.
#[derive(Clone, Copy)]
pub struct Axis {
    pub max: f64,
    step: f64,
}

impl Axis {
    /// For figures up to `most`, in steps of 1, 2 or 5 times a power of ten.
    pub fn up_to(most: f64) -> Self {
        let rough = most.max(1e-9) / TICKS;
        let power = 10f64.powi(rough.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        Axis {
            max: (most / step).ceil().max(1.0) * step,
            step,
        }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = (self.max / self.step).round() as u32;
        (0..=count).map(|tick| f64::from(tick) * self.step)
    }
}

/// An area of curves: from figures to places on the page.
pub struct Frame {
    pub x: Axis,
    pub y: Axis,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    pub fn x(&self, figure: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * figure / self.x.max
    }

    pub fn y(&self, figure: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * figure / self.y.max
    }

    /// The lines of both axes with their figures, those of the horizontal one so far `below` the area.
    pub fn grid(&self, svg: &mut String, below: f64) {
        let line = |svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), is_axis| {
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
        };
        for tick in self.x.ticks() {
            let x = self.x(tick);
            line(svg, (x, self.top), (x, self.bottom), tick == 0.0);
            text(svg, (x, self.bottom + below), "middle", TEXT, &short(tick));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            line(svg, (LEFT, y), (RIGHT, y), tick == 0.0);
            text(svg, (LEFT - 8.0, y + 5.0), "end", TEXT, &short(tick));
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
fn short(value: f64) -> String {
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
    fn axes_end_on_a_round_figure_at_or_above_the_greatest() {
        for (most, max, step) in [
            (200_000.0, 200_000.0, 50_000.0),
            (61_000.0, 80_000.0, 20_000.0),
            (7.0, 8.0, 2.0),
            // An axis of nothing still has a length.
            (0.0, 2e-10, 2e-10),
        ] {
            let axis = Axis::up_to(most);
            assert!(axis.max >= most);
            assert!((axis.max / max - 1.0).abs() < 1e-9, "{most}: {}", axis.max);
            assert!(
                (axis.step / step - 1.0).abs() < 1e-9,
                "{most}: {}",
                axis.step
            );
        }
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
