//! What `nicpoll rr` prints, made as it happens.

use nicpoll_model::rr::{RR_SCHEMA, RrDocument, RrEnd, RrInterval, RrStart};

use crate::{render_document, render_event, render_rr_end, render_rr_interval, render_rr_start};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RrForm {
    /// Lines for people.
    Text,
    /// One object at the end.
    Json,
    /// An object a line.
    JsonStream,
}

/// Prints, and for one object at the end keeps, what happens.
#[derive(Debug)]
pub struct RrPage {
    form: RrForm,
    start: Option<RrStart>,
    intervals: Vec<RrInterval>,
    end: Option<RrEnd>,
}

/// What a stream says when it went wrong.
#[derive(serde::Serialize)]
struct StreamError {
    error: String,
}

impl RrPage {
    /// Nothing has happened yet.
    pub fn new(form: RrForm) -> Self {
        RrPage {
            form,
            start: None,
            intervals: Vec::new(),
            end: None,
        }
    }

    /// It begins.
    pub fn start(&mut self, start: RrStart) -> String {
        match self.form {
            RrForm::Text => render_rr_start(&start.side),
            RrForm::JsonStream => render_event("start", &start),
            RrForm::Json => {
                self.start = Some(start);
                String::new()
            }
        }
    }

    /// An interval has ended.
    pub fn interval(&mut self, interval: RrInterval) -> String {
        match self.form {
            RrForm::Text => render_rr_interval(&interval),
            RrForm::JsonStream => render_event("interval", &interval),
            RrForm::Json => {
                self.intervals.push(interval);
                String::new()
            }
        }
    }

    /// All was measured.
    pub fn end(&mut self, end: RrEnd) -> String {
        match self.form {
            RrForm::Text => render_rr_end(&end),
            RrForm::JsonStream => render_event("end", &end),
            RrForm::Json => {
                self.end = Some(end);
                String::new()
            }
        }
    }

    /// Nothing more happens; `error` says what went wrong. Text leaves that to standard error.
    pub fn finish(self, error: Option<String>) -> String {
        match (self.form, error) {
            (RrForm::Text, _) | (RrForm::JsonStream, None) => String::new(),
            (RrForm::JsonStream, Some(error)) => render_event("error", &StreamError { error }),
            (RrForm::Json, error) => render_document(&RrDocument {
                schema: String::from(RR_SCHEMA),
                start: self.start,
                intervals: self.intervals,
                end: self.end,
                error,
            }),
        }
    }
}
