//! Traffic whose two ends count for themselves: request/response and the datagrams of FreeBSD's netrate
//! tools, and what every sender and receiver needs (signals, sockets).
//!
//! What must hold: every loop is bounded in time and ends soon after [`Signals::cancel`]; nothing is
//! allocated per packet; every byte is copied between user space and kernel, so that a figure is that of
//! an ordinary program; datagrams travel together only where a sender or receiver was asked for it. A
//! server sends no more bytes to an address than it got from there, unless that has completed a
//! handshake.
//!
//! Everything runs on the caller's thread, in its network namespace and on its CPU.
#![forbid(unsafe_code)]

mod address_shares;
pub mod backlog;
pub mod datagrams;
pub mod losses;
pub mod netrate;
mod notices;
mod one_way;
mod refusal;
mod refused_sends;
pub mod repeat;
pub mod rr;
pub mod scheduled;
mod shortfall;
mod signals;
pub mod sockets;
mod spare;
pub mod stop;
pub mod udp_server;
mod wall_clock;
pub mod workload;

pub use address_shares::AddressShares;
pub use notices::Notices;
pub use one_way::OneWayDelays;
pub use refusal::{Caller, ClientRefusal};
pub use refused_sends::RefusedSends;
pub use shortfall::Shortfall;
pub use signals::{LOOK_EVERY, Signals};
pub use sockets::SocketBuffer;
pub use spare::{Spare, is_exhausted};
pub use wall_clock::WallClock;

/// Closes the account of this host and returns it; `None` when it could not be read. Whoever runs traffic
/// opens it, since counters are not this crate's.
pub type CloseAccount = Box<dyn FnOnce() -> Option<nicpoll_model::HostDelta> + Send>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
