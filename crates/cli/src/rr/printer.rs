//! What `nicpoll rr` prints, as it happens.

use anyhow::Result;
use nicpoll_model::rr::{RR_SCHEMA, RrDocument, RrEnd, RrInterval, RrStart};
use nicpoll_report::{
    render_document, render_event, render_rr_end, render_rr_interval, render_rr_start,
};

use crate::output::print;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Lines for people.
    Text,
    /// One object at the end.
    Json,
    /// An object a line.
    JsonStream,
}

/// Prints, and for one object at the end keeps, what happens.
pub struct Printer {
    output: Output,
    start: Option<RrStart>,
    intervals: Vec<RrInterval>,
    end: Option<RrEnd>,
}

/// What a stream says when it went wrong.
#[derive(serde::Serialize)]
struct StreamError {
    error: String,
}

impl Printer {
    /// Nothing has happened yet.
    pub fn new(output: Output) -> Self {
        Printer {
            output,
            start: None,
            intervals: Vec::new(),
            end: None,
        }
    }

    /// It begins.
    pub fn start(&mut self, start: RrStart) -> Result<()> {
        match self.output {
            Output::Text => print(&render_rr_start(&start.side)),
            Output::JsonStream => print(&render_event("start", &start)),
            Output::Json => {
                self.start = Some(start);
                Ok(())
            }
        }
    }

    /// An interval has ended.
    pub fn interval(&mut self, interval: RrInterval) -> Result<()> {
        match self.output {
            Output::Text => print(&render_rr_interval(&interval)),
            Output::JsonStream => print(&render_event("interval", &interval)),
            Output::Json => {
                self.intervals.push(interval);
                Ok(())
            }
        }
    }

    /// All was measured.
    pub fn end(&mut self, end: RrEnd) -> Result<()> {
        match self.output {
            Output::Text => print(&render_rr_end(&end)),
            Output::JsonStream => print(&render_event("end", &end)),
            Output::Json => {
                self.end = Some(end);
                Ok(())
            }
        }
    }

    /// Nothing more happens; `error` says what went wrong. Text leaves that to standard error.
    pub fn finish(self, error: Option<String>) -> Result<()> {
        match (self.output, error) {
            (Output::Text, _) | (Output::JsonStream, None) => Ok(()),
            (Output::JsonStream, Some(error)) => {
                print(&render_event("error", &StreamError { error }))
            }
            (Output::Json, error) => print(&render_document(&RrDocument {
                schema: String::from(RR_SCHEMA),
                start: self.start,
                intervals: self.intervals,
                end: self.end,
                error,
            })),
        }
    }
}
