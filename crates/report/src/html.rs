//! A page as one HTML file.
//!
//! The file loads nothing and runs no script. Each plot has its table. No text of a document can become markup.

use std::fmt::Write as _;
use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::page::{
    Align, Block, Cell, Document, Extra, Figure, Ink, IntervalBar, IntervalGroup, Intervals,
    Medium, Page, Part, Rank, Row, Saved, Scale, Span, Table,
};
use crate::plots::svg::DARK;

/// The page may show its own content only.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Anchor of the head of a page.
const ANSWER: &str = "answer";

/// Stands in a frame where its inside is put. Text of a document cannot hold it: its `<` is escaped.
const INSIDE: PreEscaped<&str> = PreEscaped("<inside>");
/// Bytes that are encoded at once: no filler stands between two pieces.
const PIECE_BYTES: usize = 3 << 14;

/// Takes pieces of a page.
type Put<'a> = dyn FnMut(&str) -> io::Result<()> + 'a;

/// Renders a document as one HTML file, with a newline at its end.
pub fn render_html(document: &impl Document) -> String {
    let mut file = String::new();
    let mut put = |piece: &str| file.write_str(piece).map_err(io::Error::other);
    put_html(&document.page(), &mut put).expect("a string takes all");
    file
}

/// Renders a page as one HTML file, piece by piece: neither the file nor those that it holds are in memory as a whole.
///
/// # Errors
/// That of `put`.
pub fn put_html(page: &Page, put: &mut Put) -> io::Result<()> {
    let parts = page.parts.iter();
    let mut parts = parts.filter(|part| matches!(part.medium, Medium::All | Medium::Html));
    let frame = frame_of(page, parts.clone());
    put_framed(frame, put, |put| {
        parts.try_for_each(|part| put_part(part, put))
    })?;
    put("\n")
}

/// Puts a frame with its inside.
fn put_framed(
    frame: Markup,
    put: &mut Put,
    inside: impl FnOnce(&mut Put) -> io::Result<()>,
) -> io::Result<()> {
    let frame = frame.into_string();
    let (before, after) = frame.split_once(INSIDE.0).unwrap_or((&frame, ""));
    put(before)?;
    inside(put)?;
    put(after)
}

fn frame_of<'a>(page: &Page, parts: impl Iterator<Item = &'a Part<'a>>) -> Markup {
    let anchors = parts.filter_map(|part| part.anchor.as_ref());
    let anchors = anchors.filter(|(_, name)| !name.is_empty());
    let own = anchors.map(|(id, name)| (format!("#{id}"), name.clone()));
    let links: Vec<(String, String)> = page.links.iter().cloned().chain(own).collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="nicpoll";
                title { (page.title) " - nicpoll" }
                style { (PreEscaped(include_str!("html/style.css"))) (PreEscaped(DARK)) }
            }
            body {
                a.skip href="#answer" { "Skip to the answer" }
                nav aria-label="Parts of the report" {
                    ul { @for (address, name) in &links { li { a href=(address) { (name) } } } }
                }
                main { (INSIDE) }
            }
        }
    }
}

fn put_part(part: &Part, put: &mut Put) -> io::Result<()> {
    let frame = match &part.anchor {
        Some((id, _)) if id == ANSWER => html! { header id=(id) { (INSIDE) } },
        Some((id, _)) => html! { section id=(id) { (INSIDE) } },
        None => html! { section { (INSIDE) } },
    };
    put_framed(frame, put, |put| put_blocks(&part.blocks, put))
}

/// Puts blocks, one below the other. Neighbours of one kind become one list.
fn put_blocks(blocks: &[Block], put: &mut Put) -> io::Result<()> {
    let shown: Vec<&Block> = blocks
        .iter()
        .filter(|block| !matches!(block, Block::Blank))
        .collect();
    let mut runs = shown.chunk_by(|one, other| kind(one) == kind(other));
    runs.try_for_each(|run| {
        let frame = match kind(run[0]) {
            HtmlElement::Named => html! { dl { (INSIDE) } },
            HtmlElement::Listed => html! { ul { (INSIDE) } },
            HtmlElement::Line => html! { pre tabindex="0" { (INSIDE) } },
            HtmlElement::Figure => html! { div.figures { (INSIDE) } },
            HtmlElement::Other => html! { (INSIDE) },
        };
        let mut blocks = run.iter();
        put_framed(frame, put, |put| {
            blocks.try_for_each(|block| put_block(block, put))
        })
    })
}

#[derive(PartialEq, Eq)]
enum HtmlElement {
    Named,
    Listed,
    Line,
    Figure,
    Other,
}

