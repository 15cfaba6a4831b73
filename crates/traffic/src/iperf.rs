//! Streams that speak iperf 2 as version 2.1.8 does, so that the original may be at either end.

mod input;
mod network;
mod observer;
pub mod options;
mod pace;
mod reverse;
mod socket_options;
pub mod tcp;
pub mod text;
mod times;
pub mod udp;

pub use input::Input;
pub use network::{Network, NetworkError};
pub use observer::{
    Calls, Connected, IntervalRecord, Observer, READ_SIZE_BINS, Receipt, TcpStart, TcpState,
};
pub use pace::{Amount, Rate};
pub use socket_options::SocketOptions;
pub use times::{Bucket, Distribution, Transit};

/// Clients that a listener serves at the same time, at most.
pub const CLIENTS_MAX: usize = 128;
