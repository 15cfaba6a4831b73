//! The page that the report is written on: headings, paragraphs and tables of a fixed width.

use nicpoll_model::Verdict;

use crate::figures::Outcome;

/// Where everything below a heading begins.
const INDENT: &str = "  ";
/// Running text is no narrower, however long what it hangs on.
const TEXT_MIN: usize = 20;
/// Columns wider than this take the eye from one figure to the next.
const WIDEST_COLUMN: usize = 20;
/// Least blanks before a cell of text, and before a figure.
const LEFT_GAP: usize = 2;
const RIGHT_GAP: usize = 1;

/// Units that stay on the line of their number.
const UNITS: [&str; 8] = ["%", "ns", "us", "ms", "s", "min", "h", "pt"];

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Not at all.
    Plain,
    /// Headings.
    Strong,
    /// What is there for completeness.
    Faint,
    /// Polling is better.
    Good,
    /// Polling is worse.
    Bad,
    /// Nothing is proven, or something needs care.
    Unsure,
}

impl Ink {
    /// The ink for what a verdict says.
    pub fn of(verdict: Option<Verdict>) -> Self {
        match Outcome::of(verdict) {
            Outcome::Win | Outcome::SmallWin => Ink::Good,
            Outcome::Loss | Outcome::SmallLoss => Ink::Bad,
            Outcome::Equal => Ink::Plain,
            Outcome::Open => Ink::Unsure,
        }
    }

    /// The number of the terminal's attribute or colour.
    fn code(self) -> Option<&'static str> {
        match self {
            Ink::Plain => None,
            Ink::Strong => Some("1"),
            Ink::Faint => Some("2"),
            Ink::Good => Some("32"),
            Ink::Bad => Some("31"),
            Ink::Unsure => Some("33"),
        }
    }
}

/// A line of a table: a label and what stands in each column.
#[derive(Clone)]
pub struct Row {
    /// What the line is about.
    pub label: String,
    /// One text for each column, or none when the label has the line for itself.
    pub cells: Vec<(String, Ink)>,
    /// How the label stands out.
    pub ink: Ink,
}

impl Row {
    /// A line whose parts all look the same.
    pub fn new(label: impl Into<String>, cells: Vec<String>, ink: Ink) -> Self {
        Row {
            label: label.into(),
            cells: cells.into_iter().map(|cell| (cell, ink)).collect(),
            ink,
        }
    }
}

/// Where the text of a table's columns stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At the left edge: text.
    Left,
    /// At the right edge: figures.
    Right,
}

/// A part of a page as it was written, for pages that are laid out in another way.
pub enum Block {
    /// The title of what follows.
    Heading(String),
    /// Running text behind a lead, which may be empty.
    Item(String, Ink, String),
    /// A line laid out in columns of its own.
    Line(String),
    /// A table, and where its columns stand.
    Table(Vec<Row>, Align),
}

/// A text that grows line by line.
pub struct Page {
    text: String,
    blocks: Vec<Block>,
    width: usize,
    color: bool,
}

impl Page {
    /// An empty page.
    pub fn new(width: usize, color: bool) -> Self {
        Page {
            text: String::new(),
            blocks: Vec::new(),
            width,
            color,
        }
    }

    /// Its width in columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The text written so far.
    pub fn into_text(self) -> String {
        self.text
    }

