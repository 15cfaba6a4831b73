//! Parts of the terminal's page as HTML.
//!
//! What must hold: no word is added and none is lost.

use maud::{Markup, html};

use crate::text::page::{Align, Block, Ink, Row};

/// The blocks, one below the other. What stands in lines next to each other becomes one list.
pub fn of(blocks: &[&Block]) -> Markup {
    let runs = blocks.chunk_by(|one, other| kind(one) == kind(other));
    html! { @for run in runs { (of_run(run)) } }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Heading,
    Named,
    Listed,
    Plain,
    Line,
    Table,
}

fn kind(block: &Block) -> Kind {
    match block {
        Block::Heading(_) => Kind::Heading,
        Block::Item(lead, ..) if lead.trim().is_empty() => Kind::Plain,
        Block::Item(lead, ..) if lead.trim() == "-" => Kind::Listed,
        Block::Item(..) => Kind::Named,
        Block::Line(..) => Kind::Line,
        Block::Table(..) => Kind::Table,
    }
}

fn of_run(run: &[&Block]) -> Markup {
    match run.first().map(|block| kind(block)) {
        Some(Kind::Named) => html! { dl { @for block in run { (one(block)) } } },
        Some(Kind::Listed) => html! { ul { @for block in run { (one(block)) } } },
        Some(Kind::Line) => html! {
            pre tabindex="0" { @for block in run { (one(block)) "\n" } }
        },
        _ => html! { @for block in run { (one(block)) } },
    }
}

fn one(block: &Block) -> Markup {
    match block {
        Block::Heading(title) => html! { h2 { (title) } },
        Block::Item(lead, ink, text) => match kind(block) {
            Kind::Named => html! { div { dt { (lead.trim()) } dd class=(class(*ink)) { (text) } } },
            Kind::Listed => html! { li class=(class(*ink)) { (text) } },
            _ => html! { p class=(class(*ink)) { (text) } },
        },
        Block::Line(line) => html! { (line) },
        Block::Table(rows, align) => table(rows, *align),
    }
}

fn table(rows: &[Row], align: Align) -> Markup {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let is_head = |row: &&Row| {
        row.cells
            .first()
            .is_some_and(|(_, ink)| *ink == Ink::Strong)
    };
    let (head, body) = rows.split_at(rows.iter().take_while(is_head).count());
    let place = match align {
        Align::Left => "left",
        Align::Right => "right",
    };
    html! {
        div.wide tabindex="0" role="group" aria-label="Table" {
            table class=(place) {
                thead {
                    @for row in head {
                        tr {
                            // A heading without a word would be read out as one.
                            @if row.label.trim().is_empty() { td {} } @else { th scope="col" { (row.label.trim()) } }
                            @for (cell, _) in &row.cells { th scope="col" { (cell) } }
                        }
                    }
                }
                tbody { @for row in body { (line(row, columns)) } }
            }
        }
    }
}

fn line(row: &Row, columns: usize) -> Markup {
    if row.cells.is_empty() {
        let whole = columns + 1;
        return html! { tr { th.group colspan=(whole) { (row.label.trim()) } } };
    }
    let below = if row.label.starts_with(' ') {
        "below"
    } else {
        ""
    };
    html! {
        tr {
            th scope="row" class={ (below) " " (class(row.ink)) } { (row.label.trim()) }
            @for (cell, ink) in &row.cells { td class=(class(*ink)) { (cell) } }
        }
    }
}

/// The class of an ink.
pub fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "plain",
        Ink::Strong => "strong",
        Ink::Faint => "faint",
        Ink::Good => "good",
        Ink::Bad => "bad",
        Ink::Unsure => "unsure",
    }
}
