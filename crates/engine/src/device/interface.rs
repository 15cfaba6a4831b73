//! An interface of the calling thread's network namespace: its facts, and who is reached through it.
//!
//! Routes and neighbours are the kernel's. Nothing is sent to find a neighbour but the kernel's own ARP requests and
//! neighbour solicitations, so a receiver counts no extra packet.

use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use netlink_bindings::netdev::{self, XdpAct};
use netlink_bindings::rt_link::{self, IfinfoFlags, Ifinfomsg};
use netlink_bindings::rt_neigh::{self, Ndmsg, NtfFlags, NudState};
use netlink_bindings::rt_route::{self, RtmFlag, RtmType, Rtmsg};
use netlink_socket2::NetlinkSocket;
use nicpoll_sys::link::LinkHandle;
use nicpoll_wire::frame::Mac;
use rustix::io::Errno;

use crate::error::EngineError;

/// include/uapi/linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;

/// An interface of Ethernet, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EthernetInterface {
    pub(crate) name: String,
    pub(crate) ifindex: u32,
    pub(crate) mac: Mac,
    pub(crate) mtu_bytes: u32,
    pub(crate) is_up: bool,
    /// The kind of a virtual one, such as `veth`; empty for others.
    pub(crate) kind: String,
}

impl EthernetInterface {
    /// The interface of a name.
    ///
    /// # Errors
    /// When there is none, or it is no Ethernet.
    pub(crate) fn named(socket: &mut NetlinkSocket, name: &str) -> Result<Self, EngineError> {
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let mut reply = socket.request(&request).map_err(|e| missing(name, &e))?;
        let (header, link) = reply.recv_one().map_err(|e| missing(name, &e.into()))?;
        let address = link.get_address().ok();
        let address = address.and_then(|address| <[u8; 6]>::try_from(address).ok());
        let Some(address) = address.filter(|_| header.ifi_type == ARPHRD_ETHER) else {
            return Err(EngineError::Failed(format!(
                "interface '{name}' is no Ethernet, and nicpoll sends and forwards frames of Ethernet only"
            )));
        };
        let kind = link.get_linkinfo().and_then(|info| info.get_kind());
        Ok(EthernetInterface {
            name: name.to_owned(),
            ifindex: header.ifi_index as u32,
            mac: Mac(address),
            mtu_bytes: link.get_mtu().unwrap_or(0),
            is_up: header.ifi_flags & IfinfoFlags::Up as u32 != 0,
            kind: kind.map_or_else(|_| String::new(), |kind| kind.to_string_lossy().into()),
        })
    }
}

/// Whether an interface takes frames that XDP programs redirect to it, by what its driver says. A veth does when its
/// other end has a NAPI: for GRO, or for an XDP program. `None` before Linux 6.3, which does not say.
pub(crate) fn takes_redirected(socket: &mut NetlinkSocket, ifindex: u32) -> Option<bool> {
    let mut request = netdev::Request::new().op_dev_get_do();
    request.encode().push_ifindex(ifindex);
    let mut reply = socket.request(&request).ok()?;
    match reply.recv_one() {
        Ok(device) => Some(device.get_xdp_features().ok()? & XdpAct::NdoXmit as u64 != 0),
        Err(error) => {
            let is_gone = Errno::from_io_error(error.as_io_error()) == Some(Errno::NODEV);
            is_gone.then_some(false)
        }
    }
}

/// Times that an interface has lost its carrier since it was made, and whether it has one; `None` where it is gone.
pub(crate) fn carrier(socket: &mut NetlinkSocket, ifindex: u32) -> Option<(u64, bool)> {
    let header = Ifinfomsg {
        ifi_index: ifindex as i32,
        ..Ifinfomsg::default()
    };
    let request = rt_link::Request::new().op_getlink_do(&header);
    let mut reply = socket.request(&request).ok()?;
    let (_, link) = reply.recv_one().ok()?;
    let losses = link.get_carrier_down_count().ok()?;
    Some((u64::from(losses), link.get_carrier() != Ok(0)))
}

/// The interface of a name, to ask for its state over and over, and its longest packet in bytes.
pub(crate) fn link_of(interface: &str) -> Result<(LinkHandle, u32), EngineError> {
    let link = LinkHandle::named(interface).and_then(|link| {
        let mtu_bytes = link.mtu_bytes()?;
        Ok((link, mtu_bytes))
    });
    link.map_err(|source| missing(interface, &source))
}

fn missing(interface: &str, source: &io::Error) -> EngineError {
    EngineError::Failed(format!(
        "there is no interface '{interface}' here; 'ip link' lists those of this network namespace: {source}"
    ))
}

/// The kernel asks three times, a second apart, before it gives up.
const ANSWER_WITHIN: Duration = Duration::from_millis(3500);
const LOOK_EVERY: Duration = Duration::from_millis(5);

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// include/uapi/linux/rtnetlink.h
const RT_TABLE_UNSPEC: u8 = 0;
/// States of a neighbour whose hardware address is known.
const KNOWN: u16 = NudState::Reachable as u16
    | NudState::Stale as u16
    | NudState::Delay as u16
    | NudState::Probe as u16
    | NudState::Noarp as u16
    | NudState::Permanent as u16;

