//! State, name and MTU of an interface; [`tap`] creates one, [`napis`] lists what polls it.

pub mod napis;
pub mod tap;

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::kernel::{ifreq, ioctl};

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is up.
    Up,
    /// Taken down by an operator; frames arrive again once it is up.
    Down,
    /// Removed. It will never receive again.
    Gone,
}

/// An interface of a network namespace, by index: that stays when the interface is renamed.
#[derive(Debug)]
pub struct LinkHandle {
    /// Socket for requests only; it ties the link to its network namespace.
    control: OwnedFd,
    ifindex: u32,
}

impl LinkHandle {
    /// Finds an interface of the calling thread's network namespace by name.
    ///
    /// # Errors
    /// `ENODEV` if there is none.
    pub fn named(interface: &str) -> io::Result<Self> {
        let mut link = Self::of_index(0)?;
        link.ifindex = netdevice::name_to_index(&link.control, interface)?;
        Ok(link)
    }

    /// Makes a link for an index in the calling thread's network namespace, where no such interface needs to exist.
    ///
    /// # Errors
    /// If the process may have no more descriptors.
    pub fn of_index(ifindex: u32) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
        let control = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok(LinkHandle { control, ifindex })
    }

    /// Interface index.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Returns the current name.
    ///
    /// # Errors
    /// `ENXIO` or `ENODEV` when the interface is gone.
    pub fn name(&self) -> io::Result<String> {
        Ok(netdevice::index_to_name(&self.control, self.ifindex)?)
    }

    /// Returns the state. An interface that cannot be queried counts as gone.
    pub fn state(&self) -> LinkState {
        match self.flags() {
            Ok(flags) if flags & libc::IFF_UP != 0 => LinkState::Up,
            Ok(_) => LinkState::Down,
            Err(_) => LinkState::Gone,
        }
    }

    /// Returns the MTU in bytes.
    ///
    /// # Errors
    /// `ENXIO` or `ENODEV` when the interface is gone.
    pub fn mtu_bytes(&self) -> io::Result<u32> {
        let mut request = ifreq(&self.name()?)?;
        self.ask(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: SIOCGIFMTU has just written this member, and every bit pattern is an integer.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        u32::try_from(mtu).map_err(io::Error::other)
    }

    /// Brings the interface up.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_ADMIN; `ENODEV` when the interface is gone.
    pub(crate) fn bring_up(&self) -> io::Result<()> {
        let mut request = ifreq(&self.name()?)?;
        // An `ifreq` holds the lower 16 bits of the flags.
        request.ifr_ifru.ifru_flags = (self.flags()? | libc::IFF_UP) as libc::c_short;
        self.ask(libc::SIOCSIFFLAGS, &mut request)
    }

    fn flags(&self) -> io::Result<libc::c_int> {
        let mut request = ifreq(&self.name()?)?;
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: SIOCGIFFLAGS has just written this member, and every bit pattern is an integer.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        Ok(libc::c_int::from(flags))
    }

    /// `what` has the type of the constants, which is not that of musl's ioctl(2).
    fn ask(&self, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: each of the requests reads the name and reads or writes flags or MTU of the `ifreq`.
        unsafe { ioctl(&self.control, what as libc::Ioctl, request) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_gone() {
        let loopback = LinkHandle::named("lo").unwrap();
        assert_ne!(loopback.state(), LinkState::Gone);
        assert_eq!(loopback.name().unwrap(), "lo");
        assert!(loopback.mtu_bytes().unwrap() >= 1280);
        let none = LinkHandle::of_index(1 << 30).unwrap();
        assert!(none.mtu_bytes().is_err());
        assert_eq!(none.state(), LinkState::Gone);
        assert!(LinkHandle::named("no-such-if").is_err());
    }
}
