//! The interface that is sent by, and who gets what it sends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use netlink_bindings::netdev::{self, XdpAct};
use netlink_bindings::rt_link::{self, IfinfoFlags, Ifinfomsg};
use netlink_socket2::NetlinkSocket;
use nicpoll_model::line::MAC_HEADER_BYTES;
use nicpoll_sys::link::{self, LinkState};
use nicpoll_wire::frame::{Mac, UdpPath};
use rustix::io::Errno;

use super::error::BlastError;
use super::neighbour;
use super::stream::{FCS_BYTES, FLOW_PORTS};
use crate::error::EngineError;

/// include/uapi/linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;
/// How often it is looked whether the interface is up.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An interface of the calling thread's network namespace, as it is at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) ifindex: u32,
    mac: Mac,
    pub(super) mtu_bytes: u32,
}

/// Whom frames are for, as far as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Address and port.
    pub to: SocketAddr,
    /// The address to send from; null for the one that the kernel would take.
    pub from: Option<IpAddr>,
    /// The hardware address; null to ask the kernel's routes and neighbours.
    pub mac: Option<Mac>,
}

impl Interface {
    /// The interface of a name.
    ///
    /// # Errors
    /// When there is none, it is no Ethernet, or it is down.
    pub(super) fn named(socket: &mut NetlinkSocket, name: &str) -> Result<Self, EngineError> {
        let no_interface = |source: io::Error| EngineError::NoInterface {
            interface: name.to_owned(),
            source,
        };
        let mut request = rt_link::Request::new().op_getlink_do(&Ifinfomsg::new());
        request.encode().push_ifname_bytes(name.as_bytes());
        let mut reply = socket.request(&request).map_err(no_interface)?;
        let (header, link) = reply.recv_one().map_err(|e| no_interface(e.into()))?;
        let interface = name.to_owned();
        let address = link.get_address().ok();
        let address = address.and_then(|address| <[u8; 6]>::try_from(address).ok());
        let Some(address) = address.filter(|_| header.ifi_type == ARPHRD_ETHER) else {
            return Err(BlastError::NoEthernet { interface }.into());
        };
        if header.ifi_flags & IfinfoFlags::Up as u32 == 0 {
            return Err(BlastError::Down { interface }.into());
        }
        Ok(Interface {
            name: interface,
            ifindex: header.ifi_index as u32,
            mac: Mac(address),
            mtu_bytes: link.get_mtu().unwrap_or(0),
        })
    }

    /// Whether frames of these lengths, with FCS, may leave.
    pub(super) fn check_lengths(&self, frame_bytes: &[u32]) -> Result<(), BlastError> {
        let frame_bytes = frame_bytes.iter().copied().max().unwrap_or(0);
        let frame_bytes_max = self.mtu_bytes + MAC_HEADER_BYTES as u32 + FCS_BYTES;
        if frame_bytes <= frame_bytes_max {
            return Ok(());
        }
        Err(BlastError::FrameTooLong {
            interface: self.name.clone(),
            frame_bytes,
            mtu_bytes: self.mtu_bytes,
            frame_bytes_max,
        })
    }

    /// From where to where the frames go.
    ///
    /// # Errors
    /// When the receiver cannot be found.
    pub(super) fn path_to(
        &self,
        socket: &mut NetlinkSocket,
        receiver: &Receiver,
    ) -> Result<UdpPath, BlastError> {
        let (here, to) = ((self.name.as_str(), self.ifindex), receiver.to.ip());
        let path = |source: IpAddr, destination_mac| UdpPath {
            source_mac: self.mac,
            destination_mac,
            source: SocketAddr::new(source, *FLOW_PORTS.start()),
            destination: receiver.to,
        };
        if let Some(from) = receiver.from.filter(|from| from.is_ipv4() != to.is_ipv4()) {
            return Err(BlastError::MixedFamilies { from, to });
        }
        if let (Some(from), Some(mac)) = (receiver.from, receiver.mac) {
            return Ok(path(from, mac));
        }
        let way = neighbour::way(socket, here, to)?;
        let source = receiver.from.or(way.source);
        let source = source.ok_or_else(|| BlastError::NoAddress {
            interface: self.name.clone(),
            to,
        })?;
        let mac = match receiver.mac {
            Some(mac) => mac,
            None => neighbour::mac_of(socket, here, way.next_hop)?,
        };
        Ok(path(source, mac))
    }

    /// Whether it takes frames that XDP programs send out by it, as its driver says. A veth does when its other end has a
    /// NAPI: for GRO, or for an XDP program. `None` before Linux 6.3, which does not say.
    pub(super) fn takes_redirected(&self, socket: &mut NetlinkSocket) -> Option<bool> {
        let mut request = netdev::Request::new().op_dev_get_do();
        request.encode().push_ifindex(self.ifindex);
        let mut reply = socket.request(&request).ok()?;
        let device = reply.recv_one().ok()?;
        Some(device.get_xdp_features().ok()? & XdpAct::NdoXmit as u64 != 0)
    }
}

/// Looks now and then whether an interface is still up.
pub(super) struct UpCheck {
    control: OwnedFd,
    ifindex: u32,
    looked: Option<Instant>,
}

impl UpCheck {
    /// Of an interface of the calling thread's network namespace.
    pub(super) fn new(ifindex: u32) -> io::Result<Self> {
        Ok(UpCheck {
            control: link::control_socket()?,
            ifindex,
            looked: None,
        })
    }

    /// Looks, unless it did a moment ago and all was well.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENODEV` when it is gone.
    pub(super) fn check(&mut self) -> io::Result<()> {
        let is_fresh = |looked: Instant| looked.elapsed() < LOOK_EVERY;
        if self.looked.is_some_and(is_fresh) {
            return Ok(());
        }
        self.looked = None;
        match link::state(&self.control, self.ifindex) {
            LinkState::Up => self.looked = Some(Instant::now()),
            LinkState::Down => return Err(Errno::NETDOWN.into()),
            LinkState::Gone => return Err(Errno::NODEV.into()),
        }
        Ok(())
    }
}
