//! The counters that a driver keeps for each receive queue, out of its statistics (`ethtool -S`).
//!
//! Drivers name them as they like. What must hold: a name belongs to a queue only when it has one of the forms of
//! [`FORMS`], with the queue's number and something that is counted.

use std::collections::BTreeMap;
use std::io;

use nicpoll_sys::ethtool;

/// What stands before and after a receive queue's number: veth, virtio, ixgbe, ice and netvsc; mlx5, mlx4 and newer
/// virtio; i40e; ena; nfp; stmmac; bnxt and tg3.
const FORMS: [(&str, &str); 7] = [
    ("rx_queue_", "_"),
    ("rx", "_"),
    ("rx-", "."),
    ("queue_", "_rx_"),
    ("rvec_", "_rx_"),
    ("q", "_rx_"),
    ("[", "]: rx_"),
];

/// Counters of each receive queue, by the driver's name for each.
pub type QueueCounters = BTreeMap<u32, BTreeMap<String, u64>>;

/// Reads those of an interface of the caller's namespace.
///
/// # Errors
/// As [`ethtool::statistics`].
pub fn queue_counters(interface: &str) -> io::Result<QueueCounters> {
    Ok(by_queue(&ethtool::statistics(interface)?))
}

/// Those among all statistics of a driver that belong to a receive queue.
pub(crate) fn by_queue(statistics: &[(String, u64)]) -> QueueCounters {
    let mut queues = QueueCounters::new();
    for (name, count) in statistics {
        if let Some((queue, what)) = of_queue(name) {
            let counters = queues.entry(queue).or_default();
            *counters.entry(String::from(what)).or_default() += count;
        }
    }
    queues
}

/// The queue of a counter, and what it counts.
fn of_queue(name: &str) -> Option<(u32, &str)> {
    FORMS.iter().find_map(|(before, after)| {
        let rest = name.strip_prefix(before)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = rest.split_at(digits);
        let what = rest.strip_prefix(after).filter(|what| !what.is_empty())?;
        Some((number.parse().ok()?, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_drivers_are_understood() {
        for (name, found) in [
            ("rx_queue_0_xdp_packets", Some((0, "xdp_packets"))),
            ("rx_queue_12_packets", Some((12, "packets"))),
            ("rx3_packets", Some((3, "packets"))),
            ("rx-7.bytes", Some((7, "bytes"))),
            ("queue_2_rx_cnt", Some((2, "cnt"))),
            ("rvec_4_rx_pkts", Some((4, "pkts"))),
            ("q1_rx_pkt_n", Some((1, "pkt_n"))),
            ("[5]: rx_ucast_packets", Some((5, "ucast_packets"))),
            ("tx_queue_0_packets", None),
            ("queue_2_tx_cnt", None),
            ("rx_packets", None),
            ("rx_queue_0", None),
            ("rx_queue_0_", None),
            ("rx_1024_to_1518_byte_packets", None),
            ("rx99999999999_packets", None),
        ] {
            assert_eq!(of_queue(name), found, "{name}");
        }
    }
}
