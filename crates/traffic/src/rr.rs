//! UDP request and response, one transaction at a time.
//!
//! What must hold: `requests sent = transactions + late responses + unanswered`, and a server sends
//! exactly one response for each request that it read, of the same length. A request that is not
//! answered in time is not repeated: the next one has a new number, so that a late answer is known
//! for what it is and never taken for a short round trip.

mod client;
mod server;

use std::time::Duration;

pub use client::{ClientConfig, ClientError, ClientReport, run_client};
pub use server::{End, Server, ServerReport};

pub use crate::udp_server::{ServerConfig, ServerError};

/// How long a response is waited for.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);
