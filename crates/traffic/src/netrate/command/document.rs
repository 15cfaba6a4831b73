//! What the documents of both senders hold; docs/schema.md explains it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nicpoll_model::Side;
use nicpoll_model::netrate::{NetrateHead, NetrateSender, SendErrors};

use crate::netrate::SendCount;
use crate::netrate::text::{SentSummary, frame_bits_per_second};

/// What every object begins with.
pub fn head(schema: &str) -> NetrateHead {
    NetrateHead {
        schema: String::from(schema),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
    }
}

/// What was asked of a sender.
pub struct Plan {
    pub peer: SocketAddr,
    pub payload_bytes: usize,
    pub duration_seconds: u64,
    pub is_blocking: bool,
}

/// What both senders tell. Rates are over `elapsed`, the time that sending took.
pub fn sender(
    plan: Plan,
    summary: &SentSummary,
    count: &SendCount,
    elapsed: Duration,
    ended_by_signal: Option<i32>,
    error: Option<String>,
) -> NetrateSender {
    let seconds = elapsed.as_secs_f64();
    let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    let sent = per_second(count.successes());
    let frame_bits = frame_bits_per_second(1, plan.payload_bytes, plan.peer.is_ipv6());
    let errors = count.errors_by_number.iter().map(error_count);
    NetrateSender {
        side: Side::Sender,
        peer_address: plan.peer.ip().to_string(),
        peer_port: plan.peer.port(),
        payload_bytes: plan.payload_bytes,
        asked_duration_seconds: (plan.duration_seconds > 0).then_some(plan.duration_seconds),
        is_blocking: plan.is_blocking,
        started_at: time_of_day(summary.start),
        elapsed_seconds: seconds,
        ended_by_signal,
        error,
        send_calls: count.calls,
        send_errors: count.errors,
        send_successes: count.successes(),
        send_errors_by_errno: errors.collect(),
        error_ratio: (count.calls > 0).then(|| count.errors as f64 / count.calls as f64),
        system_calls: count.system_calls,
        send_calls_per_second: per_second(count.calls),
        sent_packets_per_second: sent,
        sent_payload_bits_per_second: sent.map(|rate| rate * 8.0 * plan.payload_bytes as f64),
        sent_frame_bits_per_second: sent.map(|rate| rate * frame_bits as f64),
    }
}

fn error_count(&(errno, send_calls): &(i32, u64)) -> SendErrors {
    let text = io::Error::from_raw_os_error(errno).to_string();
    SendErrors {
        errno,
        text: super::plain(&text).to_owned(),
        send_calls,
    }
}

/// A time since 1970 as RFC 3339 writes it, in UTC.
pub fn time_of_day(since_1970: Duration) -> String {
    let time = jiff::Timestamp::UNIX_EPOCH + since_1970;
    time.to_string()
}
