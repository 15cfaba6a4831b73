//! Options of a stream's socket that both protocols have.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use nicpoll_sys::socket;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// What is asked of a socket besides its buffer; the kernel's choice where nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketOptions {
    /// Network device that the socket is tied to.
    pub device: Option<String>,
    /// IP type of service, or IPv6 traffic class.
    pub type_of_service: Option<u8>,
    /// IP time to live, or IPv6 hop limit; of multicasts when the peer is a group.
    pub time_to_live: Option<u8>,
}

impl SocketOptions {
    /// Makes a socket to reach or be reached at `address`.
    pub(super) fn open(
        &self,
        kind: SocketType,
        flags: SocketFlags,
        address: SocketAddr,
    ) -> io::Result<OwnedFd> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let fd = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC | flags, None)?;
        self.apply(&fd, address)?;
        Ok(fd)
    }

    fn apply(&self, fd: impl AsFd, address: SocketAddr) -> io::Result<()> {
        if let Some(device) = &self.device {
            socket::bind_to_device(&fd, device)?;
        }
        let is_multicast = address.ip().is_multicast();
        if let Some(service) = self.type_of_service {
            set_type_of_service(&fd, address, service)?;
        }
        let Some(hops) = self.time_to_live else {
            return Ok(());
        };
        let (option, set) = match (address, is_multicast) {
            (SocketAddr::V4(_), true) => (
                "IP_MULTICAST_TTL",
                sockopt::set_ip_multicast_ttl(&fd, hops.into()),
            ),
            (SocketAddr::V4(_), false) => ("IP_TTL", sockopt::set_ip_ttl(&fd, hops.into())),
            (SocketAddr::V6(_), true) => (
                "IPV6_MULTICAST_HOPS",
                sockopt::set_ipv6_multicast_hops(&fd, hops.into()),
            ),
            (SocketAddr::V6(_), false) => (
                "IPV6_UNICAST_HOPS",
                sockopt::set_ipv6_unicast_hops(&fd, Some(hops)),
            ),
        };
        socket::named(option, set)
    }
}

/// Sets the IP type of service, or the IPv6 traffic class, of a socket to or at `address`.
pub(super) fn set_type_of_service(
    fd: impl AsFd,
    address: SocketAddr,
    service: u8,
) -> io::Result<()> {
    let is_ipv4 = match address {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(v6) => {
            let set = sockopt::set_ipv6_tclass(&fd, service.into());
            socket::named("IPV6_TCLASS", set)?;
            // Such a socket sends IPv4, and takes the byte for it from the other option.
            v6.ip().to_ipv4_mapped().is_some()
        }
    };
    if is_ipv4 {
        socket::named("IP_TOS", sockopt::set_ip_tos(&fd, service))?;
    }
    Ok(())
}
