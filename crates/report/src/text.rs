//! A page as text for a terminal.
//!
//! Without colour the text has no escape code, whatever the document's strings hold. Running text is never wider than
//! the page; neither are tables, unless a label and one cell together are. Columns that do not fit into a line stand
//! below the others.

use std::collections::BTreeMap;

use crate::page::{Align, Block, Document, Ink, Intervals, Medium, Rank, Scale, Table};

/// Narrowest page for the tables.
const NARROWEST: usize = 80;
/// Widest page; longer lines are hard to read.
const WIDEST: usize = 100;
/// Indent of everything below a heading.
const INDENT: &str = "  ";
/// Minimum width of running text, however long its lead.
const TEXT_MIN: usize = 20;
/// Widest column; in wider ones the eye loses the line.
const WIDEST_COLUMN: usize = 20;
/// Fewest blanks before a cell of text, and before a figure.
const LEFT_GAP: usize = 2;
const RIGHT_GAP: usize = 1;
/// Lines of a terminal, less the prompt.
const FIRST_SCREEN: usize = 23;
/// Units that stay on the line of their number.
const UNITS: [&str; 8] = ["%", "ns", "us", "ms", "s", "min", "h", "pt"];

/// Options of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of a line, limited to 80 to 100.
    pub width: usize,
    /// Whether to colour it: the caller checks for a terminal and `NO_COLOR`.
    pub color: bool,
}

impl TextOptions {
    /// Makes options of that width, without colour.
    pub fn wide(width: usize) -> Self {
        TextOptions {
            width,
            color: false,
        }
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions::wide(WIDEST)
    }
}

/// Renders a document as text, with a newline at its end.
pub fn render_text(document: &impl Document, options: &TextOptions) -> String {
    let mut text = Text {
        text: String::new(),
        width: options.width.clamp(NARROWEST, WIDEST),
        color: options.color,
    };
    let page = document.page();
    let parts = page.parts.iter();
    for part in parts.filter(|part| part.medium != Medium::Html) {
        text.blocks(&part.blocks);
    }
    text.text
}

/// Renders bars as lines of the widest page, without the indent.
pub(crate) fn interval_lines(intervals: &Intervals) -> String {
    let mut text = Text {
        text: String::new(),
        width: WIDEST,
        color: false,
    };
    text.intervals(intervals);
    let lines = text.text.lines();
    lines
        .map(|line| format!("{}\n", &line[INDENT.len()..]))
        .collect()
}

/// A text that grows line by line.
struct Text {
    text: String,
    width: usize,
    color: bool,
}

impl Text {
    fn blocks(&mut self, blocks: &[Block]) {
        let mut free = None;
        // A heading of spare sentences waits for the first one that is shown.
        let mut waiting = None;
        for (index, block) in blocks.iter().enumerate() {
            match block {
                Block::Heading(Rank::Browser, _)
                | Block::Figure(_)
                | Block::Code(_)
                | Block::Link(..)
                | Block::Saved(_) => {}
                Block::Heading(_, title) => match blocks.get(index + 1) {
                    Some(Block::Spare(..)) => waiting = Some(title),
                    _ => self.heading(title),
                },
                Block::Item(lead, ink, text) => self.item(lead, *ink, text),
                Block::Spare(ink, text) => {
                    let lines = self.text.matches('\n').count();
                    let room = (FIRST_SCREEN - 2).saturating_sub(lines);
                    let free = free.get_or_insert(room);
                    // The first screen fits the narrowest terminal, but doubts about its lines are never left out.
                    let takes = wrapped(text, NARROWEST - 4).len();
                    if takes <= *free || *ink == Ink::Unsure {
                        if let Some(title) = waiting.take() {
                            self.heading(title);
                        }
                        let lead = if *ink == Ink::Faint { "" } else { "- " };
                        self.item(lead, *ink, text);
                        *free = free.saturating_sub(takes);
                    }
                }
                Block::Line(pieces) => self.line(pieces),
                Block::Table(table) => self.table(table),
                Block::Intervals(intervals) => self.intervals(intervals),
                Block::Blank => self.text.push('\n'),
                Block::Folded(_, blocks) => self.blocks(blocks),
            }
        }
    }

    fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        for line in wrapped(title, self.width) {
            self.push(Ink::Strong, &line);
            self.text.push('\n');
        }
    }

    /// Writes running text, with all lines at the same column.
    fn item(&mut self, lead: &str, ink: Ink, text: &str) {
        // Keeps a name that fills its column apart from the text.
        let gap = match lead.ends_with(|last: char| last != ' ') {
            true => INDENT,
            false => "",
        };
        let lead = format!("{lead}{gap}");
        let hang = INDENT.len() + columns(&lead);
        let width = self.width.saturating_sub(hang).max(TEXT_MIN);
        for (index, line) in wrapped(text, width).iter().enumerate() {
            if index == 0 {
                self.text.push_str(INDENT);
                self.push(Ink::Strong, &lead);
            } else {
                self.blanks(hang);
            }
            self.push(ink, line);
            self.text.push('\n');
        }
    }

    fn line(&mut self, pieces: &[(String, Ink)]) {
        let last = pieces
            .iter()
            .rposition(|(text, _)| !text.trim().is_empty())
            .unwrap_or(0);
        self.text.push_str(INDENT);
        for (index, (text, ink)) in pieces.iter().enumerate().take(last + 1) {
            let text = if index == last { text.trim_end() } else { text };
            // Blanks around the word are not coloured.
            let word = text.trim_start();
            let body = word.trim_end();
            self.text.push_str(&text[..text.len() - word.len()]);
            self.push(*ink, body);
            self.text.push_str(&word[body.len()..]);
        }
        self.text.push('\n');
    }

    /// Writes a table whose columns share the room that the labels leave.
    ///
    /// If a cell needs more than its share, each column takes what it needs, and columns that do not fit into the
    /// line stand below the others, with the labels repeated.
    fn table(&mut self, table: &Table) {
        let with_cells = table.lines().filter(|row| !row.cells.is_empty());
        let longest = with_cells.map(|row| columns(&row.label.text)).max();
        let longest = longest.unwrap_or(0);
        let label = table.label.max(longest);
        let needs = needs(table);
        // A label from a study or an imported text may be wider than the page.
        let room = |label: usize| self.width.saturating_sub(INDENT.len() + label);
        let share = room(label) / needs.len().max(1);
        let share = match table.align {
            Align::Left => share,
            Align::Right => share.min(WIDEST_COLUMN),
        };
        if needs.iter().all(|need| *need <= share) {
            return self.columns_of(table, 0, &vec![share; needs.len()], label);
        }
        let mut first = 0;
        for widths in lines_of(&needs, room(longest)) {
            if first > 0 {
                self.text.push('\n');
            }
            self.columns_of(table, first, widths, longest);
            first += widths.len();
        }
    }

    /// Writes the columns of a table from `first` on, one for each width.
    fn columns_of(&mut self, table: &Table, first: usize, widths: &[usize], label: usize) {
        for row in table.lines() {
            self.text.push_str(INDENT);
            self.push(row.label.ink, &row.label.text);
            let mut gap = label.saturating_sub(columns(&row.label.text));
            for (cell, width) in row.cells.iter().skip(first).zip(widths) {
                let free = width.saturating_sub(columns(&cell.text));
                let (before, after) = match table.align {
                    Align::Left => (LEFT_GAP, free.saturating_sub(LEFT_GAP)),
                    Align::Right => (free.max(RIGHT_GAP), 0),
                };
                if cell.text.is_empty() {
                    gap += width;
                } else {
                    self.blanks(gap + before);
                    self.push(cell.ink, &cell.text);
                    gap = after;
                }
            }
            self.text.push('\n');
        }
    }

    /// Writes bars; the columns' heads stand above the first group.
    fn intervals(&mut self, intervals: &Intervals) {
        let scale = intervals.scale();
        let layout = Layout::of(intervals, self.width);
        let Layout {
            name, value, bar, ..
        } = layout;
        let names = name + MEASURE + WORD + value;
        let right = |line: usize| -> String {
            let heads = intervals.right.iter();
            heads
                .map(|(head, width)| format!("{:>width$}", head[line]))
                .collect()
        };
        let mut names_of = layout.names.iter();
        for (index, group) in intervals.groups.iter().enumerate() {
            if let Some(why) = group.no_lines {
                let title = (format!("{}: ", group.title), Ink::Strong);
                self.line(&[title, (String::from(why), Ink::Unsure)]);
                names_of.by_ref().take(group.lines.len()).for_each(drop);
                continue;
            }
            if index == 0 {
                let above = format!(
                    "{:names$}{:<half$} {:>half$}{}",
                    format!(
                        "{:name$}{:<MEASURE$}{:<WORD$}ratio [interval]",
                        "", "measure", "verdict"
                    ),
                    "less",
                    "more",
                    right(0),
                    half = bar / 2
                );
                let title = shortened(&group.title, names - 1);
                let below = format!("{title:<names$}{}{}", scale.head_of(bar), right(1));
                self.line(&[(above, Ink::Strong)]);
                self.line(&[(below, Ink::Strong)]);
            } else {
                self.line(&[(group.title.clone(), Ink::Strong)]);
            }
            for ((_, line), short) in group.lines.iter().zip(names_of.by_ref()) {
                let short = (format!("{short:<name$}"), Ink::Plain);
                let one = match line {
                    Ok(one) => one,
                    Err(why) => {
                        self.line(&[short, (String::from(*why), Ink::Unsure)]);
                        continue;
                    }
                };
                let drawn = one.span.map_or(" ".repeat(bar), |it| scale.bar_of(it, bar));
                let cells = one.right.iter().zip(&intervals.right);
                let cells = cells.map(|(cell, (_, width))| format!("{cell:>width$}"));
                self.line(&[
                    short,
                    (format!("{:<MEASURE$}", one.measure), Ink::Plain),
                    (format!("{:<WORD$}", one.word), one.ink),
                    (format!("{:<value$}", one.value), Ink::Plain),
                    (drawn, one.ink),
                    (cells.collect(), Ink::Plain),
                ]);
            }
        }
    }

    fn blanks(&mut self, count: usize) {
        self.text.extend(std::iter::repeat_n(' ', count));
    }

    fn push(&mut self, ink: Ink, text: &str) {
        let code = match ink {
            Ink::Plain => None,
            Ink::Strong => Some("1"),
            Ink::Faint => Some("2"),
            Ink::Good => Some("32"),
            Ink::Bad => Some("31"),
            Ink::Unsure => Some("33"),
        };
        match code {
            Some(code) if self.color && !text.trim().is_empty() => {
                self.text.push_str(&format!("\x1b[{code}m{text}\x1b[0m"));
            }
            _ => self.text.push_str(text),
        }
    }
}

