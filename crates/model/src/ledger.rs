//! The ledger: where each offered packet ended.
//!
//! What must hold, for packets:
//!
//! ```text
//! offered + control sent = delivered + control received + every named loss + residual
//! ```
//!
//! Each loss is one kernel counter of one place, a difference of two, or what the kernel's drop reasons
//! have beyond the counter; [`LedgerLine::counter`] says which. There is no line "other": what no
//! counter explains is the signed residual. Counters that would count a loss a second time are
//! [`CrossCheck`]s. A datagram that arrived twice was delivered once, and is a duplicate the second
//! time; it cannot hide a loss.
//!
//! TCP closes in bytes. It sends lost packets again, so its ledger has no lines: what was dropped where
//! is in the cross-checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LossPlace, Side};

/// Packets lost at one place of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerLine {
    /// Where.
    pub place: LossPlace,
    /// On which host, or towards it for places between the two.
    pub side: Side,
    /// The kernel counter that says so, by its own name.
    pub counter: String,
    /// How many; null when the counter could not be read.
    pub packets: Option<u64>,
}

/// A kind of packet that is not among those that the workload counts as offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlKind {
    /// iperf's end-of-test datagrams.
    Fin,
    /// The server's answers to them.
    FinAcknowledgement,
    /// Datagrams that the kernel refused to the sender: its socket had no room (`EAGAIN`), or its
    /// own interface or queue dropped them and it was told so (`ENOBUFS`). The sender does not count them
    /// as sent, but the kernel counts each of them in a line: those without room as discarded by IP.
    Refused,
    /// Datagrams that a filter of the sender's own host dropped on their way out, and of which the kernel told the
    /// sender (`EPERM`). The sender does not count them as sent; they are in the line of the filter.
    Filtered,
    /// TCP segments without payload: acknowledgements and connection control.
    Acknowledgement,
    /// TCP segments sent again.
    Retransmission,
    /// ARP and other frames that are not IP.
    Arp,
    /// ICMPv6: neighbour and router discovery, multicast listener reports.
    NeighbourDiscovery,
}

impl ControlKind {
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            ControlKind::Fin => "FIN",
            ControlKind::FinAcknowledgement => "FIN acknowledgement",
            ControlKind::Refused => "refused send",
            ControlKind::Filtered => "send stopped by a filter",
            ControlKind::Acknowledgement => "acknowledgement",
            ControlKind::Retransmission => "retransmission",
            ControlKind::Arp => "ARP",
            ControlKind::NeighbourDiscovery => "ICMPv6 ND/MLD",
        }
    }
}

/// Control packets of one kind, by the side that sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlLine {
    /// What they are.
    pub kind: ControlKind,
    /// Who sent them.
    pub from: Side,
    /// Packets sent; null when not counted.
    pub sent_packets: Option<u64>,
    /// Packets that reached the other side; null when not counted.
    pub received_packets: Option<u64>,
    /// Whether they take part in the balance: true for datagrams that the programs count.
    pub in_balance: bool,
}

/// A counter that counts a loss of another line once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// The host.
    pub side: Side,
    /// The counter, by its own name.
    pub counter: String,
    /// What it counted during the trial: packets, datagrams or segments, as its name says.
    pub packets: u64,
}

/// The account of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Datagrams that the sending programs handed to their sockets. Null for TCP.
    pub offered_packets: Option<u64>,
    /// Datagrams that the receiving programs read from theirs, each once. Null for TCP.
    pub delivered_packets: Option<u64>,
    /// Bytes of payload that the sending programs wrote. Null for UDP.
    pub offered_bytes: Option<u64>,
    /// Bytes of payload that the receiving programs read. Null for UDP.
    pub delivered_bytes: Option<u64>,
    /// Datagrams that they read a second time, in no other figure; null for TCP, and where datagrams have no numbers.
    pub duplicate_packets: Option<u64>,
    /// Losses by place, zeros included, in the order in which a packet passes the places. Empty for TCP.
    pub lines: Vec<LedgerLine>,
    /// Control packets.
    pub control: Vec<ControlLine>,
    /// Packets that no line explains; negative when more arrived than can be explained. Null for TCP.
    pub residual_packets: Option<i64>,
    /// Bytes written less bytes read. Null for UDP.
    pub residual_bytes: Option<i64>,
    /// Counters that see the same losses from elsewhere.
    pub cross_checks: Vec<CrossCheck>,
}

impl Ledger {
    /// Whether it is kept in bytes, as for TCP, where lost packets are sent again, and not in packets.
    pub fn is_in_bytes(&self) -> bool {
        self.offered_bytes.is_some()
    }

    /// What was offered, in packets or bytes.
    pub fn offered(&self) -> u64 {
        self.offered_packets.or(self.offered_bytes).unwrap_or(0)
    }

