//! Ethernet frames: what a frame carries, and frames of UDP, ARP and neighbour discovery to send.
//!
//! What must hold: as of every format here. A frame has no check sequence (FCS); what stands behind the IP packet is
//! padding and is not looked at. A length that a header claims is never believed beyond the bytes that are there.
//! Checksums are read by nobody but [`Ip::checksums_hold`]: who receives decides whether to trust the card.

mod address;
mod mark;
mod neighbour;
mod sum;
mod udp;

use std::net::IpAddr;

use etherparse::{
    EtherType, Ethernet2Slice, IpNumber, Ipv4Header, Ipv4Slice, Ipv6Slice, LinkExtSlice, NetSlice,
    SlicedPacket, TransportSlice,
};
use thiserror::Error;

pub use address::{Mac, MacError};
pub use mark::{MARK_BYTES, Mark};
pub use neighbour::{
    ARP_FRAME_BYTES, Arp, NEIGHBOUR_FRAME_BYTES, NeighbourMessage, write_arp, write_neighbour,
};
pub use sum::Sum;
pub use udp::{UdpPath, UdpTemplate};

/// Ethernet's header without a tag.
pub const ETHERNET_BYTES: usize = 14;
/// The shortest frame, without FCS; shorter ones are padded.
pub const FRAME_BYTES_MIN: usize = 60;

/// Why bytes are no frame, or a frame cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// They are fewer than Ethernet's header.
    #[error("a frame has 14 bytes at least")]
    Short,
    /// A header of the packet is cut off or contradicts itself.
    #[error("a header of the packet is cut off, or says what cannot be")]
    Malformed,
    /// There is no room for what is to be built.
    #[error("the frame needs {needed} bytes, there is room for {room}")]
    NoRoom {
        /// What it takes.
        needed: usize,
        /// What there is.
        room: usize,
    },
    /// One address is IPv4's, the other IPv6's.
    #[error("one address is IPv4's and the other IPv6's")]
    MixedFamilies,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// To whom.
    pub destination: Mac,
    /// From whom.
    pub source: Mac,
    /// Number of the outermost VLAN, where it has a tag.
    pub vlan: Option<u16>,
    /// What it carries.
    pub packet: Packet<'a>,
}

/// What a frame carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// An address asked for or told (ARP for IPv4 over Ethernet).
    Arp(Arp),
    /// IPv4 or IPv6.
    Ip(Ip<'a>),
    /// Something else, by its Ethernet type.
    Other(u16),
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// From whom.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// Routers that may still forward it: TTL or hop limit.
    pub hop_limit: u8,
    /// Number of the protocol that it carries, behind extension headers.
    pub protocol: u8,
    /// Whether it is a part of a packet that was cut up.
    pub is_fragment: bool,
    /// Whether IPv4 options or IPv6 extension headers stand before what it carries.
    pub has_extensions: bool,
    /// What it carries.
    pub transport: Transport<'a>,
    /// IPv4's header, whose checksum is to be looked at; empty for IPv6.
    header: &'a [u8],
    /// All that follows on the headers, as long as these say.
    payload: &'a [u8],
}

