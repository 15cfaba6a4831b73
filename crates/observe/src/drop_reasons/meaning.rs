//! What the kernel's drop reasons mean: at which place of a host a packet was lost, and why, in a sentence.
//!
//! What must hold: a reason is one row of one table. A reason without a row keeps the kernel's name and has no place;
//! so have those that are no loss on the way to a program (a frame for another host, a connection's old segments).

use nicpoll_model::LossPlace;

/// What a drop reason means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Where the packet was lost.
    pub place: LossPlace,
    /// Why, in a sentence.
    pub explanation: &'static str,
}

/// The kernel's name, the place, and why.
type Row = (&'static str, LossPlace, &'static str);

/// By the kernel's names of reasons, without `SKB_DROP_REASON_`.
#[rustfmt::skip]
const REASONS: &[Row] = {
    use LossPlace::*;
    &[
        ("NETFILTER_DROP", Nftables, "A rule or a chain's policy of nftables or iptables dropped or rejected it."),
        ("BPF_CGROUP_EGRESS", IpOutput, "A BPF program of the sender's cgroup refused it."),
        ("IP_OUTNOROUTES", IpOutput, "There is no route to its destination."),
        ("NEIGH_CREATEFAIL", IpOutput, "There was no room for an entry of its next hop in the neighbour table."),
        ("NEIGH_FAILED", IpOutput, "Its next hop does not answer ARP or neighbour discovery."),
        ("NEIGH_QUEUEFULL", IpOutput, "Too many packets wait for the link-layer address of its next hop."),
        ("NEIGH_DEAD", IpOutput, "The entry of its next hop was being removed."),
        ("NEIGH_HH_FILLFAIL", IpOutput, "The link-layer header could not be written."),
        ("PKT_TOO_BIG", IpOutput, "It is longer than the MTU and may not be fragmented."),
        ("QDISC_DROP", SendQueue, "The queueing discipline dropped it: its queue was full, or its policy says so."),
        ("QDISC_OVERLIMIT", SendQueue, "The queue of the queueing discipline was at its limit."),
        ("QDISC_CONGESTED", SendQueue, "The queueing discipline dropped it to signal congestion."),
        ("CAKE_FLOOD", SendQueue, "cake's flood protection dropped it."),
        ("FQ_BAND_LIMIT", SendQueue, "A band of fq was full."),
        ("FQ_HORIZON_LIMIT", SendQueue, "Its departure time is beyond fq's horizon."),
        ("FQ_FLOW_LIMIT", SendQueue, "Its flow had as many packets in fq as one may have."),
        ("DUALPI2_STEP_DROP", SendQueue, "dualpi2 dropped it to signal congestion."),
        ("TC_EGRESS", SendQueue, "A tc filter of the sending interface dropped it."),
        ("TC_CHAIN_NOTFOUND", SendQueue, "A tc filter goes on to a chain that does not exist."),
        ("TC_RECLASSIFY_LOOP", SendQueue, "tc filters classified it again and again."),
        ("TC_COOKIE_ERROR", SendQueue, "A tc filter could not go on where the card had left off."),
        ("SKB_GSO_SEG", DeviceTx, "A batch could not be cut into packets."),
        ("DEV_READY", DeviceTx, "The device was not ready."),
        ("NO_TX_TARGET", DeviceTx, "The device had nowhere to send it."),
        ("RECURSION_LIMIT", DeviceTx, "Devices hand it to each other in a loop."),
        ("FULL_RING", RxRing, "The receive ring of the device was full."),
        ("XDP", Xdp, "An XDP program dropped it, or its redirect failed."),
        ("TC_INGRESS", DeviceRx, "A tc filter of the receiving interface dropped it."),
        ("TAP_FILTER", DeviceRx, "The BPF filter of the TAP device refused it."),
        ("TAP_TXFILTER", DeviceRx, "The address filter of the TAP device refused it."),
        ("DEV_HDR", DeviceRx, "Its device header is wrong."),
        ("UNHANDLED_PROTO", DeviceRx, "No protocol takes frames of its ethertype."),
        ("MAC_INVALID_SOURCE", DeviceRx, "Its source MAC address is invalid."),
        ("BRIDGE_INGRESS_STP_STATE", DeviceRx, "The spanning tree blocks the bridge's port."),
        ("CPU_BACKLOG", Backlog, "The backlog queue of a CPU was full."),
        ("IP_INHDR", IpInput, "Its IP header is wrong."),
        ("IP_CSUM", IpInput, "The checksum of its IP header is wrong."),
        ("IP_RPFILTER", IpInput, "The reverse path filter (rp_filter) refused its source address."),
        ("IP_NOPROTO", IpInput, "No transport protocol takes it."),
        ("IP_INADDRERRORS", IpInput, "Its address is not valid for this host."),
        ("IP_INNOROUTES", IpInput, "There is no route for it."),
        ("IP_LOCAL_SOURCE", IpInput, "Its source address is one of this host's own."),
        ("IP_INVALID_SOURCE", IpInput, "Its source address is invalid."),
        ("IP_LOCALNET", IpInput, "It came from outside with a loopback address."),
        ("IP_INVALID_DEST", IpInput, "Its destination address is invalid."),
        ("INVALID_PROTO", IpInput, "Its protocol is none of the interface's."),
        ("IPV6DISABLED", IpInput, "IPv6 is disabled on the interface."),
        ("IPV6_BAD_EXTHDR", IpInput, "An IPv6 extension header is wrong."),
        ("UNICAST_IN_L2_MULTICAST", IpInput, "A unicast packet came in a multicast frame."),
        ("PKT_TOO_SMALL", IpInput, "It is shorter than its headers say."),
        ("HDR_TRUNC", IpInput, "Its headers are cut short."),
        ("XFRM_POLICY", IpInput, "An IPsec policy refused it."),
        ("SECURITY_HOOK", IpInput, "A security module refused it."),
        ("NOMEM", IpInput, "The kernel had no memory for it."),
        ("PFMEMALLOC", IpInput, "It took memory that is kept for emergencies."),
        ("DUP_FRAG", Reassembly, "The same fragment came twice."),
        ("FRAG_REASM_TIMEOUT", Reassembly, "A fragment of its datagram did not come in time."),
        ("FRAG_TOO_FAR", Reassembly, "Its fragment is too far from the others."),
        ("NO_SOCKET", NoSocket, "No socket is bound to its port."),
        ("SOCKET_CLOSE", NoSocket, "Its socket was being closed."),
        ("UDP_CSUM", Checksum, "Its UDP checksum is wrong."),
        ("SKB_CSUM", Checksum, "Its checksum is wrong or could not be computed."),
        ("PROTO_MEM", ProtocolMemory, "The memory limit of the protocol (udp_mem, tcp_mem) was reached."),
        ("SOCKET_RCVBUFF", SocketBuffer, "The receive buffer of its socket was full."),
        ("SOCKET_BACKLOG", SocketBuffer, "The backlog of its socket was full while a program held the socket."),
    ]
};

