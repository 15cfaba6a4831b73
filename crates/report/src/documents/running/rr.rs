//! The text output of a request/response test, line by line.

use nicpoll_model::numbers::{MISSING, count, figure};
use nicpoll_model::traffic::{
    Latency, RR_SCHEMA, RrClientEnd, RrClientStart, RrDocument, RrEnd, RrInterval, RrServed,
    RrServerEnd, RrServerStart, RrSideStart, RrStart,
};
use serde_json::json;

use super::stream::{PageForm, PageTexts, RunPage};
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
        RrInterval::Sender(interval) => filled(CLIENT_INTERVAL, interval),
        RrInterval::Receiver(interval) => filled(SERVER_INTERVAL, interval),
    },
    end: |end| match end {
        RrEnd::Sender(end) => client_end(end),
        RrEnd::Receiver(end) => server_end(end),
    },
};

const CLIENT_INTERVAL: &str = "{start_seconds:>8.2}..{end_seconds:.2} s  {transactions_per_second:>9} transactions/s  \
    p50 {latency/p50_ns:time}  p99 {latency/p99_ns:time}  max {latency/max_ns:time}  lost {lost_requests}\n";
const SERVER_INTERVAL: &str = "{start_seconds:>8.2}..{end_seconds:.2} s  \
    UDP {udp/requests_received} requests, {udp/responses_sent} responses; \
    TCP {tcp/requests_received} requests, {tcp/responses_sent} responses\n";
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
    let pacing = match (start.depth, start.scheduled_per_second) {
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
    let line = |name: &str, template: &str| named(name, NAME, &filled(template, end));
    let mut text = line(
        "transactions",
        "{transactions} in {seconds:.2} s: {transactions_per_second}/s",
    );
    if end.scheduled_requests.is_some() && end.unsent_requests.is_some() {
        text += &line(
            "scheduled",
            "{scheduled_requests} = {requests_sent} sent + {refused_sends} refused by the kernel + {unsent_requests} not \
             sent in time",
        );
    }
    text += &line(
        "requests",
        "{requests_sent} sent = {transactions} answered + {lost_requests} lost ({late_responses} answered too late)",
    );
    for (number, what) in [
        (end.refused_sends, "sends refused by the kernel"),
        (end.foreign_messages, "messages that answer no request"),
    ] {
        if number > 0 {
            text += &named("", NAME, &format!("{} {what}", count(number)));
        }
    }
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

fn server_end(end: &RrServerEnd) -> String {
    let line = |name: &str, template: &str, served: &RrServed| {
        named(name, NAME, &filled(template, served))
    };
    let counts = "{requests_received} requests, {responses_sent} responses, {foreign_messages} foreign messages; \
                  {bytes_received} bytes in, {bytes_sent} out";
    let mut text = String::new();
    for (name, served) in [("UDP", &end.udp), ("TCP", &end.tcp)] {
        text += &line(name, counts, served);
        if served.refused_sends > 0 {
            text += &line(
                "",
                "{refused_sends} responses refused by the kernel",
                served,
            );
        }
    }
    let connections = "{connections} served, {refused_connections} refused; {seconds:.2} s";
    text + &named("connections", NAME, &filled(connections, end))
}
