//! FreeBSD's netrate tools: netblast sends as fast as possible, netsend at a steady rate, netreceive counts.
//!
//! A datagram consists of zeros, with a 32-bit big-endian counter in its first four bytes if it is long enough.
//! The counter advances with every send call, successful or not. Arguments, output and exit status are the
//! originals'.
//!
//! The originals are in `tools/tools/netrate` of FreeBSD's source: netblast and netsend with IPv6, netreceive
//! with threads and statistics, and the build of netblast that also prints successes and throughput.

pub mod blast;
pub mod command;
mod numbers;
pub mod options;
pub mod receive;
pub mod send;
pub(crate) mod sending;
pub mod text;
pub(crate) mod workload;

pub use numbers::NetrateIds;
pub use sending::{SendCount, SendProgress, Sent, connect_first};
pub use workload::NetrateWorkload;