    /// What was delivered, in packets or bytes.
    pub fn delivered(&self) -> u64 {
        self.delivered_packets.or(self.delivered_bytes).unwrap_or(0)
    }

    /// Sum of the named losses, unreadable counters left out.
    pub fn lost_packets(&self) -> u64 {
        self.lines.iter().filter_map(|line| line.packets).sum()
    }

    /// Computes the residual of a ledger of packets from its other fields.
    pub fn balance_packets(&self) -> i64 {
        let balanced = || self.control.iter().filter(|line| line.in_balance);
        let sent: u64 = balanced().filter_map(|line| line.sent_packets).sum();
        let received: u64 = balanced().filter_map(|line| line.received_packets).sum();
        let put_in = self.offered() + sent;
        let came_out = self.delivered() + received + self.lost_packets();
        put_in as i64 - came_out as i64
    }

    /// The residual as a share of what was offered; `None` when nothing was.
    pub fn residual_ratio(&self) -> Option<f64> {
        let residual = self.residual_packets.or(self.residual_bytes)?;
        let offered = self.offered();
        (offered > 0).then(|| residual.unsigned_abs() as f64 / offered as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(place: LossPlace, packets: Option<u64>) -> LedgerLine {
        LedgerLine {
            place,
            side: Side::Receiver,
            counter: String::from("counter"),
            packets,
        }
    }

    #[test]
    fn the_balance_counts_control_packets_only_where_programs_count_them() {
        let ledger = Ledger {
            offered_packets: Some(1000),
            delivered_packets: Some(900),
            offered_bytes: None,
            delivered_bytes: None,
            duplicate_packets: Some(5),
            lines: vec![
                line(LossPlace::RxRing, Some(60)),
                line(LossPlace::SocketBuffer, Some(41)),
                line(LossPlace::Nftables, None),
            ],
            control: vec![
                ControlLine {
                    kind: ControlKind::Fin,
                    from: Side::Sender,
                    sent_packets: Some(3),
                    received_packets: Some(2),
                    in_balance: true,
                },
                ControlLine {
                    kind: ControlKind::Arp,
                    from: Side::Sender,
                    sent_packets: Some(7),
                    received_packets: Some(7),
                    in_balance: false,
                },
            ],
            residual_packets: None,
            residual_bytes: None,
            cross_checks: vec![],
        };
        assert_eq!(ledger.lost_packets(), 101);
        assert_eq!(ledger.balance_packets(), 0);
    }

    fn empty() -> Ledger {
        Ledger {
            offered_packets: None,
            delivered_packets: None,
            offered_bytes: None,
            delivered_bytes: None,
            duplicate_packets: None,
            lines: Vec::new(),
            control: Vec::new(),
            residual_packets: None,
            residual_bytes: None,
            cross_checks: Vec::new(),
        }
    }

    #[test]
    fn what_no_line_explains_is_the_residual_with_its_sign() {
        let mut ledger = Ledger {
            offered_packets: Some(100),
            delivered_packets: Some(70),
            lines: vec![line(LossPlace::RxRing, Some(20))],
            ..empty()
        };
        assert_eq!(ledger.balance_packets(), 10);
        ledger.delivered_packets = Some(95);
        assert_eq!(ledger.balance_packets(), -15);
        ledger.residual_packets = Some(-15);
        assert_eq!(ledger.residual_ratio(), Some(0.15));
        ledger.offered_packets = Some(0);
        assert_eq!(ledger.residual_ratio(), None);
    }

    #[test]
    fn a_ledger_is_in_packets_or_in_bytes() {
        let packets = Ledger {
            offered_packets: Some(9),
            delivered_packets: Some(7),
            ..empty()
        };
        assert!(!packets.is_in_bytes());
        assert_eq!((packets.offered(), packets.delivered()), (9, 7));
        let bytes = Ledger {
            offered_bytes: Some(9000),
            delivered_bytes: Some(6000),
            residual_bytes: Some(3000),
            ..empty()
        };
        assert!(bytes.is_in_bytes());
        assert_eq!((bytes.offered(), bytes.delivered()), (9000, 6000));
        assert_eq!(bytes.residual_ratio(), Some(1.0 / 3.0));
    }

    #[test]
    fn each_kind_of_control_packet_has_a_name_of_its_own() {
        let kinds = [
            ControlKind::Fin,
            ControlKind::FinAcknowledgement,
            ControlKind::Refused,
            ControlKind::Filtered,
            ControlKind::Acknowledgement,
            ControlKind::Retransmission,
            ControlKind::Arp,
            ControlKind::NeighbourDiscovery,
        ];
        let names = kinds.map(ControlKind::name);
        assert_eq!(
            names.join(", "),
            "FIN, FIN acknowledgement, refused send, send stopped by a filter, acknowledgement, \
             retransmission, ARP, ICMPv6 ND/MLD"
        );
    }
}
