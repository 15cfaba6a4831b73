//! Marks over two axes, with a legend below: what the plots over time, and over the order of trials, share.

use crate::plot::{self, Axis, Frame, LEFT, LETTERS, Look, RIGHT, mark, text};

/// Where the area of the marks begins and ends.
pub const TOP: f64 = 14.0;
pub const BOTTOM: f64 = TOP + 236.0;
/// From there to the legend.
const BELOW: f64 = 68.0;
/// A line of the legend.
const LINE: f64 = 24.0;

/// Marks that belong together.
pub struct Series<'a> {
    /// Their name in the legend.
    pub name: &'a str,
    /// How they look.
    pub look: Look,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

/// The marks of some series, each axis with its name. `title` says what it shows to who cannot see it.
pub fn scatter(
    title: &str,
    (x, x_name): (Axis, &str),
    (y, y_name): (Axis, &str),
    series: &[Series],
) -> String {
    let frame = frame(x, y);
    let mut svg = begin(title, &frame, (x_name, y_name), series.len());
    end(&mut svg, &frame, series);
    svg
}

/// The area of the marks.
pub fn frame(x: Axis, y: Axis) -> Frame {
    Frame {
        x,
        y,
        top: TOP,
        bottom: BOTTOM,
        letters: LETTERS,
    }
}

/// A drawing with both axes, and room for a legend of so many lines.
pub fn begin(title: &str, frame: &Frame, (x, y): (&str, &str), series: usize) -> String {
    let mut svg = plot::drawing(height(series), title);
    frame.grid(&mut svg, 22.0);
    names(&mut svg, x, y);
    svg
}

/// The marks above whatever was drawn since, and the legend.
pub fn end(svg: &mut String, frame: &Frame, series: &[Series]) {
    for one in series {
        for (x, y) in &one.points {
            mark(svg, one.look, (frame.x(*x), frame.y(*y)));
        }
    }
    legend(svg, series);
    svg.push_str(plot::END);
}

/// Height of a drawing with a legend of so many lines.
pub fn height(series: usize) -> f64 {
    BOTTOM + BELOW - 6.0 + LINE * series as f64
}

/// The names of both axes.
pub fn names(svg: &mut String, x: &str, y: &str) {
    plot::upright(svg, (15, f64::midpoint(TOP, BOTTOM)), y);
    let place = (f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0);
    text(svg, place, "middle", LETTERS, x);
}

/// The name of each series with its mark.
pub fn legend(svg: &mut String, series: &[Series]) {
    for (index, one) in series.iter().enumerate() {
        let y = BOTTOM + BELOW + LINE * index as f64;
        mark(svg, one.look, (LEFT + 6.0, y));
        text(svg, (LEFT + 20.0, y + 6.0), "start", LETTERS, one.name);
    }
}

/// The heading of the table behind a plot over time.
pub fn over_seconds(columns: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(String::from("seconds"))
        .chain(columns)
        .collect()
}

/// How each of these settings looks.
pub fn looks(names: &[&str]) -> Vec<Look> {
    let colours = plot::colours(names).into_iter();
    colours
        .enumerate()
        .map(|(mark, colour)| Look { colour, mark })
        .collect()
}