    /// What was written, part by part.
    pub fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    /// Begins a part of the report.
    pub fn heading(&mut self, title: &str) {
        self.blocks.push(Block::Heading(String::from(title)));
        if !self.text.is_empty() {
            self.blank();
        }
        for line in wrapped(title, self.width) {
            self.push(Ink::Strong, &line);
            self.text.push('\n');
        }
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Running text; it begins at the same column on each of its lines.
    pub fn paragraph(&mut self, ink: Ink, text: &str) {
        self.item("", ink, text);
    }

    /// Running text that hangs on a lead: a name, a number, a bullet.
    pub fn item(&mut self, lead: &str, ink: Ink, text: &str) {
        let block = Block::Item(String::from(lead), ink, String::from(text));
        self.blocks.push(block);
        // A name that fills its column does not run into the text.
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
                self.text.extend(std::iter::repeat_n(' ', hang));
            }
            self.push(ink, line);
            self.text.push('\n');
        }
    }

    /// A line of pieces that bring their own blanks.
    pub fn cells(&mut self, pieces: &[(String, Ink)]) {
        let line: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        self.blocks.push(Block::Line(String::from(line.trim_end())));
        let filled = |(text, _): &&(String, Ink)| !text.trim().is_empty();
        let last = pieces.iter().rposition(|piece| filled(&piece)).unwrap_or(0);
        self.text.push_str(INDENT);
        for (index, (text, ink)) in pieces.iter().enumerate().take(last + 1) {
            let text = if index == last { text.trim_end() } else { text };
            // Colour belongs to what is there, not to the blanks around it.
            let word = text.trim_start();
            let body = word.trim_end();
            self.text.push_str(&text[..text.len() - word.len()]);
            self.push(*ink, body);
            self.text.push_str(&word[body.len()..]);
        }
        self.text.push('\n');
    }

    /// Lines written so far.
    pub fn lines(&self) -> usize {
        self.text.matches('\n').count()
    }

    /// A table whose columns share what the labels leave.
    ///
    /// The label column takes at least `label`: tables of one kind ask for the same, so that the
    /// columns of each stand below those of the last. Where a cell needs more than its share, each
    /// column takes what it needs instead, and those that a line has no room for stand below the
    /// others, with the labels again.
    pub fn table(&mut self, rows: &[Row], label: usize, align: Align) {
        self.blocks.push(Block::Table(rows.to_vec(), align));
        let with_cells = || rows.iter().filter(|row| !row.cells.is_empty());
        let longest = with_cells().map(|row| columns(&row.label)).max();
        let longest = longest.unwrap_or(0);
        let label = label.max(longest);
        let needs = needs(rows, align);
        // A label may be wider than the page: it comes from a study or an imported text.
        let room = |label: usize| self.width.saturating_sub(INDENT.len() + label);
        let share = room(label) / needs.len().max(1);
        let share = match align {
            Align::Left => share,
            Align::Right => share.min(WIDEST_COLUMN),
        };
        if needs.iter().all(|need| *need <= share) {
            return self.part(rows, 0, &vec![share; needs.len()], label, align);
        }
        let mut first = 0;
        for widths in lines_of(&needs, room(longest)) {
            if first > 0 {
                self.blank();
            }
            self.part(rows, first, widths, longest, align);
            first += widths.len();
        }
    }

    /// The columns of a table from `first` on, as many as there are widths.
    fn part(&mut self, rows: &[Row], first: usize, widths: &[usize], label: usize, align: Align) {
        for row in rows {
            self.text.push_str(INDENT);
            self.push(row.ink, &row.label);
            let mut gap = label.saturating_sub(columns(&row.label));
            for ((cell, ink), width) in row.cells.iter().skip(first).zip(widths) {
                let free = width.saturating_sub(columns(cell));
                let (before, after) = match align {
                    Align::Left => (LEFT_GAP, free.saturating_sub(LEFT_GAP)),
                    Align::Right => (free.max(RIGHT_GAP), 0),
                };
                if !cell.is_empty() {
                    self.text.extend(std::iter::repeat_n(' ', gap + before));
                    self.push(*ink, cell);
                    gap = after;
                } else {
                    gap += width;
                }
            }
            self.text.push('\n');
        }
    }

    fn push(&mut self, ink: Ink, text: &str) {
        match ink.code() {
            Some(code) if self.color && !text.trim().is_empty() => {
                self.text.push_str(&format!("\x1b[{code}m{text}\x1b[0m"));
            }
            _ => self.text.push_str(text),
        }
    }
}

