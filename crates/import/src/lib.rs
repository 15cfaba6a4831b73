//! Results of other tools: their text in, runs and trials out.
//!
//! [`ResultFormat`] reads what one program printed just now: each line is read as it stands, or refused with its number
//! and what was expected. [`read_transcripts`] finds the same lines anywhere in a text, however broken. Both use the one
//! reader of each line, in `lines`.
//!
//! Everything is a pure function of a text, and no text makes it panic. A figure that a text does not give is `None`,
//! never 0.

mod cursor;
mod formats;
mod lines;
mod plain;
mod transcript;

pub use formats::{Quantity, RESULT_FORMATS, ResultFormat, ToolRun};
pub use lines::iperf::iperf_line;
pub use lines::netrate::netblast_line;
pub use lines::seen::{BlastField, IperfLine};
pub use transcript::{Correction, TRANSCRIPT_MAX_BYTES, TranscriptError, read_transcripts};
