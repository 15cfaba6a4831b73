//! Request and response over UDP and TCP: one after another (closed loop), or at a rate (open loop).
//!
//! `requests sent = transactions + requests given up`. A server sends at most one response per request it read;
//! over UDP never a longer one than the request. A request not answered in time is not repeated: the next one
//! has a new number, so a late answer is recognised and never taken for a short round trip.

mod client;
mod server;
mod session;
mod workload;

pub use client::{
    ClientReport, Pacing, RESPONSE_TIMEOUT, RequestCounts, RrClientConfig, run_client,
};
pub use nicpoll_stats::Latencies;
pub use server::{Served, Service, ServiceConfig};
pub use session::{RrEvent, Tell, run_client_session, run_server_session};
pub use workload::RrWorkload;
