//! What a host did while a command ran on it: CPU time, context switches, and where packets were
//! dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CpuStates;

/// What happened on this host from the beginning of an account to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDelta {
    /// How long the account was open.
    pub duration_seconds: f64,
    /// Shares of each core's time. The kernel samples them at its clock tick: work in step with the
    /// tick is misjudged. Empty when no tick came in between.
    pub cpu_tick_sampled: Vec<CpuStates>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// CPU time of this process.
    pub process_cpu: ProcessCpu,
    /// Packets dropped, by place.
    pub dropped_packets: Drops,
    /// The interfaces that carried or dropped packets; null when they could not be listed.
    pub interfaces: Option<Vec<InterfaceDelta>>,
}

/// CPU time of the process, all threads together. The sum is exact, its division may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// In user space.
    pub user_seconds: f64,
    /// In the kernel on behalf of the process.
    pub system_seconds: f64,
}

/// Packets dropped at each place of the namespace, all interfaces together. `null` where the kernel has
/// no such counter, this user may not read it, or an interface went away meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drops {
    /// Sending: IP had no memory or no room; what `qdisc` and `device_tx` hold is not in it.
    pub ip_output: Option<u64>,
    /// Sending: root queueing disciplines.
    pub qdisc: Option<u64>,
    /// Sending: drivers. On veth the receiving end's full ring and backlog.
    pub device_tx: Option<u64>,
    /// Rules of nftables that count and drop, in any direction.
    pub nftables: Option<u64>,
    /// Receiving: interfaces, before a protocol saw the packet. Holds this namespace's share of
    /// `backlog_of_machine`.
    pub device_rx: Option<u64>,
    /// Receiving: full per-CPU backlog queues. The kernel counts them for the *machine*, all
    /// namespaces together.
    pub backlog_of_machine: Option<u64>,
    /// Receiving: IP refused the packet for its header, address, protocol, or for want of memory.
    pub ip_input: Option<u64>,
    /// Receiving: no UDP socket was bound to the port.
    pub udp_no_port: Option<u64>,
    /// Receiving: the UDP checksum was wrong.
    pub udp_checksum: Option<u64>,
    /// Receiving: UDP's memory limit was reached.
    pub udp_memory: Option<u64>,
    /// Receiving: receive buffers of UDP sockets were full, those of all programs.
    pub udp_socket_buffer: Option<u64>,
}

impl Drops {
    /// Each place by its name, in the order of the fields.
    pub fn by_place(&self) -> [(&'static str, Option<u64>); 11] {
        [
            ("ip_output", self.ip_output),
            ("qdisc", self.qdisc),
            ("device_tx", self.device_tx),
            ("nftables", self.nftables),
            ("device_rx", self.device_rx),
            ("backlog_of_machine", self.backlog_of_machine),
            ("ip_input", self.ip_input),
            ("udp_no_port", self.udp_no_port),
            ("udp_checksum", self.udp_checksum),
            ("udp_memory", self.udp_memory),
            ("udp_socket_buffer", self.udp_socket_buffer),
        ]
    }
}

/// What one interface carried and dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDelta {
    /// Its name.
    pub name: String,
    /// Packets handed to the driver and not dropped. A train of datagrams that the interface takes
    /// whole is one.
    pub tx_packets: u64,
    /// Packets that the driver dropped.
    pub tx_dropped_packets: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets received and dropped before a protocol saw them.
    pub rx_dropped_packets: u64,
    /// Packets that the root queueing discipline dropped.
    pub qdisc_dropped_packets: Option<u64>,
    /// Speed of the line at layer 1; null where there is none, as behind a virtual interface.
    pub line_bits_per_second: Option<u64>,
    /// The share of the line that what was sent took, preambles and gaps included, on average over the
    /// account.
    pub tx_line_ratio: Option<f64>,
    /// The same of what was received.
    pub rx_line_ratio: Option<f64>,
}
