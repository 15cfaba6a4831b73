//! How much work and memory a run may need, before it is run.

use crate::clients::Clients;
use crate::host::Host;
use crate::packet::Packet;
use crate::plan::{Plan, packet_bytes};
use crate::workload::Pattern;

/// A queue that grows holds its old place and one twice as large for a moment.
const GROWTH: f64 = 3.0;
/// As many packets a second as a processor sends at most.
const SENT_PPS_MAX: u64 = 1_000_000;

impl Plan {
    /// Bytes that a run holds when its queues fill, at most: a queue holds no more packets than
    /// its limit, nor more than are sent. Clients take room of their own.
    pub fn memory_bytes(&self) -> f64 {
        let of_queues = self
            .stops
            .iter()
            .map(|stop| self.queues_bytes(&stop.applied()));
        of_queues.sum::<f64>() + Clients::memory_bytes(&self.workload) as f64
    }

    /// About so many packets the hosts handle, a packet once for each host.
    pub fn packets(&self) -> f64 {
        let seconds = (self.duration_ns as f64 + self.warmup_ns as f64) / 1e9;
        if self.is_alone() {
            let rate_pps = self.workload.rate_pps.unwrap_or(SENT_PPS_MAX);
            return rate_pps as f64 * seconds;
        }
        let bits = 8.0 * f64::from(self.workload.payload_bytes.max(1));
        let pps_max = SENT_PPS_MAX as f64;
        let packets_per_second = match self.workload.pattern {
            Pattern::IperfUdp { bits_per_second } => bits_per_second as f64 / bits,
            // A line full of the longest segments, each with an acknowledgement.
            Pattern::IperfTcp(_) => {
                let lines = self.stops.iter().map(|stop| stop.host.link);
                let frames =
                    lines.map(|line| line.bits_per_second as f64 / (8.0 * line.mtu_bytes as f64));
                2.0 * frames.fold(f64::INFINITY, f64::min)
            }
            _ => pps_max,
        };
        packets_per_second.min(pps_max) * seconds * self.stops.len() as f64
    }

    fn queues_bytes(&self, host: &Host) -> f64 {
        let links = u64::from(self.workload.links);
        let way_out = [
            links * host.network.send_queue_packets,
            links * host.card.tx_ring,
        ];
        let way_in = [
            links * host.link.queue_packets,
            links * host.card.rx_ring,
            host.network.ip_queue_packets,
            host.socket.buffer_bytes / packet_bytes(host, self.workload.payload_bytes),
        ];
        let limits = match self.workload.pattern {
            Pattern::Blast => way_out.to_vec(),
            Pattern::RequestResponse => [&way_in[..], &way_out].concat(),
            _ => way_in.to_vec(),
        };
        let seconds = (self.duration_ns as f64 + self.warmup_ns as f64) / 1e9;
        let rate = self.workload.rate_pps;
        let sent = rate.map_or(f64::INFINITY, |rate| rate as f64 * seconds);
        let packets: f64 = limits.iter().map(|limit| sent.min(*limit as f64)).sum();
        packets * GROWTH * size_of::<Packet>() as f64
    }
}
