//! Ethernet frames: parses what a frame carries, and builds UDP frames.
//!
//! Frames have no check sequence (FCS). Bytes after the IP packet are padding and ignored. A length in a header
//! is never trusted beyond the bytes present. Only [`Ip::checksums_hold`] verifies checksums: the receiver
//! decides whether to trust its card. No byte string makes a parser panic; what is built parses back to the
//! same.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use etherparse::{
    EtherType, Ethernet2Header, Ethernet2Slice, IpNumber, Ipv4Header, Ipv4Slice, Ipv6FlowLabel,
    Ipv6Header, Ipv6Slice, LinkExtSlice, NetSlice, SlicedPacket, TransportSlice, UdpHeader,
};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Length of the Ethernet header without a tag.
pub const ETHERNET_BYTES: usize = 14;
/// The shortest frame, without FCS; shorter ones are padded.
pub const FRAME_BYTES_MIN: usize = 60;

/// Why bytes are not a frame, or a frame cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Fewer bytes than an Ethernet header.
    #[error("a frame has at least 14 bytes")]
    Short,
    /// A header is cut off or contradicts itself.
    #[error("a header in the packet is cut off or contradicts itself")]
    Malformed,
    /// The buffer is too small.
    #[error("the frame needs {needed} bytes, there is room for {room}")]
    NoRoom {
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        room: usize,
    },
    /// One address is IPv4, the other IPv6.
    #[error("one address is IPv4's and the other IPv6's")]
    MixedFamilies,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Hardware address of the receiver.
    pub destination: Mac,
    /// Hardware address of the sender.
    pub source: Mac,
    /// VLAN id of the outermost tag, if any.
    pub vlan: Option<u16>,
    /// The packet in the frame.
    pub packet: FramePayload<'a>,
}

/// The packet in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramePayload<'a> {
    /// IPv4 or IPv6.
    Ip(Ip<'a>),
    /// Another packet, with its EtherType.
    Other(u16),
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Routers that may still forward it: TTL or hop limit.
    pub hop_limit: u8,
    /// Protocol number of the payload, after extension headers.
    pub protocol: u8,
    /// Whether it is a fragment.
    pub is_fragment: bool,
    /// Whether there are IPv4 options or IPv6 extension headers.
    pub has_extensions: bool,
    /// The payload.
    pub transport: Transport<'a>,
    /// The IPv4 header, for its checksum; empty for IPv6.
    header: &'a [u8],
    /// Everything after the headers, by their length fields.
    payload: &'a [u8],
}

/// The payload of an IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport<'a> {
    /// A UDP datagram.
    Udp(Udp<'a>),
    /// Another protocol, or a fragment.
    Other,
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Parses a frame.
    ///
    /// # Errors
    /// When it is too short for a frame, or a header in it is cut off or contradicts itself.
    ///
    /// ```
    /// use nicpoll_wire::frame::{Frame, FramePayload, Mac, Transport, UdpPath};
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
    /// let FramePayload::Ip(ip) = frame.packet else { panic!("it carries IP") };
    /// assert!(ip.checksums_hold());
    /// let Transport::Udp(udp) = ip.transport else { panic!("and that UDP") };
    /// assert_eq!((udp.destination, udp.payload), (9, &b"seen"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let ethernet =
            Ethernet2Slice::from_slice_without_fcs(bytes).map_err(|_| FrameError::Short)?;
        let sliced = SlicedPacket::from_ethernet(bytes).map_err(|_| FrameError::Malformed)?;
        let extensions = sliced.link_exts.iter();
        let mut tags = extensions.filter_map(|extension| match extension {
            LinkExtSlice::Vlan(tag) => Some(tag),
            LinkExtSlice::Macsec(_) => None,
        });
        let outermost = tags.next();
        let innermost = tags.next_back().or(outermost);
        let vlan = outermost.map(|tag| tag.vlan_identifier().value());
        let last_type = innermost.map(|tag| tag.ether_type());
        let EtherType(ether_type) = last_type.unwrap_or(ethernet.ether_type());
        let tags_bytes: usize = sliced.link_exts.iter().map(LinkExtSlice::header_len).sum();
        let network = bytes.get(ETHERNET_BYTES + tags_bytes..).unwrap_or_default();
        let transport = sliced.transport.as_ref();
        let packet = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => FramePayload::Ip(Ip::v4(ip, transport, network)),
            Some(NetSlice::Ipv6(ip)) => FramePayload::Ip(Ip::v6(ip, transport)),
            Some(NetSlice::Arp(_)) | None => FramePayload::Other(ether_type),
        };
        Ok(Frame {
            destination: Mac(ethernet.destination()),
            source: Mac(ethernet.source()),
            vlan,
            packet,
        })
    }

    /// The UDP datagram in the frame, with its packet.
    pub fn udp(&self) -> Option<(&Ip<'a>, Udp<'a>)> {
        let FramePayload::Ip(ip) = &self.packet else {
            return None;
        };
        match ip.transport {
            Transport::Udp(udp) => Some((ip, udp)),
            Transport::Other => None,
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

    /// Whether all verifiable checksums are right: that of the IPv4 header, and that of a whole UDP datagram or
    /// ICMPv6 message. Over IPv4, a UDP datagram may have none.
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
            _ => Transport::Other,
        }
    }
}

