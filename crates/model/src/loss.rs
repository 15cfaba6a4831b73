//! Lost packets: the places where they are lost, the kernel's reasons for dropping them, and the ledger of a trial.
//!
//! ```text
//! offered + control sent = delivered + control received + every named loss + residual
//! ```
//!
//! A send that the kernel refused is an attempt, not an offered packet: it is in no term of the equation, and
//! [`Ledger::refused_sends`] counts it. Each loss is, without refused sends, one kernel counter of one place, a
//! difference of two, or the excess of the kernel's drop reasons over the counter; [`LedgerLine::counter`] names it.
//! There is no line "other": packets that no counter explains are the signed residual. Counters that would count a loss
//! twice are [`CrossCheck`]s. A duplicate counts as delivered once, so it cannot hide a loss. TCP is balanced in bytes
//! and has no lines, since it retransmits lost packets.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use crate::document::{Side, named};

macro_rules! places {
    ($($(#[doc = $doc:literal])+ $variant:ident $key:literal $name:literal $way:ident,)*) => {
        /// A place where a packet can be lost.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum LossPlace {
            $($(#[doc = $doc])+ #[serde(rename = $key)] $variant,)*
        }

        impl LossPlace {
            /// All places, in the order of a packet's way out of one host and into another.
            pub const ALL: &'static [LossPlace] = &[$(LossPlace::$variant,)*];

            /// The name used in JSON and CSV.
            pub const fn key(self) -> &'static str {
                match self { $(LossPlace::$variant => $key,)* }
            }

            /// The name used in text.
            pub const fn name(self) -> &'static str {
                match self { $(LossPlace::$variant => $name,)* }
            }

            /// The direction of packets lost there.
            pub const fn way(self) -> Way {
                match self { $(LossPlace::$variant => Way::$way,)* }
            }
        }
    };
}

places! {
    /// Sending: IP had no memory or no room. Packets refused by places below IP are not included.
    IpOutput "ip_output" "IP output" Out,
    /// Sending: the send queue of an interface was full: the root queueing discipline on Linux, ENOBUFS on FreeBSD.
    SendQueue "send_queue" "send queue" Out,
    /// Sending: the driver. On veth: the other end's ring, or the backlog behind it, was full.
    DeviceTx "device_tx" "interface tx" Out,
    /// Between hosts: the queue before the line was full.
    FarQueue "far_queue" "queue at the far end" Line,
    /// Between hosts: an interface sent the frame, and the next one did not have it.
    Wire "wire" "wire" Line,
    /// Between hosts: the forwarding router, at any of its places.
    Router "router" "router" Line,
    /// Receiving: the card had no receive descriptor, or the ring of a veth was full.
    RxRing "rx_ring" "receive ring" In,
    /// Receiving: an XDP program returned XDP_DROP, or failed.
    Xdp "xdp" "XDP" In,
    /// Receiving: the interface, before a protocol saw the packet. Includes this host's share of `backlog`.
    DeviceRx "device_rx" "interface rx" In,
    /// Receiving, Linux: a CPU's backlog was full. Counted for the whole machine.
    Backlog "backlog" "backlog" In,
    /// Receiving, FreeBSD: the queue between netisr and IP was full.
    IpQueue "ip_queue" "IP input queue" In,
    /// A rule, or the policy of a chain, of nftables or iptables, in any direction.
    Nftables "nftables" "nftables" Either,
    /// Receiving: IP refused the packet for its header, address or protocol, or for want of memory.
    IpInput "ip_input" "IP input" In,
    /// Receiving: a fragment whose datagram was never completed.
    Reassembly "reassembly" "reassembly" In,
    /// Receiving: no UDP socket was bound to the port.
    NoSocket "no_socket" "no socket" In,
    /// Receiving: the UDP checksum was wrong.
    Checksum "checksum" "checksum" In,
    /// Receiving: UDP's memory limit was reached.
    ProtocolMemory "protocol_memory" "protocol memory" In,
    /// Receiving: the receive buffer of the socket was full.
    SocketBuffer "socket_buffer" "socket buffer" In,
}

/// The direction of packets lost at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Out of the host.
    Out,
    /// From one host to another.
    Line,
    /// Into the host.
    In,
    /// Any of these.
    Either,
}

