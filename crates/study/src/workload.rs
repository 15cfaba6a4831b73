//! The workloads that a study can run, as data.

use nicpoll_iperf::{TcpWorkload, UdpWorkload};
use nicpoll_traffic::netrate::NetrateWorkload;
use nicpoll_traffic::rr::RrWorkload;
use nicpoll_traffic::workload::Workload;
use serde::{Deserialize, Serialize};

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
