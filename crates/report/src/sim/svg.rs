//! What every plot has in common: the page, its axes and colours.
//!
//! What must hold: nothing that is named can break the document.

use std::fmt::Write;

pub const WIDTH: f64 = 880.0;
/// From here to `RIGHT` is the area of the curves.
pub const LEFT: f64 = 78.0;
pub const RIGHT: f64 = 850.0;
/// Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is left out.
pub const COLOURS: [&str; 7] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];
/// About so many lines across.
const TICKS: f64 = 6.0;

/// An empty page. `END` closes it.
pub fn page(height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    )
}

/// The end of a page.
pub const END: &str = "</svg>\n";

/// What the plot shows, and where its figures come from.
pub fn titles(svg: &mut String, title: &str, facts: &str) {
    text(svg, (LEFT, 26.0), "start", 17, title);
    text(svg, (LEFT, 47.0), "start", 13, facts);
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
            let stroke = if is_axis { "#222" } else { "#ddd" };
            let _ = writeln!(
                svg,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
            );
        };
        for tick in self.x.ticks() {
            let x = self.x(tick);
            line(svg, (x, self.top), (x, self.bottom), tick == 0.0);
            text(svg, (x, self.bottom + below), "middle", 12, &short(tick));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            line(svg, (LEFT, y), (RIGHT, y), tick == 0.0);
            text(svg, (LEFT - 8.0, y + 4.0), "end", 12, &short(tick));
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

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escaped("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
