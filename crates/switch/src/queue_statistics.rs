//! What drivers count for each receive queue, as the kernel names it (netdev `qstats-get`, Linux 6.9 and later).
//!
//! What must hold: only what a driver tells is there; a counter that it lacks is absent, not 0.

use std::collections::BTreeMap;

use netlink_bindings::netdev;

use crate::attributes::uint_attribute;
use crate::control::{Control, ControlError, QUEUE_TYPE_RX};

/// `NETDEV_QSTATS_SCOPE_QUEUE`, include/uapi/linux/netdev.h: a reply for each queue.
const SCOPE_QUEUE: u32 = 1;
/// `NETDEV_A_QSTATS_*` of receive queues, from the same file.
const COUNTERS: [(u16, &str); 12] = [
    (8, "rx_packets"),
    (9, "rx_bytes"),
    (12, "rx_alloc_fail"),
    (13, "rx_hw_drops"),
    (14, "rx_hw_drop_overruns"),
    (15, "rx_csum_complete"),
    (16, "rx_csum_unnecessary"),
    (17, "rx_csum_none"),
    (18, "rx_csum_bad"),
    (19, "rx_hw_gro_packets"),
    (20, "rx_hw_gro_bytes"),
    (23, "rx_hw_drop_ratelimits"),
];

/// Counters of each receive queue.
type Counters = BTreeMap<u32, BTreeMap<&'static str, u64>>;

impl Control {
    /// The counters of each receive queue of an interface.
    ///
    /// # Errors
    /// When its driver or the kernel does not tell.
    pub fn queue_statistics(&mut self, ifindex: u32) -> Result<Counters, ControlError> {
        let doing = || format!("reading the queue counters of interface {ifindex}");
        let mut request = netdev::Request::new().op_qstats_get_dump();
        request
            .encode()
            .push_ifindex(ifindex)
            .push_scope(SCOPE_QUEUE);
        let mut reply = self.ask(&request, doing())?;
        let mut queues = Counters::new();
        while let Some(queue) = reply.recv() {
            let queue = queue.map_err(ControlError::of(doing()))?;
            if let (Ok(QUEUE_TYPE_RX), Ok(id)) = (queue.get_queue_type(), queue.get_queue_id()) {
                queues.insert(id, counters(queue.get_buf()));
            }
        }
        Ok(queues)
    }
}

fn counters(attributes: &[u8]) -> BTreeMap<&'static str, u64> {
    let one = |(attribute, name): &(u16, &'static str)| {
        Some((*name, uint_attribute(attributes, *attribute)?))
    };
    COUNTERS.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::push_uint;

    #[test]
    fn counters_beyond_four_bytes_are_read_and_those_of_sending_are_not() {
        let mut attributes = Vec::new();
        for (attribute, count) in [(8, 1 << 40), (9, 7), (10, 5), (13, 0)] {
            push_uint(&mut attributes, attribute, count);
        }
        let expected = [("rx_packets", 1 << 40), ("rx_bytes", 7), ("rx_hw_drops", 0)];
        assert_eq!(counters(&attributes), BTreeMap::from(expected));
    }
}
