//! Renders a finished [`nicpoll_model::Study`]: as text for a terminal and as JSON for programs.
//!
//! What must hold: this crate runs nothing, measures nothing and decides nothing. Verdicts and
//! intervals come out of the study as they are, so that an old study renders the same again. The
//! text never shows a missing figure as 0, and never shows a win without the losses beside it.

#![forbid(unsafe_code)]

mod figures;
mod json;
mod numbers;
mod text;

pub use json::{json_schema, render_json};
pub use text::{TextOptions, render_text};
