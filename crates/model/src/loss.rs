//! Lost packets: the places where they are lost, the kernel's reasons for dropping them, and the ledger of a trial.
//!
//! ```text
//! offered + control sent = delivered + control received + every named loss + residual
//! ```
//!
//! A send that the kernel refused is an attempt and no offered packet: it stands in no term, and [`Ledger::refused_sends`]
//! has it. Each loss is one kernel counter of one place without refused sends, a difference of two, or what the kernel's drop reasons
//! have beyond the counter; [`LedgerLine::counter`] names it. There is no line "other": packets that no counter explains are the signed
//! residual. Counters that would count a loss a second time are [`CrossCheck`]s. A duplicate counts as delivered once,
//! so it cannot hide a loss. TCP is balanced in bytes and has no lines, since it sends lost packets again.

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
            /// All of them, in the order of a packet's way out of one host and into another.
            pub const ALL: &'static [LossPlace] = &[$(LossPlace::$variant,)*];

            /// The name used in JSON and CSV.
            pub const fn key(self) -> &'static str {
                match self { $(LossPlace::$variant => $key,)* }
            }

            /// The name used in text.
            pub const fn name(self) -> &'static str {
                match self { $(LossPlace::$variant => $name,)* }
            }

            /// Which way a packet is going that is lost there.
            pub const fn way(self) -> Way {
                match self { $(LossPlace::$variant => Way::$way,)* }
            }
        }
    };
}

places! {
    /// Sending: IP had no memory or no room. What the places below IP refused is not in it.
    IpOutput "ip_output" "IP output" Out,
    /// Sending: the send queue of an interface was full: the root queueing discipline on Linux, ENOBUFS on FreeBSD.
    SendQueue "send_queue" "send queue" Out,
    /// Sending: the driver. On veth that is the other end's full ring, or the backlog behind it.
    DeviceTx "device_tx" "interface tx" Out,
    /// Between hosts: the queue before the line was full.
    FarQueue "far_queue" "queue at the far end" Line,
    /// Between hosts: the router that forwards, at any of its own places.
    Router "router" "router" Line,
    /// Receiving: the card had no receive descriptor, or the ring of a veth was full.
    RxRing "rx_ring" "receive ring" In,
    /// Receiving: an XDP program returned XDP_DROP, or failed.
    Xdp "xdp" "XDP" In,
    /// Receiving: the interface, before a protocol saw the packet. It holds this host's share of `backlog`.
    DeviceRx "device_rx" "interface rx" In,
    /// Receiving, Linux: a CPU's backlog was full. It is counted for the whole machine.
    Backlog "backlog" "backlog" In,
    /// Receiving, FreeBSD: the queue between netisr and IP was full.
    IpQueue "ip_queue" "IP input queue" In,
    /// A rule or a chain's policy of nftables or iptables, in any direction.
    Nftables "nftables" "nftables" Either,
    /// Receiving: IP refused the packet for its header, address or protocol, or for want of memory.
    IpInput "ip_input" "IP input" In,
    /// Receiving: a fragment came whose datagram lacks another one for good.
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

/// Which way a packet is going that is lost at a place.
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
/// permitted and says more, by the kernel's drop reasons. `null` where the kernel has no such counter, this user may
/// not read it, or an interface went away meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transform = name_properties)]
pub struct Drops(pub BTreeMap<LossPlace, Option<u64>>);

impl Drops {
    /// Packets dropped at a place; `None` when that is not known.
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
    /// The kernel's function that dropped the packets, where it gave no reason (`NOT_SPECIFIED`); null when it did,
    /// or when this user may not see the functions.
    pub function: Option<String>,
    /// What the packets were.
    pub protocol: DropProtocol,
    /// Where they were lost; null for a reason that is no loss on the way to a program, or is not known.
    pub place: Option<LossPlace>,
    /// Why, in a sentence; null where `place` is.
    pub explanation: Option<String>,
    /// How many. A batch counts as the datagrams or segments that it held.
    pub packets: u64,
}

impl DropReason {
    /// The reason, and the function where there is one: `NOT_SPECIFIED in veth_xmit`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) => format!("{} in {function}", self.reason),
            None => self.reason.clone(),
        }
    }
}

named! {
    /// What a dropped packet was.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum DropProtocol {
        /// A datagram of UDP over IPv4 or IPv6.
        Udp = "UDP",
        /// A segment of TCP over IPv4 or IPv6.
        Tcp = "TCP",
        /// Anything else.
        Other = "other protocols",
    }
}

/// A loss that no counter of the kernel has, or may have missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UncountedLoss {
    /// Where.
    pub place: LossPlace,
    /// How many packets, by the kernel's drop reasons; null where these cannot be had. Then there may be any number,
    /// and what was counted at the place is the least.
    pub packets: Option<u64>,
    /// What drops them, in words.
    pub by: String,
    /// Which way the packets go that it can drop; empty: only from one interface to another.
    pub ways: Vec<Way>,
}

/// Dropped packets that the counts by reason leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropReasonGaps {
    /// Packets that found no room in the table of reasons.
    pub overflow_packets: u64,
    /// Packets of the whole machine that had neither a device nor a socket to tell their namespace by.
    pub unattributed_packets: u64,
    /// Drops of the whole machine that came while another was being counted on the same CPU, and were not; null where
    /// the kernel does not say.
    pub missed_events: Option<u64>,
}

impl DropReasonGaps {
    /// What came since an earlier reading of the same program.
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
    /// Where.
    pub place: LossPlace,
    /// On which host, or towards it for places between the two.
    pub side: Side,
    /// The kernel counter that says so, by its own name.
    pub counter: String,
    /// How many; null when the counter could not be read.
    pub packets: Option<u64>,
}

named! {
    /// A kind of packet that is not among those that the workload counts as offered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ControlKind {
        /// iperf's end-of-test datagrams.
        Fin = "FIN",
        /// The server's answers to them.
        FinAcknowledgement = "FIN acknowledgement",
        /// Datagrams that the kernel refused to the sender: its socket had no room (`EAGAIN`), or its
        /// own interface or queue dropped them and it was told so (`ENOBUFS`). The kernel counts each of them as lost;
        /// the lines leave them out.
        Refused = "refused send",
        /// Datagrams that a filter of the sender's own host dropped on their way out, and of which the kernel told the
        /// sender (`EPERM`). The lines leave them out, too.
        Filtered = "send stopped by a filter",
        /// TCP segments without payload: acknowledgements and connection control.
        Acknowledgement = "acknowledgement",
        /// TCP segments sent again.
        Retransmission = "retransmission",
        /// ARP and other frames that are not IP.
        Arp = "ARP",
        /// ICMPv6: neighbour and router discovery, multicast listener reports.
        NeighbourDiscovery = "ICMPv6 ND/MLD",
    }
}

impl ControlKind {
    /// Whether it is a send that the kernel refused: an attempt, and no packet.
    pub fn is_refused(self) -> bool {
        matches!(self, ControlKind::Refused | ControlKind::Filtered)
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
    /// Whether they take part in the balance: true for datagrams that the programs count as sent.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// Sends that the kernel refused, in no other figure. Older versions counted them as control packets and as lost.
    pub fn refused_sends(&self) -> u64 {
        let refused = self.control.iter();
        let refused = refused.filter(|line| line.kind.is_refused() && !line.in_balance);
        refused.filter_map(|line| line.sent_packets).sum()
    }

    /// Control packets of the balance: sent, and received.
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

    /// The residual as a share of what was offered; `None` when nothing was.
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