/// An Ethernet hardware address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// The text is not a hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("six bytes in hexadecimal were expected, such as 02:00:00:00:00:01")]
pub struct MacError;

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let mut parts = text.split([':', '-']);
        let mut address = [0; 6];
        for byte in &mut address {
            let part = parts.next().ok_or(MacError)?;
            let is_hexadecimal = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            let fits = (1..=2).contains(&part.len());
            *byte = u8::from_str_radix(part, 16)
                .ok()
                .filter(|_| is_hexadecimal && fits)
                .ok_or(MacError)?;
        }
        match parts.next() {
            None => Ok(Mac(address)),
            Some(_) => Err(MacError),
        }
    }
}

/// A one's complement sum of 16-bit words, not yet folded. Has room for 2^48 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The pseudo header of UDP and ICMPv6 (RFC 768, RFC 8200 section 8.1). Both addresses must be of one
    /// family.
    fn of_pseudo_header(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        payload_bytes: u32,
    ) -> Self {
        [source, destination]
            .into_iter()
            .fold(Sum::default(), |sum, address| match address {
                IpAddr::V4(address) => sum.bytes(&address.octets()),
                IpAddr::V6(address) => sum.bytes(&address.octets()),
            })
            .word(u32::from(protocol))
            .word(payload_bytes)
    }

    /// Adds bytes; an odd last one is padded with a zero.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let (pairs, last) = bytes.as_chunks::<2>();
        for pair in pairs {
            self.0 += u64::from(u16::from_be_bytes(*pair));
        }
        for byte in last {
            self.0 += u64::from(*byte) << 8;
        }
        self
    }

    /// Adds a 32-bit number in network byte order.
    #[must_use]
    fn word(self, word: u32) -> Self {
        Sum(self.0 + u64::from(word >> 16) + u64::from(word & 0xffff))
    }

    /// Adds a 64-bit number.
    #[must_use]
    fn long(self, long: u64) -> Self {
        self.word((long >> 32) as u32).word(long as u32)
    }

    /// The checksum of everything added.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The same for UDP, where 0 means no checksum.
    fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether the data added contain their own checksum, and it is right.
    fn is_whole(self) -> bool {
        self.folded() == 0xffff
    }

    /// The sum folded to 16 bits.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

/// Length of a mark.
pub const MARK_BYTES: usize = 18;

/// Send times in the future or older than this are not valid.
const AGE_NS_MAX: u64 = 3_600_000_000_000;

/// The mark in a frame's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Sequence number within the flow, from 0.
    pub sequence: u64,
    /// Send time by the sender's CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The flow, from 0.
    pub flow: u16,
}

impl Mark {
    /// Reads the mark at the start of a payload; `None` when that is too short. Any 18 bytes parse as a mark;
    /// [`Mark::age_ns`] tells whether they are likely to be one.
    pub fn parse(payload: &[u8]) -> Option<Mark> {
        let bytes: &[u8; MARK_BYTES] = payload.first_chunk()?;
        let half = |at: usize| {
            let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u64::from(u32::from_be_bytes(word))
        };
        Some(Mark {
            sequence: half(4) << 32 | half(0),
            time_ns: half(8) << 32 | half(12),
            flow: u16::from_be_bytes([bytes[16], bytes[17]]),
        })
    }

