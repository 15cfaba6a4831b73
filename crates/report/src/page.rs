//! A page, independent of its medium: headings, paragraphs, tables, plots and data to save.
//!
//! Each document builds its page once; [`render_text`](crate::render_text), [`render_html`](crate::render_html) and
//! [`render_markdown`](crate::render_markdown) lay it out. A part may be for one medium only: plots need a browser, and
//! a terminal needs a hint at its options.

use std::io;
use std::rc::Rc;

use nicpoll_model::Verdict;

/// A document as a page.
#[derive(Clone)]
pub struct Page<'a> {
    /// Title of the browser's window.
    pub(crate) title: String,
    /// Links at its top besides those to its parts: address and name.
    pub(crate) links: Vec<(String, String)>,
    pub(crate) parts: Vec<Part<'a>>,
}

impl<'a> Page<'a> {
    /// Makes an empty page.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Page {
            title: title.into(),
            links: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Makes a page with one part, for every medium.
    pub(crate) fn of(title: impl Into<String>, write: impl FnOnce(&mut Part<'a>)) -> Self {
        let mut page = Page::new(title);
        page.part(Medium::All, write);
        page
    }

    /// Adds a part without a link to it.
    pub(crate) fn part(&mut self, medium: Medium, write: impl FnOnce(&mut Part<'a>)) {
        self.add(medium, None, write);
    }

    /// Adds a part with an anchor and a link to it. The part with the anchor `answer` is the head of the page.
    pub(crate) fn linked(
        &mut self,
        medium: Medium,
        (id, name): (&str, &str),
        write: impl FnOnce(&mut Part<'a>),
    ) {
        let anchor = (String::from(id), String::from(name));
        self.add(medium, Some(anchor), write);
    }

    fn add(
        &mut self,
        medium: Medium,
        anchor: Option<(String, String)>,
        write: impl FnOnce(&mut Part<'a>),
    ) {
        let mut part = Part {
            medium,
            anchor,
            blocks: Vec::new(),
        };
        write(&mut part);
        self.parts.push(part);
    }
}

/// A document with a page.
pub trait Document {
    /// Builds the page.
    fn page(&self) -> Page<'_>;
}

impl Document for Page<'_> {
    fn page(&self) -> Page<'_> {
        self.clone()
    }
}

/// Where a part is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// Everywhere.
    All,
    /// As text and as Markdown.
    Text,
    /// As text.
    Terminal,
    /// In a browser.
    Html,
}

/// A section of a page.
#[derive(Clone)]
pub(crate) struct Part<'a> {
    pub medium: Medium,
    /// Its anchor, and its name among the links at the top of the page.
    pub anchor: Option<(String, String)>,
    pub blocks: Vec<Block<'a>>,
}

impl Part<'_> {
    /// Adds a heading below the page's own.
    pub fn heading(&mut self, title: impl Into<String>) {
        self.blocks
            .push(Block::Heading(Rank::Section, title.into()));
    }

    /// Adds the heading of the page.
    pub fn title(&mut self, level: Rank, title: impl Into<String>) {
        self.blocks.push(Block::Heading(level, title.into()));
    }

    /// Adds an empty line of the text.
    pub fn blank(&mut self) {
        self.blocks.push(Block::Blank);
    }

    /// Running text.
    pub fn paragraph(&mut self, ink: Ink, text: impl Into<String>) {
        self.item("", ink, text);
    }

    /// Adds running text in plain ink.
    pub fn say(&mut self, text: impl Into<String>) {
        self.paragraph(Ink::Plain, text);
    }

    /// Adds running text about something that is not proven, or needs care.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.paragraph(Ink::Unsure, text);
    }

    /// Adds running text after a lead: a name, a number, a bullet.
    pub fn item(&mut self, lead: impl Into<String>, ink: Ink, text: impl Into<String>) {
        self.blocks.push(Block::Item(lead.into(), ink, text.into()));
    }

    /// Adds a name in a column of that width, with a text.
    pub fn fact(&mut self, name: &str, width: usize, text: impl Into<String>) {
        self.item(format!("{name:<width$}"), Ink::Plain, text);
    }

    /// Adds a line that keeps its layout, of pieces with their own blanks.
    pub fn line(&mut self, pieces: Vec<(String, Ink)>) {
        self.blocks.push(Block::Line(pieces));
    }

    /// A table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds a link in a browser, with the text after it.
    pub fn link(&mut self, address: String, name: String, rest: impl Into<String>) {
        self.blocks.push(Block::Link(address, name, rest.into()));
    }

    /// Plots.
    pub fn figures(&mut self, figures: impl IntoIterator<Item = Figure>) {
        self.blocks.extend(figures.into_iter().map(Block::Figure));
    }
}

