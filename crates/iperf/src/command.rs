//! A client or server from its options to its last line: the streams that they ask for, each on a
//! thread of its own, and one thread that prints what they report.
//!
//! Start with [`run_client`] or [`run_server`]; `run.rs` has what both need.

mod client;
mod run;
mod server;

pub use client::run_client;
pub use server::run_server;
