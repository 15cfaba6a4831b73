//! `struct ifreq`, by which the kernel is asked about an interface of a name, or told something of it (netdevice(7)).

use std::io;

/// A request about an interface, with nothing in it but the name.
///
/// # Errors
/// `ENODEV` when the name is longer than that of any interface.
pub(crate) fn about(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid `ifreq`: it holds integers and a raw pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_with_the_zero_behind_it_or_is_that_of_no_interface() {
        let longest = "a".repeat(libc::IFNAMSIZ - 1);
        let name = about(&longest).unwrap().ifr_name;
        assert_eq!(name.map(|letter| letter as u8), *b"aaaaaaaaaaaaaaa\0");
        let error = about(&(longest + "a")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