impl fmt::Display for LossPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Packets that one host dropped at each of its places, all interfaces together: by its counters or, where BPF is
/// permitted and shows more, by the kernel's drop reasons. `null` where the kernel has no such counter, this user may
/// not read it, or an interface disappeared meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transform = name_properties)]
pub struct Drops(pub BTreeMap<LossPlace, Option<u64>>);

impl Drops {
    /// Returns the packets dropped at a place; `None` when unknown.
    pub fn at(&self, place: LossPlace) -> Option<u64> {
        self.0.get(&place).copied().flatten()
    }
}

fn name_properties(schema: &mut Schema) {
    let keys: Vec<&str> = LossPlace::ALL.iter().map(|place| place.key()).collect();
    schema.insert(
        String::from("propertyNames"),
        json_schema!({ "enum": keys }).into(),
    );
}

/// Packets that the kernel dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReason {
    /// The kernel's name of the reason, without `SKB_DROP_REASON_`.
    pub reason: String,
    /// The kernel function that dropped the packets, if it gave no reason (`NOT_SPECIFIED`); null when it gave one, or
    /// when this user may not see the functions.
    pub function: Option<String>,
    /// Protocol of the packets.
    pub protocol: DropProtocol,
    /// Where they were lost; null for unknown reasons and for drops that are no loss on the way to a program.
    pub place: Option<LossPlace>,
    /// Why, in a sentence; null when `place` is null.
    pub explanation: Option<String>,
    /// Number of packets. A batch counts as its datagrams or segments.
    pub packets: u64,
}

impl DropReason {
    /// Returns the reason, with the function if known: `NOT_SPECIFIED in veth_xmit`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) => format!("{} in {function}", self.reason),
            None => self.reason.clone(),
        }
    }
}

named! {
    /// Protocol of a dropped packet.
    #[serde(rename_all = "lowercase")]
    pub enum DropProtocol {
        /// UDP over IPv4 or IPv6.
        Udp = "UDP",
        /// TCP over IPv4 or IPv6.
        Tcp = "TCP",
        /// Anything else.
        Other = "other protocols",
    }
}

/// A loss that no kernel counter has, or that a counter may have missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UncountedLoss {
    /// The place.
    pub place: LossPlace,
    /// Number of packets, by the kernel's drop reasons; null without drop reasons. Then the count at the place is a
    /// lower bound.
    pub packets: Option<u64>,
    /// Who drops them, in words.
    pub by: String,
    /// Directions of the packets it can drop; empty: only packets from one interface to another.
    pub ways: Vec<Way>,
}

/// Dropped packets missing from the counts by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReasonGaps {
    /// Packets for which the table of reasons was full.
    pub overflow_packets: u64,
    /// Packets of the whole machine without a device or socket that tells their namespace.
    pub unattributed_packets: u64,
    /// Drops of the whole machine missed because another was being counted on the same CPU; null where the kernel does
    /// not report them.
    pub missed_events: Option<u64>,
}

impl DropReasonGaps {
    /// Returns the increase since an earlier reading of the same program.
    pub fn since(self, earlier: DropReasonGaps) -> DropReasonGaps {
        let since = u64::saturating_sub;
        let missed = self.missed_events.zip(earlier.missed_events);
        DropReasonGaps {
            overflow_packets: since(self.overflow_packets, earlier.overflow_packets),
            unattributed_packets: since(self.unattributed_packets, earlier.unattributed_packets),
            missed_events: missed.map(|(now, then)| since(now, then)),
        }
    }
}

/// Packets lost at one place of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerLine {
    /// The place.
    pub place: LossPlace,
    /// The host; for places between hosts, the one the packets were going to.
    pub side: Side,
    /// The kernel's name of the counter.
    pub counter: String,
    /// Number of packets; null when the counter could not be read.
    pub packets: Option<u64>,
}

