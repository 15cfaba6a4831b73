//! The page that the report is written on: headings, paragraphs and tables of a fixed width.

use nicpoll_model::Verdict;

use crate::figures::Outcome;

/// Where everything below a heading begins.
const INDENT: &str = "  ";
/// Columns wider than this take the eye from one figure to the next.
const WIDEST_COLUMN: usize = 20;

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
        let hang = INDENT.len() + columns(lead);
        for (index, line) in wrapped(text, self.width - hang).iter().enumerate() {
            if index == 0 {
                self.text.push_str(INDENT);
                self.push(Ink::Strong, lead);
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
    /// columns of each stand below those of the last.
    pub fn table(&mut self, rows: &[Row], label: usize, align: Align) {
        self.blocks.push(Block::Table(rows.to_vec(), align));
        let with_cells = || rows.iter().filter(|row| !row.cells.is_empty());
        let label = with_cells()
            .map(|row| columns(&row.label))
            .fold(label, usize::max);
        let count = with_cells().map(|row| row.cells.len()).max().unwrap_or(1);
        // A label may be wider than the page: it comes from a study or an imported text.
        let share = self.width.saturating_sub(INDENT.len() + label) / count;
        let column = match align {
            Align::Left => share,
            Align::Right => share.min(WIDEST_COLUMN),
        };
        for row in rows {
            self.row(row, label, column, align);
        }
    }

    fn row(&mut self, row: &Row, label: usize, column: usize, align: Align) {
        self.text.push_str(INDENT);
        self.push(row.ink, &row.label);
        let mut gap = label.saturating_sub(columns(&row.label));
        for (cell, ink) in &row.cells {
            let free = column.saturating_sub(columns(cell));
            let (before, after) = match align {
                Align::Left => (2, free.saturating_sub(2)),
                Align::Right => (free.max(1), 0),
            };
            if !cell.is_empty() {
                self.text.extend(std::iter::repeat_n(' ', gap + before));
                self.push(*ink, cell);
                gap = after;
            } else {
                gap += column;
            }
        }
        self.text.push('\n');
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
