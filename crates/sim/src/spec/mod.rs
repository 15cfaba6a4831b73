//! The input of a simulation: hosts, receive disciplines, traffic and the run itself, from files and command lines.
//!
//! Text goes in; checked values come out, or a message that says what is wrong and what would be right. Open
//! [`simulation`] first: hosts in a row, the traffic between them, and whether the hosts can run it. [`host`] is the
//! table of a host's numbers, [`host_file`] reads them and has the embedded hosts.

pub mod discipline;
pub mod host;
pub mod host_file;
pub mod options;
pub mod simulation;
pub mod trace;
pub mod traffic;
