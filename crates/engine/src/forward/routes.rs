//! The kernel's routes, as a router in user space looks them up: the longest prefix of the first table that has one.
//!
//! What must hold: for the kernel's default rules a lookup gives what the kernel's gives. What a table of ours cannot
//! carry out (a local address, a refusal, a tunnel) is no way: the XDP program leaves such packets to the kernel.

use std::net::IpAddr;

use prefix_trie::PrefixMap;

use super::attributes::{attributes, u32_of};

/// include/uapi/linux/rtnetlink.h
const RTN_UNICAST: u8 = 1;
const RTN_THROW: u8 = 9;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTNH_F_DEAD: u8 = 1;
const RTM_F_CLONED: u32 = 0x200;
/// The tables that the kernel's default rules look into, in their order: local, main, default.
const TABLES: [u32; 3] = [255, 254, 253];
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// struct rtmsg, and struct rtnexthop before its attributes.
const ROUTE_HEADER_BYTES: usize = 12;
const NEXT_HOP_HEADER_BYTES: usize = 8;

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Out by this interface.
    pub(super) ifindex: u32,
    /// To this router; `None`: to the destination itself.
    pub(super) gateway: Option<IpAddr>,
}

/// What the kernel does with packets for a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Decision {
    /// Sends them on by one of these, which have equal rights.
    SendOn(Vec<Way>),
    /// Something that only the kernel does.
    Kernel,
    /// Looks into the next table.
    NextTable,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    metric: u32,
    decision: Decision,
}

/// The routes of one table.
#[derive(Clone, Debug, Default)]
struct Table {
    ipv4: PrefixMap<(u32, u8), Route>,
    ipv6: PrefixMap<(u128, u8), Route>,
}

/// The routes of all tables that are looked into.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    tables: [Table; TABLES.len()],
}

impl Routes {
    /// Adds a route as the kernel tells it (`RTM_NEWROUTE`). Of those with one prefix the least metric counts, and
    /// equal ones of IPv6 share the load.
    pub(super) fn add(&mut self, message: &[u8]) {
        let Some((table, prefix, length, route)) = parse(message) else {
            return;
        };
        let Some(place) = TABLES.iter().position(|known| *known == table) else {
            return;
        };
        let table = &mut self.tables[place];
        match prefix {
            IpAddr::V4(prefix) => insert(&mut table.ipv4, (prefix.to_bits(), length), route),
            IpAddr::V6(prefix) => insert(&mut table.ipv6, (prefix.to_bits(), length), route),
        }
    }

    /// The ways to a destination, which have equal rights; none when it is the kernel's.
    pub(super) fn ways(&self, destination: IpAddr) -> &[Way] {
        for table in &self.tables {
            let route = match destination {
                IpAddr::V4(to) => table.ipv4.get_lpm(&(to.to_bits(), 32)).map(|(_, it)| it),
                IpAddr::V6(to) => table.ipv6.get_lpm(&(to.to_bits(), 128)).map(|(_, it)| it),
            };
            match route.map(|route| &route.decision) {
                None | Some(Decision::NextTable) => {}
                Some(Decision::Kernel) => return &[],
                Some(Decision::SendOn(ways)) => return ways,
            }
        }
        &[]
    }
}

fn insert<P: prefix_trie::Prefix>(table: &mut PrefixMap<P, Route>, prefix: P, new: Route) {
    match table.get_mut(&prefix) {
        Some(old) if old.metric < new.metric => {}
        Some(Route {
            metric,
            decision: Decision::SendOn(ways),
        }) if *metric == new.metric => {
            if let Decision::SendOn(more) = new.decision {
                ways.extend(more);
            }
        }
        _ => {
            table.insert(prefix, new);
        }
    }
}

/// Table, prefix and its length, and what is done.
fn parse(message: &[u8]) -> Option<(u32, IpAddr, u8, Route)> {
    let (header, rest) = message.split_first_chunk::<ROUTE_HEADER_BYTES>()?;
    let [
        family,
        length,
        source_length,
        service,
        table,
        _,
        _,
        kind,
        flags @ ..,
    ] = *header;
    // Routes for one service or source are rare, and left out: their packets find the others.
    if service != 0 || source_length != 0 || u32::from_ne_bytes(flags) & RTM_F_CLONED != 0 {
        return None;
    }
    let (mut prefix, bits) = match family {
        AF_INET => (IpAddr::from([0; 4]), 32),
        AF_INET6 => (IpAddr::from([0; 16]), 128),
        _ => return None,
    };
    let mut table = u32::from(table);
    let mut metric = 0;
    let (mut way, mut ways, mut is_tunnel) = (RawWay::default(), Vec::new(), false);
    for (kind, value) in attributes(rest) {
        match kind {
            RTA_DST => prefix = address(value)?,
            RTA_TABLE => table = u32_of(value)?,
            RTA_PRIORITY => metric = u32_of(value)?,
            RTA_MULTIPATH => ways = next_hops(value)?,
            RTA_ENCAP_TYPE => is_tunnel = true,
            _ => way.read(kind, value),
        }
    }
    ways.extend(way.complete());
    let decision = match kind {
        RTN_UNICAST if !is_tunnel && !ways.is_empty() => Decision::SendOn(ways),
        RTN_THROW => Decision::NextTable,
        _ => Decision::Kernel,
    };
    (length <= bits).then_some((table, prefix, length, Route { metric, decision }))
}

