//! The livelock curve: what a sweep delivered, every discipline on one plot, as SVG.
//!
//! What must hold: the plot stands alone. It names its axes with their units, its curves and where they
//! come from. Curves differ in colour and in mark, so that they can be told apart without colour.

use std::fmt::Write;

use nicpoll_model::sim::{SimPoint, SimSweep};

use super::sweep::{axis, disciplines};

const WIDTH: f64 = 880.0;
/// The area of the curves.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 850.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 440.0;
/// The legend, below.
const LEGEND_TOP: f64 = 516.0;
const LEGEND_LINE: f64 = 22.0;
/// A name longer than this does not fit into half of the width.
const NAME_CHARS_MAX: usize = 46;
/// Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is left out.
pub(super) const COLOURS: [&str; 7] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];
/// About so many lines across.
const TICKS: f64 = 6.0;

/// A sweep as an SVG document.
pub fn plot_sweep(sweep: &SimSweep) -> String {
    let names = disciplines(sweep);
    let has_long_name = names.iter().any(|name| name.len() > NAME_CHARS_MAX);
    let columns = if has_long_name { 1 } else { 2 };
    let lines = names.len().div_ceil(columns);
    let height = LEGEND_TOP + LEGEND_LINE * (lines as f64 + 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    titles(&mut svg, sweep);
    let scale = Scale::of(sweep);
    scale.grid(&mut svg, &axis(&sweep.parameter));
    if sweep.parameter == "offered" {
        scale.diagonal(&mut svg);
    }
    for (index, name) in names.iter().enumerate() {
        let points = sweep.points.iter();
        let own: Vec<_> = points
            .filter(|point| point.plan.discipline == *name)
            .collect();
        scale.curve(&mut svg, index, &own);
        legend(&mut svg, index, columns, name);
    }
    svg.push_str("</svg>\n");
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
    text(svg, (LEFT, 26.0), "start", 17, &title);
    let facts = format!(
        "simulated: host {}, {}, {} s a point, seed {}",
        plan.host, sweep.workload, plan.seconds, plan.seed
    );
    text(svg, (LEFT, 47.0), "start", 13, &facts);
}

pub(super) fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
        escaped(text)
    );
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// From figures to places on the page.
struct Scale {
    x: Axis,
    y: Axis,
}

/// One axis: its greatest figure, and how far apart its lines are.
pub(super) struct Axis {
    pub(super) max: f64,
    pub(super) step: f64,
}

impl Axis {
    /// For figures up to `most`, in steps of 1, 2 or 5 times a power of ten.
    pub(super) fn up_to(most: f64) -> Self {
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

    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = (self.max / self.step).round() as u32;
        (0..=count).map(|tick| f64::from(tick) * self.step)
    }
}

impl Scale {
    fn of(sweep: &SimSweep) -> Self {
        let most = |of: fn(&SimPoint) -> f64| sweep.points.iter().map(of).fold(0.0, f64::max);
        Scale {
            x: Axis::up_to(most(|point| point.value)),
            y: Axis::up_to(most(|point| point.figures.delivered_pps)),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * value / self.x.max
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * value / self.y.max
    }

    fn grid(&self, svg: &mut String, x_name: &str) {
        let line = |svg: &mut String, x1: f64, y1: f64, x2: f64, y2: f64, is_axis: bool| {
            let stroke = if is_axis { "#222" } else { "#ddd" };
            let _ = writeln!(
                svg,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
            );
        };
        for tick in self.x.ticks() {
            let x = self.x(tick);
            line(svg, x, TOP, x, BOTTOM, tick == 0.0);
            text(svg, (x, BOTTOM + 19.0), "middle", 12, &short(tick));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            line(svg, LEFT, y, RIGHT, y, tick == 0.0);
            text(svg, (LEFT - 8.0, y + 4.0), "end", 12, &short(tick));
        }
        text(
            svg,
            ((LEFT + RIGHT) / 2.0, BOTTOM + 44.0),
            "middle",
            13,
            x_name,
        );
        let middle = (TOP + BOTTOM) / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(20 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">delivered \
             packets/s</text>"
        );
    }

    /// Where everything offered would be delivered.
    fn diagonal(&self, svg: &mut String) {
        let end = self.x.max.min(self.y.max);
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\" \
             stroke-dasharray=\"3 4\"/>",
            self.x(0.0),
            self.y(0.0),
            self.x(end),
            self.y(end)
        );
        let place = (self.x(end) + 6.0, self.y(end) + 14.0);
        text(svg, place, "start", 12, "all delivered");
    }

    fn curve(&self, svg: &mut String, index: usize, points: &[&SimPoint]) {
        let colour = COLOURS[index % COLOURS.len()];
        let places: Vec<_> = points
            .iter()
            .map(|point| (self.x(point.value), self.y(point.figures.delivered_pps)))
            .collect();
        let path: Vec<_> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for place in places {
            mark(svg, index, place);
        }
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

/// `60k`, `1.5M`.
pub(super) fn short(value: f64) -> String {
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
            (0.0, 1e-9, 1e-9),
        ] {
            let axis = Axis::up_to(most);
            assert!(axis.max >= most);
            if most > 0.0 {
                assert!((axis.max - max).abs() < 1e-6, "{most}: {}", axis.max);
                assert!((axis.step - step).abs() < 1e-6, "{most}: {}", axis.step);
            }
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
