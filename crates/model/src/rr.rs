//! What `nicpoll rr --json` and `--json-stream` print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Protocol;

/// Name and version of the JSON that [`RrDocument`] becomes.
pub const RR_SCHEMA: &str = "nicpoll.rr/2";

/// A distribution of times. A percentile is reported only with at least ten samples beyond
/// it, else it is null. The others are null when there are no samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many there are.
    pub samples: u64,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// Median, from 20 samples on.
    pub p50_ns: Option<u64>,
    /// 90th percentile, from 100 samples on.
    pub p90_ns: Option<u64>,
    /// 99th percentile, from 1000 samples on.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, from 10000 samples on.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Their mean.
    pub mean_ns: Option<f64>,
}

/// One end of a request/response test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrDocument {
    /// Name and version of this layout: [`RR_SCHEMA`].
    pub schema: String,
    /// What was asked for; null when it failed before that was clear.
    pub start: Option<RrStart>,
    /// One for each interval; empty unless they were asked for.
    pub intervals: Vec<RrInterval>,
    /// What it came to; null when it failed before anything was sent.
    pub end: Option<RrEnd>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrStart {
    /// Name and version of this layout: [`RR_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// By side.
    #[serde(flatten)]
    pub side: RrSideStart,
}

/// What was asked for, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrSideStart {
    /// The end that asks.
    Sender(RrClientStart),
    /// The end that answers.
    Receiver(RrServerStart),
}

/// What the client was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientStart {
    /// What carries the messages.
    pub protocol: Protocol,
    /// The server's address and port.
    pub server: String,
    /// Requests on their way at a time, in a closed loop; null in an open one.
    #[serde(rename = "depth_requests")]
    pub depth: Option<u32>,
    /// Requests scheduled a second, in an open loop; null in a closed one.
    pub scheduled_per_second: Option<f64>,
    /// Length of a request.
    pub request_bytes: u32,
    /// Length of a response.
    pub response_bytes: u32,
    /// Time after which a request counts as lost.
    pub timeout_seconds: f64,
    /// How long to ask; null without a limit.
    pub duration_seconds: Option<f64>,
    /// How many requests to send; null without a limit.
    pub requests: Option<u64>,
}

/// What the server was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerStart {
    /// Where it answers, over UDP and TCP.
    pub address: String,
    /// How long to serve; null until a signal.
    pub duration_seconds: Option<f64>,
}

/// What an interval came to, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrInterval {
    /// The end that asks.
    Sender(RrClientInterval),
    /// The end that answers.
    Receiver(RrServerInterval),
}

/// What an interval came to for the client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientInterval {
    /// Its beginning, counted from the first request.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Requests sent in it.
    pub requests_sent: u64,
    /// Requests answered in it.
    pub transactions: u64,
    /// Requests given up in it.
    pub lost_requests: u64,
    /// `transactions` over its length.
    pub transactions_per_second: f64,
    /// Of the requests answered in it.
    pub latency: Latency,
}

/// What an interval came to for the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerInterval {
    /// Its beginning, counted from the start of serving.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Over UDP.
    pub udp: RrServed,
    /// Over TCP.
    pub tcp: RrServed,
}

/// What one end came to, by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "side", rename_all = "lowercase")]
pub enum RrEnd {
    /// The end that asks.
    Sender(Box<RrClientEnd>),
    /// The end that answers.
    Receiver(RrServerEnd),
}

/// What it came to for the client: `requests_sent = transactions + lost_requests`, and in an open loop
/// `scheduled_requests = requests_sent + refused_sends + unsent_requests`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrClientEnd {
    /// Requests whose time had come; null in a closed loop.
    pub scheduled_requests: Option<u64>,
    /// Scheduled requests that the client never came to send, for being behind; null in a closed loop.
    pub unsent_requests: Option<u64>,
    /// Requests that the kernel took.
    pub requests_sent: u64,
    /// Requests answered in time.
    pub transactions: u64,
    /// Requests not answered in time.
    pub lost_requests: u64,
    /// Of these, answered too late.
    pub late_responses: u64,
    /// Sends that the kernel refused.
    pub refused_sends: u64,
    /// Messages that answer no open request.
    pub foreign_messages: u64,
    /// From the first request to the last answer, or to the end of the sending if that was later.
    pub seconds: f64,
    /// `transactions / seconds`.
    pub transactions_per_second: f64,
    /// Time to the answer: from the sending in a closed loop, from the scheduled time in an open one.
    pub latency: Latency,
    /// Time from the scheduled time to the sending: what of the latency is the client's own. Null in a
    /// closed loop.
    pub send_lag: Option<Latency>,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// What it came to for the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrServerEnd {
    /// How long it served.
    pub seconds: f64,
    /// Over UDP.
    pub udp: RrServed,
    /// Over TCP.
    pub tcp: RrServed,
    /// TCP connections served.
    pub connections: u64,
    /// TCP connections closed at once, there being too many.
    pub refused_connections: u64,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
}

/// What a server did over one protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RrServed {
    /// Requests read.
    pub requests_received: u64,
    /// Responses that the kernel took.
    pub responses_sent: u64,
    /// Responses over UDP that the kernel refused: no room, no route back, or a filter of this host.
    pub refused_sends: u64,
    /// Messages that are no requests, and over UDP those that ask for a response longer than
    /// themselves. They are not answered.
    pub foreign_messages: u64,
    /// Bytes of requests and foreign messages.
    pub bytes_received: u64,
    /// Bytes of responses.
    pub bytes_sent: u64,
}

impl RrServed {
    /// What was added since an earlier look.
    pub fn since(self, earlier: Self) -> Self {
        RrServed {
            requests_received: self.requests_received - earlier.requests_received,
            responses_sent: self.responses_sent - earlier.responses_sent,
            refused_sends: self.refused_sends - earlier.refused_sends,
            foreign_messages: self.foreign_messages - earlier.foreign_messages,
            bytes_received: self.bytes_received - earlier.bytes_received,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
        }
    }
}
