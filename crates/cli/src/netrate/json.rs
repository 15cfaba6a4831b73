//! The JSON objects; docs/schema.md explains them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nicpoll_model::HostDelta;
use nicpoll_traffic::netrate::SendCount;
use nicpoll_traffic::netrate::text::{Summary, frame_bits_per_second};
use serde::Serialize;

/// What every object begins with, and the rest.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'a str,
    nicpoll_version: &'a str,
    argv: Vec<String>,
    #[serde(flatten)]
    rest: &'a T,
}

/// An object as pretty-printed JSON with a newline at its end.
pub fn render<T: Serialize>(schema: &str, object: &T) -> io::Result<String> {
    let document = Document {
        schema,
        nicpoll_version: env!("CARGO_PKG_VERSION"),
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        rest: object,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// What netblast tells.
#[derive(Serialize)]
pub struct Netblast {
    #[serde(flatten)]
    pub sender: Sender,
    pub threads: usize,
    pub datagrams_per_system_call: usize,
    pub host: Option<HostDelta>,
}

/// What netsend tells.
#[derive(Serialize)]
pub struct Netsend {
    #[serde(flatten)]
    pub sender: Sender,
    pub port_max: u16,
    pub asked_packets_per_second: Option<u64>,
    pub interval_ns: Option<u64>,
    pub clock_looks_in_vain: u64,
    pub host: Option<HostDelta>,
}

/// What was asked of a sender.
pub struct Plan {
    pub peer: SocketAddr,
    pub payload_bytes: usize,
    pub duration_seconds: u64,
    pub is_blocking: bool,
}

/// What both senders tell.
#[derive(Serialize)]
pub struct Sender {
    side: &'static str,
    peer_address: String,
    peer_port: u16,
    payload_bytes: usize,
    asked_duration_seconds: Option<u64>,
    is_blocking: bool,
    started_at: String,
    elapsed_seconds: f64,
    ended_by_signal: Option<i32>,
    send_calls: u64,
    send_errors: u64,
    send_successes: u64,
    send_errors_by_errno: Vec<ErrorCount>,
    error_ratio: Option<f64>,
    system_calls: u64,
    send_calls_per_second: Option<f64>,
    sent_packets_per_second: Option<f64>,
    sent_payload_bits_per_second: Option<f64>,
    sent_frame_bits_per_second: Option<f64>,
}

/// Send calls that failed in one way.
#[derive(Serialize)]
struct ErrorCount {
    errno: i32,
    text: String,
    send_calls: u64,
}

impl Sender {
    /// Rates are over `elapsed`, the time that sending took.
    pub fn new(
        plan: Plan,
        summary: &Summary,
        count: &SendCount,
        elapsed: Duration,
        ended_by_signal: Option<i32>,
    ) -> Self {
        let seconds = elapsed.as_secs_f64();
        let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let sent = per_second(count.successes());
        let frame_bits = frame_bits_per_second(1, plan.payload_bytes, plan.peer.is_ipv6());
        let errors = count.errors_by_number.iter().map(error_count);
        Sender {
            side: "sender",
            peer_address: plan.peer.ip().to_string(),
            peer_port: plan.peer.port(),
            payload_bytes: plan.payload_bytes,
            asked_duration_seconds: (plan.duration_seconds > 0).then_some(plan.duration_seconds),
            is_blocking: plan.is_blocking,
            started_at: time_of_day(summary.start),
            elapsed_seconds: seconds,
            ended_by_signal,
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
}

fn error_count(&(errno, send_calls): &(i32, u64)) -> ErrorCount {
    let text = io::Error::from_raw_os_error(errno).to_string();
    ErrorCount {
        errno,
        text: super::plain(&text).to_owned(),
        send_calls,
    }
}

/// What netreceive tells.
#[derive(Serialize)]
pub struct Netreceive {
    pub side: &'static str,
    pub port: u16,
    pub threads_per_socket: usize,
    pub started_at: String,
    pub elapsed_seconds: f64,
    pub ended_by_signal: Option<i32>,
    pub received_packets: u64,
    pub received_payload_bytes: u64,
    pub receiving_seconds: Option<f64>,
    pub received_packets_per_second: Option<f64>,
    pub received_payload_bits_per_second: Option<f64>,
    pub socket_dropped_packets: Option<u64>,
    pub sockets: Vec<Socket>,
    pub host: Option<HostDelta>,
}

/// One socket of netreceive.
#[derive(Clone, Serialize)]
pub struct Socket {
    pub address: String,
    pub receive_buffer_asked_bytes: usize,
    pub receive_buffer_granted_bytes: usize,
    pub received_packets: u64,
    pub dropped_packets: Option<u64>,
}

/// A time since 1970 as RFC 3339 writes it, in UTC.
pub fn time_of_day(since_1970: Duration) -> String {
    let time = jiff::Timestamp::UNIX_EPOCH + since_1970;
    time.to_string()
}
