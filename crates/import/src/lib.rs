//! Reads the output of other tools into runs and trials.
//!
//! [`ResultFormat`] parses the fresh output of one program: it accepts each line as it stands, or refuses it
//! with its line number and what was expected. [`read_transcripts`] finds the same lines anywhere in a text,
//! even when broken. Both use the line parsers in `lines`.
//!
//! Every function is pure, and no text makes it panic. A figure that the text does not state is `None`, never
//! 0.

mod cursor;
mod formats;
mod lines;
mod plain;
mod transcript;

pub use formats::{MeasuredQuantity, RESULT_FORMATS, ResultFormat, ToolRun};
pub use lines::iperf::iperf_line;
pub use lines::netrate::netblast_line;
pub use lines::seen::{BlastField, IperfLine};
pub use transcript::{Correction, TRANSCRIPT_MAX_BYTES, TranscriptError, read_transcripts};
