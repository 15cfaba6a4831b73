//! What commands print while they run: request/response tests, and the applications of the engine.
//!
//! `stream` is the output of any of them, as text or as JSON; each other file says how the start, an interval and the end
//! of one read.

pub mod benchmark;
mod blast;
mod forward;
pub mod rr;
mod sink;
mod stream;

pub use blast::BLAST_TEXTS;
pub use forward::FORWARD_TEXTS;
pub use rr::{RR_TEXTS, finish_rr_page};
pub use sink::SINK_TEXTS;
pub use stream::{PageForm, PageTexts, RunPage};
