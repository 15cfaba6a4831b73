//! Runs a client or a server from its options to its last line. Each stream has a thread of its own; one more
//! thread prints what the streams report.
//!
//! Start with [`run_client`] or [`run_server`]; `run.rs` holds what both share.

mod client;
mod run;
mod server;

pub use client::run_client;
pub use server::run_server;