/// What each column of a table takes at least: its widest cell, and the blanks before it.
fn needs(rows: &[Row], align: Align) -> Vec<usize> {
    let gap = match align {
        Align::Left => LEFT_GAP,
        Align::Right => RIGHT_GAP,
    };
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|(cell, _)| columns(cell)).max().unwrap_or(0)
    };
    (0..count).map(|column| gap + widest(column)).collect()
}

/// The columns that stand beside each other, line by line: as many as there is room for, and one at least.
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

/// Columns that a text takes. The report's own text is ASCII; a study's strings are taken to be
/// one column a character.
fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text into lines between words, and words that are wider than a line anywhere.
///
/// Words come from the study, which may be another machine's: what is not printable is replaced,
/// lest it speak to the terminal.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
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

/// The words of a text. A number and its unit are one, so that no line ends between them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_broken_and_escape_codes_are_defused() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("red \u{1b}[31m", 20), ["red ?[31m"]);
        assert_eq!(wrapped("about 5 %, or 3 s", 9), ["about", "5 %, or", "3 s"]);
    }

    #[test]
    fn a_name_that_fills_its_column_does_not_run_into_the_text() {
        let mut page = Page::new(80, false);
        page.item("default    ", Ink::Plain, "as it is");
        page.item("as-it-comes", Ink::Plain, "nothing");
        page.item(&"x".repeat(200), Ink::Plain, "far out");
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  default    as it is");
        assert_eq!(lines[1], "  as-it-comes  nothing");
        assert!(lines[2].ends_with("x  far out"), "{text}");
    }

    #[test]
    fn a_label_may_be_wider_than_the_page() {
        for align in [Align::Left, Align::Right] {
            let mut page = Page::new(80, false);
            let row = Row::new("x".repeat(200), vec![String::from("1")], Ink::Plain);
            page.table(&[row], 26, align);
            let line = page.into_text();
            assert!(
                line.trim_end().ends_with(" 1") && line.len() < 220,
                "{line}"
            );
        }
    }

    #[test]
    fn wide_columns_stand_apart_and_below_one_another_where_a_line_is_too_short() {
        let cells = |letter: &str, wide: [usize; 4]| wide.map(|wide| letter.repeat(wide)).to_vec();
        let rows = [
            Row::new("head", cells("h", [29, 5, 30, 14]), Ink::Strong),
            Row::new("a group", vec![], Ink::Plain),
            Row::new("figures", cells("7", [6, 6, 6, 6]), Ink::Plain),
        ];
        for align in [Align::Left, Align::Right] {
            let mut page = Page::new(80, false);
            page.table(&rows, 27, align);
            let text = page.into_text();
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
                assert_eq!(
                    ends(&lines[0][6..], 'h'),
                    ends(&lines[2][6..], '7'),
                    "{text}"
                );
                assert_eq!(
                    ends(&lines[4][6..], 'h'),
                    ends(&lines[6][6..], '7'),
                    "{text}"
                );
            }
        }
        // What has room for its share keeps it.
        let mut page = Page::new(80, false);
        page.table(
            &[Row::new("a", cells("7", [11; 4]), Ink::Plain)],
            27,
            Align::Right,
        );
        let line = page.into_text();
        assert_eq!(line.find('7'), Some(2 + 27 + 1), "{line}");
    }

    #[test]
    fn empty_cells_leave_no_trailing_blanks() {
        let mut page = Page::new(80, false);
        let cells = vec![String::from("1"), String::new(), String::from("3")];
        page.table(
            &[
                Row::new("label", cells, Ink::Plain),
                Row::new("alone", vec![String::from("1"), String::new()], Ink::Plain),
            ],
            0,
            Align::Right,
        );
        let lines: Vec<String> = page.into_text().lines().map(String::from).collect();
        assert_eq!(lines[0].find('1'), lines[1].find('1'));
        assert!(lines.iter().all(|line| line.trim_end() == line));
    }
}
