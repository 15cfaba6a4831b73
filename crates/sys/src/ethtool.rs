//! What a driver says over the ethtool ioctl: its statistics by name (netlink has only the standardised ones), its link,
//! its features and the time stamps of its card.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::kernel::{checked, ifreq};
use crate::link;

/// include/uapi/linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
/// include/uapi/linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETH_SS_STATS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;
/// Words of `struct ethtool_get_features_block`, and which of them says what is in force.
const FEATURE_BLOCK_WORDS: usize = 4;
const FEATURES_ACTIVE: usize = 2;
const ETH_GSTRING_LEN: usize = 32;

/// A driver that claims more statistics than this is not believed.
const COUNTERS_MAX: usize = 4_096;
/// Room for this many is given to the kernel, which writes as many as the driver has *then*: see
/// [`ioctl`].
const COUNTERS_ROOM: usize = 16 * COUNTERS_MAX;

/// `SPEED_UNKNOWN`.
const SPEED_UNKNOWN: u32 = u32::MAX;
/// Words of struct ethtool_drvinfo, and of its names.
const DRVINFO_WORDS: usize = 196 / 4;
const DRVINFO_NAME_WORDS: usize = 32 / 4;
/// Words of struct ethtool_link_settings, and of the three masks behind it at their longest.
const LINK_SETTINGS_WORDS: usize = 48 / 4;
const LINK_MASKS_WORDS: usize = 3 * 127;
/// Words of struct ethtool_ts_info.
const TS_INFO_WORDS: usize = 44 / 4;
/// include/uapi/linux/net_tstamp.h
const HWTSTAMP_FILTER_ALL: u32 = 1;

/// What a driver says of its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverLink {
    /// Speed in Mbit/s; `None` when the link is down or the driver knows none.
    pub speed_mbps: Option<u32>,
    /// Name of the driver.
    pub driver: String,
    /// Whether there is no device behind the interface, so that its speed is a mere word.
    pub is_virtual: bool,
    /// The longest packet that it takes.
    pub mtu_bytes: u32,
}

/// Who drives an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Name of the driver, such as `virtio_net`.
    pub name: String,
    /// Where the device is on its bus, such as `0000:00:03.0`; `None` for a virtual one.
    pub bus_address: Option<String>,
}

/// The driver of an interface of the caller's namespace (`ethtool -i`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` when there is no driver to speak of.
pub fn driver(interface: &str) -> io::Result<Driver> {
    // struct ethtool_drvinfo { cmd, driver[32], version[32], fw_version[32], bus_info[32], ... }
    let words = ask(&socket()?, interface, DRVINFO_WORDS, &[ETHTOOL_GDRVINFO])?;
    let name_at = |index: usize| {
        let at = 1 + index * DRVINFO_NAME_WORDS;
        text(&words[at..at + DRVINFO_NAME_WORDS])
    };
    Ok(Driver {
        name: name_at(0),
        // The kernel fills in the parent device's name when the driver does not.
        bus_address: Some(name_at(3)).filter(|name| !name.is_empty()),
    })
}

/// The link of an interface of the caller's namespace (`ethtool`, `ethtool -i`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` for one that is no network card at all, such as lo.
pub fn link(interface: &str) -> io::Result<DriverLink> {
    let driver = driver(interface)?;
    let socket = socket()?;
    Ok(DriverLink {
        speed_mbps: speed_mbps(&socket, interface)?,
        is_virtual: driver.bus_address.is_none(),
        driver: driver.name,
        mtu_bytes: link::mtu_bytes_of(&socket, interface)?,
    })
}

/// Time stamps that a card gives to packets that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveStamps {
    /// The clock that they are of: the N of `/dev/ptpN`; `None` where the card has none.
    pub clock: Option<u32>,
    /// Whether the card can stamp every packet.
    pub can_stamp_all: bool,
    /// Whether it does.
    pub stamps_all: bool,
}

