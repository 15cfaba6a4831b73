//! The words that name what is compared: workloads, settings and sides.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the traffic of a trial is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// One TCP stream, one way, as fast as it goes.
    Tcp,
    /// UDP with 1470 bytes of payload, as fast as one sender goes.
    Udp1470,
    /// UDP with 64 bytes of payload, as fast as one sender goes.
    Udp64,
    /// UDP request and response, one transaction at a time.
    Rr,
}

impl Workload {
    /// Every workload, in the order in which reports show them.
    pub const ALL: [Workload; 4] = [
        Workload::Tcp,
        Workload::Udp1470,
        Workload::Udp64,
        Workload::Rr,
    ];

    /// The name used in options, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Tcp => "tcp",
            Workload::Udp1470 => "udp1470",
            Workload::Udp64 => "udp64",
            Workload::Rr => "rr",
        }
    }

    /// Bytes of UDP payload in each datagram; `None` for TCP, which has no datagrams.
    pub fn datagram_bytes(self) -> Option<usize> {
        match self {
            Workload::Tcp => None,
            Workload::Udp1470 => Some(1470),
            Workload::Udp64 | Workload::Rr => Some(64),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Workload::ALL
            .into_iter()
            .find(|workload| workload.name() == text)
            .ok_or_else(|| {
                let known = Workload::ALL.map(Workload::name).join(", ");
                format!("there is no workload '{text}'; known are {known}")
            })
    }
}

/// The receive discipline that a trial runs under.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// The link as it comes up, with no receive NAPI.
    Default,
    /// The receiver's NAPI, woken by arrivals.
    Interrupt,
    /// The receiver's NAPI, woken by a timer once a period.
    Polling,
}

impl Setting {
    /// Every setting, in the order in which reports show them.
    pub const ALL: [Setting; 3] = [Setting::Default, Setting::Interrupt, Setting::Polling];

    /// The name used in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Default => "default",
            Setting::Interrupt => "interrupt",
            Setting::Polling => "polling",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        })
    }
}
