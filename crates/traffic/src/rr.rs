//! Request and response over UDP and TCP: one after another (closed loop), or at a rate (open loop).
//!
//! What must hold: `requests sent = transactions + requests given up`, and a server sends one response at
//! most for each request that it read; over UDP never a longer one than the request. A request that is
//! not answered in time is not repeated: the next one has a new number, so that a late answer is known
//! for what it is and never taken for a short round trip.

mod channel;
mod client;
mod connection;
mod outstanding;
mod report;
mod schedule;
mod server;
mod service;
mod session;
mod workload;

use std::time::Duration;

use nicpoll_wire::rr::{Message, MessageKind};

pub use client::{ClientError, RrClientConfig, run_client};
pub use nicpoll_stats::Latencies;
pub use report::ClientReport;
pub use schedule::Pacing;
pub use server::{End, RrServerReport, Server};
pub use service::{Served, Service, ServiceConfig, ServiceError};
pub use session::{Event, Problem, Tell, run_client_session, run_server_session};
pub use workload::RrWorkload;

pub use crate::udp_server::{ServerConfig, ServerError};

/// How long a response is waited for.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The request that a datagram of a stranger is; `None` when it is none, or when its response would be
/// longer: an address that may be forged is never sent more than came from it.
fn datagram_request(datagram: &[u8]) -> Option<Message> {
    let message = Message::parse(datagram).ok()?;
    let is_answered =
        message.kind == MessageKind::Request && message.response_bytes <= message.bytes;
    is_answered.then_some(message)
}
