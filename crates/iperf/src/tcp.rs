//! TCP streams in either direction. One loop sends (`sender.rs`) and one receives (`reader.rs`), whichever end
//! they run at; `client.rs` and `server.rs` make the connections. A server sends nothing but to an address
//! that completed a handshake.

mod client;
mod connection;
mod reader;
mod sender;
mod server;

pub use client::{connect, run_client};
pub use nicpoll_traffic::udp_server::ServerConfig;
pub use server::{Listener, Server};
