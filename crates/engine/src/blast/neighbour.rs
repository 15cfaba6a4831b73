//! Who gets a frame that is for an address: the kernel's routes and its table of neighbours say so.
//!
//! What must hold: nothing is sent to find out but the kernel's own ARP requests and neighbour solicitations, so the
//! receiver counts no packet that is not the blast's.

use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use netlink_bindings::rt_neigh::{self, Ndmsg, NtfFlags, NudState};
use netlink_bindings::rt_route::{self, RtmFlag, RtmType, Rtmsg};
use netlink_socket2::NetlinkSocket;
use nicpoll_wire::frame::Mac;
use rustix::io::Errno;

use super::error::BlastError;

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
pub(super) struct Route {
    /// Who gets the frames: the address itself, or a router.
    pub(super) next_hop: IpAddr,
    /// The address that this host sends with.
    pub(super) source: Option<IpAddr>,
    /// Whether a route says so. Where none leads out of the interface, Linux takes any IPv4 address for one of the
    /// link's own.
    pub(super) is_routed: bool,
}

/// How an address is reached out of an interface.
///
/// # Errors
/// When there is no route to an IPv6 address, or the address is not one host's that is elsewhere.
pub(super) fn route(
    socket: &mut NetlinkSocket,
    (interface, ifindex): (&str, u32),
    to: IpAddr,
) -> Result<Route, BlastError> {
    let no_route = |source: io::Error| BlastError::NoRoute {
        interface: interface.to_owned(),
        to,
        source,
    };
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
        return Err(BlastError::NotOneHost { to });
    }
    Ok(Route {
        next_hop: route.get_gateway().or(route.get_via()).unwrap_or(to),
        source: route.get_prefsrc().ok(),
        is_routed: header.rtm_table != RT_TABLE_UNSPEC,
    })
}

/// The hardware address of a neighbour. The kernel asks for it where it does not know it.
///
/// # Errors
/// When nobody answers, or the privilege to have the kernel ask is missing.
pub(super) fn mac_of(
    socket: &mut NetlinkSocket,
    (interface, ifindex): (&str, u32),
    address: IpAddr,
) -> Result<Mac, BlastError> {
    let silent = |source: Option<io::Error>| BlastError::NoNeighbour {
        interface: interface.to_owned(),
        address,
        why: source.map_or_else(
            || String::from("it does not answer"),
            |source| source.to_string(),
        ),
    };
    if let Some(mac) = known(socket, ifindex, address).map_err(|e| silent(Some(e)))? {
        return Ok(mac);
    }
    ask(socket, ifindex, address).map_err(|e| silent(Some(e)))?;
    let began = Instant::now();
    while began.elapsed() < ANSWER_WITHIN {
        thread::sleep(LOOK_EVERY);
        if let Some(mac) = known(socket, ifindex, address).map_err(|e| silent(Some(e)))? {
            return Ok(mac);
        }
    }
    Err(silent(None))
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
