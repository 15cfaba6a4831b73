//! Output of commands while they run: request/response tests, and the applications of the engine.
//!
//! `stream` is the output of any of them, as text or JSON; each other file has the texts of one.

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
