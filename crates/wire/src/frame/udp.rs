//! Frames of UDP over IPv4 and IPv6.
//!
//! What must hold: what is written parses back to the same, and its checksums hold, whatever is marked later.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, Ethernet2Header, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, UdpHeader,
};

use super::{ETHERNET_BYTES, FRAME_BYTES_MIN, FrameError, MARK_BYTES, Mac, Mark, Sum};

/// The hop limit that hosts send with.
const HOP_LIMIT: u8 = 64;

/// From where to where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPath {
    /// Hardware address of the interface that sends.
    pub source_mac: Mac,
    /// That of the receiver, or of the next router.
    pub destination_mac: Mac,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Those of the receiver.
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

    /// Writes a frame with this payload, padded with zeros to the shortest length. Returns its length.
    ///
    /// # Errors
    /// When there is no room for it, or the addresses are of two families.
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
        let udp = UdpHeader {
            source_port: self.source.port(),
            destination_port: self.destination.port(),
            length,
            checksum: sum
                .word(u32::from(self.source.port()))
                .word(u32::from(self.destination.port()))
                .word(u32::from(length))
                .udp_checksum(),
        };
        head[headers - UdpHeader::LEN..].copy_from_slice(&udp.to_bytes());
        Ok(needed)
    }

    /// The headers of a datagram whose checksum somebody else completes: it holds the sum of the pseudo header, as the
    /// kernel and cards want it of a long datagram that they cut up.
    ///
    /// # Errors
    /// When the payload is longer than a datagram can be, or the addresses are of two families.
    pub fn partial_headers(&self, payload_bytes: usize) -> Result<Vec<u8>, FrameError> {
        let (headers, needed) = (self.header_bytes(), UdpHeader::LEN + payload_bytes);
        let room = usize::from(u16::MAX);
        let length = u16::try_from(needed).map_err(|_| FrameError::NoRoom { needed, room })?;
        let mut head = vec![0; headers];
        self.write_network(length, &mut head)?;
        let udp = UdpHeader {
            source_port: self.source.port(),
            destination_port: self.destination.port(),
            length,
            checksum: self.pseudo_sum(length).folded(),
        };
        head[headers - UdpHeader::LEN..].copy_from_slice(&udp.to_bytes());
        Ok(head)
    }

    fn pseudo_sum(&self, length: u16) -> Sum {
        let (source, destination) = (self.source.ip(), self.destination.ip());
        Sum::of_pseudo_header(source, destination, IpNumber::UDP.0, u32::from(length))
    }

    /// Ethernet's header and that of IP.
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

/// What does not change of a frame that is sent over and over, each time with another mark and from another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTemplate {
    header_bytes: usize,
    sum: Sum,
}

impl UdpTemplate {
    /// Fills `frame`, all of it: headers without port and checksum, room for a mark, and digits behind it.
    ///
    /// # Errors
    /// When `frame` is shorter than headers and mark, or longer than a datagram can be.
    pub fn new(path: &UdpPath, frame: &mut [u8]) -> Result<Self, FrameError> {
        let (header_bytes, room) = (path.header_bytes(), frame.len());
        let needed = header_bytes + MARK_BYTES;
        let no_room = FrameError::NoRoom { needed, room };
        let length = (room + UdpHeader::LEN).saturating_sub(header_bytes);
        let length = u16::try_from(length).map_err(|_| no_room)?;
        frame.fill(0);
        for (at, byte) in frame
            .get_mut(needed..)
            .ok_or(no_room)?
            .iter_mut()
            .enumerate()
        {
            *byte = b'0' + (at % 10) as u8;
        }
        path.write_network(length, frame)?;
        let udp = UdpHeader {
            source_port: 0,
            destination_port: path.destination.port(),
            length,
            checksum: 0,
        };
        let datagram = &mut frame[header_bytes - UdpHeader::LEN..];
        datagram[..UdpHeader::LEN].copy_from_slice(&udp.to_bytes());
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
