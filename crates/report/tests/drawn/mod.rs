//! Finds elements of a drawing beyond its edge, which would be cut.

/// Ascent and descent of a sans-serif font, and the mean width of a letter, relative to its size.
const ASCENT: f64 = 0.72;
const DESCENT: f64 = 0.2;
const LETTER: f64 = 0.5;
/// Half the width of a line, which may lie on the edge.
const LINE: f64 = 2.0;

/// Returns the elements of a drawing beyond its view box. The width of words is estimated; of curved paths only the
/// start is checked.
pub fn beyond_the_edge(svg: &str) -> Vec<&str> {
    let mut elements = svg.split('<').skip(1);
    let head = elements.next().expect("a drawing has a head");
    let size = attribute(head, "viewBox").expect("a drawing has a view box");
    let size: Vec<f64> = numbers(size).collect();
    let letters = number(head, "font-size").unwrap_or(0.0);
    let is_beyond = |element: &&str| {
        let places = places(element, letters);
        let (right, bottom) = (size[0] + size[2], size[1] + size[3]);
        let mut beyond = places.into_iter().filter(|(x, y)| {
            let across = size[0] - LINE..=right + LINE;
            let down = size[1] - LINE..=bottom + LINE;
            !across.contains(x) || !down.contains(y)
        });
        beyond.next().is_some()
    };
    elements.filter(is_beyond).collect()
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = element.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

fn number(element: &str, name: &str) -> Option<f64> {
    attribute(element, name)?.parse().ok()
}

/// Parses the numbers of a list such as `1,2 3,4` or `M1 2h3`.
fn numbers(list: &str) -> impl Iterator<Item = f64> + '_ {
    let is_between = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    let words = list.split(is_between).filter(|word| !word.is_empty());
    words.map(|word| word.parse().expect("a number"))
}

/// Returns the corners of a drawing element.
fn places(element: &str, letters: f64) -> Vec<(f64, f64)> {
    let of = |name: &str| number(element, name).unwrap_or(0.0);
    match element.split([' ', '>']).next() {
        Some("line") => vec![(of("x1"), of("y1")), (of("x2"), of("y2"))],
        Some("rect") => {
            let (x, y) = (of("x"), of("y"));
            vec![(x, y), (x + of("width"), y + of("height"))]
        }
        Some("circle") => {
            let (x, y, r) = (of("cx"), of("cy"), of("r"));
            vec![(x - r, y - r), (x + r, y + r)]
        }
        Some("polyline" | "polygon") => {
            let points: Vec<f64> = numbers(attribute(element, "points").unwrap_or("")).collect();
            points.chunks(2).map(|at| (at[0], at[1])).collect()
        }
        Some("path") => {
            let points: Vec<f64> = numbers(attribute(element, "d").unwrap_or(""))
                .take(2)
                .collect();
            points.chunks(2).map(|at| (at[0], at[1])).collect()
        }
        Some("text") => words(element, letters),
        _ => Vec::new(),
    }
}

/// Returns the corners of words, which may be upright.
fn words(element: &str, letters: f64) -> Vec<(f64, f64)> {
    let size = number(element, "font-size").unwrap_or(letters);
    let (_, text) = element.split_once('>').unwrap_or_default();
    let coded: usize = ["&lt;", "&gt;"]
        .map(|it| 3 * text.matches(it).count())
        .iter()
        .sum();
    let coded = coded + 4 * text.matches("&amp;").count();
    let wide = (text.trim_end().chars().count() - coded) as f64 * LETTER * size;
    let before = match attribute(element, "text-anchor") {
        Some("middle") => wide / 2.0,
        Some("end") => wide,
        _ => 0.0,
    };
    let (from, to) = (-before, wide - before);
    let (top, bottom) = (-ASCENT * size, DESCENT * size);
    match attribute(element, "transform") {
        Some(turned) => {
            assert!(turned.ends_with("rotate(-90)"), "{turned}");
            let at: Vec<f64> = numbers(turned).take(2).collect();
            vec![(at[0] + top, at[1] - from), (at[0] + bottom, at[1] - to)]
        }
        None => {
            let at = |name| number(element, name).unwrap_or(0.0);
            vec![
                (at("x") + from, at("y") + top),
                (at("x") + to, at("y") + bottom),
            ]
        }
    }
}
