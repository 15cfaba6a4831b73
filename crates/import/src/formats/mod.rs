//! The table of result formats: the output of one program each.
//!
//! A format reads every line as it stands, or refuses the text with the line number and what was expected
//! there. `run` defines the result; the other modules are the parsers.

mod iperf;
mod netrate;
mod others;
pub(crate) mod run;

pub use run::{MeasuredQuantity, ToolRun};

use nicpoll_model::FileError;

/// A supported format. To add one, add a row to [`RESULT_FORMATS`].
#[derive(Debug)]
pub struct ResultFormat {
    /// Its name in options and study files.
    pub word: &'static str,
    /// Its name in sentences.
    pub name: &'static str,
    looks_so: fn(&str) -> bool,
    parse: fn(&str, usize) -> Result<Vec<ToolRun>, FileError>,
}

/// All formats. A text has the first format whose test it passes.
pub static RESULT_FORMATS: [ResultFormat; 7] = [
    ResultFormat {
        word: "iperf3",
        name: "iperf3 -J",
        looks_so: iperf::looks_like_iperf3,
        parse: |text, _| iperf::parse_iperf3(text),
    },
    ResultFormat {
        word: "iperf2",
        name: "iperf 2 text",
        looks_so: iperf::looks_like_iperf2,
        parse: |text, _| iperf::parse_iperf2(text),
    },
    ResultFormat {
        word: "netblast",
        name: "netblast or netsend text",
        looks_so: netrate::looks_like_netblast,
        parse: |text, _| netrate::parse_netblast(text),
    },
    ResultFormat {
        word: "netreceive",
        name: "netreceive text",
        looks_so: netrate::looks_like_netreceive,
        parse: |text, _| netrate::parse_netreceive(text),
    },
    ResultFormat {
        word: "netperf",
        name: "netperf's table of a stream or request/response test",
        looks_so: others::looks_like_netperf,
        parse: |text, _| others::parse_netperf(text),
    },
    ResultFormat {
        word: "sockperf",
        name: "the summary of sockperf throughput or ping-pong",
        looks_so: others::looks_like_sockperf,
        parse: |text, _| others::parse_sockperf(text),
    },
    ResultFormat {
        word: "numbers",
        name: "a column of numbers",
        looks_so: |_| true,
        parse: others::parse_columns,
    },
];

impl ResultFormat {
    /// The format with this `word`.
    pub fn named(word: &str) -> Option<&'static ResultFormat> {
        RESULT_FORMATS.iter().find(|format| format.word == word)
    }

    /// Detects the format of a text. The last one, numbers, accepts any text; its errors name the alternatives.
    pub fn of(text: &str) -> &'static ResultFormat {
        let mut formats = RESULT_FORMATS.iter();
        let found = formats.find(|format| (format.looks_so)(text));
        found.unwrap_or(&RESULT_FORMATS[RESULT_FORMATS.len() - 1])
    }

    /// Parses the runs of a text, at least one. `column`, from 1, applies to a table of numbers only.
    ///
    /// # Errors
    /// [`FileError`] with the line and what was expected there.
    pub fn read(&self, text: &str, column: usize) -> Result<Vec<ToolRun>, FileError> {
        let runs = (self.parse)(text, column)?;
        if runs.is_empty() {
            return Err(FileError {
                line: 1,
                message: format!("no result was found in this text, read as {}", self.name),
            });
        }
        Ok(runs)
    }
}
