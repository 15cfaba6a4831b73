//! The text output of a request/response test, line by line.

use nicpoll_model::numbers::{MISSING, figure};
use nicpoll_model::traffic::{
    Latency, RR_SCHEMA, RrClientEnd, RrClientStart, RrDocument, RrEnd, RrInterval, RrServerStart,
    RrSideStart, RrStart,
};
use serde_json::json;

use super::stream::{PageForm, PageTexts, RunPage, lines};
use crate::fields::filled;
use crate::json::{render_document, render_event};
use crate::text::named;

/// Width of the names at the left.
const NAME: usize = 14;

/// The output of one end of a request/response test.
pub type RrPage = RunPage<RrStart, RrInterval, RrEnd>;

/// Texts of its parts.
pub const RR_TEXTS: PageTexts<RrStart, RrInterval, RrEnd> = PageTexts {
    schema: RR_SCHEMA,
    start: |start| match &start.side {
        RrSideStart::Sender(start) => client_start(start),
        RrSideStart::Receiver(start) => server_start(start),
    },
    interval: |interval| match interval {
        RrInterval::Sender(interval) => lines("rr sender", interval),
        RrInterval::Receiver(interval) => lines("rr receiver", interval),
    },
    end: |end| match end {
        RrEnd::Sender(end) => client_end(end),
        RrEnd::Receiver(end) => lines("rr receiver end", end),
    },
};

/// The percentiles of a latency on one line.
pub const PERCENTILES: &str = "min {min_ns:time}  p50 {p50_ns:time}  p90 {p90_ns:time}  p99 {p99_ns:time}  \
    p99.9 {p999_ns:time}  max {max_ns:time}  mean {mean_ns:time}";

/// Ends the output; `error` says what went wrong. Text leaves that to standard error.
pub fn finish_rr_page(page: RrPage, error: Option<String>) -> String {
    match (page.form(), error) {
        (PageForm::Text, _) | (PageForm::JsonStream, None) => String::new(),
        (PageForm::JsonStream, Some(error)) => render_event("error", &json!({ "error": error })),
        (PageForm::Json, error) => render_document(&RrDocument {
            schema: String::from(RR_SCHEMA),
            start: page.start,
            intervals: page.intervals,
            end: page.end,
            error,
        }),
    }
}

fn client_start(start: &RrClientStart) -> String {
    let pacing = match (start.depth_requests, start.scheduled_per_second) {
        (_, Some(rate)) => format!("open loop, {} requests/s scheduled", figure(rate)),
        (Some(depth), None) => format!("closed loop, {depth} at a time"),
        (None, None) => String::from(MISSING),
    };
    format!(
        "asking {} over {}: {pacing}; requests of {} bytes, responses of {}\n",
        start.server, start.protocol, start.request_bytes, start.response_bytes
    )
}

fn server_start(start: &RrServerStart) -> String {
    let end = match start.duration_seconds {
        Some(seconds) => format!("for {seconds} s"),
        None => String::from("until a signal"),
    };
    format!("answering at {} over UDP and TCP {end}\n", start.address)
}

fn client_end(end: &RrClientEnd) -> String {
    let mut text = lines("rr sender end", end);
    text += &named("latency", NAME, &filled(PERCENTILES, &end.latency));
    if let Some(lag) = &end.send_lag {
        text += &named("send lag", NAME, &filled(PERCENTILES, lag));
        text.push_str(
            "Latency counts from the scheduled time; send lag is the part of it until the sending.\n",
        );
    }
    text + &without_percentiles(&end.latency)
}

/// Returns why a percentile is missing, if one is.
pub fn without_percentiles(latency: &Latency) -> String {
    match latency.samples > 0 && latency.p999_ns.is_none() {
        true => format!(
            "{MISSING}: a percentile is reported only with at least ten samples beyond it.\n"
        ),
        false => String::new(),
    }
}
