//! A page as one HTML file.
//!
//! The file loads nothing and runs no script. Each plot has its table. No text of a document can become markup.

use std::convert::Infallible;

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

/// Stands where the data of a file is put. Text of a document cannot hold it: its `<` is escaped.
const DATA: &str = "<data>";
/// Bytes that are encoded at once: no filler stands between two pieces.
const PIECE_BYTES: usize = 3 << 14;

/// Renders a document as one HTML file, with a newline at its end.
pub fn render_html(document: &impl Document) -> String {
    let mut file = String::new();
    let put = |piece: &str| -> Result<(), Infallible> {
        file.push_str(piece);
        Ok(())
    };
    let Ok(()) = put_html(&document.page(), put);
    file
}

/// Renders a page as one HTML file, piece by piece: the files that it holds are not in memory a second time.
///
/// # Errors
/// That of `put`.
pub fn put_html<E>(page: &Page, mut put: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let parts = page.parts.iter();
    let parts: Vec<&Part> = parts
        .filter(|part| matches!(part.medium, Medium::All | Medium::Html))
        .collect();
    let text = text_of(page, &parts);
    let mut pieces = text.split(DATA);
    put(pieces.next().unwrap_or_default())?;
    let blocks = parts.iter().flat_map(|part| &part.blocks);
    let saved = blocks.filter_map(|block| match block {
        Block::Saved(it) => Some(it),
        _ => None,
    });
    for (file, piece) in saved.zip(pieces) {
        for bytes in file.data.as_bytes().chunks(PIECE_BYTES) {
            put(&base64(bytes))?;
        }
        put(piece)?;
    }
    put("\n")
}

/// Renders a page, with [`DATA`] for the data of its files.
fn text_of(page: &Page, parts: &[&Part]) -> String {
    let anchors = parts.iter().filter_map(|part| part.anchor.as_ref());
    let anchors = anchors.filter(|(_, name)| !name.is_empty());
    let own = anchors.map(|(id, name)| (format!("#{id}"), name.clone()));
    let links: Vec<(String, String)> = page.links.iter().cloned().chain(own).collect();
    let file = html! {
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
                main { @for part in parts { (of_part(part)) } }
            }
        }
    };
    file.into_string()
}

fn of_part(part: &Part) -> Markup {
    let inside = of_blocks(&part.blocks);
    match &part.anchor {
        Some((id, _)) if id == ANSWER => html! { header id=(id) { (inside) } },
        Some((id, _)) => html! { section id=(id) { (inside) } },
        None => html! { section { (inside) } },
    }
}

/// Renders blocks, one below the other. Neighbours of one kind become one list.
fn of_blocks(blocks: &[Block]) -> Markup {
    let shown: Vec<&Block> = blocks
        .iter()
        .filter(|block| !matches!(block, Block::Blank))
        .collect();
    let runs = shown.chunk_by(|one, other| kind(one) == kind(other));
    html! { @for run in runs { (of_run(run)) } }
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

fn of_run(run: &[&Block]) -> Markup {
    let all = html! { @for block in run { (of_block(block)) } };
    match run.first().map(|block| kind(block)) {
        Some(HtmlElement::Named) => html! { dl { (all) } },
        Some(HtmlElement::Listed) => html! { ul { (all) } },
        Some(HtmlElement::Line) => html! { pre tabindex="0" { (all) } },
        Some(HtmlElement::Figure) => html! { div.figures { (all) } },
        _ => all,
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
        Block::Folded(summary, blocks) => {
            html! { details { summary { (summary) } (of_blocks(blocks)) } }
        }
        Block::Figure(it) => figure(it),
        Block::Code(text) => html! { pre tabindex="0" { (text) } },
        Block::Link(address, name, rest) => html! { li { a href=(address) { (name) } (rest) } },
        Block::Saved(it) => saved(it),
        Block::Blank => html! {},
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
                    @for head in ["traffic", "measure", "verdict", "ratio [interval]", "less | more"] { th scope="col" { (head) } }
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

/// Renders a link that saves data of the page without script or network.
fn saved(file: &Saved) -> Markup {
    let address = format!("data:{};charset=utf-8;base64,", file.kind);
    let size = match file.data.len() {
        bytes @ 0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        bytes => format!("{:.1} MB", bytes as f64 / 1e6),
    };
    let name = format!("nicpoll-{}", file.name);
    html! { li { a href={ (address) (PreEscaped(DATA)) } download=(name) { (name) } " (" (size) "): " (file.holds) } }
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
