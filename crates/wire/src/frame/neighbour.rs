//! Who has an address: ARP (RFC 826) for IPv4, neighbour discovery (RFC 4861) for IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, ArpPacketSlice, EtherType, Ethernet2Header, IpNumber,
    Ipv6FlowLabel, Ipv6Header,
};

use super::{ETHERNET_BYTES, FRAME_BYTES_MIN, FrameError, Mac, Sum};

/// Length of a frame of ARP, padded.
pub const ARP_FRAME_BYTES: usize = FRAME_BYTES_MIN;
/// Length of a frame of neighbour discovery with one hardware address.
pub const NEIGHBOUR_FRAME_BYTES: usize = ETHERNET_BYTES + Ipv6Header::LEN + MESSAGE_BYTES;

/// A solicitation or advertisement with one option.
const MESSAGE_BYTES: usize = 32;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_ADDRESS_OPTION: u8 = 1;
const TARGET_ADDRESS_OPTION: u8 = 2;
/// Where the options begin.
const OPTIONS_AT: usize = 24;
/// A router forwards no message of neighbour discovery: it would be less than this.
const HOP_LIMIT: u8 = 255;
/// Solicited, and to replace what was known.
const ANSWER_FLAGS: u8 = 0x60;

/// A message of ARP for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Whether it answers; else it asks.
    pub is_reply: bool,
    /// Hardware address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender.
    pub sender: Ipv4Addr,
    /// Hardware address of the target; of no meaning in a request.
    pub target_mac: Mac,
    /// IPv4 address of the target.
    pub target: Ipv4Addr,
}

impl Arp {
    /// `None` for other networks, and for operations that nobody uses.
    pub(super) fn read(arp: &ArpPacketSlice<'_>) -> Option<Self> {
        let arp = arp.to_packet().try_eth_ipv4().ok()?;
        let is_reply = match arp.operation {
            ArpOperation::REQUEST => false,
            ArpOperation::REPLY => true,
            _ => return None,
        };
        Some(Arp {
            is_reply,
            sender_mac: Mac(arp.sender_mac),
            sender: arp.sender_ipv4.into(),
            target_mac: Mac(arp.target_mac),
            target: arp.target_ipv4.into(),
        })
    }
}

/// Writes a frame of ARP: a request to everybody, a reply to its target. Returns its length, [`ARP_FRAME_BYTES`].
///
/// # Errors
/// When there is no room for it.
pub fn write_arp(arp: &Arp, into: &mut [u8]) -> Result<usize, FrameError> {
    let frame = room(into, ARP_FRAME_BYTES)?;
    let ethernet = Ethernet2Header {
        source: arp.sender_mac.0,
        destination: match arp.is_reply {
            true => arp.target_mac.0,
            false => Mac::BROADCAST.0,
        },
        ether_type: EtherType::ARP,
    };
    let packet = ArpEthIpv4Packet {
        operation: match arp.is_reply {
            true => ArpOperation::REPLY,
            false => ArpOperation::REQUEST,
        },
        sender_mac: arp.sender_mac.0,
        sender_ipv4: arp.sender.octets(),
        target_mac: arp.target_mac.0,
        target_ipv4: arp.target.octets(),
    };
    let (link, rest) = frame.split_at_mut(ETHERNET_BYTES);
    link.copy_from_slice(&ethernet.to_bytes());
    rest[..ArpEthIpv4Packet::LEN].copy_from_slice(&packet.to_bytes());
    Ok(ARP_FRAME_BYTES)
}

/// A message of neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourMessage {
    /// Whether it tells; else it asks.
    pub is_advertisement: bool,
    /// The address that is asked or told of.
    pub target: Ipv6Addr,
    /// Hardware address: of who asks, or of the target.
    pub mac: Option<Mac>,
}

