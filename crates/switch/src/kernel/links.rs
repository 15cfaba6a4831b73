//! Interfaces as rtnetlink shows them: identity, state, stacking and addresses.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use netlink_bindings::rt_link::{Ifinfomsg, IterableLinkAttrs};
use netlink_bindings::traits::Protocol;
use netlink_bindings::{rt_addr, rt_link};
use serde::{Deserialize, Serialize};

use super::netlink::{Control, RawRequest, attribute, push_attribute, supported};
use crate::error::SwitchError;

/// include/uapi/linux/if.h
const IFF_UP: u32 = 1 << 0;
const IFF_LOOPBACK: u32 = 1 << 3;
const IFF_LOWER_UP: u32 = 1 << 16;
/// include/uapi/linux/if_link.h
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VXLAN_LINK: u16 = 3;
/// include/uapi/linux/net_namespace.h; netlink-bindings does not have the request.
const RTM_GETNSID: u16 = 90;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// Length of struct rtgenmsg: one byte of family, padded.
const RTGENMSG_BYTES: usize = 4;

/// Kinds that are stacked on one other interface: attribute `IFLA_LINK`, for vxlan `IFLA_VXLAN_LINK`.
const ON_ANOTHER: [&str; 7] = [
    "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "vxlan", "macsec",
];
/// Kinds whose ports are other interfaces (attribute `IFLA_MASTER`).
const OF_PORTS: [&str; 3] = ["bond", "bridge", "team"];
/// Deepest stack that is searched; the kernel builds none so deep (`MAX_NEST_DEV`).
const DEPTH_MAX: u32 = 8;

/// An interface, as the kernel identifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Index within its namespace.
    pub ifindex: u32,
    /// Name.
    pub name: String,
    /// Kind of virtual device (`veth`), or empty for a physical one.
    pub driver: String,
    /// Hardware address; the permanent one, if it has one.
    pub address: String,
    /// Inode number of the device's directory in sysfs. The kernel keeps it when the device's name, address or network
    /// namespace changes, and gives it to no other device until reboot; null if `/sys` does not show the device.
    pub device_id: Option<u64>,
}

impl Interface {
    /// Whether `now` is the same device, even with another name, address or network namespace. A later device with the
    /// same index is another one.
    pub(crate) fn is_still(&self, now: &Interface) -> bool {
        self.device_id.is_some() && self.device_id == now.device_id
    }
}

/// An interface with its state and its relations to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its identity.
    pub interface: Interface,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it has carrier: the cable is plugged in, or the other end of a veth is up.
    pub has_carrier: bool,
    /// Carrier changes since it was created.
    pub carrier_changes: Option<u32>,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// Index of the interface below it or, for veth, of its other end.
    pub lower: Option<u32>,
    /// The id by which this namespace knows that of `lower`, if it is another one.
    pub lower_netnsid: Option<i32>,
    /// Index of the bond or bridge whose port it is.
    pub master: Option<u32>,
    /// Number of receive queues it was created with; [`Control::queues`] lists those in use.
    pub rx_queues: Option<u32>,
    /// Number of transmit queues it was created with.
    pub tx_queues: Option<u32>,
    /// Packets received since it was created.
    pub rx_packets: Option<u64>,
    /// MTU.
    pub mtu_bytes: u32,
    /// Largest MTU that can be set; null if the kernel does not report one or has no limit.
    pub max_mtu_bytes: Option<u32>,
}

/// The state that shows whether an interface's traffic is disturbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkHealth {
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it has carrier.
    pub has_carrier: bool,
    /// Carrier changes since it was created.
    pub carrier_changes: Option<u32>,
    /// Its NAPI instances, in order; empty if they cannot be listed. New queues have new instances.
    pub napi_ids: Vec<u32>,
}

impl Control {
    /// Lists every interface of the namespace, by index.
    pub fn links(&mut self) -> Result<Vec<LinkInfo>, SwitchError> {
        let request = rt_link::Request::new().op_getlink_dump(&Ifinfomsg::new());
        let mut links = self.ask("listing the interfaces", &request, |(header, link)| {
            Ok(read_link(&header, &link))
        })?;
        links.sort_by_key(|link| link.interface.ifindex);
        Ok(links)
    }

    /// Returns the interface of a name with its state.
    ///
    /// # Errors
    /// `ENODEV` when this namespace has none of that name.
    pub fn link_named(&mut self, name: &str) -> Result<LinkInfo, SwitchError> {
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let doing = format!("asking for interface '{name}'");
        self.ask_one(doing, &request, |(header, link)| {
            Ok(read_link(&header, &link))
        })
    }

    /// Returns the interface of a name.
    ///
    /// # Errors
    /// `ENODEV` when this namespace has none of that name.
    pub fn interface(&mut self, name: &str) -> Result<Interface, SwitchError> {
        Ok(self.link_named(name)?.interface)
    }

