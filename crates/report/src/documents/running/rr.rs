//! A request/response test as text, line by line as it runs.

use nicpoll_model::Protocol;
use nicpoll_model::traffic::{
    Latency, RR_SCHEMA, RrClientEnd, RrClientInterval, RrClientStart, RrDocument, RrEnd,
    RrInterval, RrServed, RrServerEnd, RrServerInterval, RrServerStart, RrSideStart, RrStart,
};

use nicpoll_model::numbers::{MISSING, count, figure, time_figure};
use serde::Serialize;

use super::stream::{PageForm, PageTexts, RunPage};
use crate::json::{render_document, render_event};
use crate::text::named;

/// Width of the names at the left.
const NAME: usize = 14;

/// The page of one end of a request/response test.
pub type RrPage = RunPage<RrStart, RrInterval, RrEnd>;

/// How its parts read.
pub const RR_TEXTS: PageTexts<RrStart, RrInterval, RrEnd> = PageTexts {
    schema: RR_SCHEMA,
    start: |start| match &start.side {
        RrSideStart::Sender(start) => client_start(start),
        RrSideStart::Receiver(start) => server_start(start),
    },
    interval: |interval| match interval {
        RrInterval::Sender(interval) => client_interval(interval),
        RrInterval::Receiver(interval) => server_interval(interval),
    },
    end: |end| match end {
        RrEnd::Sender(end) => client_end(end),
        RrEnd::Receiver(end) => server_end(end),
    },
};

/// The last event of a stream that failed.
#[derive(Serialize)]
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

fn client_start(start: &RrClientStart) -> String {
    let protocol = match start.protocol {
        Protocol::Udp => "UDP",
        Protocol::Tcp => "TCP",
    };
    let pacing = match (start.depth, start.scheduled_per_second) {
        (_, Some(rate)) => format!("open loop, {} requests/s scheduled", figure(rate)),
        (Some(depth), None) => format!("closed loop, {depth} at a time"),
        (None, None) => String::from(MISSING),
    };
    format!(
        "asking {} over {protocol}: {pacing}; requests of {} bytes, responses of {}\n",
        start.server, start.request_bytes, start.response_bytes
    )
}

fn server_start(start: &RrServerStart) -> String {
    let end = match start.duration_seconds {
        Some(seconds) => format!("for {seconds} s"),
        None => String::from("until a signal"),
    };
    format!("answering at {} over UDP and TCP {end}\n", start.address)
}

fn span(start_seconds: f64, end_seconds: f64) -> String {
    format!("{start_seconds:>8.2}..{end_seconds:.2} s")
}

fn client_interval(interval: &RrClientInterval) -> String {
    let latency = &interval.latency;
    format!(
        "{}  {:>9} transactions/s  p50 {}  p99 {}  max {}  lost {}\n",
        span(interval.start_seconds, interval.end_seconds),
        figure(interval.transactions_per_second),
        time_figure(latency.p50_ns),
        time_figure(latency.p99_ns),
        time_figure(latency.max_ns),
        count(interval.lost_requests)
    )
}

fn server_interval(interval: &RrServerInterval) -> String {
    let served = |name, served: &RrServed| {
        format!(
            "{name} {} requests, {} responses",
            count(served.requests_received),
            count(served.responses_sent)
        )
    };
    format!(
        "{}  {}; {}\n",
        span(interval.start_seconds, interval.end_seconds),
        served("UDP", &interval.udp),
        served("TCP", &interval.tcp)
    )
}

fn client_end(end: &RrClientEnd) -> String {
    let mut text = named(
        "transactions",
        NAME,
        &format!(
            "{} in {:.2} s: {}/s",
            count(end.transactions),
            end.seconds,
            figure(end.transactions_per_second)
        ),
    );
    if let (Some(scheduled), Some(unsent)) = (end.scheduled_requests, end.unsent_requests) {
        let parts = format!(
            "{} = {} sent + {} refused by the kernel + {} not sent in time",
            count(scheduled),
            count(end.requests_sent),
            count(end.refused_sends),
            count(unsent)
        );
        text += &named("scheduled", NAME, &parts);
    }
    let parts = format!(
        "{} sent = {} answered + {} lost ({} answered too late)",
        count(end.requests_sent),
        count(end.transactions),
        count(end.lost_requests),
        count(end.late_responses)
    );
    text += &named("requests", NAME, &parts);
    for (number, what) in [
        (end.refused_sends, "sends refused by the kernel"),
        (end.foreign_messages, "messages that answer no request"),
    ] {
        if number > 0 {
            text += &named("", NAME, &format!("{} {what}", count(number)));
        }
    }
    text += &named("latency", NAME, &percentiles(&end.latency));
    if let Some(lag) = &end.send_lag {
        text += &named("send lag", NAME, &percentiles(lag));
        text.push_str(
            "Latency counts from the scheduled time; send lag is the part of it until the sending.\n",
        );
    }
    text + &without_percentiles(&end.latency)
}

/// Why a percentile is missing, where one is.
pub fn without_percentiles(latency: &Latency) -> String {
    match latency.samples > 0 && latency.p999_ns.is_none() {
        true => format!(
            "{MISSING}: a percentile is reported only with at least ten samples beyond it.\n"
        ),
        false => String::new(),
    }
}

fn server_end(end: &RrServerEnd) -> String {
    let mut text = String::new();
    for (name, served) in [("UDP", &end.udp), ("TCP", &end.tcp)] {
        let counts = format!(
            "{} requests, {} responses, {} foreign messages; {} bytes in, {} out",
            count(served.requests_received),
            count(served.responses_sent),
            count(served.foreign_messages),
            count(served.bytes_received),
            count(served.bytes_sent)
        );
        text += &named(name, NAME, &counts);
        if served.refused_sends > 0 {
            let refused = count(served.refused_sends);
            let refused = format!("{refused} responses refused by the kernel");
            text += &named("", NAME, &refused);
        }
    }
    let connections = format!(
        "{} served, {} refused; {:.2} s",
        count(end.connections),
        count(end.refused_connections),
        end.seconds
    );
    text + &named("connections", NAME, &connections)
}

/// The percentiles of a latency on one line.
pub fn percentiles(latency: &Latency) -> String {
    let mean = latency.mean_ns.map(|ns| ns.round() as u64);
    [
        ("min", latency.min_ns),
        ("p50", latency.p50_ns),
        ("p90", latency.p90_ns),
        ("p99", latency.p99_ns),
        ("p99.9", latency.p999_ns),
        ("max", latency.max_ns),
        ("mean", mean),
    ]
    .map(|(name, ns)| format!("{name} {}", time_figure(ns)))
    .join("  ")
}
