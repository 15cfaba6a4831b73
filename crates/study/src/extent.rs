//! How far a workload's traffic reaches: over which version of IP, one way or both, and what runs beside.
//!
//! What must hold: what runs beside is load and no result. It begins before the traffic that is asked about, and
//! the account of losses holds the datagrams of both.

use nicpoll_model::Side;
use nicpoll_model::line::IpVersion;
use serde::{Deserialize, Serialize};

use crate::workload::{WorkloadMistake, WorkloadRequest};

/// How far a workload's traffic reaches. Without anything else it is one way over IPv4, and nothing beside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Version of IP that carries all of it.
    #[serde(default)]
    pub ip: IpVersion,
    /// Whether the same traffic goes the other way at the same time. Its rate is that of both.
    #[serde(default)]
    pub both_ways: bool,
    /// What runs at the same time and is no part of the result.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Whether a run of its own shows what a program gets that computes on the receiver's core.
    #[serde(default)]
    pub spinner: bool,
}

/// Traffic that runs beside the one that is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// The traffic.
    pub traffic: WorkloadRequest,
    /// The host that sends it.
    #[serde(default = "sender")]
    pub from: Side,
}

fn sender() -> Side {
    Side::Sender
}

/// Streams of a workload that run at once on one path.
pub(crate) const STREAMS_MAX: usize = 8;

impl Extent {
    /// Whether it can be made of this traffic.
    ///
    /// # Errors
    /// With what is out of range, and what is possible.
    pub fn check(&self, request: &WorkloadRequest) -> Result<(), WorkloadMistake> {
        if self.beside.len() >= STREAMS_MAX {
            return Err(WorkloadMistake::Beside {
                asked: self.beside.len(),
            });
        }
        let beside = self.beside.iter().map(|beside| &beside.traffic);
        for request in std::iter::once(request).chain(beside) {
            request.check(self.ip)?;
        }
        Ok(())
    }

    /// Streams of the same traffic on each path: one each way.
    pub(crate) fn ways(&self) -> u64 {
        match self.both_ways {
            true => 2,
            false => 1,
        }
    }

    /// What is to be said of it behind what the traffic is.
    pub fn words(&self) -> String {
        let mut words = String::new();
        if self.ip == IpVersion::V6 {
            words += ", over IPv6";
        }
        if self.both_ways {
            words += ", and the same the other way";
        }
        for (index, beside) in self.beside.iter().enumerate() {
            let joint = if index == 0 { "; beside it" } else { " and" };
            words += &format!(
                "{joint} {} from the {}",
                beside.traffic.describe(),
                beside.from
            );
        }
        if self.spinner {
            words += "; in a run of its own a program computes beside the receiver";
        }
        words
    }
}
