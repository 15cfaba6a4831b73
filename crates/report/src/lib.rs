//! Renders documents: text for a terminal, one HTML file, Markdown and CSV for people, JSON for programs.
//!
//! A [`Document`] builds its [`Page`] once: headings, paragraphs, tables, plots. [`render_text`], [`render_html`] and
//! [`render_markdown`] lay out any page. Nothing is run, measured or decided here: verdicts and intervals are the
//! document's own, so an old study reads the same again. A missing figure is never shown as 0.
//!
//! Read `page` first, then `documents`.

mod csv;
mod documents;
mod fields;
mod html;
mod json;
mod lists;
mod markdown;
pub mod ministat;
mod page;
mod plots;
mod text;

pub use documents::ab::render_ab_plan;
pub use documents::data::{
    blocks_as_csv, imported_as_csv, series_as_csv, sweep_as_csv, trials_as_csv,
};
pub use documents::host::render_polling_values;
pub use documents::imported::EvidenceOf;
pub use documents::line_rates::render_line_rates;
pub use documents::running::benchmark::{
    chart_of_overload, delays_as_markdown, overload_as_markdown, plot_delays,
};
pub use documents::running::{
    BLAST_TEXTS, FORWARD_TEXTS, PageForm, PageTexts, RR_TEXTS, RunPage, SINK_TEXTS, finish_rr_page,
};
pub use documents::sim::{
    plot_sweep, plot_ticks, render_host_file, render_sim_fit, render_sim_fit_host,
    render_sim_published, render_sim_run, render_sim_sweep, render_sim_ticks, sim_run_page,
    sim_sweep_page, sim_ticks_page,
};
pub use documents::stored::{choice_page, render_studies_text};
pub use documents::study::brief_page;
pub use documents::switch::{render_switch_proofs, render_switch_writes};
pub use documents::watch::{
    WatchScale, WatchView, draw_watch, render_watch_metrics, render_watch_start, render_watch_text,
};
pub use html::{put_html, render_html};
pub use json::{SCHEMAS, render_document, render_event, render_json, schema_file};
pub use markdown::render_markdown;
pub use page::{Document, Page};
pub use plots::chart::{Chart, Curve, Panel, plot_chart};
pub use text::{TextOptions, render_text, with_micros};
