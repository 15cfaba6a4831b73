//! The elements of every drawing: page, words, lines, marks and colours.
//!
//! No name can break the document. On a screen 380 pixels wide every word is at least 9 pixels high, and none leaves
//! the page. A drawing has a title for screen readers, and follows the reader's dark mode. A discipline has the same
//! colour in every plot.

use std::fmt::Write;

use crate::lists::joined;

/// Width of every drawing.
pub const WIDTH: f64 = 600.0;
/// Left end of the curves' area, which ends at `RIGHT`.
pub const LEFT: f64 = 74.0;
pub const RIGHT: f64 = 580.0;
/// Height of letters in a file of its own.
pub const TEXT: u32 = 15;
/// Height of letters within a page of HTML, whose margins leave a plot less room.
pub const LETTERS: u32 = 17;
const TITLE: u32 = 18;
/// A line of text with its gap.
pub const LINE: f64 = 20.0;
/// Mean width of a sans-serif letter relative to its height, with a reserve.
const LETTER: f64 = 0.54;
/// Changes for dark mode: paper, words, lines, and the black of the last curve.
pub const DARK: &str = "@media (prefers-color-scheme: dark) { .paper { fill: #15191e } text { fill: #e6e9ec } \
    .axis { stroke: #e6e9ec } .grid { stroke: #3b434c } .line6 { stroke: #fff } .mark6 { fill: #fff } }";
/// The end of a drawing.
pub const END: &str = "</svg>\n";

/// Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is left out.
pub const COLOURS: [&str; 7] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];

/// Names with a fixed colour. Interrupts are warm, polling is cool: FreeBSD's in the lighter, Linux's in the stronger
/// colour. `interrupt` and `polling` are the demo's names of `napi` and `napi-timer`.
const NAMED: [(&str, usize); 8] = [
    ("interrupt", 0),
    ("napi", 0),
    ("polling", 1),
    ("napi-timer", 1),
    ("busy-poll", 2),
    ("freebsd-polling", 4),
    ("freebsd-interrupt", 5),
    ("default", 6),
];

/// Returns the colour of each name of a plot, as an index of [`COLOURS`]; no two share one while there are colours
/// left. A discipline's options do not change its colour unless the plot has it twice.
pub fn colours(names: &[&str]) -> Vec<usize> {
    let own = |name: &str| {
        let bare = name.split(':').next().unwrap_or(name);
        let mut named = NAMED.iter();
        named.find(|(known, _)| *known == bare).map(|(_, own)| *own)
    };
    let mut taken = [false; COLOURS.len()];
    let mut given: Vec<Option<usize>> = names
        .iter()
        .map(|name| {
            let own = own(name).filter(|colour| !taken[*colour])?;
            taken[own] = true;
            Some(own)
        })
        .collect();
    for (index, colour) in given.iter_mut().enumerate() {
        if colour.is_none() {
            let free = taken.iter().position(|is_taken| !is_taken);
            let next = free.unwrap_or(index % COLOURS.len());
            taken[next] = true;
            *colour = Some(next);
        }
    }
    given.into_iter().flatten().collect()
}

/// The look of a curve's points. Marks distinguish curves without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveLook {
    /// Index of its colour.
    pub colour: usize,
    /// Number of its mark.
    pub mark: usize,
}

/// Returns the look of each name of a plot.
pub fn looks(names: &[&str]) -> Vec<CurveLook> {
    let colours = colours(names).into_iter().enumerate();
    colours
        .map(|(mark, colour)| CurveLook { colour, mark })
        .collect()
}

/// Returns the beginning of a file; [`END`] closes it.
pub fn page(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"{TEXT}\" fill=\"#222\">\n\
         <title>{}</title>\n<style>{DARK}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n",
        escaped(title)
    )
}

/// Returns the beginning of a drawing within a page of HTML, which has its style; [`END`] closes it. `title` is for
/// screen readers.
pub fn drawing(height: f64, title: &str) -> String {
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"{LETTERS}\" \
         fill=\"#222\">\n<title>{}</title>\n",
        escaped(title)
    )
}

/// Returns the bottom of a file's heading, its title and source.
pub fn below_heading(title: &str, facts: &str) -> f64 {
    16.0 + heading_lines(title, facts).len() as f64 * (LINE + 1.0)
}

/// Writes a file's title and source.
pub fn heading(svg: &mut String, title: &str, facts: &str) {
    for (number, (size, line)) in heading_lines(title, facts).into_iter().enumerate() {
        let y = 26.0 + number as f64 * (LINE + 1.0);
        text(svg, (LEFT, y), "start", size, &line);
    }
}

fn heading_lines(title: &str, facts: &str) -> Vec<(u32, String)> {
    let lines = |text, size| {
        wrapped(text, size, LEFT)
            .into_iter()
            .map(move |it| (size, it))
    };
    lines(title, TITLE).chain(lines(facts, TEXT)).collect()
}