fn kind(block: &Block) -> HtmlElement {
    match block {
        Block::Item(lead, ..) if lead.trim() == "-" => HtmlElement::Listed,
        Block::Item(lead, ..) if !lead.trim().is_empty() => HtmlElement::Named,
        Block::Spare(..) | Block::Link(..) | Block::Saved(_) => HtmlElement::Listed,
        Block::Line(_) => HtmlElement::Line,
        Block::Figure(it) if it.table.is_some() => HtmlElement::Figure,
        _ => HtmlElement::Other,
    }
}

fn put_block(block: &Block, put: &mut Put) -> io::Result<()> {
    match block {
        Block::Folded(summary, blocks) => {
            let frame = html! { details { summary { (summary) } (INSIDE) } };
            put_framed(frame, put, |put| put_blocks(blocks, put))
        }
        Block::Saved(it) => put_saved(it, put),
        _ => put(&of_block(block).into_string()),
    }
}

fn of_block(block: &Block) -> Markup {
    match block {
        Block::Heading(Rank::Browser | Rank::Title, title) => html! { h1 { (title) } },
        Block::Heading(Rank::Lead, title) => html! { p.lead { (title) } },
        Block::Heading(Rank::Section, title) => html! { h2 { (title) } },
        Block::Item(lead, ink, text) => match kind(block) {
            HtmlElement::Named => {
                html! { div { dt { (lead.trim()) } dd class=(class(*ink)) { (text) } } }
            }
            HtmlElement::Listed => html! { li class=(class(*ink)) { (text) } },
            _ => html! { p class=(class(*ink)) { (text) } },
        },
        Block::Spare(ink, text) => html! { li class=(class(*ink)) { (text) } },
        Block::Line(pieces) => {
            let line: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
            html! { (line.trim_end()) "\n" }
        }
        Block::Table(it) => table(it),
        Block::Intervals(it) => intervals(it),
        Block::Figure(it) => figure(it),
        Block::Code(text) => html! { pre tabindex="0" { (text) } },
        Block::Link(address, name, rest) => html! { li { a href=(address) { (name) } (rest) } },
        Block::Folded(..) | Block::Saved(_) | Block::Blank => html! {},
    }
}

fn figure(figure: &Figure) -> Markup {
    html! {
        figure {
            figcaption { @if !figure.title.is_empty() { strong { (figure.title) } " " } (figure.caption) }
            (PreEscaped(&figure.svg))
            @if let Some(it) = &figure.table { details { summary { "Figures of this plot" } (table(it)) } }
        }
    }
}

fn table(table: &Table) -> Markup {
    let place = match table.align {
        Align::Left => "left",
        Align::Right => "right",
    };
    let label = table.head.label.text.trim();
    html! {
        div.wide tabindex="0" role="group" aria-label=(table.name) {
            table class=(place) {
                thead {
                    tr {
                        // A screen reader would announce an empty heading.
                        @if label.is_empty() { td {} } @else { th scope="col" { (label) } }
                        @for cell in &table.head.cells { th scope="col" { (cell.text) } }
                    }
                }
                tbody { @for row in &table.rows { (line(row, table.columns())) } }
            }
        }
    }
}

