//! What a driver reports through the ethtool ioctl: statistics by name (netlink has only the standardised ones), link,
//! features and the card's time stamps.

use std::io;
use std::os::unix::net::UnixDatagram;

use crate::kernel::{ifreq, ioctl};
use crate::link::LinkHandle;

/// include/uapi/linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
/// include/uapi/linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETH_SS_STATS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;
/// Words of `struct ethtool_get_features_block`, and the index of the `active` word.
const FEATURE_BLOCK_WORDS: usize = 4;
const FEATURES_ACTIVE: usize = 2;
/// Words of a name (`ETH_GSTRING_LEN`).
const NAME_WORDS: usize = 32 / 4;

/// A driver that claims more statistics than this is not believed.
const COUNTERS_MAX: usize = 4_096;
/// Entries that the buffer has room for. The kernel writes as many as the driver has at that moment: see
/// [`EthtoolSocket::request`].
const COUNTERS_ROOM: usize = 16 * COUNTERS_MAX;

/// `SPEED_UNKNOWN`.
const SPEED_UNKNOWN: u32 = u32::MAX;
/// Words of `struct ethtool_drvinfo`.
const DRVINFO_WORDS: usize = 196 / 4;
/// Words of `struct ethtool_link_settings`, and the maximum of the three masks after it.
const LINK_SETTINGS_WORDS: usize = 48 / 4;
const LINK_MASKS_WORDS: usize = 3 * 127;
/// Words of `struct ethtool_channels`.
const CHANNELS_WORDS: usize = 9;
/// Words of `struct ethtool_ts_info`.
const TS_INFO_WORDS: usize = 44 / 4;
/// include/uapi/linux/net_tstamp.h
const HWTSTAMP_FILTER_ALL: u32 = 1;

/// Link as its driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverLink {
    /// Speed in Mbit/s; `None` if the link is down or the driver reports none.
    pub speed_mbps: Option<u32>,
    /// Name of the driver.
    pub driver: String,
    /// Whether the interface has no device behind it, which makes its speed meaningless.
    pub is_virtual: bool,
    /// MTU in bytes.
    pub mtu_bytes: u32,
}

/// Driver and device of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Name of the driver, such as `virtio_net`.
    pub name: String,
    /// The device's address on its bus, such as `0000:00:03.0`; `None` for a virtual device.
    pub bus_address: Option<String>,
}

/// Returns the driver of an interface of the caller's namespace (`ethtool -i`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` if it has no driver information.
pub fn driver(interface: &str) -> io::Result<Driver> {
    // struct ethtool_drvinfo { cmd, driver[32], version[32], fw_version[32], bus_info[32], ... }
    let words = EthtoolSocket::of(interface)?.ask(DRVINFO_WORDS, &[ETHTOOL_GDRVINFO])?;
    let name_at = |index: usize| {
        let at = 1 + index * NAME_WORDS;
        text(&words[at..at + NAME_WORDS])
    };
    Ok(Driver {
        name: name_at(0),
        // The kernel fills in the parent device's name when the driver does not.
        bus_address: Some(name_at(3)).filter(|name| !name.is_empty()),
    })
}

/// Returns the link of an interface of the caller's namespace (`ethtool`, `ethtool -i`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` for one that is no network card, such as lo.
pub fn link(interface: &str) -> io::Result<DriverLink> {
    let driver = driver(interface)?;
    Ok(DriverLink {
        speed_mbps: EthtoolSocket::of(interface)?.speed_mbps()?,
        is_virtual: driver.bus_address.is_none(),
        driver: driver.name,
        mtu_bytes: LinkHandle::named(interface)?.mtu_bytes()?,
    })
}

/// Returns how many receive queues an interface of the caller's namespace uses (`ethtool -l`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` from a driver that does not say.
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    // struct ethtool_channels { cmd, four maxima, rx_count, tx_count, other_count, combined_count }
    let words = EthtoolSocket::of(interface)?.ask(CHANNELS_WORDS, &[ETHTOOL_GCHANNELS])?;
    Ok(words[5] + words[8])
}

