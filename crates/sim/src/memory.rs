//! How much memory a run may need, before it is run.

use crate::clients::Clients;
use crate::host::HostModel;
use crate::packet::Packet;
use crate::plan::{Simulation, packet_bytes};
use crate::workload::Pattern;

/// A queue that grows holds its old place and one twice as large for a moment.
const GROWTH: f64 = 3.0;

impl Simulation {
    /// Bytes that a run holds when its queues fill, at most: a queue holds no more packets than
    /// its limit, nor more than are sent. Clients take room of their own.
    pub fn memory_bytes(&self) -> f64 {
        let of_queues = self
            .stops
            .iter()
            .map(|stop| self.queues_bytes(&stop.applied()));
        of_queues.sum::<f64>() + Clients::memory_bytes(&self.workload) as f64
    }

    fn queues_bytes(&self, host: &HostModel) -> f64 {
        let processors = host.cpu.cpus;
        let links = processors * u64::from(self.workload.links);
        let way_out = [
            links * host.network.send_queue_packets,
            links * host.card.tx_ring,
        ];
        let way_in = [
            links * host.link.queue_packets,
            links * host.card.rx_ring,
            host.network.ip_queue_packets,
            processors * host.socket.buffer_bytes / packet_bytes(host, self.workload.payload_bytes),
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