named! {
    /// A kind of packet that the workload does not count as offered.
    #[serde(rename_all = "snake_case")]
    pub enum ControlKind {
        /// iperf's end-of-test datagrams.
        Fin = "FIN",
        /// The server's answers to FIN datagrams.
        FinAcknowledgement = "FIN acknowledgement",
        /// Datagrams that the kernel refused: the socket had no room (`EAGAIN`), or the sender's own interface or queue
        /// dropped them and the sender was told (`ENOBUFS`). The kernel counts each of them as lost; the lines leave
        /// them out.
        Refused = "refused send",
        /// Datagrams that a filter of the sender's own host dropped on their way out, of which the sender was told
        /// (`EPERM`). The lines leave them out, too.
        Filtered = "send stopped by a filter",
        /// TCP segments without payload: acknowledgements and connection control.
        Acknowledgement = "acknowledgement",
        /// TCP segments that were retransmitted.
        Retransmission = "retransmission",
        /// ARP and other non-IP frames.
        Arp = "ARP",
        /// ICMPv6: neighbour and router discovery, multicast listener reports.
        NeighbourDiscovery = "ICMPv6 ND/MLD",
    }
}

impl ControlKind {
    /// Whether it is a send that the kernel refused: an attempt, not a packet.
    pub fn is_refused(self) -> bool {
        matches!(self, ControlKind::Refused | ControlKind::Filtered)
    }
}

/// Control packets of one kind, by the side that sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlLine {
    /// Their kind.
    pub kind: ControlKind,
    /// The side that sent them.
    pub from: Side,
    /// Packets sent; null when not counted.
    pub sent_packets: Option<u64>,
    /// Packets that reached the other side; null when not counted.
    pub received_packets: Option<u64>,
    /// Whether they are part of the balance: true for datagrams that the programs count as sent.
    pub in_balance: bool,
}

/// A counter that repeats a loss of another line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// The host.
    pub side: Side,
    /// The kernel's name of the counter.
    pub counter: String,
    /// Its increase during the trial: packets, datagrams or segments, as its name says.
    pub packets: u64,
}

/// The account of one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Datagrams that the sending programs handed to their sockets. Null for TCP.
    pub offered_packets: Option<u64>,
    /// Distinct datagrams that the receiving programs read from theirs. Null for TCP.
    pub delivered_packets: Option<u64>,
    /// Bytes of payload that the sending programs wrote. Null for UDP.
    pub offered_bytes: Option<u64>,
    /// Bytes of payload that the receiving programs read. Null for UDP.
    pub delivered_bytes: Option<u64>,
    /// Datagrams read again, in no other figure; null for TCP, and for datagrams without numbers.
    pub duplicate_packets: Option<u64>,
    /// Losses by place, including zeros, in the order in which a packet passes the places. Empty for TCP.
    pub lines: Vec<LedgerLine>,
    /// Control packets.
    pub control: Vec<ControlLine>,
    /// Packets that no line explains; negative when more arrived than can be explained. Null for TCP.
    pub residual_packets: Option<i64>,
    /// Bytes written less bytes read. Null for UDP.
    pub residual_bytes: Option<i64>,
    /// Counters that show the same losses a second time.
    pub cross_checks: Vec<CrossCheck>,
}

impl Ledger {
    /// Whether the ledger counts bytes, as for TCP, which retransmits lost packets.
    pub fn is_in_bytes(&self) -> bool {
        self.offered_bytes.is_some()
    }

    /// Returns the offered packets or bytes.
    pub fn offered(&self) -> u64 {
        self.offered_packets.or(self.offered_bytes).unwrap_or(0)
    }

    /// Returns the delivered packets or bytes.
    pub fn delivered(&self) -> u64 {
        self.delivered_packets.or(self.delivered_bytes).unwrap_or(0)
    }

    /// Returns the sum of the named losses, without unreadable counters.
    pub fn lost_packets(&self) -> u64 {
        self.lines.iter().filter_map(|line| line.packets).sum()
    }

    /// Returns the sends that the kernel refused, in no other figure. Older versions counted them as control packets
    /// and as lost.
    pub fn refused_sends(&self) -> u64 {
        let refused = self.control.iter();
        let refused = refused.filter(|line| line.kind.is_refused() && !line.in_balance);
        refused.filter_map(|line| line.sent_packets).sum()
    }

