//! The document itself, within the page that shows it.
//!
//! What must hold: what is saved is the document to the last figure. It takes no script and no network.

use maud::{Markup, html};
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, Study};
use serde::Serialize;

use crate::csv::{imported_as_csv, series_as_csv, trials_as_csv};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A study as JSON, and its trials as CSV.
pub fn of_study(study: &Study) -> Markup {
    section(&html! {
        li { (saved("study.json", "application/json", &json(study))) ": the whole study (docs/schema.md)" }
        li { (saved("trials.csv", "text/csv", &trials_as_csv(study))) ": a line for each trial" }
        @if has_series(study) {
            li { (saved("series.csv", "text/csv", &series_as_csv(study))) ": what passed within the trials, a line a step" }
        }
    })
}

fn has_series(study: &Study) -> bool {
    let mut figures = study
        .trials
        .iter()
        .filter_map(|trial| trial.figures.as_ref());
    figures.any(|figures| figures.series.is_some())
}

/// A live comparison as JSON.
pub fn of_ab(compared: &LiveAb) -> Markup {
    section(&html! {
        li { (saved("ab.json", "application/json", &json(compared))) ": the whole comparison (docs/ab.md)" }
    })
}

/// What the simulator said, as JSON.
pub fn of_simulated(document: &impl Serialize) -> Markup {
    section(&html! {
        li { (saved("sim.json", "application/json", &json(document))) ": everything (docs/simulator.md)" }
    })
}

/// Imported trials as JSON, and as CSV.
pub fn of_imported(document: &Imported) -> Markup {
    section(&html! {
        li { (saved("imported.json", "application/json", &json(document))) ": the whole import (docs/import.md)" }
        li { (saved("trials.csv", "text/csv", &imported_as_csv(document))) ": a line for each trial" }
    })
}

fn section(list: &Markup) -> Markup {
    html! {
        section id="data" {
            h2 { "The data" }
            p { "This page holds what it is made of. A link saves it as a file; nothing is loaded." }
            ul { (list) }
        }
    }
}

fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("a document serialises")
}

fn saved(name: &str, kind: &str, text: &str) -> Markup {
    let address = format!(
        "data:{kind};charset=utf-8;base64,{}",
        base64(text.as_bytes())
    );
    html! { a href=(address) download={ "nicpoll-" (name) } { "nicpoll-" (name) } " (" (size(text.len())) ")" }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// RFC 4648, section 4.
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
