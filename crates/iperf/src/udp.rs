//! UDP streams in either direction. One loop sends (`sender.rs`) and one receives (`receiver.rs`), whichever end
//! they run at; `client.rs` and `server.rs` make the sockets, `session.rs` is what a receiver knows of its
//! sender. A server sends no data but to addresses that it was given, and to others no more bytes than came
//! from them.

mod client;
mod receiver;
mod sender;
mod server;
mod session;

pub use client::{connect, run_client};
pub use nicpoll_traffic::udp_server::ServerConfig;
pub use receiver::Server;
pub use server::Listener;
pub use session::ClientIds;
pub(crate) use session::{DatagramServer, books_of_receiver, datagrams};
