//! Whom frames are for, and the interface that sends them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use netlink_socket2::NetlinkSocket;
use nicpoll_model::line::MAC_HEADER_BYTES;
use nicpoll_sys::link::{LinkHandle, LinkState};
use nicpoll_wire::frame::{Mac, UdpPath};
use rustix::io::Errno;

use crate::blast::frames::{FCS_BYTES, FLOW_PORTS};
use crate::device::interface::{self, EthernetInterface, carrier};
use crate::device::presence::state_of;
use crate::error::EngineError;

/// How often it is looked whether the interface is up.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whom frames are for, as far as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameReceiver {
    /// Address and port.
    pub to: SocketAddr,
    /// The address to send from; null for the one that the kernel would take.
    pub from: Option<IpAddr>,
    /// The hardware address; null to ask the kernel's routes and neighbours.
    pub mac: Option<Mac>,
}

/// The interface of a name, which must be up.
///
/// # Errors
/// When there is none, it is no Ethernet, or it is down.
pub(super) fn sender(
    socket: &mut NetlinkSocket,
    name: &str,
) -> Result<EthernetInterface, EngineError> {
    let interface = EthernetInterface::named(socket, name)?;
    if !interface.is_up {
        return Err(EngineError::Failed(format!(
            "interface '{name}' is down; bring it up first: ip link set {name} up"
        )));
    }
    Ok(interface)
}

impl EthernetInterface {
    /// Whether frames of these lengths, with FCS, may leave.
    pub(super) fn check_lengths(&self, frame_bytes: &[u32]) -> Result<(), EngineError> {
        let frame_bytes = frame_bytes.iter().copied().max().unwrap_or(0);
        let frame_bytes_max = self.mtu_bytes + MAC_HEADER_BYTES as u32 + FCS_BYTES;
        if frame_bytes <= frame_bytes_max {
            return Ok(());
        }
        Err(EngineError::Failed(format!(
            "frames of {frame_bytes} bytes are longer than '{}' sends: its MTU of {} bytes allows {frame_bytes_max} \
             with header and FCS; send shorter ones, or raise the MTU",
            self.name, self.mtu_bytes
        )))
    }

    /// From where to where the frames go.
    ///
    /// # Errors
    /// When the receiver cannot be found.
    pub(super) fn path_to(
        &self,
        socket: &mut NetlinkSocket,
        receiver: &FrameReceiver,
    ) -> Result<UdpPath, EngineError> {
        let (here, to) = ((self.name.as_str(), self.ifindex), receiver.to.ip());
        let path = |source: IpAddr, destination_mac| UdpPath {
            source_mac: self.mac,
            destination_mac,
            source: SocketAddr::new(source, *FLOW_PORTS.start()),
            destination: receiver.to,
        };
        if let Some(from) = receiver.from.filter(|from| from.is_ipv4() != to.is_ipv4()) {
            return Err(EngineError::Failed(format!(
                "{from} and {to} are not of one family"
            )));
        }
        if let (Some(from), Some(mac)) = (receiver.from, receiver.mac) {
            return Ok(path(from, mac));
        }
        let route = interface::route(socket, here, to)?;
        let source = receiver.from.or(route.source);
        let source = source.ok_or_else(|| {
            EngineError::Failed(format!(
                "interface '{}' has no address to reach {to} from; give it one, or name one: --from ADDRESS",
                self.name
            ))
        })?;
        let mac = match receiver.mac {
            Some(mac) => mac,
            None if !route.is_routed => {
                let unreachable = Errno::NETUNREACH.into();
                return Err(interface::no_route(&self.name, to, &unreachable));
            }
            None => interface::mac_of(socket, here, route.next_hop)?,
        };
        Ok(path(source, mac))
    }
}

/// Looks now and then whether an interface is still up.
pub(super) struct UpCheck {
    link: LinkHandle,
    netlink: NetlinkSocket,
    /// As of the last look.
    carrier: Option<(u64, bool)>,
    looked: Option<Instant>,
}

impl UpCheck {
    /// Of an interface of the calling thread's network namespace.
    pub(super) fn new(ifindex: u32) -> io::Result<Self> {
        let mut netlink = NetlinkSocket::new();
        Ok(UpCheck {
            link: LinkHandle::of_index(ifindex)?,
            carrier: carrier(&mut netlink, ifindex),
            netlink,
            looked: None,
        })
    }

    /// Whether it is to look again: it did not a moment ago, or not all was well.
    pub(super) fn is_due(&self) -> bool {
        let is_fresh = |looked: Instant| looked.elapsed() < LOOK_EVERY;
        !self.looked.is_some_and(is_fresh)
    }

    /// Times that it lost its carrier since the last call, and whether it was without one then or since; nothing where
    /// nobody counts that.
    pub(super) fn carrier_losses(&mut self) -> (u64, bool) {
        let Some(now) = carrier(&mut self.netlink, self.link.ifindex()) else {
            return (0, false);
        };
        let (before, had_one) = self.carrier.replace(now).unwrap_or(now);
        let losses = now.0.saturating_sub(before);
        (losses, losses > 0 || !had_one)
    }

    /// Looks.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENODEV` when it is gone.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.looked = None;
        match state_of(&self.link) {
            LinkState::Up => self.looked = Some(Instant::now()),
            LinkState::Down => return Err(Errno::NETDOWN.into()),
            LinkState::Gone => return Err(Errno::NODEV.into()),
        }
        Ok(())
    }
}
