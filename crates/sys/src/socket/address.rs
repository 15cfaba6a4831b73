//! Addresses as the kernel writes them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The address that fills the first `length` bytes of `storage`; `None` when there is none, and for
/// families other than IPv4 and IPv6.
pub(super) fn from_storage(
    storage: &libc::sockaddr_storage,
    length: libc::socklen_t,
) -> Option<SocketAddr> {
    if length == 0 {
        return None;
    }
    let address = std::ptr::from_ref(storage);
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: `sockaddr_storage` is as large and as aligned as every socket address, and
            // `sockaddr_in` holds integers only.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for `sockaddr_in6`.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