    /// Returns the state of an interface; `None` if it no longer exists or is in another namespace.
    pub fn link_health(
        &mut self,
        interface: &Interface,
    ) -> Result<Option<LinkHealth>, SwitchError> {
        let mut links = self.links()?.into_iter();
        let Some(link) = links.find(|link| interface.is_still(&link.interface)) else {
            return Ok(None);
        };
        let napis = supported(self.napis(link.interface.ifindex))?.unwrap_or_default();
        Ok(Some(LinkHealth {
            is_up: link.is_up,
            has_carrier: link.has_carrier,
            carrier_changes: link.carrier_changes,
            napi_ids: napis.iter().map(|napi| napi.id).collect(),
        }))
    }

    /// Brings an interface up, or takes it down.
    pub fn set_up(&mut self, ifindex: u32, up: bool) -> Result<(), SwitchError> {
        let mut header = Ifinfomsg::new();
        header.ifi_index = ifindex as i32;
        header.ifi_flags = if up { IFF_UP } else { 0 };
        header.ifi_change = IFF_UP;
        let request = rt_link::Request::new().op_setlink_do(&header);
        let state = if up { "up" } else { "down" };
        self.ask(
            format!("setting interface {ifindex} {state}"),
            &request,
            |_| Ok(()),
        )
        .map(drop)
    }

    /// Lists every address of the namespace, with its interface's index and its prefix length.
    pub fn addresses(&mut self) -> Result<Vec<(u32, IpAddr, u8)>, SwitchError> {
        let request = rt_addr::Request::new().op_getaddr_dump(&rt_addr::Ifaddrmsg::new());
        let entries = self.ask("listing the addresses", &request, |(header, attributes)| {
            // On a point-to-point link, the attribute `address` is the far end's.
            let own = attributes.get_local().or(attributes.get_address()).ok();
            Ok(own.map(|own| (header.ifa_index, own, header.ifa_prefixlen)))
        })?;
        Ok(entries.into_iter().flatten().collect())
    }

    /// Returns the id that this namespace has for the one of a descriptor (`RTM_GETNSID`); `None` if it has none.
    pub(crate) fn netnsid_of(&mut self, descriptor: u32) -> Result<Option<i32>, SwitchError> {
        let mut request = RawRequest {
            protocol: Protocol::Raw {
                protonum: 0,
                request_type: RTM_GETNSID,
            },
            payload: vec![0; RTGENMSG_BYTES],
        };
        push_attribute(&mut request.payload, NETNSA_FD, &descriptor.to_ne_bytes());
        self.ask_one("asking for a namespace's number", &request, |answer| {
            let id = attribute(answer, NETNSA_NSID).and_then(|id| id.try_into().ok());
            Ok(id.map(i32::from_ne_bytes).filter(|&id| id >= 0))
        })
    }
}

fn read_link(header: &Ifinfomsg, link: &IterableLinkAttrs<'_>) -> LinkInfo {
    let driver = link.get_linkinfo().and_then(|info| info.get_kind());
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let name = link.get_ifname().map(text).unwrap_or_default();
    let own_address = link.get_address().map(octets).unwrap_or_default();
    let ifindex = header.ifi_index as u32;
    LinkInfo {
        interface: Interface {
            ifindex,
            device_id: device_id(&name, ifindex, &own_address),
            name,
            driver: driver.map(text).unwrap_or_default(),
            address: link.get_perm_address().map(octets).unwrap_or(own_address),
        },
        is_up: header.ifi_flags & IFF_UP != 0,
        has_carrier: header.ifi_flags & IFF_LOWER_UP != 0,
        carrier_changes: link.get_carrier_changes().ok(),
        is_loopback: header.ifi_flags & IFF_LOOPBACK != 0,
        lower: link
            .get_link()
            .ok()
            .filter(|&index| index != 0)
            .or_else(|| vxlan_link(link)),
        lower_netnsid: link.get_link_netnsid().ok(),
        master: link.get_master().ok().filter(|&index| index != 0),
        rx_queues: link.get_num_rx_queues().ok(),
        tx_queues: link.get_num_tx_queues().ok(),
        rx_packets: link.get_stats64().ok().map(|stats| stats.rx_packets),
        mtu_bytes: link.get_mtu().unwrap_or(0),
        max_mtu_bytes: link.get_max_mtu().ok().filter(|&most| most != 0),
    }
}

