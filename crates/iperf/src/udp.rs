//! UDP streams in either direction. One loop sends (`sender.rs`) and one receives (`receiver.rs`), at either
//! end; `client.rs` and `server.rs` make the sockets; `session.rs` is a receiver's state for one sender. A
//! server sends data only to allowed addresses, and to others no more bytes than it received from them.

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
