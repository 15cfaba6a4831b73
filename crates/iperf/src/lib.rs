//! The iperf 2 dialect, as version 2.1.8 speaks it, so that the original may be at either end: options,
//! the streams that they ask for, the events that streams report, and the text or JSON of those.
//!
//! What must hold: every loop is bounded in time and ends soon after
//! [`Signals::cancel`](nicpoll_traffic::Signals::cancel); nothing is allocated per packet; a server
//! sends no more bytes to an address than it got from there, unless that has completed a handshake;
//! whoever parses untrusted input does it through [`wire`].
#![forbid(unsafe_code)]

pub mod command;
mod config;
mod events;
mod input;
mod network;
mod observer;
pub mod options;
mod output;
mod pace;
mod reverse;
mod slots;
mod socket_options;
pub mod tcp;
pub mod text;
mod threads;
mod times;
mod total;
pub mod udp;
pub mod wire;
mod workload;

use nicpoll_model::Rate;

pub use config::{ClientConfig, ListenerConfig, StreamConfig};
pub use input::Input;
pub use network::{AddressPrefix, NetworkError};
pub use observer::{
    Broken, Calls, Connected, IntervalRecord, Observer, READ_SIZE_BINS, Receipt, Remarks, TcpStart,
    TcpState,
};
pub use pace::Amount;
pub use slots::Test;
pub use socket_options::SocketOptions;
pub use times::{Bucket, Distribution, Transit};
pub use workload::{TcpWorkload, UdpWorkload};

/// What UDP is sent at unless a rate is asked for.
pub(crate) const UDP_RATE: Rate = match Rate::bits_per_second(1 << 20) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Streams that a listener serves at the same time, at most.
pub const CLIENTS_MAX: usize = 256;
/// Those of one address, at most.
pub const CLIENTS_PER_ADDRESS: usize = CLIENTS_MAX / 8 * 7;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
