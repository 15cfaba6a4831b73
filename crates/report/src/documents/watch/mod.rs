//! An interval of `nicpoll watch`, on a screen and as text, both made of the same tables.
//!
//! `tables` has the tables and the text, `draw` the screen.

mod draw;
mod tables;

pub use draw::{WatchView, draw_watch};
pub use tables::{WatchScale, render_watch_start, render_watch_text};