/// What an interface of the caller's namespace says of its time stamps (`ethtool -T`, `hwstamp_ctl -i`). Nothing is
/// switched.
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` from a driver that knows nothing of time stamps.
pub fn receive_stamps(interface: &str) -> io::Result<ReceiveStamps> {
    let socket = socket()?;
    let words = ask(&socket, interface, TS_INFO_WORDS, &[ETHTOOL_GET_TS_INFO])?;
    // struct ethtool_ts_info { cmd, so_timestamping, phc_index, tx_types, tx_reserved[3], rx_filters, .. }
    let (clock, filters) = (words[2] as i32, words[7]);
    Ok(ReceiveStamps {
        clock: u32::try_from(clock).ok(),
        can_stamp_all: filters >> HWTSTAMP_FILTER_ALL & 1 == 1,
        // Some drivers cannot say what is set.
        stamps_all: receive_filter(&socket, interface).is_ok_and(|it| it == HWTSTAMP_FILTER_ALL),
    })
}

/// Which packets are stamped that are received.
fn receive_filter(socket: &UdpSocket, interface: &str) -> io::Result<u32> {
    // struct hwtstamp_config { flags, tx_type, rx_filter }
    let mut config = vec![0u64; 2];
    request(socket, interface, SIOCGHWTSTAMP, &mut config)?;
    Ok(words(&config)[2])
}

fn speed_mbps(socket: &UdpSocket, interface: &str) -> io::Result<Option<u32>> {
    let words = LINK_SETTINGS_WORDS + LINK_MASKS_WORDS;
    // Asked for masks of no words, the kernel answers with how many they have, negated.
    let settings = match ask(socket, interface, words, &[ETHTOOL_GLINKSETTINGS]) {
        Ok(settings) => settings,
        // A driver without link settings, such as dummy's, has no speed.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
        Err(error) => return Err(error),
    };
    // struct ethtool_link_settings { cmd, speed, four bytes, three bytes and the number of words }
    let [a, b, c, masks] = settings[3].to_ne_bytes();
    let masks = (masks as i8).wrapping_neg() as u8;
    let wanted = u32::from_ne_bytes([a, b, c, masks]);
    let head = [ETHTOOL_GLINKSETTINGS, 0, 0, wanted];
    let speed = ask(socket, interface, words, &head)?[1];
    Ok((speed != SPEED_UNKNOWN && speed != 0).then_some(speed))
}

/// The buffer as 32-bit words.
fn words(buffer: &[u64]) -> Vec<u32> {
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

/// Text that ends with its buffer or with the first zero.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Every statistic of an interface of the caller's namespace, in the driver's order
/// (`ethtool -S`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` when the driver keeps none.
pub fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = socket()?;
    let names = names(&socket, interface, ETH_SS_STATS)?;
    let count = names.len();
    // struct ethtool_stats { cmd, n_stats, data[] }
    let mut values = vec![0u64; 1 + COUNTERS_ROOM];
    set_words(&mut values, &[ETHTOOL_GSTATS, count as u32]);
    ioctl(&socket, interface, &mut values)?;
    Ok(names.into_iter().zip(values[1..].iter().copied()).collect())
}

/// A feature of an interface, such as `tx-udp-segmentation`, which is asked for over and over.
#[derive(Debug)]
pub struct Feature {
    socket: UdpSocket,
    interface: String,
    place: usize,
    count: usize,
}

impl Feature {
    /// The feature of a name, of an interface of the caller's namespace.
    ///
    /// # Errors
    /// `ENODEV` for an unknown interface; `NotFound` where this kernel has no such feature.
    pub fn named(interface: &str, name: &str) -> io::Result<Self> {
        let socket = socket()?;
        let names = names(&socket, interface, ETH_SS_FEATURES)?;
        let place = names.iter().position(|own| own == name);
        Ok(Feature {
            socket,
            interface: interface.to_owned(),
            place: place.ok_or(io::ErrorKind::NotFound)?,
            count: names.len(),
        })
    }

    /// Whether it is in force now.
    ///
    /// # Errors
    /// `ENODEV` when the interface is gone.
    pub fn is_on(&self) -> io::Result<bool> {
        // struct ethtool_gfeatures { cmd, number of blocks, blocks[] }, of 32 features each
        let blocks = self.count.div_ceil(32);
        let head = [ETHTOOL_GFEATURES, blocks as u32];
        let words = 2 + blocks * FEATURE_BLOCK_WORDS;
        let features = ask(&self.socket, &self.interface, words, &head)?;
        let active = 2 + self.place / 32 * FEATURE_BLOCK_WORDS + FEATURES_ACTIVE;
        Ok(features[active] >> (self.place % 32) & 1 == 1)
    }
}

