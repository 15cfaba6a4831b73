//! What `nicpoll rr` prints, made as it happens.

use nicpoll_model::rr::{RR_SCHEMA, RrDocument, RrEnd, RrInterval, RrStart};

use crate::page::{PageForm, PageTexts, RunPage};
use crate::rr::{render_rr_end, render_rr_interval, render_rr_start};
use crate::{render_document, render_event};

/// The page of one end of a request/response test.
pub type RrPage = RunPage<RrStart, RrInterval, RrEnd>;

/// How its parts read.
pub const RR_TEXTS: PageTexts<RrStart, RrInterval, RrEnd> = PageTexts {
    schema: RR_SCHEMA,
    start: |start| render_rr_start(&start.side),
    interval: render_rr_interval,
    end: render_rr_end,
};

/// What a stream says when it went wrong.
#[derive(serde::Serialize)]
struct StreamError {
    error: String,
}

/// Nothing more happens; `error` says what went wrong. Text leaves that to standard error.
pub fn finish_rr_page(page: RrPage, error: Option<String>) -> String {
    match (page.form(), error) {
        (PageForm::Text, _) | (PageForm::JsonStream, None) => String::new(),
        (PageForm::JsonStream, Some(error)) => render_event("error", &StreamError { error }),
        (PageForm::Json, error) => render_document(&RrDocument {
            schema: String::from(RR_SCHEMA),
            start: page.start,
            intervals: page.intervals,
            end: page.end,
            error,
        }),
    }
}