impl NeighbourMessage {
    /// From an ICMPv6 message; `None` for all others.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let (is_advertisement, option) = match *message.first()? {
            SOLICITATION => (false, SOURCE_ADDRESS_OPTION),
            ADVERTISEMENT => (true, TARGET_ADDRESS_OPTION),
            _ => return None,
        };
        let target: [u8; 16] = message.get(8..OPTIONS_AT)?.try_into().ok()?;
        Some(NeighbourMessage {
            is_advertisement,
            target: target.into(),
            mac: mac_option(message.get(OPTIONS_AT..)?, option),
        })
    }
}

/// The hardware address of an option of this kind. Each option says its length in units of 8 bytes; one
/// that says 0 is read on as if it were 1.
fn mac_option(mut options: &[u8], kind: u8) -> Option<Mac> {
    while let [found, units, ..] = *options {
        let bytes = usize::from(units.max(1)) * 8;
        if found == kind {
            return options.get(2..8)?.try_into().ok().map(Mac);
        }
        options = options.get(bytes..)?;
    }
    None
}

/// Writes a frame of neighbour discovery: a solicitation to the group of its target, an advertisement to `destination`.
/// Returns its length, [`NEIGHBOUR_FRAME_BYTES`].
///
/// # Errors
/// When there is no room for it.
pub fn write_neighbour(
    message: &NeighbourMessage,
    source: (Mac, Ipv6Addr),
    destination: (Mac, Ipv6Addr),
    into: &mut [u8],
) -> Result<usize, FrameError> {
    let frame = room(into, NEIGHBOUR_FRAME_BYTES)?;
    let ((to_mac, to), kind, flags, option) = match message.is_advertisement {
        true => (
            destination,
            ADVERTISEMENT,
            ANSWER_FLAGS,
            TARGET_ADDRESS_OPTION,
        ),
        false => (
            solicited_node(message.target),
            SOLICITATION,
            0,
            SOURCE_ADDRESS_OPTION,
        ),
    };
    let ethernet = Ethernet2Header {
        source: source.0.0,
        destination: to_mac.0,
        ether_type: EtherType::IPV6,
    };
    let header = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: MESSAGE_BYTES as u16,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit: HOP_LIMIT,
        source: source.1.octets(),
        destination: to.octets(),
    };
    let mut icmp = [0; MESSAGE_BYTES];
    icmp[0] = kind;
    icmp[4] = flags;
    icmp[8..OPTIONS_AT].copy_from_slice(&message.target.octets());
    icmp[OPTIONS_AT] = option;
    icmp[OPTIONS_AT + 1] = 1;
    icmp[OPTIONS_AT + 2..].copy_from_slice(&message.mac.unwrap_or(source.0).0);
    let (from, to) = (IpAddr::V6(source.1), IpAddr::V6(to));
    let pseudo = Sum::of_pseudo_header(from, to, IpNumber::IPV6_ICMP.0, MESSAGE_BYTES as u32);
    let checksum = pseudo.bytes(&icmp).checksum();
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    let (link, rest) = frame.split_at_mut(ETHERNET_BYTES);
    link.copy_from_slice(&ethernet.to_bytes());
    let (network, payload) = rest.split_at_mut(Ipv6Header::LEN);
    network.copy_from_slice(&header.to_bytes());
    payload.copy_from_slice(&icmp);
    Ok(NEIGHBOUR_FRAME_BYTES)
}

/// The group that everybody is in whose address ends as this one (RFC 4291 section 2.7.1), and its hardware address
/// (RFC 2464 section 7).
fn solicited_node(target: Ipv6Addr) -> (Mac, Ipv6Addr) {
    let [.., a, b, c] = target.octets();
    let low = u16::from_be_bytes([b, c]);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), low);
    (Mac([0x33, 0x33, 0xff, a, b, c]), group)
}

fn room(into: &mut [u8], needed: usize) -> Result<&mut [u8], FrameError> {
    let room = into.len();
    let frame = into.get_mut(..needed);
    let frame = frame.ok_or(FrameError::NoRoom { needed, room })?;
    frame.fill(0);
    Ok(frame)
}