/// The rank of a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The page's heading in a browser; not in text, whose reader has just asked for it.
    Browser,
    /// The page's heading.
    Title,
    /// The page's heading in text; in a browser the line below it.
    Lead,
    /// The heading of a part.
    Section,
}

/// A piece of a page.
#[derive(Clone)]
pub(crate) enum Block<'a> {
    Heading(Rank, String),
    /// Running text behind a lead, which may be empty.
    Item(String, Ink, String),
    /// A sentence that a terminal shows if it still fits the first screen.
    Spare(Ink, String),
    /// A line with a layout of its own.
    Line(Vec<(String, Ink)>),
    Table(Table),
    Intervals(Intervals),
    /// An empty line of text; nothing in a browser.
    Blank,
    /// Tables that a browser shows below the summary when asked to.
    Folded(String, Vec<Block<'a>>),
    /// A plot, in a browser.
    Figure(Figure),
    /// Text with its own line breaks, in a browser.
    Code(String),
    /// A link with what follows it, in a browser: address, name, rest.
    Link(String, String, String),
    /// A file to save, in a browser.
    Saved(Saved<'a>),
}

/// Emphasis of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    /// Headings.
    Strong,
    /// Details.
    Faint,
    /// An advantage of the judged setting.
    Good,
    /// A disadvantage of it.
    Bad,
    /// Nothing is proven, or something needs care.
    Unsure,
}

impl Ink {
    /// Returns the ink for a verdict.
    pub fn of(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(Verdict::BetterAndItMatters | Verdict::Better) => Ink::Good,
            Some(Verdict::WorseAndItMatters | Verdict::Worse) => Ink::Bad,
            Some(Verdict::Equivalent) => Ink::Plain,
            Some(
                Verdict::NoDifferenceProven | Verdict::DependsOnWhatCounts | Verdict::Inconclusive,
            )
            | None => Ink::Unsure,
        }
    }
}

/// Content of a cell besides its text, in a browser.
#[derive(Clone, Debug)]
pub(crate) enum Extra {
    None,
    /// A link to that address.
    Link(String),
    /// A progress bar: its name, the part done, and the whole.
    Progress(String, u32, u32),
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub text: String,
    pub ink: Ink,
    pub extra: Extra,
}

impl Cell {
    pub fn new(text: impl Into<String>, ink: Ink) -> Self {
        Cell {
            text: text.into(),
            ink,
            extra: Extra::None,
        }
    }

    /// Makes a cell with a link.
    pub fn link(address: String, text: impl Into<String>) -> Self {
        Cell {
            extra: Extra::Link(address),
            ..Cell::new(text, Ink::Plain)
        }
    }
}

/// A line of a table: a label, and a cell for each column. Without cells the label fills the line.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub label: Cell,
    pub cells: Vec<Cell>,
}

impl Row {
    /// A line in one ink.
    pub fn new<T: Into<String>>(
        label: impl Into<String>,
        cells: impl IntoIterator<Item = T>,
        ink: Ink,
    ) -> Self {
        Row {
            label: Cell::new(label, ink),
            cells: cells.into_iter().map(|it| Cell::new(it, ink)).collect(),
        }
    }

    /// A plain line.
    pub fn plain<T: Into<String>>(
        label: impl Into<String>,
        cells: impl IntoIterator<Item = T>,
    ) -> Self {
        Row::new(label, cells, Ink::Plain)
    }

    /// A heading within a table.
    pub fn group(label: impl Into<String>, ink: Ink) -> Self {
        Row::new::<String>(label, [], ink)
    }
}

/// Alignment of cells in their column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Its name, for screen readers.
    pub name: String,
    /// The names of the columns.
    pub head: Row,
    pub rows: Vec<Row>,
    pub align: Align,
    /// Minimum width of the labels in text, which aligns the columns of similar tables.
    pub label: usize,
}

impl Table {
    /// Makes a table with these columns; the first is that of the labels.
    pub fn new<T: Into<String>>(
        label: impl Into<String>,
        head: impl IntoIterator<Item = T>,
        align: Align,
    ) -> Self {
        Table {
            name: String::from("Table"),
            head: Row::new(label, head, Ink::Strong),
            rows: Vec::new(),
            align,
            label: 0,
        }
    }

