//! The iperf 2 protocol as version 2.1.8 speaks it. The original iperf may be at either end.
//!
//! [`options`] parses a command line; [`tcp`] and [`udp`] run the streams it asks for and report events;
//! `output` prints the events as text, CSV or JSON; [`command`] ties these together. To run a single stream and
//! get its figures, call [`udp::run_client`] or its siblings. [`wire`] holds the packet formats.
//!
//! Every loop is bounded in time and ends soon after [`Signals::cancel`](nicpoll_traffic::Signals::cancel).
//! Nothing is allocated per packet. A server sends an address no more bytes than it received from there, until
//! that address completes a handshake. Only [`wire`] parses untrusted input.

pub mod command;
mod config;
mod events;
pub mod options;
mod output;
mod records;
mod slots;
mod stream;
pub mod tcp;
pub mod udp;
pub mod wire;
mod workload;

pub use config::{ClientConfig, ListenerConfig};
pub use records::{Connected, End, IntervalRecord, Observer, Total};
pub use slots::{CLIENTS_MAX, CLIENTS_PER_ADDRESS};
pub use stream::{AcceptedTest, Error, Listen, Streams};
pub use wire::Amount;
pub use workload::{TcpWorkload, UdpWorkload};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
