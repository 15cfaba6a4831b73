//! TCP streams in either direction. One loop sends (`sender.rs`) and one receives (`reader.rs`), whichever end
//! they run at; `client.rs` and `server.rs` make the connections. A server sends nothing but to an address
//! that completed a handshake.

mod client;
mod reader;
mod sender;
mod server;
mod socket;

pub use client::{Streams, connect, run_client};
pub use nicpoll_traffic::udp_server::ServerConfig;
pub use reader::{End, ReceiveReport};
pub use sender::SendReport;
pub use server::{Listener, Server};
pub use socket::Error;
