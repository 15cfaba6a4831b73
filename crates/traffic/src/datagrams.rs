//! Datagrams that reach a receiver by another way than a socket: whoever has them hands them over, and the receiver
//! counts.
//!
//! What must hold: a receiver counts the same, whichever way its datagrams come.

use std::net::SocketAddr;
use std::time::Instant;

use crate::workload::EndBooks;

/// A datagram in the program's hands.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Its payload.
    pub payload: &'a [u8],
    /// When the program had it.
    pub at: Instant,
}

/// The receiving end of a workload without a socket.
pub trait DatagramReceiver: Send {
    /// Takes a datagram. What is returned is to be sent to its source.
    fn take(&mut self, arrival: &Arrival<'_>) -> Option<Vec<u8>>;

    /// What it counted.
    fn books(&self) -> EndBooks;
}
