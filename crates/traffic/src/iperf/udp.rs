//! UDP streams, client to server.

mod client;
mod listener;
mod nap;
mod receiver;
mod server;
mod session;
mod train;

use std::time::Duration;

pub use client::{ClientConfig, ClientError, ClientReport, run_client};
pub use listener::{Accepted, Listener, ListenerConfig};
pub use server::{End, Server, ServerReport};

pub use crate::udp_server::{ServerConfig, ServerError};

/// Silence after which a 2.1.8 client sends its FIN again.
const FIN_EVERY: Duration = Duration::from_millis(10);
/// How often it does.
const FIN_RETRIES: u32 = 200;