    /// Makes a table with faint column names.
    pub fn faint<const N: usize>(label: &str, head: [&str; N], align: Align) -> Self {
        Table {
            head: Row::new(label, head, Ink::Faint),
            ..Table::new(label, head, align)
        }
    }

    /// Makes a table of texts for a browser; the first text of each line is its label.
    pub fn of<T: Into<String>>(
        name: &str,
        head: impl IntoIterator<Item = T>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let mut head = head.into_iter().map(Into::into);
        let label: String = head.next().unwrap_or_default();
        let rows = rows.into_iter().map(|mut cells| {
            let rest = cells.split_off(1);
            Row::plain(cells.concat(), rest)
        });
        Table {
            name: String::from(name),
            rows: rows.collect(),
            ..Table::new(label, head, Align::Right)
        }
    }

    /// Sets the minimum width of the labels, and adds rows.
    pub fn with(mut self, label: usize, rows: impl IntoIterator<Item = Row>) -> Self {
        self.label = label;
        self.rows.extend(rows);
        self
    }

    /// The head and all rows.
    pub fn lines(&self) -> impl Iterator<Item = &Row> {
        std::iter::once(&self.head).chain(&self.rows)
    }

    /// Columns after the labels.
    pub fn columns(&self) -> usize {
        self.lines().map(|row| row.cells.len()).max().unwrap_or(0)
    }
}

/// Ratios with their intervals, drawn as bars on one scale.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    /// What the names of the lines are.
    pub names: &'static str,
    /// The names of the columns right of the bars, in two lines of text, and their widths.
    pub right: Vec<([&'static str; 2], usize)>,
    pub groups: Vec<IntervalGroup>,
}

/// Intervals with a common title.
#[derive(Clone, Debug)]
pub(crate) struct IntervalGroup {
    pub title: String,
    /// Names, each with its interval or the reason for having none. A name of successive lines is printed once.
    pub lines: Vec<(String, Result<IntervalBar, &'static str>)>,
    /// A reason that holds for all lines.
    pub no_lines: Option<&'static str>,
}

/// A ratio with its interval and what it means.
#[derive(Clone, Debug)]
pub(crate) struct IntervalBar {
    /// The measure.
    pub measure: &'static str,
    /// The verdict in a word.
    pub word: &'static str,
    pub ink: Ink,
    /// The ratio with its interval as text.
    pub value: String,
    /// The same as a bar; `None` without an interval.
    pub span: Option<Span>,
    /// The columns right of the bar.
    pub right: Vec<String>,
}

impl Intervals {
    /// The scale of all bars.
    pub fn scale(&self) -> Scale {
        let lines = self.groups.iter().flat_map(|group| &group.lines);
        let spans = lines.filter_map(|(_, line)| line.as_ref().ok()?.span);
        Scale::of(&spans.collect::<Vec<_>>())
    }
}

/// A ratio with the ends of its interval; an open end is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub low: Option<f64>,
    pub ratio: f64,
    pub high: Option<f64>,
}

impl Span {
    /// Makes the span of a ratio, if there is one.
    pub fn of([low, ratio, high]: [Option<f64>; 3]) -> Option<Self> {
        let ratio = ratio?;
        Some(Span { low, ratio, high })
    }
}

/// Ratios at which a scale may end.
const ENDS: [f64; 6] = [1.1, 1.25, 1.5, 2.0, 3.0, 4.0];
/// Letters on either side of 1, if there is room.
const SIDE: usize = 9;

/// The common scale of bars. It is logarithmic: 2 and 1/2 are equally far from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The ratio at its end; it begins at 1 over that.
    pub end: f64,
}

impl Scale {
    /// Letters of a bar with enough room.
    pub const BAR: usize = 2 * SIDE + 1;

    /// Returns the narrowest scale that holds all spans, or else the widest one: on wider ones small differences
    /// would be invisible.
    pub fn of(spans: &[Span]) -> Self {
        let ratios = spans
            .iter()
            .flat_map(|span| [span.low, Some(span.ratio), span.high]);
        let farthest = ratios
            .flatten()
            .filter(|ratio| *ratio > 0.0)
            .map(|ratio| ratio.ln().abs())
            .fold(0.0, f64::max);
        let wide_enough = ENDS.iter().find(|end| end.ln() >= farthest);
        let end = *wide_enough.unwrap_or(&ENDS[ENDS.len() - 1]);
        Scale { end }
    }