fn line(row: &Row, columns: usize) -> Markup {
    let Row { label, cells } = row;
    if cells.is_empty() {
        return html! { tr { th.group colspan=(columns + 1) { (label.text.trim()) } } };
    }
    let below = if label.text.starts_with(' ') {
        "below "
    } else {
        ""
    };
    html! {
        tr {
            th scope="row" class={ (below) (class(label.ink)) } { (cell(label)) }
            @for it in cells { td class=(class(it.ink)) { (cell(it)) } }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    let text = cell.text.trim();
    match &cell.extra {
        Extra::None => html! { (text) },
        Extra::Link(address) => html! { a href=(address) { (text) } },
        Extra::Progress(name, done, all) => html! {
            (text) " " progress aria-label=(name) value=(done) max=(all) {}
        },
    }
}

fn intervals(intervals: &Intervals) -> Markup {
    let scale = intervals.scale();
    html! {
        @for group in &intervals.groups { (interval_group(intervals, group, scale)) }
        p.faint {
            "All bars have one scale, from 1/" (scale.end) " to " (scale.end) " times the reference; at the line in \
             the middle the two are alike. An arrow goes on beyond the scale."
        }
    }
}

fn interval_group(intervals: &Intervals, group: &IntervalGroup, scale: Scale) -> Markup {
    let right: Vec<String> = intervals
        .right
        .iter()
        .map(|(head, _)| head.join(" "))
        .collect();
    html! {
        table.answer {
            caption { (group.title) }
            thead {
                tr {
                    @for head in [intervals.names, "measure", "verdict", "ratio [interval]", "less | more"] { th scope="col" { (head) } }
                    @for head in &right { th scope="col" { (head) } }
                }
            }
            tbody {
                @for (name, line) in &group.lines {
                    tr {
                        th scope="row" { (breakable(name)) }
                        @match line {
                            Ok(line) => (interval(line, &right, scale)),
                            Err(why) => td.unsure colspan=(4 + right.len()) { (why) },
                        }
                    }
                }
            }
        }
    }
}

fn interval(line: &IntervalBar, right: &[String], scale: Scale) -> Markup {
    let ink = class(line.ink);
    html! {
        td data-name="measure" { (line.measure) }
        td class=(ink) { strong { (line.word) } }
        td data-name="ratio" { (line.value) }
        td.drawn { @if let Some(span) = line.span { (bar(span, scale, ink)) } }
        @for (name, cell) in right.iter().zip(&line.right) { td data-name=(name) { (cell) } }
    }
}

/// Renders a name that may break after a part: `udp64@160000` after the `@`.
fn breakable(name: &str) -> Markup {
    let parts = name.split_inclusive(['@', '-', '_', '+', '/', ',']);
    html! { @for part in parts { (part) wbr; } }
}

/// Width and height of a bar, in units of the drawing.
const BAR: (f64, f64) = (180.0, 24.0);
/// Length of the arrow at either end.
const ARROW: f64 = 8.0;

/// Renders an interval as a bar, with an arrow if it continues beyond the scale. The cell before it has the figures
/// for readers who do not see the drawing.
fn bar(span: Span, scale: Scale, ink: &str) -> Markup {
    let (width, height) = BAR;
    let middle = height / 2.0;
    let place = |ratio: f64| ARROW + (width - 2.0 * ARROW) * 0.5 * (1.0 + scale.place(ratio));
    let low = span.low.map_or(f64::NEG_INFINITY, place);
    let high = span.high.map_or(f64::INFINITY, place);
    let inner = |place: f64| rounded(place.clamp(ARROW, width - ARROW));
    let (above, below) = (middle - 6.0, middle + 6.0);
    let arrow = |tip: f64, foot: f64| format!("{tip},{middle} {foot},{above} {foot},{below}");
    let estimate = place(span.ratio);
    let none = rounded(place(1.0));
    html! {
        svg class={ "interval " (ink) } viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" {
            line.none x1=(none) y1="0" x2=(none) y2=(height) {}
            line.span x1=(inner(low)) y1=(middle) x2=(inner(high)) y2=(middle) {}
            @if low < 0.0 { polygon points=(arrow(0.0, ARROW)) {} }
            @if high > width { polygon points=(arrow(width, width - ARROW)) {} }
            @if (0.0..=width).contains(&estimate) { circle cx=(rounded(estimate)) cy=(middle) r="5" {} }
        }
    }
}

fn rounded(place: f64) -> String {
    format!("{place:.1}")
}

fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "plain",
        Ink::Strong => "strong",
        Ink::Faint => "faint",
        Ink::Good => "good",
        Ink::Bad => "bad",
        Ink::Unsure => "unsure",
    }
}

/// Puts a link that saves data of the page without script or network.
fn put_saved(file: &Saved, put: &mut Put) -> io::Result<()> {
    let kind = file.kind;
    put(&format!("<li><a href=\"data:{kind};charset=utf-8;base64,"))?;
    let mut data = Base64 {
        put,
        bytes: Vec::new(),
        length: 0,
    };
    (file.write)(&mut data)?;
    data.flush()?;
    let size = match data.length {
        bytes @ 0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        bytes => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    let (name, holds) = (file.name, file.holds);
    put(&format!(
        "\" download=\"nicpoll-{name}\">nicpoll-{name}</a> ({size}): {holds}</li>"
    ))
}

/// Encodes what it takes, and puts it.
struct Base64<'a, 'b> {
    put: &'a mut Put<'b>,
    /// Not yet encoded.
    bytes: Vec<u8>,
    /// Of all that it has taken.
    length: usize,
}

impl Write for Base64<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES - self.bytes.len())];
        self.bytes.extend(bytes);
        self.length += bytes.len();
        if self.bytes.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    /// Comes last: it may put filler.
    fn flush(&mut self) -> io::Result<()> {
        (self.put)(&base64(&self.bytes))?;
        self.bytes.clear();
        Ok(())
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for place in 0..4 {
            let letter = LETTERS[((bits >> (18 - 6 * place)) & 63) as usize];
            let is_filler = place > three.len();
            text.push(if is_filler { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
