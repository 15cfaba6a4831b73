//! The places where a packet can be lost, under one name each: for the ledger of a trial, the account of a host,
//! what is watched, and what is simulated.
//!
//! What must hold: a place is one row of one table. How many packets were lost at it on a real host is said by
//! one counter or a difference of counters, which the account names.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
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