    /// Returns the control packets of the balance: sent, and received.
    pub fn control_packets(&self) -> [u64; 2] {
        let balanced = || self.control.iter().filter(|line| line.in_balance);
        let sent = balanced().filter_map(|line| line.sent_packets).sum();
        let received = balanced().filter_map(|line| line.received_packets);
        [sent, received.sum()]
    }

    /// Computes the residual of a ledger of packets from its other fields.
    pub fn balance_packets(&self) -> i64 {
        let [sent, received] = self.control_packets();
        let put_in = self.offered() + sent;
        let came_out = self.delivered() + received + self.lost_packets();
        put_in as i64 - came_out as i64
    }

    /// Returns the residual as a share of the offered; `None` when nothing was offered.
    pub fn residual_ratio(&self) -> Option<f64> {
        let residual = self.residual_packets.or(self.residual_bytes)?;
        let offered = self.offered();
        (offered > 0).then(|| residual.unsigned_abs() as f64 / offered as f64)
    }
}

#[cfg(test)]
mod loss_tests {
    use super::*;

    #[test]
    fn a_place_has_one_key_and_json_uses_it() {
        for place in LossPlace::ALL {
            let json = serde_json::to_string(place).unwrap();
            assert_eq!(json, format!("\"{}\"", place.key()));
        }
        let mut keys: Vec<&str> = LossPlace::ALL.iter().map(|place| place.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), LossPlace::ALL.len());
    }

    #[test]
    fn drops_are_an_object_by_place() {
        let drops = Drops(BTreeMap::from([
            (LossPlace::SendQueue, None),
            (LossPlace::IpOutput, Some(2)),
        ]));
        let json = serde_json::to_string(&drops).unwrap();
        assert_eq!(json, r#"{"ip_output":2,"send_queue":null}"#);
        assert_eq!(serde_json::from_str::<Drops>(&json).unwrap(), drops);
        assert_eq!(drops.at(LossPlace::Xdp), None);
        assert_eq!(drops.at(LossPlace::SendQueue), None);
        assert_eq!(drops.at(LossPlace::IpOutput), Some(2));
        let schema = schemars::schema_for!(Drops);
        let keys = schema.get("propertyNames").unwrap()["enum"].as_array();
        assert_eq!(keys.unwrap().len(), LossPlace::ALL.len());
    }

    #[test]
    fn a_place_is_written_by_its_name_as_wide_as_asked() {
        let place = LossPlace::IpOutput;
        let width = place.name().len() + 2;
        assert_eq!(format!("{place:>width$}"), format!("  {}", place.name()));
    }
}

#[cfg(test)]
mod ledger_tests {
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
            ..Ledger::default()
        };
        assert_eq!(ledger.lost_packets(), 101);
        assert_eq!(ledger.balance_packets(), 0);
    }

    #[test]
    fn what_no_line_explains_is_the_residual_with_its_sign() {
        let mut ledger = Ledger {
            offered_packets: Some(100),
            delivered_packets: Some(70),
            lines: vec![line(LossPlace::RxRing, Some(20))],
            ..Ledger::default()
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
            ..Ledger::default()
        };
        assert!(!packets.is_in_bytes());
        assert_eq!((packets.offered(), packets.delivered()), (9, 7));
        let bytes = Ledger {
            offered_bytes: Some(9000),
            delivered_bytes: Some(6000),
            residual_bytes: Some(3000),
            ..Ledger::default()
        };
        assert!(bytes.is_in_bytes());
        assert_eq!((bytes.offered(), bytes.delivered()), (9000, 6000));
        assert_eq!(bytes.residual_ratio(), Some(1.0 / 3.0));
    }

    #[test]
    fn each_kind_of_control_packet_has_a_name_of_its_own() {
        let names = ControlKind::ALL.map(ControlKind::name);
        assert_eq!(
            names.join(", "),
            "FIN, FIN acknowledgement, refused send, send stopped by a filter, acknowledgement, \
             retransmission, ARP, ICMPv6 ND/MLD"
        );
    }
}