    /// Time since it was sent, by the sender's clock; `None` if that is not within the last hour. Other bytes
    /// pass for a valid time with a probability of one in five million; marks from another host are not
    /// detected.
    pub fn age_ns(&self, now_ns: u64) -> Option<u64> {
        let age_ns = now_ns.checked_sub(self.time_ns)?;
        (self.time_ns > 0 && age_ns <= AGE_NS_MAX).then_some(age_ns)
    }

    /// The mark as payload bytes.
    pub fn to_bytes(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..4].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        bytes[4..8].copy_from_slice(&((self.sequence >> 32) as u32).to_be_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes[16..].copy_from_slice(&self.flow.to_be_bytes());
        bytes
    }

    /// Adds the mark to a checksum.
    fn sum(self, sum: Sum) -> Sum {
        // The order of the sequence number's halves does not matter.
        sum.long(self.sequence)
            .long(self.time_ns)
            .word(u32::from(self.flow))
    }
}

/// The hop limit that hosts use.
const HOP_LIMIT: u8 = 64;

/// The endpoints of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPath {
    /// Hardware address of the sending interface.
    pub source_mac: Mac,
    /// Hardware address of the receiver, or of the next router.
    pub destination_mac: Mac,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
}

impl UdpPath {
    /// Bytes before the payload.
    pub fn header_bytes(&self) -> usize {
        let network = match self.destination {
            SocketAddr::V4(_) => Ipv4Header::MIN_LEN,
            SocketAddr::V6(_) => Ipv6Header::LEN,
        };
        ETHERNET_BYTES + network + UdpHeader::LEN
    }

    /// Writes a frame with this payload, padded with zeros to the minimum length; returns its length.
    ///
    /// # Errors
    /// When it does not fit, or the addresses are of two families.
    pub fn write(&self, payload: &[u8], into: &mut [u8]) -> Result<usize, FrameError> {
        let headers = self.header_bytes();
        let needed = (headers + payload.len()).max(FRAME_BYTES_MIN);
        let room = into.len();
        let no_room = FrameError::NoRoom { needed, room };
        let datagram_bytes = UdpHeader::LEN + payload.len();
        let length = u16::try_from(datagram_bytes).map_err(|_| no_room)?;
        let frame = into.get_mut(..needed).ok_or(no_room)?;
        frame.fill(0);
        self.write_network(length, frame)?;
        let (head, rest) = frame.split_at_mut(headers);
        rest[..payload.len()].copy_from_slice(payload);
        let sum = self.pseudo_sum(length).bytes(payload);
        let checksum = sum
            .word(u32::from(self.source.port()))
            .word(u32::from(self.destination.port()))
            .word(u32::from(length))
            .udp_checksum();
        self.write_udp(self.source.port(), length, checksum, head);
        Ok(needed)
    }

    /// Headers of a datagram whose checksum is completed elsewhere: it holds the sum of the pseudo header, as
    /// the kernel and cards expect for a long datagram that they segment.
    ///
    /// # Errors
    /// When the payload is too long for a datagram, or the addresses are of two families.
    pub fn partial_headers(&self, payload_bytes: usize) -> Result<Vec<u8>, FrameError> {
        let (headers, needed) = (self.header_bytes(), UdpHeader::LEN + payload_bytes);
        let room = usize::from(u16::MAX);
        let length = u16::try_from(needed).map_err(|_| FrameError::NoRoom { needed, room })?;
        let mut head = vec![0; headers];
        self.write_network(length, &mut head)?;
        let checksum = self.pseudo_sum(length).folded();
        self.write_udp(self.source.port(), length, checksum, &mut head);
        Ok(head)
    }

    /// Writes the UDP header at the end of the headers.
    fn write_udp(&self, source_port: u16, length: u16, checksum: u16, frame: &mut [u8]) {
        let udp = UdpHeader {
            source_port,
            destination_port: self.destination.port(),
            length,
            checksum,
        };
        let end = self.header_bytes();
        frame[end - UdpHeader::LEN..end].copy_from_slice(&udp.to_bytes());
    }

