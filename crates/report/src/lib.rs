//! Renders a finished [`nicpoll_model::Study`], or the proof of the CPU account, as text for a
//! terminal and as JSON for programs.
//!
//! What must hold: this crate runs nothing, measures nothing and decides nothing. Verdicts and
//! intervals come out of the study as they are, so that an old study renders the same again. The
//! text never shows a missing figure as 0, and never shows a win without the losses beside it.

#![forbid(unsafe_code)]

mod ab_plan;
mod blast;
mod csv;
mod engine_benchmark;
mod figures;
mod forward;
mod html;
mod json;
mod line_rates;
mod markdown;
mod micros;
pub mod ministat;
mod page;
mod plot;
mod rr;
mod rr_page;
mod sim;
mod sink;
mod studies;
mod switch;
mod text;
mod watch;

use nicpoll_model::numbers;

pub use ab_plan::render_ab_plan;
pub use blast::BLAST_TEXTS;
pub use csv::{blocks_as_csv, imported_as_csv, series_as_csv, trials_as_csv};

pub use engine_benchmark::{
    chart_of_overload, delays_as_markdown, overload_as_markdown, plot_delays,
};
pub use forward::FORWARD_TEXTS;
pub use html::{
    render_ab_html, render_choice_html, render_compared_html, render_html, render_imported_html,
    render_sim_run_html, render_sim_sweep_html, render_sim_ticks_html, render_studies_html,
};
pub use json::{NamedSchema, SCHEMAS, render_document, render_event, render_json, schema_file};
pub use line_rates::render_line_rates;
pub use markdown::{render_ab_markdown, render_imported_markdown, render_markdown};
pub use micros::with_micros;
pub use page::{PageForm, PageTexts, RunPage};
pub use rr_page::{RR_TEXTS, RrPage, finish_rr_page};
pub use sim::{
    Chart, Curve, Panel, plot_chart, plot_sweep, plot_ticks, render_host_file, render_sim_fit_host,
    render_sim_published, render_sim_run, render_sim_sweep, render_sim_ticks, sweep_as_csv,
};
pub use sink::SINK_TEXTS;
pub use studies::render_studies_text;
pub use switch::{render_switch_proofs, render_switch_writes};
pub use text::{
    PollingValues, TextOptions, render_ab_text, render_brief_text, render_compared_text,
    render_cpu_truth_text, render_doctor_text, render_imported_text, render_plan_text,
    render_polling_values, render_show_text, render_text,
};
pub use watch::{WatchScale, WatchView, draw_watch, render_watch_start, render_watch_text};
