//! A packet's way in: card, driver, IP queue, protocols, socket.

use nicpoll_model::line::IpVersion;
use nicpoll_model::sim::SimPlace;

use super::Machine;
use crate::cpu::{Level, State, Step};
use crate::host::Host;
use crate::workload::Workload;

const BYTES_PER_KIB: u64 = 1024;

/// What each part of the way costs for the run's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Whether drivers put packets into the IP queue rather than hand them on.
    is_queued: bool,
    /// Taking a packet from the card, with the protocols if they follow at once.
    receive_ns: u64,
    /// IP and UDP.
    pub(super) protocol_ns: u64,
    /// Reading from the socket.
    pub(super) read_ns: u64,
    /// Sending, up to the driver.
    pub(super) call_ns: u64,
}

impl Costs {
    pub(super) fn new(host: &Host, workload: &Workload, is_napi: bool) -> Self {
        // Linux has no queue between a NAPI driver and the protocols.
        let is_queued = !is_napi && host.network.ip_queue_packets > 0;
        let ip_ns = match workload.ip {
            IpVersion::V4 => host.network.ipv4_ns,
            IpVersion::V6 => host.network.ipv6_ns,
        };
        let protocol_ns = ip_ns + host.network.udp_ns;
        let copy_ns = host.socket.copy_kib_ns * u64::from(workload.payload_bytes) / BYTES_PER_KIB;
        Costs {
            is_queued,
            receive_ns: host.card.rx_packet_ns + if is_queued { 0 } else { protocol_ns },
            protocol_ns,
            read_ns: host.cpu.syscall_ns + copy_ns,
            call_ns: host.cpu.syscall_ns + copy_ns + host.network.output_ns,
        }
    }
}

impl Machine {
    /// Begins with the next packet of a level's batch. False when the batch or the ring is at its end.
    pub(super) fn receive_next(&mut self, level: Level, state: State) -> bool {
        let left = &mut self.left[level as usize];
        if *left == 0 || self.card.rx_ring.is_empty() {
            return false;
        }
        *left -= 1;
        let cost_ns = self.costs.receive_ns;
        self.cpu.start(level, Step::Receive, cost_ns, state);
        true
    }

    /// The driver has a packet out of the ring. Whoever interrupted it may have taken it first.
    pub(super) fn take_from_card(&mut self) {
        let Some(packet) = self.card.rx_ring.pop() else {
            return;
        };
        if !self.costs.is_queued {
            self.put_into_socket(packet);
        } else if self.ip_queue.push(packet) {
            self.wake_netisr();
        } else {
            self.tally.lose(SimPlace::IpQueue);
        }
    }

    pub(super) fn take_from_ip_queue(&mut self) {
        if let Some(packet) = self.ip_queue.pop() {
            self.put_into_socket(packet);
        }
    }
}