/// The interface that a vxlan sends through, if it was created on one: an attribute within the data of its kind.
fn vxlan_link(link: &IterableLinkAttrs<'_>) -> Option<u32> {
    let info = link.get_linkinfo().ok()?;
    if info.get_kind().ok()?.to_bytes() != b"vxlan" {
        return None;
    }
    let data = attribute(info.get_buf(), IFLA_INFO_DATA)?;
    let index = attribute(data, IFLA_VXLAN_LINK)?.try_into().ok()?;
    Some(u32::from_ne_bytes(index)).filter(|&index| index != 0)
}

fn octets(address: &[u8]) -> String {
    let octets: Vec<String> = address.iter().map(|octet| format!("{octet:02x}")).collect();
    octets.join(":")
}

/// The inode number of the device's directory. A thread that changed only its network namespace may see another
/// interface of the same name under /sys, so index and address are compared too.
fn device_id(name: &str, ifindex: u32, address: &str) -> Option<u64> {
    let directory = Path::new("/sys/class/net").join(name);
    let holds = |file: &str, value: &str| {
        fs::read_to_string(directory.join(file)).is_ok_and(|text| text.trim() == value)
    };
    let is_own = holds("ifindex", &ifindex.to_string()) && holds("address", address);
    is_own
        .then(|| fs::metadata(&directory).ok())?
        .map(|own| own.ino())
}

/// Whether interfaces of this kind have no queue of their own to poll, only interfaces below them.
pub fn is_stacked(driver: &str) -> bool {
    ON_ANOTHER.contains(&driver) || OF_PORTS.contains(&driver)
}

/// Whether packets of such an interface pass a CPU's backlog when it has no NAPI instance: cards with old drivers, the
/// loopback and veth.
pub fn goes_by_backlog(driver: &str) -> bool {
    matches!(driver, "" | "veth")
}

/// Finds the interfaces at the bottom of `top`, where its packets arrive: itself if it is not stacked, none if nothing
/// in this namespace is below it.
pub fn lowest<'a>(links: &'a [LinkInfo], top: &'a LinkInfo) -> Vec<&'a LinkInfo> {
    let mut found = Vec::new();
    descend(links, top, DEPTH_MAX, &mut found);
    found
}

fn descend<'a>(
    links: &'a [LinkInfo],
    top: &'a LinkInfo,
    depth: u32,
    found: &mut Vec<&'a LinkInfo>,
) {
    let own = &top.interface;
    if !is_stacked(&own.driver) {
        let mut known = found.iter();
        if !known.any(|link| link.interface.ifindex == own.ifindex) {
            found.push(top);
        }
        return;
    }
    if depth == 0 {
        return;
    }
    let is_below = |link: &&LinkInfo| match OF_PORTS.contains(&own.driver.as_str()) {
        true => link.master == Some(own.ifindex),
        false => top.lower_netnsid.is_none() && top.lower == Some(link.interface.ifindex),
    };
    for link in links.iter().filter(is_below) {
        descend(links, link, depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(ifindex: u32, driver: &str, lower: Option<u32>, master: Option<u32>) -> LinkInfo {
        let interface = Interface {
            ifindex,
            driver: String::from(driver),
            ..Interface::default()
        };
        LinkInfo {
            interface,
            lower,
            master,
            ..LinkInfo::default()
        }
    }

    fn below(links: &[LinkInfo], ifindex: u32) -> Vec<u32> {
        let mut all = links.iter();
        let top = all.find(|link| link.interface.ifindex == ifindex);
        let found = lowest(links, top.unwrap());
        found.iter().map(|link| link.interface.ifindex).collect()
    }

    #[test]
    fn a_stack_ends_at_its_cards() {
        let links = [
            link(1, "", None, Some(3)),
            link(2, "", None, Some(3)),
            link(3, "bond", None, None),
            link(4, "vlan", Some(3), Some(5)),
            link(5, "bridge", None, None),
            link(6, "veth", Some(9), Some(5)),
        ];
        // The other end of a pair is not below it.
        for (top, cards) in [(5, &[1, 2, 6][..]), (4, &[1, 2]), (1, &[1]), (6, &[6])] {
            assert_eq!(below(&links, top), cards);
        }
    }

    #[test]
    fn interfaces_elsewhere_and_circles_are_not_found() {
        let mut elsewhere = link(2, "macvlan", Some(1), None);
        elsewhere.lower_netnsid = Some(0);
        assert!(below(&[link(1, "", None, None), elsewhere], 2).is_empty());
        assert!(below(&[link(3, "bridge", None, None)], 3).is_empty());
        let circle = [
            link(1, "vlan", Some(2), None),
            link(2, "vlan", Some(1), None),
        ];
        assert!(below(&circle, 1).is_empty());
    }

    #[test]
    fn the_loopback_is_there_for_everybody() {
        let links = Control::new().links().unwrap();
        let lo = links.iter().find(|link| link.is_loopback).unwrap();
        assert_eq!(lo.interface.name, "lo");
        assert!(lo.rx_queues.is_some());
    }
}
