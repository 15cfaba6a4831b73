//! One TCP stream, client to server.

mod client;
mod server;

pub use client::{ClientConfig, ClientError, ClientReport, run_client};
pub use server::{End, Server, ServerConfig, ServerError, ServerReport};

/// Length of a write and of a read, iperf's default.
const BUFFER_BYTES: usize = 131_072;
