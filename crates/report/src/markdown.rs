//! A page as Markdown for a wiki, a mail or a ticket: the text's words, with headings, lists and tables.
//!
//! No text of a document can break a table or become markup.

use crate::page::{Align, Block, Document, Medium, Rank, Table};
use crate::text::interval_lines;

/// Fence around lines that keep their layout.
const FENCE: &str = "```\n";

/// Renders a document as Markdown, with a newline at its end.
pub fn render_markdown(document: &impl Document) -> String {
    let page = document.page();
    let parts = page.parts.iter();
    let parts = parts.filter(|part| matches!(part.medium, Medium::All | Medium::Text));
    let blocks = parts.flat_map(|part| &part.blocks).flat_map(unfolded);
    let blocks: Vec<&Block> = blocks.filter(|block| is_shown(block)).collect();
    let mut runs: Vec<String> = Vec::new();
    for run in blocks.chunk_by(|one, other| is_line(one) == is_line(other)) {
        if run.first().is_some_and(|block| is_line(block)) {
            let lines: String = run.iter().map(|block| lines(block)).collect();
            runs.push(format!("{FENCE}{}{FENCE}", lines.replace('`', "'")));
            continue;
        }
        for run in run.chunk_by(|one, other| is_listed(one) && is_listed(other)) {
            let level = if runs.is_empty() { "#" } else { "##" };
            runs.push(run.iter().map(|block| of_block(block, level)).collect());
        }
    }
    runs.join("\n")
}

fn unfolded<'a>(block: &'a Block<'a>) -> Vec<&'a Block<'a>> {
    match block {
        Block::Folded(_, blocks) => blocks.iter().collect(),
        block => vec![block],
    }
}

fn is_shown(block: &Block) -> bool {
    !matches!(
        block,
        Block::Blank
            | Block::Figure(_)
            | Block::Code(_)
            | Block::Link(..)
            | Block::Saved(_)
            | Block::Heading(Rank::Browser, _)
    )
}

/// Returns whether a block keeps its layout.
fn is_line(block: &Block) -> bool {
    matches!(block, Block::Line(_) | Block::Intervals(_))
}

fn is_listed(block: &Block) -> bool {
    match block {
        Block::Item(lead, ..) => !lead.trim().is_empty(),
        Block::Spare(..) => true,
        _ => false,
    }
}

fn lines(block: &Block) -> String {
    match block {
        Block::Intervals(intervals) => interval_lines(intervals),
        Block::Line(pieces) => {
            let line: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
            format!("{}\n", line.trim_end())
        }
        _ => String::new(),
    }
}

fn of_block(block: &Block, level: &str) -> String {
    match block {
        Block::Heading(_, title) => format!("{level} {}\n", plain(title)),
        Block::Item(lead, _, words) => item(lead, words),
        Block::Spare(_, words) => item("-", words),
        Block::Table(it) => table(it),
        _ => String::new(),
    }
}

fn item(lead: &str, words: &str) -> String {
    match lead.trim() {
        "" => format!("{}\n", plain(words)),
        "-" => format!("- {}\n", plain(words)),
        name => format!("- **{}** {}\n", plain(name), plain(words)),
    }
}

fn table(table: &Table) -> String {
    let columns = table.columns();
    let rule = match table.align {
        Align::Left => " --- |",
        Align::Right => " ---: |",
    };
    let mut text = String::new();
    for (index, row) in table.lines().enumerate() {
        text += &format!("| {} |", cell(&row.label.text));
        for column in 0..columns {
            let words = row.cells.get(column).map(|it| cell(&it.text));
            text += &format!(" {} |", words.unwrap_or_default());
        }
        text.push('\n');
        if index == 0 {
            text += &format!("| --- |{}\n", rule.repeat(columns));
        }
    }
    text
}

fn cell(text: &str) -> String {
    plain(text.trim()).replace('|', "\\|")
}

/// Escapes Markdown's marks and HTML in text.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '*' | '_' | '`' | '[' | ']' | '\\' => plain.extend(['\\', letter]),
            letter if letter.is_control() => plain.push('?'),
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::Study;

    #[test]
    fn every_line_of_a_table_has_as_many_cells_and_nothing_becomes_markup() {
        let text = include_str!("../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.settings[0].description = String::from("a | b <script>");
        study.settings[0].setting = String::from("a|b");
        let text = render_markdown(&study);
        assert!(text.starts_with("# Does polling pay here, and"));
        assert!(!text.contains("<script>"));
        let mut cells = None;
        let mut tables = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                cells = None;
                continue;
            }
            let count = line.replace("\\|", "").matches('|').count();
            tables += usize::from(cells.is_none());
            assert_eq!(*cells.get_or_insert(count), count, "{line}");
        }
        assert!(tables > 2, "{tables}");
        assert_eq!(text.matches("```").count() % 2, 0);
        assert!(!text.contains("\n\n\n"));
    }
}
