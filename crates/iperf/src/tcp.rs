//! TCP streams in either direction. One loop sends (`sender.rs`) and one receives (`reader.rs`), at either end;
//! `client.rs` and `server.rs` make the connections. A server sends only to addresses that completed a
//! handshake.

mod client;
mod connection;
mod reader;
mod sender;
mod server;

pub use client::{connect, run_client};
pub use nicpoll_traffic::udp_server::ServerConfig;
pub use server::{Listener, Server};