/// Wraps a text of that height that begins at `x` to the page. Lines break at blanks, and after a colon or a comma.
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
    let lines = lines.iter();
    lines.map(|line| String::from(line.trim_end())).collect()
}

/// Writes words of that height; `anchor` is `start`, `middle` or `end`.
pub fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
        escaped(text)
    );
}

/// Writes the name of a vertical axis, upwards.
pub fn upright(svg: &mut String, (x, y): (u32, f64), name: &str) {
    let _ = writeln!(
        svg,
        "<text transform=\"translate({x} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escaped(name)
    );
}

/// Returns the stroke of a line of that colour.
pub fn stroke(colour: usize) -> String {
    stroke_of(colour, 2.0)
}

/// Returns the stroke of a line of that colour and width.
pub fn stroke_of(colour: usize, width: f64) -> String {
    let number = colour % COLOURS.len();
    format!(
        "fill=\"none\" class=\"line{number}\" stroke=\"{}\" stroke-width=\"{width}\"",
        COLOURS[number]
    )
}

/// Returns the fill of a mark of that colour.
pub fn fill(colour: usize) -> String {
    let number = colour % COLOURS.len();
    format!("class=\"mark{number}\" fill=\"{}\"", COLOURS[number])
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws a mark: disc, square, triangle or diamond, in turn.
pub fn mark(svg: &mut String, look: CurveLook, (x, y): (f64, f64)) {
    let fill = fill(look.colour);
    let corners: &[(f64, f64)] = match look.mark % 4 {
        0 => &[],
        1 => &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
        2 => &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
        _ => &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)],
    };
    *svg += &match corners {
        [] => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" {fill}/>\n"),
        _ => {
            let corners = corners.iter().map(|(dx, dy)| (x + dx, y + dy));
            format!("<polygon points=\"{}\" {fill}/>\n", places(corners))
        }
    };
}

/// Draws a curve through these positions with this stroke.
pub fn curve(svg: &mut String, through: impl Iterator<Item = (f64, f64)>, stroke: &str) {
    let _ = writeln!(svg, "<polyline points=\"{}\" {stroke}/>", places(through));
}

/// Formats positions for a `points` attribute.
pub fn places(places: impl Iterator<Item = (f64, f64)>) -> String {
    joined(places.map(|(x, y)| format!("{x:.1},{y:.1}")), " ")
}

/// Draws a straight line of an axis, or of the grid behind the curves.
pub fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), is_axis: bool) {
    let stroke = match is_axis {
        true => "stroke=\"#222\"",
        false => "stroke=\"#ddd\"",
    };
    let class = if is_axis { "axis" } else { "grid" };
    straight(svg, &format!("class=\"{class}\" "), from, to, stroke);
}

/// Draws a heavy vertical line: a median, an estimate.
pub fn heavy(svg: &mut String, x: f64, (top, bottom): (f64, f64)) {
    let stroke = "stroke=\"#222\" stroke-width=\"3\"";
    straight(svg, "class=\"axis\" ", (x, top), (x, bottom), stroke);
}

/// Draws a straight line, with these attributes before and after its ends.
pub fn straight(
    svg: &mut String,
    class: &str,
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
    stroke: &str,
) {
    let _ = writeln!(
        svg,
        "<line {class}x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {stroke}/>"
    );
}

/// Formats a figure in short: `60k`, `1.5M`.
pub fn short(value: f64) -> String {
    // Steps are exact multiples; rounding removes the error of their sum.
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

    /// Returns the sizes of letters and the right ends of texts that start at a known position.
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

    #[test]
    fn a_discipline_keeps_its_colour_whatever_else_is_drawn() {
        let among = |names: &[&str], name: &str| {
            let at = names.iter().position(|it| *it == name).unwrap();
            COLOURS[colours(names)[at]]
        };
        let demo = ["default", "interrupt", "polling"];
        let sim = [
            "freebsd-interrupt",
            "freebsd-polling:user_frac=0",
            "napi",
            "napi-timer",
        ];
        assert_eq!(among(&demo, "polling"), among(&["polling"], "polling"));
        assert_eq!(among(&demo, "polling"), among(&sim, "napi-timer"));
        assert_eq!(among(&demo, "interrupt"), among(&sim, "napi"));
        assert_eq!(colours(&["bsd", "share"]), [0, 1]);
    }

    #[test]
    fn no_two_share_a_colour_while_there_are_colours_left() {
        let names = ["polling", "napi-timer", "a", "b", "c", "d", "e"];
        let mut given = colours(&names);
        given.sort_unstable();
        assert_eq!(given, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(colours(&["x"; 9]).len(), 9);
    }
}
