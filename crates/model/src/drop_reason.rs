//! Why the kernel dropped packets: by its own drop reasons, and where it may drop some without any count.
//!
//! What must hold: a reason keeps the kernel's name for it. What is counted nowhere is said, never a 0.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LossPlace, Way};

/// Packets that the kernel dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReason {
    /// The kernel's name of the reason, without `SKB_DROP_REASON_`.
    pub reason: String,
    /// The kernel's function that dropped the packets, where it gave no reason (`NOT_SPECIFIED`); null when it did,
    /// or when this user may not see the functions.
    pub function: Option<String>,
    /// What the packets were.
    pub protocol: DropProtocol,
    /// Where they were lost; null for a reason that is no loss on the way to a program, or is not known.
    pub place: Option<LossPlace>,
    /// Why, in a sentence; null where `place` is.
    pub explanation: Option<String>,
    /// How many. A batch counts as the datagrams or segments that it held.
    pub packets: u64,
}

impl DropReason {
    /// The reason, and the function where there is one: `NOT_SPECIFIED in veth_xmit`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) => format!("{} in {function}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// What a dropped packet was.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DropProtocol {
    /// A datagram of UDP over IPv4 or IPv6.
    Udp,
    /// A segment of TCP over IPv4 or IPv6.
    Tcp,
    /// Anything else.
    Other,
}

impl fmt::Display for DropProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DropProtocol::Udp => "UDP",
            DropProtocol::Tcp => "TCP",
            DropProtocol::Other => "other protocols",
        })
    }
}

/// A loss that no counter of the kernel has, or may have missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UncountedLoss {
    /// Where.
    pub place: LossPlace,
    /// How many packets, by the kernel's drop reasons; null where these cannot be had. Then there may be any number,
    /// and what was counted at the place is the least.
    pub packets: Option<u64>,
    /// What drops them, in words.
    pub by: String,
    /// Which way the packets go that it can drop; empty: only from one interface to another.
    pub ways: Vec<Way>,
}

/// Dropped packets that the counts by reason leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReasonGaps {
    /// Packets that found no room in the table of reasons.
    pub overflow_packets: u64,
    /// Packets of the whole machine that had neither a device nor a socket to tell their namespace by.
    pub unattributed_packets: u64,
    /// Drops of the whole machine that came while another was being counted on the same CPU, and were not; null where
    /// the kernel does not say.
    pub missed_events: Option<u64>,
}

impl DropReasonGaps {
    /// What came since an earlier reading of the same program.
    pub fn since(self, earlier: DropReasonGaps) -> DropReasonGaps {
        let missed = self.missed_events.zip(earlier.missed_events);
        DropReasonGaps {
            overflow_packets: self
                .overflow_packets
                .saturating_sub(earlier.overflow_packets),
            unattributed_packets: self
                .unattributed_packets
                .saturating_sub(earlier.unattributed_packets),
            missed_events: missed.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}
