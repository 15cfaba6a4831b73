//! Interfaces as rtnetlink shows them: who is below whom, who is up, and whose address it is.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use netlink_bindings::rt_link::{Ifinfomsg, IterableLinkAttrs};
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::{rt_addr, rt_link};

use crate::attributes::{attribute, push_attribute};
use crate::control::{Control, ControlError, Interface};

/// include/uapi/linux/if.h
const IFF_UP: u32 = 1 << 0;
const IFF_LOOPBACK: u32 = 1 << 3;
/// include/uapi/linux/if_link.h
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VXLAN_LINK: u16 = 3;

/// An interface with its place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedInterface {
    /// Who it is.
    pub interface: Interface,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it is the loopback.
    pub is_loopback: bool,
    /// Index of the interface that it lies on or, for veth, of its other end.
    pub lower: Option<u32>,
    /// Number of the namespace of `lower` as this one counts them, when it is another one.
    pub lower_netnsid: Option<i32>,
    /// Index of the bond or bridge that it is a port of.
    pub master: Option<u32>,
    /// Packets received since it was made.
    pub rx_packets: u64,
    /// The longest packet that it carries.
    pub mtu_bytes: u32,
    /// The longest packet that it can be set to carry; null where the kernel does not say, or has no limit.
    pub max_mtu_bytes: Option<u32>,
}

impl Control {
    /// Every interface of the namespace.
    pub fn links(&mut self) -> Result<Vec<PlacedInterface>, ControlError> {
        let doing = || String::from("listing the interfaces");
        let request = rt_link::Request::new().op_getlink_dump(&Ifinfomsg::new());
        let mut reply = self.ask(&request, doing())?;
        let mut links = Vec::new();
        while let Some(link) = reply.recv() {
            let (header, attributes) = link.map_err(ControlError::of(doing()))?;
            links.push(read_link(&header, &attributes));
        }
        Ok(links)
    }

    /// The interface of a name.
    ///
    /// # Errors
    /// `ENODEV` when this namespace has none of that name.
    pub fn link_named(&mut self, name: &str) -> Result<PlacedInterface, ControlError> {
        let doing = || format!("asking for interface '{name}'");
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let mut reply = self.ask(&request, doing())?;
        let (header, link) = reply.recv_one().map_err(ControlError::of(doing()))?;
        Ok(read_link(&header, &link))
    }

    /// Brings an interface up, or takes it down.
    pub fn set_up(&mut self, ifindex: u32, up: bool) -> Result<(), ControlError> {
        let doing = || {
            let state = if up { "up" } else { "down" };
            format!("setting interface {ifindex} {state}")
        };
        let mut header = Ifinfomsg::new();
        header.ifi_index = ifindex as i32;
        header.ifi_flags = if up { IFF_UP } else { 0 };
        header.ifi_change = IFF_UP;
        let request = rt_link::Request::new().op_setlink_do(&header);
        self.ask(&request, doing())?
            .recv_ack()
            .map_err(ControlError::of(doing()))
    }

    /// Every address of the namespace, with the index of its interface and its prefix length.
    pub fn addresses(&mut self) -> Result<Vec<(u32, IpAddr, u8)>, ControlError> {
        let doing = || String::from("listing the addresses");
        let request = rt_addr::Request::new().op_getaddr_dump(&rt_addr::Ifaddrmsg::new());
        let mut reply = self.ask(&request, doing())?;
        let mut found = Vec::new();
        while let Some(entry) = reply.recv() {
            let (header, attributes) = entry.map_err(ControlError::of(doing()))?;
            // Of a point-to-point link, the other attribute is the far end's.
            let own = attributes.get_local().or(attributes.get_address());
            found.extend(own.map(|own| (header.ifa_index, own, header.ifa_prefixlen)));
        }
        Ok(found)
    }

    /// Indices of the interfaces that have an address.
    pub fn interfaces_with(&mut self, address: IpAddr) -> Result<BTreeSet<u32>, ControlError> {
        let all = self.addresses()?.into_iter();
        let having = all.filter(|(_, own, _)| *own == address);
        Ok(having.map(|(ifindex, ..)| ifindex).collect())
    }

    /// The number that this namespace has for the one behind a descriptor (`RTM_GETNSID`);
    /// `None` when it has none.
    pub fn netnsid_of(&mut self, descriptor: u32) -> Result<Option<i32>, ControlError> {
        let doing = || String::from("asking for a namespace's number");
        let mut reply = self.ask(&NetnsIdRequest::new(descriptor), doing())?;
        let answer = reply.recv_one().map_err(ControlError::of(doing()))?;
        Ok(answer.filter(|&id| id >= 0))
    }
}

fn read_link(header: &Ifinfomsg, link: &IterableLinkAttrs<'_>) -> PlacedInterface {
    let driver = link
        .get_linkinfo()
        .and_then(|info| info.get_kind())
        .map(|kind| kind.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = link
        .get_ifname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let own_address = link.get_address().map(octets).unwrap_or_default();
    let ifindex = header.ifi_index as u32;
    PlacedInterface {
        interface: Interface {
            ifindex,
            device_id: device_id(&name, ifindex, &own_address),
            name,
            driver,
            address: link.get_perm_address().map(octets).unwrap_or(own_address),
        },
        is_up: header.ifi_flags & IFF_UP != 0,
        is_loopback: header.ifi_flags & IFF_LOOPBACK != 0,
        lower: link
            .get_link()
            .ok()
            .filter(|&index| index != 0)
            .or_else(|| vxlan_link(link)),
        lower_netnsid: link.get_link_netnsid().ok(),
        master: link.get_master().ok().filter(|&index| index != 0),
        rx_packets: link.get_stats64().map_or(0, |stats| stats.rx_packets),
        mtu_bytes: link.get_mtu().unwrap_or(0),
        max_mtu_bytes: link.get_max_mtu().ok().filter(|&most| most != 0),
    }
}

/// The interface that a vxlan sends through, when it was made on one: the kernel tells it among the data of its kind.
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
/// interface of the same name there, so index and address have to be the same, too.
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

/// `RTM_GETNSID` (include/uapi/linux/net_namespace.h), which netlink-bindings does not have.
struct NetnsIdRequest {
    payload: Vec<u8>,
}

impl NetnsIdRequest {
    const RTM_GETNSID: u16 = 90;
    const NETNSA_NSID: u16 = 1;
    const NETNSA_FD: u16 = 3;
    /// struct rtgenmsg, padded: one byte of family.
    const HEADER_BYTES: usize = 4;

    fn new(descriptor: u32) -> Self {
        let mut payload = vec![0; Self::HEADER_BYTES];
        push_attribute(&mut payload, Self::NETNSA_FD, &descriptor.to_ne_bytes());
        NetnsIdRequest { payload }
    }
}

impl NetlinkRequest for NetnsIdRequest {
    type ReplyType<'buf> = Option<i32>;

    fn protocol(&self) -> Protocol {
        Protocol::Raw {
            protonum: 0,
            request_type: Self::RTM_GETNSID,
        }
    }

    fn flags(&self) -> u16 {
        0
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn decode_reply(reply: &[u8]) -> Option<i32> {
        let list = reply.get(Self::HEADER_BYTES..)?;
        let id = attribute(list, Self::NETNSA_NSID)?;
        Some(i32::from_ne_bytes(id.try_into().ok()?))
    }
}