/// What an IP packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport<'a> {
    /// A UDP datagram.
    Udp(Udp<'a>),
    /// A message of neighbour discovery (RFC 4861).
    Neighbour(NeighbourMessage),
    /// Something else, or a fragment.
    Other,
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// What is in it.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// When it is no frame, or a header within it is cut off or contradicts itself.
    ///
    /// ```
    /// use nicpoll_wire::frame::{Frame, Mac, Packet, Transport, UdpPath};
    ///
    /// let path = UdpPath {
    ///     source_mac: Mac([2, 0, 0, 0, 0, 1]),
    ///     destination_mac: Mac([2, 0, 0, 0, 0, 2]),
    ///     source: "198.18.0.1:4000".parse()?,
    ///     destination: "198.18.0.2:9".parse()?,
    /// };
    /// let mut memory = [0; 128];
    /// let length = path.write(b"seen", &mut memory)?;
    /// let frame = Frame::parse(&memory[..length])?;
    /// let Packet::Ip(ip) = frame.packet else { panic!("it carries IP") };
    /// assert!(ip.checksums_hold());
    /// let Transport::Udp(udp) = ip.transport else { panic!("and that UDP") };
    /// assert_eq!((udp.destination, udp.payload), (9, &b"seen"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let ethernet =
            Ethernet2Slice::from_slice_without_fcs(bytes).map_err(|_| FrameError::Short)?;
        let sliced = SlicedPacket::from_ethernet(bytes).map_err(|_| FrameError::Malformed)?;
        let tag = sliced
            .link_exts
            .iter()
            .find_map(|extension| match extension {
                LinkExtSlice::Vlan(tag) => Some(tag),
                LinkExtSlice::Macsec(_) => None,
            });
        let vlan = tag.map(|tag| tag.vlan_identifier().value());
        let last_type = sliced
            .link_exts
            .iter()
            .rev()
            .find_map(|extension| match extension {
                LinkExtSlice::Vlan(tag) => Some(tag.ether_type()),
                LinkExtSlice::Macsec(_) => None,
            });
        let EtherType(ether_type) = last_type.unwrap_or(ethernet.ether_type());
        let tags_bytes: usize = sliced.link_exts.iter().map(LinkExtSlice::header_len).sum();
        let network = bytes.get(ETHERNET_BYTES + tags_bytes..).unwrap_or_default();
        let transport = sliced.transport.as_ref();
        let packet = match &sliced.net {
            Some(NetSlice::Arp(arp)) => {
                Arp::read(arp).map_or(Packet::Other(ether_type), Packet::Arp)
            }
            Some(NetSlice::Ipv4(ip)) => Packet::Ip(Ip::v4(ip, transport, network)),
            Some(NetSlice::Ipv6(ip)) => Packet::Ip(Ip::v6(ip, transport)),
            None => Packet::Other(ether_type),
        };
        Ok(Frame {
            destination: Mac(ethernet.destination()),
            source: Mac(ethernet.source()),
            vlan,
            packet,
        })
    }

    /// The UDP datagram that it carries, with the addresses of its packet.
    pub fn udp(&self) -> Option<(&Ip<'a>, Udp<'a>)> {
        let Packet::Ip(ip) = &self.packet else {
            return None;
        };
        match ip.transport {
            Transport::Udp(udp) => Some((ip, udp)),
            Transport::Neighbour(_) | Transport::Other => None,
        }
    }
}

impl<'a> Ip<'a> {
    fn v4(ip: &Ipv4Slice<'a>, transport: Option<&TransportSlice<'a>>, network: &'a [u8]) -> Self {
        let payload = ip.payload();
        let header_bytes = ip.header().slice().len();
        Ip {
            source: ip.header().source_addr().into(),
            destination: ip.header().destination_addr().into(),
            hop_limit: ip.header().ttl(),
            protocol: payload.ip_number.0,
            is_fragment: ip.is_payload_fragmented(),
            has_extensions: header_bytes > Ipv4Header::MIN_LEN || ip.extensions().auth.is_some(),
            transport: Transport::of(transport),
            header: &network[..header_bytes],
            payload: payload.payload,
        }
    }

    fn v6(ip: &Ipv6Slice<'a>, transport: Option<&TransportSlice<'a>>) -> Self {
        let payload = ip.payload();
        Ip {
            source: ip.header().source_addr().into(),
            destination: ip.header().destination_addr().into(),
            hop_limit: ip.header().hop_limit(),
            protocol: payload.ip_number.0,
            is_fragment: ip.is_payload_fragmented(),
            has_extensions: ip.header().next_header() != payload.ip_number,
            transport: Transport::of(transport),
            header: &[],
            payload: payload.payload,
        }
    }

    /// Whether the checksums hold that can be looked at: that of IPv4's header, and that of a whole UDP datagram or
    /// ICMPv6 message. A UDP datagram over IPv4 may go without one.
    pub fn checksums_hold(&self) -> bool {
        let header = Sum::default().bytes(self.header).is_whole();
        let has_none = self.source.is_ipv4() && self.payload.get(6..8) == Some(&[0, 0]);
        let is_checked = self.protocol == IpNumber::UDP.0 && !has_none
            || self.protocol == IpNumber::IPV6_ICMP.0 && self.source.is_ipv6();
        let payload = || {
            let length = self.payload.len() as u32;
            Sum::of_pseudo_header(self.source, self.destination, self.protocol, length)
                .bytes(self.payload)
                .is_whole()
        };
        (self.header.is_empty() || header) && (self.is_fragment || !is_checked || payload())
    }
}

impl<'a> Transport<'a> {
    fn of(transport: Option<&TransportSlice<'a>>) -> Self {
        match transport {
            Some(TransportSlice::Udp(udp)) => Transport::Udp(Udp {
                source: udp.source_port(),
                destination: udp.destination_port(),
                payload: udp.payload(),
            }),
            Some(TransportSlice::Icmpv6(message)) => NeighbourMessage::read(message.slice())
                .map_or(Transport::Other, Transport::Neighbour),
            _ => Transport::Other,
        }
    }
}

#[cfg(test)]
mod tests;
