//! A plot with its caption, and its figures as a table behind it.

use maud::{Markup, PreEscaped, html};

/// A plot of a report.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The drawing, as markup.
    pub svg: String,
    /// Names of the table's columns.
    pub head: Vec<String>,
    /// The figures that are drawn, as text.
    pub rows: Vec<Vec<String>>,
}

impl Figure {
    /// The plot with its caption and its table.
    pub fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { strong { (self.title) } " " (self.caption) }
                (PreEscaped(&self.svg))
                details {
                    summary { "Figures of this plot" }
                    (table(&self.title, &self.head, &self.rows))
                }
            }
        }
    }
}

/// A table whose first column says what each line is about.
pub fn table(name: &str, head: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label=(name) {
            table.right {
                thead { tr { @for name in head { th scope="col" { (name) } } } }
                tbody { @for row in rows { tr { (line(row)) } } }
            }
        }
    }
}

fn line(row: &[String]) -> Markup {
    html! {
        @for (index, cell) in row.iter().enumerate() {
            @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
        }
    }
}
