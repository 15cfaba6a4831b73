//! State, name and MTU of an interface, in the network namespace of the socket that is used to ask.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::kernel::{checked, ifreq};

/// What has become of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is up.
    Up,
    /// An operator has taken it down; frames come again when it is up again.
    Down,
    /// It was removed. Nothing will come from it any more.
    Gone,
}

/// A socket that only answers questions about the interfaces of the calling thread's network namespace.
///
/// # Errors
/// When the process may have no more descriptors.
pub fn control_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// The index of an interface of the socket's network namespace.
///
/// # Errors
/// `ENODEV` when there is none of that name.
pub fn index_of(socket: impl AsFd, interface: &str) -> io::Result<u32> {
    Ok(netdevice::name_to_index(socket, interface)?)
}

/// The name of an interface of the socket's network namespace.
///
/// # Errors
/// `ENXIO` or `ENODEV` when it is gone.
pub fn name_of(socket: impl AsFd, ifindex: u32) -> io::Result<String> {
    Ok(netdevice::index_to_name(socket, ifindex)?)
}

/// Asks for an interface of the socket's network namespace by its index, which it keeps when it is renamed.
pub fn state(socket: impl AsFd, ifindex: u32) -> LinkState {
    // One that cannot be asked about is one that is gone.
    match flags(socket, ifindex) {
        Ok(flags) if flags & libc::IFF_UP != 0 => LinkState::Up,
        Ok(_) => LinkState::Down,
        Err(_) => LinkState::Gone,
    }
}

/// The longest packet of an interface of the socket's network namespace, in bytes.
///
/// # Errors
/// `ENXIO` or `ENODEV` when it is gone.
pub fn mtu_bytes(socket: impl AsFd, ifindex: u32) -> io::Result<u32> {
    let name = name_of(&socket, ifindex)?;
    mtu_bytes_of(socket, &name)
}

/// The same of the interface of a name.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn mtu_bytes_of(socket: impl AsFd, interface: &str) -> io::Result<u32> {
    let mut request = ifreq(interface)?;
    ask(socket, libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: SIOCGIFMTU has just written this member, and every bit pattern is an integer.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// Brings an interface up.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN; `ENODEV` when it is gone.
pub fn bring_up(socket: impl AsFd, ifindex: u32) -> io::Result<()> {
    let mut request = request(&socket, ifindex)?;
    // The flags of an interface are the lower 16 bits.
    request.ifr_ifru.ifru_flags = (flags(&socket, ifindex)? | libc::IFF_UP) as libc::c_short;
    ask(socket, libc::SIOCSIFFLAGS, &mut request)
}

fn flags(socket: impl AsFd, ifindex: u32) -> io::Result<libc::c_int> {
    let mut request = request(&socket, ifindex)?;
    ask(socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS has just written this member, and every bit pattern is an integer.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags))
}

fn request(socket: impl AsFd, ifindex: u32) -> io::Result<libc::ifreq> {
    ifreq(&name_of(socket, ifindex)?)
}

fn ask(socket: impl AsFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the requests read the name and read or write flags or MTU of the request, which outlives the call.
    checked(unsafe { libc::ioctl(socket, what, std::ptr::from_mut(request)) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_gone() {
        let control = control_socket().unwrap();
        let loopback = index_of(&control, "lo").unwrap();
        assert_ne!(state(&control, loopback), LinkState::Gone);
        assert_eq!(name_of(&control, loopback).unwrap(), "lo");
        assert!(mtu_bytes(&control, loopback).unwrap() >= 1280);
        assert!(mtu_bytes(&control, 1 << 30).is_err());
        assert_eq!(state(&control, 1 << 30), LinkState::Gone);
        assert!(index_of(&control, "no-such-if").is_err());
    }
}
