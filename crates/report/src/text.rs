//! A study as text for a terminal.
//!
//! The first screen is the answer. Below it stand what was run, one part for each workload, and what to know
//! before believing it.
//!
//! What must hold: without colour there is no escape code in the text, whatever the study's own
//! strings hold. Running text is never wider than the page, nor are tables, unless a label and one
//! cell together are: columns that a line has no room for stand below the others.

pub(crate) mod ab;
pub(crate) mod answer;
pub(crate) mod bar;
mod columns;
pub mod compared;
mod costs;
mod cpu_truth;
mod differences;
mod doctor;
mod evenness;
pub(crate) mod header;
pub(crate) mod imported;
mod legend;
mod met;
pub(crate) mod notes;
pub(crate) mod page;
mod plan;
mod scrutiny;
mod show;
pub(crate) mod sweep;
pub(crate) mod workload;

pub use show::{PollingValues, polling_values as render_polling_values};

use nicpoll_model::ab::LiveAb;
use nicpoll_model::{Compared, CpuTruth, Doctor, Imported, Show, Study, StudyPlan};

use self::page::Page;

/// The narrowest page that the tables fit on.
const NARROWEST: usize = 80;
/// Longer lines are hard to read.
const WIDEST: usize = 100;

/// How the text is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns a line may take; less than 80 counts as 80, more than 100 as 100.
    pub width: usize,
    /// Whether to colour it. Who prints it knows whether it goes to a terminal and what `NO_COLOR`
    /// says.
    pub color: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions {
            width: WIDEST,
            color: false,
        }
    }
}

/// Two results compared as text, with a newline at its end.
pub fn render_compared_text(compared: &Compared, options: &TextOptions) -> String {
    let width = options.width.clamp(NARROWEST, WIDEST);
    let mut page = Page::new(width, options.color);
    compared::write(&mut page, compared);
    page.into_text()
}

/// Imported trials as text, with a newline at its end.
pub fn render_imported_text(imported: &Imported, options: &TextOptions) -> String {
    let mut page = Page::new(options.width.clamp(NARROWEST, WIDEST), options.color);
    imported::write(&mut page, imported);
    page.into_text()
}

/// What a study would do as text, with a newline at its end.
pub fn render_plan_text(plan: &StudyPlan, options: &TextOptions) -> String {
    let width = options.width.clamp(NARROWEST, WIDEST);
    let mut page = Page::new(width, options.color);
    plan::write(&mut page, plan);
    page.into_text()
}

/// The whole report as text, with a newline at its end.
pub fn render_text(study: &Study, options: &TextOptions) -> String {
    let width = options.width.clamp(NARROWEST, WIDEST);
    let mut page = Page::new(width, options.color);
    write_study(&mut page, study);
    page.into_text()
}

/// The answer, and everything that it rests on.
pub(crate) fn write_study(page: &mut Page, study: &Study) {
    answer::write(page, study, false);
    for sweep in &study.sweeps {
        sweep::write(page, sweep);
    }
    header::write(page, study);
    header::write_changes(page, study);
    for workload in &study.workloads {
        workload::write(page, study, workload);
    }
    notes::write(page, study);
}

/// The first screen of the report alone, with a newline at its end.
pub fn render_brief_text(study: &Study, options: &TextOptions) -> String {
    let width = options.width.clamp(NARROWEST, WIDEST);
    let mut page = Page::new(width, options.color);
    answer::write(&mut page, study, true);
    page.into_text()
}

/// The proof of the CPU account as text, with a newline at its end.
pub fn render_cpu_truth_text(truth: &CpuTruth, options: &TextOptions) -> String {
    let width = options.width.clamp(NARROWEST, WIDEST);
    let mut page = Page::new(width, options.color);
    cpu_truth::write(&mut page, truth);
    page.into_text()
}

/// A live comparison of two settings as text, with a newline at its end.
pub fn render_ab_text(compared: &LiveAb, options: &TextOptions) -> String {
    let mut page = Page::new(options.width.clamp(NARROWEST, WIDEST), options.color);
    ab::write(&mut page, compared);
    page.into_text()
}

/// What interfaces can do and do, as text with a newline at its end.
pub fn render_show_text(show: &Show, options: &TextOptions) -> String {
    let mut page = Page::new(options.width.clamp(NARROWEST, WIDEST), options.color);
    show::write(&mut page, show);
    page.into_text()
}

/// What a machine can do, as text with a newline at its end.
pub fn render_doctor_text(doctor: &Doctor, options: &TextOptions) -> String {
    let mut page = Page::new(options.width.clamp(NARROWEST, WIDEST), options.color);
    doctor::write(&mut page, doctor);
    page.into_text()
}
