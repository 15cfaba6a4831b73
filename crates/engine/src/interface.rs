//! An interface of the calling thread's network namespace, by its name.

use std::io;

use netlink_bindings::netdev::{self, XdpAct};
use netlink_bindings::rt_link::{self, IfinfoFlags, Ifinfomsg};
use netlink_socket2::NetlinkSocket;
use nicpoll_sys::link;
use nicpoll_wire::frame::Mac;
use rustix::io::Errno;

use crate::error::EngineError;

/// include/uapi/linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;

/// An interface of Ethernet, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) ifindex: u32,
    pub(crate) mac: Mac,
    pub(crate) mtu_bytes: u32,
    pub(crate) is_up: bool,
    /// The kind of a virtual one, such as `veth`; empty for others.
    pub(crate) kind: String,
}

impl Interface {
    /// The interface of a name.
    ///
    /// # Errors
    /// When there is none, or it is no Ethernet.
    pub(crate) fn named(socket: &mut NetlinkSocket, name: &str) -> Result<Self, EngineError> {
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let mut reply = socket.request(&request).map_err(|e| missing(name, e))?;
        let (header, link) = reply.recv_one().map_err(|e| missing(name, e.into()))?;
        let address = link.get_address().ok();
        let address = address.and_then(|address| <[u8; 6]>::try_from(address).ok());
        let Some(address) = address.filter(|_| header.ifi_type == ARPHRD_ETHER) else {
            return Err(EngineError::NoEthernet {
                interface: name.to_owned(),
            });
        };
        let kind = link.get_linkinfo().and_then(|info| info.get_kind());
        Ok(Interface {
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

/// Its index, which it keeps when it is renamed.
pub(crate) fn index_of(interface: &str) -> Result<u32, EngineError> {
    let index = link::control_socket().and_then(|control| link::index_of(control, interface));
    index.map_err(|source| missing(interface, source))
}

/// The longest packet that it takes, in bytes.
pub(crate) fn mtu_of(interface: &str) -> Result<u32, EngineError> {
    let mtu = link::control_socket().and_then(|control| link::mtu_bytes_of(control, interface));
    mtu.map_err(|source| missing(interface, source))
}

fn missing(interface: &str, source: io::Error) -> EngineError {
    EngineError::NoInterface {
        interface: interface.to_owned(),
        source,
    }
}
