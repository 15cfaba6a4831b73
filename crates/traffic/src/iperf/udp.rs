//! UDP streams, client to server.

mod client;
mod listener;
mod nap;
mod receiver;
mod server;
mod session;
mod train;

pub use client::{ClientConfig, ClientError, ClientReport, run_client};
pub use listener::{Accepted, Listener, ListenerConfig};
pub use server::{End, Server, ServerReport};

pub use crate::udp_server::{ServerConfig, ServerError};