/// Minimum width of the names of bars, with the blank after them.
const NAME_MIN: usize = 8;
/// Width of a measure's word.
const MEASURE: usize = 11;
/// Width of a verdict's word.
const WORD: usize = 11;
/// Letters of the shortest bar.
const BAR_MIN: usize = 9;
/// Width of a ratio with its interval, if names leave room for it.
const VALUE: usize = 22;

/// Widths of the columns before the bars, which all begin at one position.
struct Layout {
    name: usize,
    value: usize,
    /// Letters of a bar.
    bar: usize,
    /// The names of all groups' lines, cut to the room.
    names: Vec<String>,
}

impl Layout {
    /// Gives names the room that they need: first the room after the values goes, then bars are shortened, then the
    /// words after names (a rate) are left out, then names are shortened.
    fn of(intervals: &Intervals, width: usize) -> Self {
        let lines = || intervals.groups.iter().flat_map(|group| &group.lines);
        let values = lines().filter_map(|(_, line)| Some(columns(&line.as_ref().ok()?.value) + 1));
        let widest = values.max().unwrap_or(VALUE);
        let right: usize = intervals.right.iter().map(|(_, width)| width).sum();
        let room = width.saturating_sub(INDENT.len() + MEASURE + WORD + right);
        let most = room.saturating_sub(widest + BAR_MIN).max(NAME_MIN);
        let need = |names: &[&str]| names.iter().map(|it| columns(it) + 1).max().unwrap_or(0);
        let whole: Vec<&str> = lines().map(|(name, _)| name.as_str()).collect();
        let bare = whole
            .iter()
            .map(|name| name.split(' ').next().unwrap_or(name));
        let bare: Vec<&str> = bare.collect();
        let names = match need(&whole) > most && are_apart(&whole, &bare) {
            true => bare,
            false => whole,
        };
        let name = need(&names).clamp(NAME_MIN, most);
        let value = VALUE
            .min(room.saturating_sub(name + Scale::BAR))
            .max(widest);
        let bar = room.saturating_sub(value + name).clamp(BAR_MIN, Scale::BAR);
        Layout {
            name,
            value,
            // An odd number of letters, the same on either side of the middle.
            bar: bar - (bar + 1) % 2,
            names: shortened_apart(&names, name - 1),
        }
    }
}