    /// Returns the position of a ratio, from -1 at the start of the scale to 1 at its end.
    pub fn place(self, ratio: f64) -> f64 {
        ratio.max(1e-12).ln() / self.end.ln()
    }

    /// Returns the line above bars of text: the ends of the scale, and 1 in the middle.
    pub fn head(self) -> String {
        self.head_of(Scale::BAR)
    }

    /// Returns the line above bars of this many letters.
    pub fn head_of(self, letters: usize) -> String {
        let (less, more) = (format!("1/{}", self.end), format!("{}x", self.end));
        let side = letters / 2;
        format!("{less:<side$}1{more:>side$}")
    }

    /// Draws a span in letters: `   ---o---|   `. Parts beyond the scale show as `<` or `>`.
    pub fn bar(self, span: Span) -> String {
        self.bar_of(span, Scale::BAR)
    }

    /// Draws a span in this many letters.
    pub fn bar_of(self, span: Span, letters: usize) -> String {
        let side = letters / 2;
        let place = |ratio: f64| side as f64 * (1.0 + self.place(ratio));
        let low = span.low.map_or(f64::NEG_INFINITY, place);
        let high = span.high.map_or(f64::INFINITY, place);
        let middle = place(span.ratio);
        let last = (letters - 1) as f64;
        let letter = |index: usize| match index as f64 {
            at if at == 0.0 && low < -0.5 => '<',
            at if at == last && high > last + 0.5 => '>',
            at if middle.round() == at => 'o',
            _ if index == side => '|',
            at if low.round() <= at && at <= high.round() => '-',
            _ => ' ',
        };
        (0..letters).map(letter).collect()
    }
}

/// A plot with its caption and its figures as a table.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The drawing, as SVG.
    pub svg: String,
    /// The drawn figures; `None` if the page shows them anyway.
    pub table: Option<Table>,
}

impl Figure {
    /// Makes a plot with its table: the columns' names, and the rows.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        caption: impl Into<String>,
        svg: String,
        head: impl IntoIterator<Item = T>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let title = title.into();
        Figure {
            table: Some(Table::of(&title, head, rows)),
            title,
            caption: caption.into(),
            svg,
        }
    }
}

/// Writes a file.
type SavedContent<'a> = dyn Fn(&mut dyn io::Write) -> io::Result<()> + 'a;

/// A file that a reader can save from a page.
#[derive(Clone)]
pub(crate) struct Saved<'a> {
    /// Its file name without the program's.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Writes its content, which is not in memory as a whole.
    pub write: Rc<SavedContent<'a>>,
    /// Description of its content.
    pub holds: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(low: f64, ratio: f64, high: f64) -> Span {
        Span {
            low: Some(low),
            ratio,
            high: Some(high),
        }
    }

    #[test]
    fn twice_and_half_are_equally_far() {
        let scale = Scale::of(&[span(0.26, 0.5, 0.9), span(1.1, 2.0, 3.9)]);
        assert_eq!(scale.head(), "1/4      1       4x");
        assert_eq!(scale.bar(span(0.26, 0.5, 0.9)), "-----o---|         ");
        assert_eq!(scale.bar(span(1.1, 2.0, 3.9)), "         |----o----");
        assert_eq!(scale.bar(span(0.9, 1.0, 1.1)), "        -o-        ");
    }

    #[test]
    fn what_is_beyond_the_scale_is_marked() {
        let scale = Scale { end: 2.0 };
        assert!(scale.bar(span(0.1, 0.8, 3.0)).starts_with('<'));
        assert!(scale.bar(span(0.1, 0.8, 3.0)).ends_with('>'));
        let open = Span {
            low: Some(1.2),
            ratio: 1.5,
            high: None,
        };
        assert!(scale.bar(open).ends_with("->"));
        // If even the estimate is beyond the scale, only the arrow remains.
        let far = scale.bar(span(0.01, 0.02, 0.03));
        assert_eq!(far, "<        |         ");
    }

    #[test]
    fn the_scale_holds_all_and_is_no_wider() {
        assert_eq!(Scale::of(&[]), Scale { end: 1.1 });
        assert_eq!(Scale::of(&[span(0.6, 0.7, 0.9)]), Scale { end: 2.0 });
        assert_eq!(Scale::of(&[span(0.001, 1.0, 2.0)]), Scale { end: 4.0 });
    }
}
