//! The workloads that a study can run, as data.

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::workload::Workload;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The least datagram with room for what each kind of workload writes into it.
const PAYLOAD_BYTES_MIN: u16 = 20;
/// The largest payload of UDP over IPv4.
const PAYLOAD_BYTES_MAX: u16 = 65_507;

/// A length that datagrams of a workload cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "payload_bytes = {payload_bytes} is out of range; give {PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX}"
)]
pub struct PayloadRange {
    payload_bytes: u16,
}

/// What traffic to make. A new kind of workload is a row here and its implementation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum WorkloadRequest {
    /// One TCP stream of iperf's.
    Tcp(TcpWorkload),
    /// One UDP stream of iperf's.
    Udp(UdpWorkload),
    /// Request and response.
    Rr(RrWorkload),
    /// netblast to netreceive.
    Netrate(NetrateWorkload),
}

impl WorkloadRequest {
    /// What it is, in a line.
    pub fn describe(&self) -> String {
        match self {
            WorkloadRequest::Tcp(_) => String::from("one TCP stream, one way, as fast as it goes"),
            WorkloadRequest::Udp(udp) => {
                let rate = udp.packets_per_second.map_or_else(
                    || String::from("as fast as one sender goes"),
                    |rate| format!("{rate} a second"),
                );
                format!("UDP with {} bytes of payload, {rate}", udp.payload_bytes)
            }
            WorkloadRequest::Rr(_) => {
                String::from("request and response over UDP, 64 bytes each, one at a time")
            }
            WorkloadRequest::Netrate(netrate) => format!(
                "netblast to netreceive, {} bytes of payload, as fast as it goes",
                netrate.payload_bytes
            ),
        }
    }

    /// Whether it can be made.
    ///
    /// # Errors
    /// With the number that is out of range.
    pub fn check(&self) -> Result<(), PayloadRange> {
        let payload_bytes = match self {
            WorkloadRequest::Tcp(_) | WorkloadRequest::Rr(_) => return Ok(()),
            WorkloadRequest::Udp(workload) => workload.payload_bytes,
            WorkloadRequest::Netrate(workload) => workload.payload_bytes,
        };
        let range = PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX;
        if range.contains(&payload_bytes) {
            return Ok(());
        }
        Err(PayloadRange { payload_bytes })
    }

    /// What carries it out.
    pub fn workload(&self) -> &dyn Workload {
        match self {
            WorkloadRequest::Tcp(workload) => workload,
            WorkloadRequest::Udp(workload) => workload,
            WorkloadRequest::Rr(workload) => workload,
            WorkloadRequest::Netrate(workload) => workload,
        }
    }
}
