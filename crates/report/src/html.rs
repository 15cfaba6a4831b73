//! A study, or a live comparison, as one HTML file that needs nothing else: the page that a reader shows around.
//!
//! What must hold: the file loads nothing from anywhere, runs no script and is whole without one. The first screen has
//! the question and the answer, in the words of the terminal's page: nothing is judged anew. Behind each plot stands
//! its table. What the document does not hold is left out, and a sentence says so. Nothing that a document holds can
//! become markup.

mod answer;
mod blocks;
mod download;
mod facts;
mod figure;
mod imported;
mod live;
mod plots;
mod sim;
mod store;

pub use sim::{render_sim_run_html, render_sim_sweep_html, render_sim_ticks_html};
pub use store::{render_choice_html, render_compared_html, render_studies_html};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Imported, Study, WorkloadFacts};

use crate::plot;
use crate::text::page::{Block, Page};
use crate::text::{header, notes, sweep, workload};

/// The page may show what it holds, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Columns that the terminal's parts are asked for. They are laid out anew.
const COLUMNS: usize = 100;

/// A link at the top of a page: where it leads, and its name.
type Link = (String, String);

/// A study as one HTML file.
pub fn render_html(study: &Study) -> String {
    let workloads = || (1..).zip(&study.workloads);
    let of_workloads =
        workloads().map(|(number, facts)| (format!("#{}", id(number)), facts.workload.clone()));
    let links: Vec<Link> = own_links([("answer", "Answer")])
        .into_iter()
        .chain(of_workloads)
        .chain(own_links([
            ("run", "What was run"),
            ("machine", "The machine"),
            ("repeat", "Repeat it"),
            ("data", "Data"),
        ]))
        .collect();
    let body = html! {
        (answer::of_study(study))
        @for sweep in &study.sweeps {
            section {
                (part(|page| sweep::write(page, sweep)))
                div.figures { @for figure in plots::of_sweep(sweep) { (figure.markup()) } }
            }
        }
        @for (number, facts) in workloads() { (of_workload(study, facts, &id(number))) }
        section id="run" { (part(|page| header::write(page, study))) }
        section { (part(|page| notes::write(page, study))) }
        (facts::of_study(study))
        (facts::repeat(&study.argv, study.seed, &study.nicpoll_version))
        (download::of_study(study))
    };
    page(&study.question, &links, &body)
}

/// A live comparison as one HTML file.
pub fn render_ab_html(compared: &LiveAb) -> String {
    let links = own_links([
        ("answer", "Answer"),
        ("pairs", "Pairs"),
        ("machine", "The machine"),
        ("repeat", "Repeat it"),
        ("data", "Data"),
    ]);
    let origin = &compared.origin;
    let body = html! {
        (live::of_ab(compared))
        (facts::of_ab(compared))
        (facts::repeat(&origin.argv, compared.plan.seed, &origin.nicpoll_version))
        (download::of_ab(compared))
    };
    let title = format!(
        "{}: {} against {}",
        compared.interface, compared.judged.name, compared.reference.name
    );
    page(&title, &links, &body)
}

/// Imported trials as one HTML file.
pub fn render_imported_html(document: &Imported) -> String {
    let links = own_links([
        ("answer", "Answer"),
        ("trials", "Trials"),
        ("figures", "Figures"),
        ("data", "Data"),
    ]);
    let body = html! {
        (imported::of_imported(document))
        (download::of_imported(document))
    };
    page(&crate::text::imported::title(document), &links, &body)
}

fn own_links<const N: usize>(links: [(&str, &str); N]) -> Vec<Link> {
    let links = links.map(|(id, name)| (format!("#{id}"), String::from(name)));
    links.into()
}

/// The place of a workload on the page. Its name may be anything.
fn id(number: usize) -> String {
    format!("workload-{number}")
}

/// One workload: what it comes to, its plots, and the tables of the terminal's page.
fn of_workload(study: &Study, facts: &WorkloadFacts, id: &str) -> Markup {
    let blocks = blocks_of(|page| workload::write(page, study, facts));
    let is_table = |block: &&Block| matches!(block, Block::Table(..));
    let (tables, words): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(is_table);
    html! {
        section id=(id) {
            (blocks::of(&words))
            div.figures { @for figure in plots::of_workload(study, facts) { (figure.markup()) } }
            @if !tables.is_empty() {
                details {
                    summary { "All figures of " (facts.workload) " as tables" }
                    (blocks::of(&tables))
                }
            }
        }
    }
}

/// A part of the terminal's page.
fn part(write: impl FnOnce(&mut Page)) -> Markup {
    let blocks = blocks_of(write);
    blocks::of(&blocks.iter().collect::<Vec<_>>())
}

fn blocks_of(write: impl FnOnce(&mut Page)) -> Vec<Block> {
    let mut page = Page::new(COLUMNS, false);
    write(&mut page);
    page.into_blocks()
}

/// The file around its parts.
fn page(title: &str, links: &[Link], body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="nicpoll";
                title { (title) " - nicpoll" }
                style { (PreEscaped(include_str!("html/style.css"))) (PreEscaped(plot::DARK)) }
            }
            body {
                a.skip href="#answer" { "Skip to the answer" }
                nav aria-label="Parts of the report" {
                    ul { @for (place, name) in links { li { a href=(place) { (name) } } } }
                }
                main { (body) }
            }
        }
    };
    page.into_string() + "\n"
}