/// The names of a set, in the kernel's order.
fn names(socket: &UdpSocket, interface: &str, set: u32) -> io::Result<Vec<String>> {
    let count = count_of(socket, interface, set)?;
    // struct ethtool_gstrings { cmd, string_set, len, data[] } in words of 8 bytes.
    let mut strings = vec![0u64; 2 + COUNTERS_ROOM * ETH_GSTRING_LEN / 8];
    set_words(&mut strings, &[ETHTOOL_GSTRINGS, set, count as u32]);
    ioctl(socket, interface, &mut strings)?;
    let words = words(&strings[..2 + count * ETH_GSTRING_LEN / 8]);
    let names = words[3..].chunks_exact(ETH_GSTRING_LEN / 4).map(text);
    Ok(names.take(count).collect())
}

fn count_of(socket: &UdpSocket, interface: &str, set: u32) -> io::Result<usize> {
    // struct ethtool_sset_info { cmd, reserved, sset_mask (u64), data[1] }
    let mut info = vec![0u64; 3];
    set_words(&mut info, &[ETHTOOL_GSSET_INFO]);
    info[1] = 1 << set;
    ioctl(socket, interface, &mut info)?;
    if info[1] == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let data = info[2].to_ne_bytes();
    let count = u32::from_ne_bytes([data[0], data[1], data[2], data[3]]) as usize;
    if count > COUNTERS_MAX {
        return Err(io::Error::other(format!(
            "{interface}: the driver claims {count} names"
        )));
    }
    Ok(count)
}

fn socket() -> io::Result<UdpSocket> {
    UdpSocket::bind(("0.0.0.0", 0))
}

/// Hands the driver a structure of so many 32-bit words, which begins with `head`, and returns its answer.
fn ask(
    socket: &UdpSocket,
    interface: &str,
    structure_words: usize,
    head: &[u32],
) -> io::Result<Vec<u32>> {
    let mut structure = vec![0u64; structure_words.div_ceil(2)];
    set_words(&mut structure, head);
    ioctl(socket, interface, &mut structure)?;
    Ok(words(&structure))
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
    request(socket, interface, SIOCETHTOOL, buffer)
}

fn request(
    socket: &UdpSocket,
    interface: &str,
    what: libc::Ioctl,
    buffer: &mut [u64],
) -> io::Result<()> {
    let mut request = ifreq(interface)?;
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: the request and the buffer that it points to outlive the call. SIOCGHWTSTAMP writes three words; all else
    // is of SIOCETHTOOL. For GSSET_INFO the kernel writes one number for the one set that is asked for, for GDRVINFO and
    // GET_TS_INFO one structure of fixed length, for GLINKSETTINGS one of fixed length and three masks, whose words it
    // counts in 7 bits; for GFEATURES as many blocks as it is told that there is room for. For the other two it writes as
    // many entries as the driver has at that moment; the buffers have room for sixteen times as many as were accepted a
    // moment before, and a driver's count grows with its queues only.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_found_by_its_name() {
        // The kernel never takes it off the loopback.
        assert!(Feature::named("lo", "loopback").unwrap().is_on().unwrap());
        let none = Feature::named("lo", "no-such-feature").unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn loopback_has_no_line() {
        match link("lo") {
            Ok(link) => assert!(link.is_virtual && link.speed_mbps.is_none(), "{link:?}"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP)),
        }
    }

    #[test]
    fn loopback_has_no_card_that_stamps() {
        let stamps = receive_stamps("lo").unwrap();
        let none = ReceiveStamps {
            clock: None,
            can_stamp_all: false,
            stamps_all: false,
        };
        assert_eq!(stamps, none);
    }

    #[test]
    fn an_interface_that_is_not_there_is_said_so() {
        for name in ["nicpoll-none", "a-name-that-is-longer-than-any"] {
            let error = link(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
            let error = receive_stamps(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