/// By the kernel's functions that drop packets without a reason.
const FUNCTIONS: &[Row] = {
    use LossPlace::*;
    &[
        (
            "veth_xmit",
            RxRing,
            "The receive ring of the veth was full.",
        ),
        (
            "veth_xdp_rcv_skb",
            Xdp,
            "An XDP program in the veth driver dropped it.",
        ),
        ("do_xdp_generic", Xdp, "A generic XDP program dropped it."),
        (
            "netif_receive_generic_xdp",
            Xdp,
            "A generic XDP program dropped it.",
        ),
    ]
};

impl Meaning {
    /// Of a reason by the kernel's name.
    pub fn of_reason(name: &str) -> Option<Self> {
        Self::in_table(REASONS, name)
    }

    /// Of a drop without a reason, by the kernel's function that dropped the packet.
    pub fn of_function(name: &str) -> Option<Self> {
        Self::in_table(FUNCTIONS, name)
    }

    fn in_table(table: &[Row], name: &str) -> Option<Self> {
        let row = table.iter().find(|(key, ..)| *key == name);
        row.map(|&(_, place, explanation)| Meaning { place, explanation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_row_and_an_explanation_is_a_sentence() {
        let mut names: Vec<_> = REASONS.iter().chain(FUNCTIONS).map(|row| row.0).collect();
        let rows = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows);
        for (name, _, explanation) in REASONS.iter().chain(FUNCTIONS) {
            assert!(explanation.ends_with('.'), "{name}: {explanation}");
        }
    }

    #[test]
    fn what_the_table_does_not_know_has_no_place() {
        let place = |name| Meaning::of_reason(name).map(|meaning| meaning.place);
        assert_eq!(place("NETFILTER_DROP"), Some(LossPlace::Nftables));
        assert_eq!(place("TCP_OLD_DATA"), None);
        assert_eq!(Meaning::of_function("igmp_rcv"), None);
    }

    /// A name that the kernel never had would be a row for nothing.
    #[test]
    fn rows_are_spelled_as_the_kernel_spells_them() {
        let Ok(types) = std::fs::read(crate::bpf::KERNEL_TYPES) else {
            return;
        };
        let types = crate::kernel_types::KernelTypes::of_bytes(&types).unwrap();
        let Some(names) = super::super::ReasonNames::of_types(&types) else {
            return;
        };
        let known: Vec<String> = (0..200)
            .map(|number| names.of(number).into_owned())
            .collect();
        let unknown = REASONS
            .iter()
            .filter(|row| !known.iter().any(|name| name == row.0));
        // Some came with later versions than the oldest that has reasons at all.
        assert!(unknown.count() <= REASONS.len() / 2);
    }
}