/// A card's time stamps of received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveStamps {
    /// The stamping clock: the N of `/dev/ptpN`; `None` if the card has none.
    pub clock: Option<u32>,
    /// Whether the card can stamp every packet.
    pub can_stamp_all: bool,
    /// Whether it is set to stamp every packet.
    pub stamps_all: bool,
}

/// Reads the time stamping of an interface of the caller's namespace (`ethtool -T`, `hwstamp_ctl -i`) without changing
/// it.
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` from a driver without time stamps.
pub fn receive_stamps(interface: &str) -> io::Result<ReceiveStamps> {
    let asked = EthtoolSocket::of(interface)?;
    // struct ethtool_ts_info { cmd, so_timestamping, phc_index, tx_types, tx_reserved[3], rx_filters, .. }
    let words = asked.ask(TS_INFO_WORDS, &[ETHTOOL_GET_TS_INFO])?;
    let (clock, filters) = (words[2] as i32, words[7]);
    // struct hwtstamp_config { flags, tx_type, rx_filter }. Some drivers cannot report it.
    let config = asked.request(SIOCGHWTSTAMP, vec![0; 3]);
    Ok(ReceiveStamps {
        clock: u32::try_from(clock).ok(),
        can_stamp_all: filters >> HWTSTAMP_FILTER_ALL & 1 == 1,
        stamps_all: config.is_ok_and(|config| config[2] == HWTSTAMP_FILTER_ALL),
    })
}

/// Returns all statistics of an interface of the caller's namespace, in the driver's order (`ethtool -S`).
///
/// # Errors
/// `ENODEV` for an unknown interface, `EOPNOTSUPP` if the driver keeps none.
pub fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let asked = EthtoolSocket::of(interface)?;
    let names = asked.names(ETH_SS_STATS)?;
    // struct ethtool_stats { cmd, n_stats, data[] }, data in 64 bits each
    let head = [ETHTOOL_GSTATS, names.len() as u32];
    let words = asked.ask(2 + 2 * COUNTERS_ROOM, &head)?;
    let values = words[2..].as_chunks().0.iter().map(|half| long(*half));
    Ok(names.into_iter().zip(values).collect())
}

/// A feature of an interface, such as `tx-udp-segmentation`, for repeated queries.
#[derive(Debug)]
pub struct Feature {
    asked: EthtoolSocket,
    place: usize,
    count: usize,
}

impl Feature {
    /// Finds a feature by name, of an interface of the caller's namespace.
    ///
    /// # Errors
    /// `ENODEV` for an unknown interface; `NotFound` if this kernel has no such feature.
    pub fn named(interface: &str, name: &str) -> io::Result<Self> {
        let asked = EthtoolSocket::of(interface)?;
        let names = asked.names(ETH_SS_FEATURES)?;
        let place = names.iter().position(|own| own == name);
        Ok(Feature {
            asked,
            place: place.ok_or(io::ErrorKind::NotFound)?,
            count: names.len(),
        })
    }

    /// Returns whether the feature is active now.
    ///
    /// # Errors
    /// `ENODEV` when the interface is gone.
    pub fn is_on(&self) -> io::Result<bool> {
        // struct ethtool_gfeatures { cmd, number of blocks, blocks[] }, of 32 features each
        let blocks = self.count.div_ceil(32);
        let head = [ETHTOOL_GFEATURES, blocks as u32];
        let features = self.asked.ask(2 + blocks * FEATURE_BLOCK_WORDS, &head)?;
        let active = 2 + self.place / 32 * FEATURE_BLOCK_WORDS + FEATURES_ACTIVE;
        Ok(features[active] >> (self.place % 32) & 1 == 1)
    }
}

/// An interface of the caller's namespace, and the socket for its ioctls.
#[derive(Debug)]
struct EthtoolSocket {
    socket: UnixDatagram,
    interface: String,
}

impl EthtoolSocket {
    fn of(interface: &str) -> io::Result<Self> {
        Ok(EthtoolSocket {
            // Not an Internet socket: a systemd unit may be denied that address family.
            socket: UnixDatagram::unbound()?,
            interface: interface.to_owned(),
        })
    }

    fn speed_mbps(&self) -> io::Result<Option<u32>> {
        let words = LINK_SETTINGS_WORDS + LINK_MASKS_WORDS;
        // Asked for masks of zero words, the kernel answers with the number it has, negated.
        let settings = match self.ask(words, &[ETHTOOL_GLINKSETTINGS]) {
            Ok(settings) => settings,
            // A driver without link settings, such as dummy, has no speed.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error),
        };
        // struct ethtool_link_settings { cmd, speed, four bytes, three bytes and the number of words }
        let [a, b, c, masks] = settings[3].to_ne_bytes();
        let masks = (masks as i8).wrapping_neg() as u8;
        let wanted = u32::from_ne_bytes([a, b, c, masks]);
        let speed = self.ask(words, &[ETHTOOL_GLINKSETTINGS, 0, 0, wanted])?[1];
        Ok((speed != SPEED_UNKNOWN && speed != 0).then_some(speed))
    }

    /// Returns the names of a string set, in the kernel's order.
    fn names(&self, set: u32) -> io::Result<Vec<String>> {
        let count = self.count_of(set)?;
        // struct ethtool_gstrings { cmd, string_set, len, data[] }
        let head = [ETHTOOL_GSTRINGS, set, count as u32];
        let words = self.ask(head.len() + COUNTERS_ROOM * NAME_WORDS, &head)?;
        let names = words[head.len()..].chunks_exact(NAME_WORDS).map(text);
        Ok(names.take(count).collect())
    }

    fn count_of(&self, set: u32) -> io::Result<usize> {
        // struct ethtool_sset_info { cmd, reserved, sset_mask (u64), data[1] }
        let mut head = vec![ETHTOOL_GSSET_INFO, 0];
        let mask = u64::to_ne_bytes(1 << set);
        head.extend(
            mask.as_chunks()
                .0
                .iter()
                .map(|half| u32::from_ne_bytes(*half)),
        );
        let info = self.ask(5, &head)?;
        if info[2..4] == [0, 0] {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        match info[4] as usize {
            count if count <= COUNTERS_MAX => Ok(count),
            count => Err(io::Error::other(format!(
                "{}: the driver claims {count} names",
                self.interface
            ))),
        }
    }

    /// Passes the driver a structure of `words` 32-bit words that begins with `head`, and returns the answer.
    fn ask(&self, words: usize, head: &[u32]) -> io::Result<Vec<u32>> {
        let mut structure = vec![0; words];
        structure[..head.len()].copy_from_slice(head);
        self.request(SIOCETHTOOL, structure)
    }

    fn request(&self, what: libc::Ioctl, mut structure: Vec<u32>) -> io::Result<Vec<u32>> {
        let mut request = ifreq(&self.interface)?;
        request.ifr_ifru.ifru_data = structure.as_mut_ptr().cast();
        // SAFETY: the structure outlives the call. SIOCGHWTSTAMP writes three words; all other requests are
        // SIOCETHTOOL. For GSSET_INFO the kernel writes one number for the one set asked for; for GDRVINFO, GCHANNELS and
        // GET_TS_INFO one structure of fixed length; for GLINKSETTINGS one of fixed length and three masks, whose words
        // it counts in 7 bits; for GFEATURES as many blocks as the request has room for. For the other two it writes as
        // many entries as the driver has at that moment: the buffers have room for sixteen times the number accepted a
        // moment before, and a driver's count grows with its queues only.
        unsafe { ioctl(&self.socket, what, &mut request) }?;
        Ok(structure)
    }
}

/// Joins two words to the 64-bit number that they hold.
fn long(halves: [u32; 2]) -> u64 {
    let [[a, b, c, d], [e, f, g, h]] = halves.map(u32::to_ne_bytes);
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Text up to the first zero byte, or the whole buffer.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_found_by_its_name() {
        // The kernel never turns this off for the loopback.
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
            let error = receive_queues(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
