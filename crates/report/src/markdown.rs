//! A study, or a live comparison, as Markdown: the page of the terminal with headings, lists and tables for a wiki, a
//! mail or a ticket.
//!
//! What must hold: it says what the terminal's page says. Nothing that a study holds can make a table break.

use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, Study};

use crate::text::page::{Align, Block, Page, Row};
use crate::text::{ab, imported, write_study};

/// Columns of the lines that keep their layout.
const WIDTH: usize = 100;
/// Around the lines that keep their layout.
const FENCE: &str = "```\n";

/// A study as Markdown, with a newline at its end.
pub fn render_markdown(study: &Study) -> String {
    let mut page = Page::new(WIDTH, false);
    write_study(&mut page, study);
    of_blocks(&page.into_blocks())
}

/// A live comparison as Markdown, with a newline at its end.
pub fn render_ab_markdown(compared: &LiveAb) -> String {
    let mut page = Page::new(WIDTH, false);
    ab::write(&mut page, compared);
    of_blocks(&page.into_blocks())
}

/// Imported trials as Markdown, with a newline at its end.
pub fn render_imported_markdown(document: &Imported) -> String {
    let mut page = Page::new(WIDTH, false);
    imported::write(&mut page, document);
    of_blocks(&page.into_blocks())
}

/// Each run of blocks that belong together, with an empty line between the runs.
fn of_blocks(blocks: &[Block]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in blocks.chunk_by(stand_together) {
        let level = if parts.is_empty() { "#" } else { "##" };
        let lines: String = run.iter().map(|block| of_block(block, level)).collect();
        parts.push(match run.first() {
            Some(Block::Line(..)) => format!("{FENCE}{lines}{FENCE}"),
            _ => lines,
        });
    }
    parts.join("\n")
}

fn stand_together(one: &Block, other: &Block) -> bool {
    match (one, other) {
        (Block::Line(..), Block::Line(..)) => true,
        (Block::Item(one, ..), Block::Item(other, ..)) => {
            !one.trim().is_empty() && !other.trim().is_empty()
        }
        _ => false,
    }
}

fn of_block(block: &Block, level: &str) -> String {
    match block {
        Block::Heading(title) => format!("{level} {}\n", plain(title)),
        Block::Item(lead, _, words) => match lead.trim() {
            "" => format!("{}\n", plain(words)),
            "-" => format!("- {}\n", plain(words)),
            name => format!("- **{}** {}\n", plain(name), plain(words)),
        },
        Block::Line(line) => line.replace('`', "'") + "\n",
        Block::Table(rows, align) => table(rows, *align),
    }
}

fn table(rows: &[Row], align: Align) -> String {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let rule = match align {
        Align::Left => " --- |",
        Align::Right => " ---: |",
    };
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text += &format!("| {} |", cell(&row.label));
        for column in 0..columns {
            let words = row.cells.get(column).map(|(words, _)| cell(words));
            text += &format!(" {} |", words.unwrap_or_default());
        }
        text.push('\n');
        if index == 0 {
            text += &format!("| --- |{}\n", rule.repeat(columns));
        }
    }
    text
}

/// What stands in a cell of a table.
fn cell(text: &str) -> String {
    plain(text.trim()).replace('|', "\\|")
}

/// Text without what Markdown would take for a mark of its own, or a reader's program for HTML.
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

    #[test]
    fn every_line_of_a_table_has_as_many_cells_and_nothing_becomes_markup() {
        let text = include_str!("../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        study.settings[0].description = String::from("a | b <script>");
        study.settings[0].setting = String::from("a|b");
        let text = render_markdown(&study);
        assert!(text.starts_with("# Does polling pay here?"));
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
