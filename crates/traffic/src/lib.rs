//! Traffic whose two ends count for themselves: request/response, and the datagrams of FreeBSD's netrate tools;
//! plus what every sender and receiver needs (signals, sockets).
//!
//! Every loop is bounded in time and ends soon after [`Signals::cancel`]. Nothing is allocated per packet.
//! Every byte is copied between user space and kernel, as for an ordinary program. Datagrams travel in batches
//! only on request. A server sends an address no more bytes than it received from there, until that address
//! completes a handshake. Start with [`workload`]; [`netrate`] and [`rr`] are the two kinds of traffic.
//!
//! Everything runs on the caller's thread, in its network namespace and on its CPU.

mod admission;
pub mod losses;
pub mod netrate;
pub mod repeat;
pub mod rr;
pub mod scheduled;
pub mod signals;
pub mod sockets;
mod timing;
pub mod udp_server;
pub mod workload;

pub use admission::{
    Admission, Caller, ClientRefusal, Notices, ServerSlot, SlotLimits, Spare, is_exhausted,
};
pub use losses::CloseAccount;
pub use signals::{Cancelled, LOOK_EVERY, Signals};
pub use sockets::{RefusedSends, SocketBuffer};
pub use timing::{OneWayDelays, Shortfall, WallClock};
pub use workload::Because;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
