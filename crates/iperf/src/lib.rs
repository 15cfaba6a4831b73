//! The iperf 2 dialect, as version 2.1.8 speaks it, with the original at either end.
//!
//! A command line becomes [`options`], these become streams ([`tcp`] and [`udp`]), the streams report events,
//! and `output` prints those as text, CSV or JSON; [`command`] runs it all. Whoever wants one stream and its
//! figures calls [`udp::run_client`] and its like. [`wire`] has the formats.
//!
//! Every loop is bounded in time and ends soon after [`Signals::cancel`](nicpoll_traffic::Signals::cancel);
//! nothing is allocated per packet; a server sends no more bytes to an address than it got from there, unless
//! that has completed a handshake; untrusted input is parsed in [`wire`] alone.

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
pub use stream::{Error, Listen, Streams, Taken};
pub use wire::Amount;
pub use workload::{TcpWorkload, UdpWorkload};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
