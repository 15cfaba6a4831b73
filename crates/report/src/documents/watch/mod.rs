//! An interval of `nicpoll watch`: on a screen and as text, both made of the same tables, and for Prometheus.
//!
//! `tables` has the tables and the text, `draw` the screen, `metrics` what Prometheus reads.

mod draw;
mod metrics;
mod tables;

pub use draw::{WatchView, draw_watch};
pub use metrics::render_watch_metrics;
pub use tables::{WatchScale, render_watch_start, render_watch_text};