    fn pseudo_sum(&self, length: u16) -> Sum {
        let (source, destination) = (self.source.ip(), self.destination.ip());
        Sum::of_pseudo_header(source, destination, IpNumber::UDP.0, u32::from(length))
    }

    /// Writes the Ethernet and IP headers.
    fn write_network(&self, datagram_bytes: u16, frame: &mut [u8]) -> Result<(), FrameError> {
        let no_room = FrameError::NoRoom {
            needed: usize::from(datagram_bytes) + self.header_bytes(),
            room: usize::from(u16::MAX),
        };
        let ethernet = |ether_type| Ethernet2Header {
            source: self.source_mac.0,
            destination: self.destination_mac.0,
            ether_type,
        };
        let (link, network) = frame.split_at_mut(ETHERNET_BYTES);
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                link.copy_from_slice(&ethernet(EtherType::IPV4).to_bytes());
                let (from, to) = (source.octets(), destination.octets());
                let mut header =
                    Ipv4Header::new(datagram_bytes, HOP_LIMIT, IpNumber::UDP, from, to)
                        .map_err(|_| no_room)?;
                header.dont_fragment = true;
                header.header_checksum = header.calc_header_checksum();
                network[..Ipv4Header::MIN_LEN].copy_from_slice(&header.to_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                link.copy_from_slice(&ethernet(EtherType::IPV6).to_bytes());
                let header = Ipv6Header {
                    traffic_class: 0,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: datagram_bytes,
                    next_header: IpNumber::UDP,
                    hop_limit: HOP_LIMIT,
                    source: source.octets(),
                    destination: destination.octets(),
                };
                network[..Ipv6Header::LEN].copy_from_slice(&header.to_bytes());
            }
            _ => return Err(FrameError::MixedFamilies),
        }
        Ok(())
    }
}

/// The constant parts of a frame sent repeatedly with another mark and source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTemplate {
    header_bytes: usize,
    sum: Sum,
}

impl UdpTemplate {
    /// Fills all of `frame`: headers without port and checksum, room for a mark, then digits.
    ///
    /// # Errors
    /// When `frame` is shorter than headers and mark, or too long for a datagram.
    pub fn new(path: &UdpPath, frame: &mut [u8]) -> Result<Self, FrameError> {
        let (header_bytes, room) = (path.header_bytes(), frame.len());
        let needed = header_bytes + MARK_BYTES;
        let no_room = FrameError::NoRoom { needed, room };
        let length = (room + UdpHeader::LEN).saturating_sub(header_bytes);
        let length = u16::try_from(length).map_err(|_| no_room)?;
        frame.fill(0);
        let filler = frame.get_mut(needed..).ok_or(no_room)?;
        for (byte, digit) in filler.iter_mut().zip((b'0'..=b'9').cycle()) {
            *byte = digit;
        }
        path.write_network(length, frame)?;
        path.write_udp(0, length, 0, frame);
        let datagram = &frame[header_bytes - UdpHeader::LEN..];
        Ok(UdpTemplate {
            sum: path.pseudo_sum(length).bytes(datagram),
            header_bytes,
        })
    }

    /// Bytes before the payload.
    pub fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// The sum of pseudo header and datagram, without port, checksum and mark.
    pub fn sum(&self) -> Sum {
        self.sum
    }

    /// Writes port, mark and checksum into a copy of the frame.
    ///
    /// # Panics
    /// When `frame` is shorter than headers and mark.
    pub fn mark(&self, source_port: u16, mark: Mark, frame: &mut [u8]) {
        let udp = self.header_bytes - UdpHeader::LEN;
        let sum = mark.sum(self.sum.word(u32::from(source_port)));
        frame[udp..udp + 2].copy_from_slice(&source_port.to_be_bytes());
        frame[udp + 6..udp + 8].copy_from_slice(&sum.udp_checksum().to_be_bytes());
        frame[self.header_bytes..][..MARK_BYTES].copy_from_slice(&mark.to_bytes());
    }
}
