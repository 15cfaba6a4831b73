//! A request/response test as text, line by line as it goes.

use std::fmt::Write;

use nicpoll_model::Protocol;
use nicpoll_model::rr::{
    Latency, RrClientEnd, RrClientInterval, RrClientStart, RrEnd, RrInterval, RrServed,
    RrServerEnd, RrServerInterval, RrServerStart, RrSideStart,
};

use crate::numbers::{MISSING, count, figure, time_figure};

/// Width of the names at the left.
const NAME: usize = 14;

/// What is asked for, as one line.
pub(crate) fn render_rr_start(start: &RrSideStart) -> String {
    match start {
        RrSideStart::Sender(start) => client_start(start),
        RrSideStart::Receiver(start) => server_start(start),
    }
}

/// An interval as one line.
pub(crate) fn render_rr_interval(interval: &RrInterval) -> String {
    match interval {
        RrInterval::Sender(interval) => client_interval(interval),
        RrInterval::Receiver(interval) => server_interval(interval),
    }
}

/// What it came to.
pub(crate) fn render_rr_end(end: &RrEnd) -> String {
    match end {
        RrEnd::Sender(end) => client_end(end),
        RrEnd::Receiver(end) => server_end(end),
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
    let mut text = String::new();
    item(
        &mut text,
        "transactions",
        &format!(
            "{} in {:.2} s: {}/s",
            count(end.transactions),
            end.seconds,
            figure(end.transactions_per_second)
        ),
    );
    if let (Some(scheduled), Some(unsent)) = (end.scheduled_requests, end.unsent_requests) {
        item(
            &mut text,
            "scheduled",
            &format!(
                "{} = {} sent + {} refused by the kernel + {} not sent in time",
                count(scheduled),
                count(end.requests_sent),
                count(end.refused_sends),
                count(unsent)
            ),
        );
    }
    item(
        &mut text,
        "requests",
        &format!(
            "{} sent = {} answered + {} lost ({} answered too late)",
            count(end.requests_sent),
            count(end.transactions),
            count(end.lost_requests),
            count(end.late_responses)
        ),
    );
    let others = [
        (end.refused_sends, "sends refused by the kernel"),
        (end.foreign_messages, "messages that answer no request"),
    ];
    for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
        item(&mut text, "", &format!("{} {what}", count(number)));
    }
    item(&mut text, "latency", &percentiles(&end.latency));
    if let Some(lag) = &end.send_lag {
        item(&mut text, "send lag", &percentiles(lag));
        text.push_str(
            "Latency counts from the scheduled time; send lag is the part of it until the sending.\n",
        );
    }
    if end.latency.samples > 0 && end.latency.p999_ns.is_none() {
        let _ = writeln!(
            text,
            "{MISSING}: a percentile is reported only with at least ten samples beyond it."
        );
    }
    text
}

fn server_end(end: &RrServerEnd) -> String {
    let mut text = String::new();
    for (name, served) in [("UDP", &end.udp), ("TCP", &end.tcp)] {
        item(
            &mut text,
            name,
            &format!(
                "{} requests, {} responses, {} foreign messages; {} bytes in, {} out",
                count(served.requests_received),
                count(served.responses_sent),
                count(served.foreign_messages),
                count(served.bytes_received),
                count(served.bytes_sent)
            ),
        );
        if served.refused_sends > 0 {
            let refused = count(served.refused_sends);
            item(
                &mut text,
                "",
                &format!("{refused} responses refused by the kernel"),
            );
        }
    }
    item(
        &mut text,
        "connections",
        &format!(
            "{} served, {} refused; {:.2} s",
            count(end.connections),
            count(end.refused_connections),
            end.seconds
        ),
    );
    text
}

fn item(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<NAME$}{value}");
}

pub(crate) fn percentiles(latency: &Latency) -> String {
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
