//! The interfaces that are forwarded between, as the kernel has them.

use std::fs;
use std::io;

use netlink_bindings::netdev::{self, XdpAct};
use netlink_bindings::rt_link::{self, Ifinfomsg};
use netlink_socket2::{NetlinkSocket, ReplyError};
use rustix::io::Errno;

use crate::error::EngineError;

/// include/uapi/linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;

/// An interface, as it is at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) ifindex: u32,
    pub(super) address: [u8; 6],
    pub(super) mtu_bytes: u32,
    /// The kind of a virtual one, such as `veth`; empty for others.
    pub(super) kind: String,
}

impl Interface {
    /// The interface of a name in the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is none, or it is no Ethernet.
    pub(super) fn named(socket: &mut NetlinkSocket, name: &str) -> Result<Self, EngineError> {
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let no_interface = |source: io::Error| EngineError::NoInterface {
            interface: name.to_owned(),
            source,
        };
        let mut reply = socket.request(&request).map_err(no_interface)?;
        let (header, link) = reply.recv_one().map_err(|e| no_interface(e.into()))?;
        let address = link.get_address().ok();
        let address = address.and_then(|address| <[u8; 6]>::try_from(address).ok());
        let kind = link.get_linkinfo().and_then(|info| info.get_kind());
        match address.filter(|_| header.ifi_type == ARPHRD_ETHER) {
            Some(address) => Ok(Interface {
                name: name.to_owned(),
                ifindex: header.ifi_index as u32,
                address,
                mtu_bytes: link.get_mtu().unwrap_or(0),
                kind: kind.map_or_else(|_| String::new(), |kind| kind.to_string_lossy().into()),
            }),
            None => Err(EngineError::NoEthernet {
                interface: name.to_owned(),
            }),
        }
    }

    /// The hardware address as the XDP program compares it: its six bytes, and two of zero.
    pub(super) fn address_as_number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.address);
        u64::from_ne_bytes(bytes)
    }

    /// Whether the kernel forwards IPv4 and IPv6 packets that come to it. A kernel without a family forwards none.
    pub(super) fn is_forwarding(&self) -> [bool; 2] {
        ["ipv4", "ipv6"].map(|family| {
            let path = format!("/proc/sys/net/{family}/conf/{}/forwarding", self.name);
            fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
        })
    }
}

/// Whether an interface takes frames that XDP programs redirect to it, by what its driver says. A veth does when its
/// other end has a NAPI: for GRO, or for an XDP program. `None` before Linux 6.3, which does not say.
pub(super) fn takes_redirected(socket: &mut NetlinkSocket, ifindex: u32) -> Option<bool> {
    let mut request = netdev::Request::new().op_dev_get_do();
    request.encode().push_ifindex(ifindex);
    let mut reply = socket.request(&request).ok()?;
    match reply.recv_one() {
        Ok(device) => Some(device.get_xdp_features().ok()? & XdpAct::NdoXmit as u64 != 0),
        // It is gone.
        Err(error) if is(&error, Errno::NODEV) => Some(false),
        Err(_) => None,
    }
}

fn is(error: &ReplyError, errno: Errno) -> bool {
    Errno::from_io_error(error.as_io_error()) == Some(errno)
}
