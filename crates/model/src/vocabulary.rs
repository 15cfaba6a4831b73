//! Words that several documents share: what work is counted in, and at which end.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the work of a workload is counted in, and its CPU time divided by.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum WorkUnit {
    /// Bytes of a stream, where lost packets are sent again.
    Bytes,
    /// Datagrams, one way.
    Datagrams,
    /// Requests with their responses.
    Transactions,
}

/// The end of the link that a figure was counted at.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The host that sends the workload (in `rr`: the one that asks).
    Sender,
    /// The host that receives the workload (in `rr`: the one that answers).
    Receiver,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        })
    }
}

/// What carries a stream, or requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One stream of bytes on a connection.
    Tcp,
    /// A datagram for each part.
    Udp,
}

impl Protocol {
    /// Its name, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}