/// Returns the minimum width of each column: its widest cell, and the blanks before it.
fn needs(table: &Table) -> Vec<usize> {
    let gap = match table.align {
        Align::Left => LEFT_GAP,
        Align::Right => RIGHT_GAP,
    };
    let widest = |column: usize| {
        let cells = table.lines().filter_map(|row| row.cells.get(column));
        cells.map(|cell| columns(&cell.text)).max().unwrap_or(0)
    };
    (0..table.columns())
        .map(|column| gap + widest(column))
        .collect()
}

/// Splits the columns into lines: as many as fit, and at least one.
fn lines_of(needs: &[usize], room: usize) -> Vec<&[usize]> {
    let mut lines = Vec::new();
    let mut rest = needs;
    while !rest.is_empty() {
        let ends = rest.iter().scan(0, |end, need| {
            *end += need;
            Some(*end)
        });
        let fitting = ends.take_while(|end| *end <= room).count().max(1);
        let (line, below) = rest.split_at(fitting);
        lines.push(line);
        rest = below;
    }
    lines
}

/// Returns the columns of a text. The report's own text is ASCII; a study's strings count one column a character.
fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text into lines between words, and words that are wider than a line anywhere.
///
/// The words may come from another machine's document: unprintable characters are replaced, or they could control the
/// terminal.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words(text) {
        let word: Vec<char> = word
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        for piece in word.chunks(width) {
            let line = lines.last_mut().expect("there is always a line");
            let used = columns(line);
            if used == 0 {
                line.extend(piece);
            } else if used + 1 + piece.len() <= width {
                line.push(' ');
                line.extend(piece);
            } else {
                lines.push(piece.iter().collect());
            }
        }
    }
    lines
}

/// Splits a text into words. A number and its unit stay together.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(String::from(word)),
        }
    }
    words
}

/// Shortens a name to this many columns: its beginning and its end, where names differ.
fn shortened(name: &str, width: usize) -> String {
    cut(name, width, width / 3)
}

/// Shortens a name, keeping this many letters of the end.
fn cut(name: &str, width: usize, end: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return String::from(name);
    }
    let end = &letters[letters.len() - end..];
    let begin = &letters[..width - end.len() - 1];
    begin.iter().chain(&['~']).chain(end).collect()
}

/// Shortens the names of one screen to this many columns: beginnings and ends, and a whole last word if there is
/// room. Different names stay different: if a cut makes two alike, all are cut elsewhere; if no cut helps, their
/// positions distinguish them.
pub(crate) fn shortened_apart(names: &[&str], width: usize) -> Vec<String> {
    let last_word = |name: &str| {
        let word = name.rfind(['-', ' ']).map(|at| columns(&name[at..]));
        let usual = width / 3;
        word.filter(|word| (usual..=2 * usual).contains(word))
            .unwrap_or(usual)
    };
    let usual = names.iter().map(|name| cut(name, width, last_word(name)));
    let cuts = (0..width).map(|end| names.iter().map(|name| cut(name, width, end)).collect());
    let mut all = std::iter::once(usual.collect()).chain(cuts);
    if let Some(short) = all.find(|short: &Vec<String>| are_apart(names, short)) {
        return short;
    }
    let numbered = names.iter().map(|name| {
        let first = names.iter().position(|other| other == name).unwrap_or(0);
        let number = format!("~{}", first + 1);
        let room = width.saturating_sub(number.len());
        name.chars().take(room).chain(number.chars()).collect()
    });
    numbered.collect()
}

