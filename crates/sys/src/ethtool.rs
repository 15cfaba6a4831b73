//! Driver statistics over the ethtool ioctl, which has them by name; netlink has only the
//! standardised ones.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// include/uapi/linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// include/uapi/linux/ethtool.h
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const ETH_GSTRING_LEN: usize = 32;

/// A driver that claims more statistics than this is not believed.
const COUNTERS_MAX: usize = 4_096;
/// Room for this many is given to the kernel, which writes as many as the driver has *then*: see
/// [`ioctl`].
const COUNTERS_ROOM: usize = 16 * COUNTERS_MAX;

/// Every statistic of an interface of the caller's namespace, in the driver's order
/// (`ethtool -S`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` when the driver keeps none.
pub fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    let count = count_of_statistics(&socket, interface)?;
    // struct ethtool_gstrings { cmd, string_set, len, data[] } in words of 8 bytes, so that the
    // buffer is aligned for the statistics too.
    let mut strings = vec![0u64; 2 + COUNTERS_ROOM * ETH_GSTRING_LEN / 8];
    set_words(
        &mut strings,
        &[ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32],
    );
    ioctl(&socket, interface, &mut strings)?;
    // struct ethtool_stats { cmd, n_stats, data[] }
    let mut values = vec![0u64; 1 + COUNTERS_ROOM];
    set_words(&mut values, &[ETHTOOL_GSTATS, count as u32]);
    ioctl(&socket, interface, &mut values)?;

    let words = &strings[..2 + count * ETH_GSTRING_LEN / 8];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let names = bytes[12..].chunks_exact(ETH_GSTRING_LEN).map(|name| {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    });
    Ok(names.zip(values[1..].iter().copied()).take(count).collect())
}

fn count_of_statistics(socket: &UdpSocket, interface: &str) -> io::Result<usize> {
    // struct ethtool_sset_info { cmd, reserved, sset_mask (u64), data[1] }
    let mut info = vec![0u64; 3];
    set_words(&mut info, &[ETHTOOL_GSSET_INFO]);
    info[1] = 1 << ETH_SS_STATS;
    ioctl(socket, interface, &mut info)?;
    if info[1] == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let data = info[2].to_ne_bytes();
    let count = u32::from_ne_bytes([data[0], data[1], data[2], data[3]]) as usize;
    if count > COUNTERS_MAX {
        return Err(io::Error::other(format!(
            "{interface}: the driver claims {count} statistics"
        )));
    }
    Ok(count)
}

/// Writes 32-bit words, in the machine's order, to the head of a buffer.
fn set_words(buffer: &mut [u64], words: &[u32]) {
    for (target, pair) in buffer.iter_mut().zip(words.chunks(2)) {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&pair[0].to_ne_bytes());
        bytes[4..].copy_from_slice(&pair.get(1).copied().unwrap_or(0).to_ne_bytes());
        *target = u64::from_ne_bytes(bytes);
    }
}

fn ioctl(socket: &UdpSocket, interface: &str, buffer: &mut [u64]) -> io::Result<()> {
    // SAFETY: all zeros is a valid ifreq: it holds integers and a raw pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (target, &byte) in request.ifr_name.iter_mut().zip(interface.as_bytes()) {
        *target = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: the request and the buffer that it points to outlive the call. For GSSET_INFO the kernel
    // writes one number for the one set that is asked for. For the other two it writes as many entries
    // as the driver has at that moment; the buffers have room for sixteen times as many as were
    // accepted a moment before, and a driver's count grows with its queues only.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