/// How an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Who gets the frames: the address itself, or a router.
    pub(crate) next_hop: IpAddr,
    /// The address that this host sends with.
    pub(crate) source: Option<IpAddr>,
    /// Whether a route says so. Where none leads out of the interface, Linux takes any IPv4 address for one of the
    /// link's own.
    pub(crate) is_routed: bool,
}

/// How an address is reached out of an interface.
///
/// # Errors
/// When there is no route to an IPv6 address, or the address is not one host's that is elsewhere.
pub(crate) fn route(
    socket: &mut NetlinkSocket,
    (interface, ifindex): (&str, u32),
    to: IpAddr,
) -> Result<Route, EngineError> {
    let no_route = |source: io::Error| no_route(interface, to, &source);
    let header = Rtmsg {
        rtm_family: family(to),
        rtm_dst_len: if to.is_ipv4() { 32 } else { 128 },
        // The answer names the table of the route, and none where there is no route.
        rtm_flags: RtmFlag::LookupTable as u32,
        ..Default::default()
    };
    let mut request = rt_route::Request::new().op_getroute_do(&header);
    request.encode().push_dst(to).push_oif(ifindex);
    let mut reply = socket.request(&request).map_err(no_route)?;
    let (header, route) = reply.recv_one().map_err(|e| no_route(e.into()))?;
    if header.rtm_type != RtmType::Unicast as u8 || to.is_multicast() {
        return Err(EngineError::Failed(format!(
            "{to} is not the address of one other host; frames to a group or to this host need --mac MAC and \
             --from ADDRESS"
        )));
    }
    Ok(Route {
        next_hop: route.get_gateway().or(route.get_via()).unwrap_or(to),
        source: route.get_prefsrc().ok(),
        is_routed: header.rtm_table != RT_TABLE_UNSPEC,
    })
}

/// No route leads to an address.
pub(crate) fn no_route(interface: &str, to: IpAddr, source: &io::Error) -> EngineError {
    EngineError::Failed(format!(
        "no route to {to} from '{interface}': {source}; add one ('ip route add {to} dev {interface}' where the receiver \
         is on the link, 'ip route add {to} via ROUTER' where it is not), or name the receiver's hardware address and an \
         address to send from: --mac MAC --from ADDRESS"
    ))
}

/// The hardware address of a neighbour. The kernel asks for it where it does not know it.
///
/// # Errors
/// When nobody answers, or the privilege to have the kernel ask is missing.
pub(crate) fn mac_of(
    socket: &mut NetlinkSocket,
    (interface, ifindex): (&str, u32),
    address: IpAddr,
) -> Result<Mac, EngineError> {
    let unknown = |why: String| {
        EngineError::Failed(format!(
            "the hardware address of {address} at '{interface}' cannot be had: {why}; name it: --mac MAC"
        ))
    };
    let refused = |source: io::Error| unknown(source.to_string());
    if let Some(mac) = known(socket, ifindex, address).map_err(refused)? {
        return Ok(mac);
    }
    ask(socket, ifindex, address).map_err(refused)?;
    let began = Instant::now();
    while began.elapsed() < ANSWER_WITHIN {
        thread::sleep(LOOK_EVERY);
        if let Some(mac) = known(socket, ifindex, address).map_err(refused)? {
            return Ok(mac);
        }
    }
    Err(unknown(String::from("it does not answer")))
}

/// What the kernel's table says.
fn known(socket: &mut NetlinkSocket, ifindex: u32, address: IpAddr) -> io::Result<Option<Mac>> {
    let header = message(ifindex, address);
    let mut request = rt_neigh::Request::new().op_getneigh_do(&header);
    request.encode().push_dst(address);
    let mut reply = socket.request(&request)?;
    match reply.recv_one() {
        Ok((found, neighbour)) if found.ndm_state & KNOWN != 0 => {
            let bytes = neighbour.get_lladdr().ok();
            Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map(Mac))
        }
        Ok(_) => Ok(None),
        Err(error) => match io::Error::from(error) {
            error if Errno::from_io_error(&error) == Some(Errno::NOENT) => Ok(None),
            error => Err(error),
        },
    }
}

/// Has the kernel ask for the neighbour, as for a packet of its own.
///
/// # Errors
/// When the privilege for that is missing, or the interface is gone.
pub(crate) fn ask(socket: &mut NetlinkSocket, ifindex: u32, address: IpAddr) -> io::Result<()> {
    let header = Ndmsg {
        ndm_flags: NtfFlags::Use as u8,
        ..message(ifindex, address)
    };
    let mut request = rt_neigh::Request::new()
        .set_create()
        .op_newneigh_do(&header);
    request.encode().push_dst(address);
    Ok(socket.request(&request)?.recv_ack()?)
}

fn message(ifindex: u32, address: IpAddr) -> Ndmsg {
    Ndmsg {
        ndm_family: family(address),
        ndm_ifindex: ifindex as i32,
        ..Default::default()
    }
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}