/// Returns whether different names stayed different.
fn are_apart<T: AsRef<str>>(names: &[&str], short: &[T]) -> bool {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    let mut both = names.iter().zip(short);
    both.all(|(name, short)| *known.entry(short.as_ref()).or_insert(name) == *name)
}

/// Writes microseconds as the locale can show them: `200 us` becomes `200 µs` in UTF-8, and `20µs` becomes `20us`
/// elsewhere. Only the unit after a number changes, never the length of a line. Behind a no-break space it stays, as in
/// quotations; that is written as a space.
pub fn with_micros(text: &str, is_utf8: bool) -> String {
    if !is_utf8 {
        return text.replace("µs", "us").replace("\u{a0}us", " us");
    }
    let mut parts = text.split(" us");
    let mut shown = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let is_unit = shown.ends_with(|c: char| c.is_ascii_digit())
            && !part.starts_with(|c: char| c.is_alphanumeric());
        shown.push_str(if is_unit { " µs" } else { " us" });
        shown.push_str(part);
    }
    shown.replace("\u{a0}us", " us")
}

/// Aligns lines of cells, with two blanks between columns. Columns from `figures_from` on are aligned right.
pub(crate) fn aligned_lines<T: AsRef<[String]>>(lines: &[T], figures_from: usize) -> String {
    let lines = lines.iter().map(AsRef::as_ref);
    let width = |column: usize| {
        let cells = lines.clone().map(|line| columns(&line[column]));
        cells.max().unwrap_or(0)
    };
    let count = lines.clone().next().map_or(0, <[String]>::len);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let aligned = lines.map(|line| {
        let cells = line.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column < figures_from {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        let cells: Vec<String> = cells.collect();
        cells.join("  ") + "\n"
    });
    aligned.collect()
}

/// Returns a line with a name in a column of that width, and a text.
pub(crate) fn named(name: &str, width: usize, text: &str) -> String {
    format!("{name:<width$}{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Cell, Page, Part, Row};

    fn shown(write: impl FnOnce(&mut Part)) -> String {
        render_text(&Page::of("", write), &TextOptions::wide(80))
    }

    fn table(rows: Vec<Row>, label: usize, align: Align) -> String {
        let mut rows = rows.into_iter();
        let mut table = Table::new("", [""; 0], align);
        table.head = rows.next().unwrap();
        (table.rows, table.label) = (rows.collect(), label);
        shown(|part| part.table(table))
    }

    #[test]
    fn long_words_are_broken_and_escape_codes_are_defused() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("red \u{1b}[31m", 20), ["red ?[31m"]);
        assert_eq!(wrapped("about 5 %, or 3 s", 9), ["about", "5 %, or", "3 s"]);
    }

    #[test]
    fn a_name_that_fills_its_column_does_not_run_into_the_text() {
        let text = shown(|part| {
            part.item("default    ", Ink::Plain, "as it is");
            part.item("as-it-comes", Ink::Plain, "nothing");
            part.item("x".repeat(200), Ink::Plain, "far out");
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  default    as it is");
        assert_eq!(lines[1], "  as-it-comes  nothing");
        assert!(lines[2].ends_with("x  far out"), "{text}");
    }

    #[test]
    fn a_label_may_be_wider_than_the_page() {
        for align in [Align::Left, Align::Right] {
            let line = table(vec![Row::plain("x".repeat(200), ["1"])], 26, align);
            assert!(
                line.trim_end().ends_with(" 1") && line.len() < 220,
                "{line}"
            );
        }
    }

    #[test]
    fn wide_columns_stand_apart_and_below_one_another_where_a_line_is_too_short() {
        let cells = |letter: &str, wide: [usize; 4]| wide.map(|wide| letter.repeat(wide));
        let rows = [
            Row::plain("head", cells("h", [29, 5, 30, 14])),
            Row::group("a group", Ink::Plain),
            Row::plain("figures", cells("7", [6, 6, 6, 6])),
        ];
        for align in [Align::Left, Align::Right] {
            let text = table(rows.to_vec(), 27, align);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2 * rows.len() + 1, "{text}");
            assert!(lines[0].starts_with("  head ") && lines[4].starts_with("  head "));
            assert!(lines[1] == "  a group" && lines[3].is_empty() && lines[5] == lines[1]);
            for (line, cells) in [(0, 3), (2, 3), (4, 1), (6, 1)] {
                assert_eq!(lines[line].split_whitespace().count(), 1 + cells, "{text}");
                assert!(lines[line].len() <= 80, "{text}");
            }
            let ends = |line: &str, letter| -> Vec<usize> {
                let ends = line
                    .char_indices()
                    .filter(|(at, one)| *one == letter && !line[at + 1..].starts_with(letter));
                ends.map(|(at, _)| at).collect()
            };
            if align == Align::Right {
                for [head, below] in [[0, 2], [4, 6]] {
                    let ends = [ends(&lines[head][6..], 'h'), ends(&lines[below][6..], '7')];
                    assert_eq!(ends[0], ends[1], "{text}");
                }
            }
        }
        // Columns with enough room keep their share.
        let line = table(vec![Row::plain("a", cells("7", [11; 4]))], 27, Align::Right);
        assert_eq!(line.find('7'), Some(2 + 27 + 1), "{line}");
    }

    #[test]
    fn empty_cells_leave_no_trailing_blanks() {
        let rows = vec![
            Row::plain("label", ["1", "", "3"]),
            Row {
                label: Cell::new("alone", Ink::Plain),
                ..Row::plain("", ["1", ""])
            },
        ];
        let text = table(rows, 0, Align::Right);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find('1'), lines[1].find('1'));
        assert!(lines.iter().all(|line| line.trim_end() == *line));
    }

    #[test]
    fn names_of_one_screen_stay_apart() {
        let apart = |names: &[&str], width| {
            let short = shortened_apart(names, width);
            assert!(
                short.iter().all(|name| name.chars().count() <= width),
                "{short:?}"
            );
            short
        };
        // The usual cut keeps these apart, and leaves a short one as it is.
        assert_eq!(
            apart(&["udp", "udp-64-at-50-%", "udp-64-at-90-%"], 12),
            ["udp", "udp-64-~50-%", "udp-64-~90-%"]
        );
        // It would make these one.
        let middle = ["one-long-name-1-of-a-kind", "one-long-name-2-of-a-kind"];
        assert_eq!(shortened(middle[0], 9), shortened(middle[1], 9));
        let short = apart(&middle, 9);
        assert_ne!(short[0], short[1]);
        // One name twice is one name.
        let twice = apart(&[middle[0], middle[0], middle[1]], 9);
        assert!(twice[0] == twice[1] && twice[1] != twice[2], "{twice:?}");
        // A short name to which another one is cut.
        let trap = apart(&["ab~ef", "abcdef"], 5);
        assert_ne!(trap[0], trap[1]);
    }
    #[test]
    fn microseconds_are_written_as_the_locale_can_show_them() {
        let text = "period 200 us, at most 1.5 us.\nfor 20µs those who use us use --period 50us\n";
        assert_eq!(
            with_micros(text, true),
            "period 200 µs, at most 1.5 µs.\nfor 20µs those who use us use --period 50us\n"
        );
        assert_eq!(
            with_micros(text, false),
            "period 200 us, at most 1.5 us.\nfor 20us those who use us use --period 50us\n"
        );
        // A quotation.
        for is_utf8 in [true, false] {
            assert_eq!(
                with_micros("0.3\u{a0}us, 4.9 sy", is_utf8),
                "0.3 us, 4.9 sy"
            );
        }
    }
}