/// A way, attribute by attribute.
#[derive(Default)]
struct RawWay {
    ifindex: Option<u32>,
    gateway: Option<IpAddr>,
}

impl RawWay {
    fn read(&mut self, kind: u16, value: &[u8]) {
        match kind {
            RTA_OIF => self.ifindex = u32_of(value),
            RTA_GATEWAY => self.gateway = address(value),
            // struct rtvia: two bytes of family, then the address.
            RTA_VIA => self.gateway = value.get(2..).and_then(address),
            _ => {}
        }
    }

    fn complete(self) -> Option<Way> {
        Some(Way {
            ifindex: self.ifindex?,
            gateway: self.gateway,
        })
    }
}

/// The ways of a route that has several: struct rtnexthop and its attributes, one after another.
fn next_hops(mut bytes: &[u8]) -> Option<Vec<Way>> {
    let mut ways = Vec::new();
    while let Some(header) = bytes.first_chunk::<NEXT_HOP_HEADER_BYTES>() {
        let [low, high, flags, _, ifindex @ ..] = *header;
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let body = bytes.get(NEXT_HOP_HEADER_BYTES..length)?;
        let mut way = RawWay {
            ifindex: Some(u32::from_ne_bytes(ifindex)),
            gateway: None,
        };
        for (kind, value) in attributes(body) {
            way.read(kind, value);
        }
        ways.extend(way.complete().filter(|_| flags & RTNH_F_DEAD == 0));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(ways)
}

/// An address by its length.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A route as the kernel tells it.
    fn message(table: u8, kind: u8, prefix: &str, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let (prefix, length) = prefix.split_once('/').unwrap();
        let prefix: IpAddr = prefix.parse().unwrap();
        let octets = match prefix {
            IpAddr::V4(prefix) => prefix.octets().to_vec(),
            IpAddr::V6(prefix) => prefix.octets().to_vec(),
        };
        let family = if prefix.is_ipv4() { AF_INET } else { AF_INET6 };
        let mut bytes = vec![
            family,
            length.parse().unwrap(),
            0,
            0,
            table,
            0,
            0,
            kind,
            0,
            0,
            0,
            0,
        ];
        for (kind, value) in [&[(RTA_DST, &octets[..])], attributes].concat() {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn by(ifindex: u32) -> [Way; 1] {
        [Way {
            ifindex,
            gateway: None,
        }]
    }

    fn ways<'a>(routes: &'a Routes, to: &str) -> &'a [Way] {
        routes.ways(to.parse().unwrap())
    }

    #[test]
    fn the_longest_prefix_of_the_first_table_that_has_one_decides() {
        let mut routes = Routes::default();
        for (table, kind, prefix, ifindex) in [
            (254, 1, "0.0.0.0/0", 1u32),
            (254, 1, "192.0.2.0/24", 2),
            (254, 1, "192.0.2.128/25", 3),
            (254, 1, "192.0.2.1/32", 4),
            (255, 2, "192.0.2.1/32", 5),
            (254, 7, "203.0.113.0/24", 6),
            (254, RTN_THROW, "198.51.100.0/24", 7),
            (253, 1, "198.51.100.0/24", 8),
            (100, 1, "198.51.100.0/28", 9),
            (254, 1, "2001:db8::/32", 10),
            (254, 1, "2001:db8:1::/48", 11),
        ] {
            let exit = ifindex.to_ne_bytes();
            routes.add(&message(table, kind, prefix, &[(RTA_OIF, &exit)]));
        }
        for (to, expected) in [
            ("8.8.8.8", 1),
            ("192.0.2.2", 2),
            ("192.0.2.200", 3),
            ("198.51.100.1", 8),
            ("2001:db8::1", 10),
            ("2001:db8:1::1", 11),
        ] {
            assert_eq!(ways(&routes, to), by(expected), "{to}");
        }
        for kernels in ["192.0.2.1", "203.0.113.9", "2001:db9::1"] {
            assert_eq!(ways(&routes, kernels), [], "{kernels}");
        }
    }

    #[test]
    fn the_least_metric_counts_and_several_ways_are_all_there() {
        let mut routes = Routes::default();
        let gateway = "fe80::1".parse().unwrap();
        let octets = match gateway {
            IpAddr::V6(gateway) => gateway.octets(),
            IpAddr::V4(_) => unreachable!("it was written as IPv6"),
        };
        let add = |routes: &mut Routes, prefix, ifindex: u32, metric: u32| {
            let attributes: [(u16, &[u8]); 3] = [
                (RTA_OIF, &ifindex.to_ne_bytes()),
                (RTA_PRIORITY, &metric.to_ne_bytes()),
                (RTA_GATEWAY, &octets),
            ];
            routes.add(&message(254, 1, prefix, &attributes));
        };
        for (ifindex, metric) in [(1, 100), (2, 50), (3, 200), (4, 50)] {
            add(&mut routes, "2001:db8::/32", ifindex, metric);
        }
        let way = |ifindex| Way {
            ifindex,
            gateway: Some(gateway),
        };
        assert_eq!(ways(&routes, "2001:db8::1"), [way(2), way(4)]);
        // Two next hops, the second with its gateway, and a dead one.
        let mut hops = [8u16.to_ne_bytes(), [0, 0]].concat();
        hops.extend(7u32.to_ne_bytes());
        hops.extend([[28, 0], [0, 0]].concat());
        hops.extend(8u32.to_ne_bytes());
        hops.extend([[20, 0], RTA_GATEWAY.to_ne_bytes()].concat());
        hops.extend(octets);
        hops.extend([[8, 0], [RTNH_F_DEAD, 0]].concat());
        hops.extend(9u32.to_ne_bytes());
        routes.add(&message(
            254,
            1,
            "2001:db8:5::/48",
            &[(RTA_MULTIPATH, &hops)],
        ));
        assert_eq!(ways(&routes, "2001:db8:5::1"), [by(7)[0], way(8)]);
        // An IPv4 destination behind an IPv6 router; and a tunnel, which is the kernel's.
        let via = [&10u16.to_ne_bytes()[..], &octets].concat();
        let exit = 7u32.to_ne_bytes();
        routes.add(&message(
            254,
            1,
            "192.0.2.0/24",
            &[(RTA_OIF, &exit), (RTA_VIA, &via)],
        ));
        assert_eq!(ways(&routes, "192.0.2.1"), [way(7)]);
        let tunnel: [(u16, &[u8]); 2] = [(RTA_OIF, &exit), (RTA_ENCAP_TYPE, &[1, 0])];
        routes.add(&message(254, 1, "192.0.2.64/26", &tunnel));
        assert_eq!(ways(&routes, "192.0.2.65"), []);
    }

    proptest! {
        #[test]
        fn a_lookup_finds_what_a_search_of_all_prefixes_finds(
            prefixes in prop::collection::vec((any::<u32>(), 0..=32u8), 1..40),
            targets in prop::collection::vec(any::<u32>(), 1..20),
        ) {
            let mut routes = Routes::default();
            let masked = |bits: u32, length: u8| bits.checked_shr(32 - u32::from(length)).unwrap_or(0);
            for (index, (bits, length)) in prefixes.iter().enumerate() {
                let ifindex = (index as u32 + 1).to_ne_bytes();
                // Of the same prefix the first is the best.
                let attributes: [(u16, &[u8]); 2] = [(RTA_OIF, &ifindex), (RTA_PRIORITY, &ifindex)];
                let prefix = masked(*bits, *length).checked_shl(32 - u32::from(*length)).unwrap_or(0);
                let text = format!("{}/{length}", std::net::Ipv4Addr::from(prefix));
                routes.add(&message(254, 1, &text, &attributes));
            }
            // Near the prefixes, too.
            let near = prefixes.iter().map(|(bits, _)| bits ^ 1);
            for target in targets.into_iter().chain(near) {
                let holding = prefixes.iter().enumerate().filter(|(_, (bits, length))| {
                    masked(*bits, *length) == masked(target, *length)
                });
                let longest = holding.max_by_key(|(index, (_, length))| (*length, std::cmp::Reverse(*index)));
                let expected: Vec<Way> = longest.map(|(index, _)| by(index as u32 + 1)[0]).into_iter().collect();
                prop_assert_eq!(routes.ways(IpAddr::V4(target.into())), &expected[..]);
            }
        }

        #[test]
        fn no_message_is_more_than_ignored(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            Routes::default().add(&bytes);
        }
    }
}
