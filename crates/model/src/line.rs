//! Line-rate arithmetic: the cost of a packet on an Ethernet line, and the document of `nicpoll linerate`.
//!
//! Counts preamble, gap, padding, VLAN tags, IP fragments and TCP segments.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{Rate, RateUnit};

/// Preamble (7) and start frame delimiter (1) before each frame.
pub const PREAMBLE_BYTES: u64 = 8;
/// Least gap after each frame: 96 bit times.
pub const GAP_BYTES: u64 = 12;
/// Destination and source address, and type.
pub const MAC_HEADER_BYTES: u64 = 14;
/// Frame check sequence.
pub const FCS_BYTES: u64 = 4;
/// Shortest frame, with check sequence; shorter ones are padded. A VLAN tag counts towards it.
pub const FRAME_MIN_BYTES: u64 = 64;
/// One VLAN tag.
const VLAN_TAG_BYTES: u64 = 4;
/// MTU of Ethernet: the longest data field of a basic frame (clause 3.2.7).
pub const MTU_BYTES: u32 = 1500;

const UDP_HEADER_BYTES: u64 = 8;
const TCP_HEADER_BYTES: u64 = 20;
/// The timestamps option (RFC 7323) with its padding; Linux sends it in every segment.
const TCP_TIMESTAMPS_BYTES: u64 = 12;
/// The fragment header of IPv6 (RFC 8200, section 4.5).
const IPV6_FRAGMENT_BYTES: u64 = 8;
/// All fragments but the last carry a multiple of this (RFC 791, RFC 8200).
const FRAGMENT_UNIT_BYTES: u64 = 8;
/// Frame lengths of the simple Internet mix, with their frequencies. Its IP packets of 40, 576 and 1500 bytes are what
/// generators call IMIX.
const IMIX: [(u64, u32); 3] = [(7, 64), (4, 594), (1, 1518)];

/// The frame lengths of RFC 2544, section 9.1.
pub const RFC_2544_FRAMES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// Returns the frames of the simple Internet mix in an order that spreads each length evenly.
pub fn imix_frames() -> Vec<u32> {
    let all: u64 = IMIX.iter().map(|(times, _)| times).sum();
    let mut placed: Vec<(u64, u32)> = Vec::new();
    for (times, bytes) in IMIX {
        placed.extend((0..times).map(|one| ((2 * one + 1) * all / times, bytes)));
    }
    placed.sort();
    placed.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Returns the UDP payload of a frame over IPv4; `None` if it is too short or too long for one datagram.
pub fn payload_of_frame(bytes: u32) -> Option<u16> {
    let around = MAC_HEADER_BYTES + FCS_BYTES + IpVersion::V4.header_bytes() + UDP_HEADER_BYTES;
    let payload = u64::from(bytes).checked_sub(around)?;
    (u64::from(bytes) >= FRAME_MIN_BYTES).then_some(payload as u16)
}

/// Largest value of the length fields of IP and UDP.
const LENGTH_FIELD_MAX: u64 = 65_535;

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4 without options.
    #[default]
    V4,
    /// IPv6 without extension headers, except a fragment header.
    V6,
}

impl IpVersion {
    fn header_bytes(self) -> u64 {
        match self {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        }
    }
}

/// The unit that rates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinePacket {
    /// A frame as generators and RFC 2544 count it: with check sequence, without tags.
    Frame {
        /// Its length; it is padded below 64.
        bytes: u32,
    },
    /// The simple Internet mix (IMIX): seven frames of 64, four of 594 and one of 1518 bytes. Its cost is that of all
    /// twelve.
    Imix,
    /// One UDP datagram, fragmented above the MTU.
    Udp {
        /// IP version.
        ip: IpVersion,
        /// Bytes that the program sends.
        payload_bytes: u32,
    },
    /// One write to a TCP stream, in as many segments as needed.
    Tcp {
        /// IP version.
        ip: IpVersion,
        /// Bytes that the program writes.
        payload_bytes: u32,
        /// Whether each segment has the timestamps option, which is Linux's default.
        has_timestamps: bool,
    },
}

impl LinePacket {
    /// Packets in one cost, as a rate counts them.
    fn counted(self) -> u64 {
        match self {
            LinePacket::Imix => IMIX.iter().map(|(times, _)| times).sum(),
            LinePacket::Frame { .. } | LinePacket::Udp { .. } | LinePacket::Tcp { .. } => 1,
        }
    }
}

/// An Ethernet line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Speed at layer 1 in bits per second, each way.
    pub bits_per_second: NonZeroU64,
    /// Longest IP packet in a frame.
    pub mtu_bytes: u32,
    /// VLAN tags in each frame.
    pub vlan_tags: u8,
}

/// The cost of one packet on the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Payload per packet; null for a frame.
    pub payload_bytes: Option<u64>,
    /// Frames per packet: above 1 it is fragmented (UDP) or segmented (TCP).
    pub frames: u64,
    /// Bytes of all frames of a packet, with padding and check sequences (layer 2).
    pub frame_bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
    /// Bytes of its frames with preamble and gap (layer 1). The exact packet rate is the line's bits per second divided
    /// by eight times this.
    pub line_bytes: u64,
}

/// One frame of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFrame {
    /// The frame with preamble and gap (layer 1).
    pub line_bytes: u32,
    /// Bytes of the datagram's payload in it.
    pub payload_bytes: u32,
}

/// A datagram, fragmented for the MTU.
struct Cut {
    /// IP header of each fragment.
    header: u64,
    /// Bytes of the datagram in each fragment but the last.
    full: u64,
    full_ones: u64,
    /// Bytes of the datagram in the last fragment.
    last: u64,
}

impl Line {
    /// Makes an untagged line with an MTU of 1500; `None` at speed 0.
    pub fn new(bits_per_second: u64) -> Option<Self> {
        Some(Line {
            bits_per_second: NonZeroU64::new(bits_per_second)?,
            mtu_bytes: MTU_BYTES,
            vlan_tags: 0,
        })
    }

    /// Returns the cost of a packet on this line.
    ///
    /// # Errors
    /// [`LineError`] when such a packet cannot be sent here.
    pub fn cost(&self, packet: LinePacket) -> Result<Cost, LineError> {
        match packet {
            LinePacket::Frame { bytes } => self.frame(bytes),
            LinePacket::Imix => self.mix(),
            LinePacket::Udp { ip, payload_bytes } => self.datagram(ip, payload_bytes),
            LinePacket::Tcp {
                ip,
                payload_bytes,
                has_timestamps,
            } => self.segments(ip, payload_bytes, has_timestamps),
        }
    }

    /// Returns the line's utilization in one direction over `seconds`, from an interface's counters of frames and of
    /// their bytes without check sequence. `None` for a time of 0.
    pub fn share_of_counters(&self, frames: u64, bytes: u64, seconds: f64) -> Option<f64> {
        let shortest = frames.saturating_mul(FRAME_MIN_BYTES - FCS_BYTES);
        let around = frames.saturating_mul(FCS_BYTES + PREAMBLE_BYTES + GAP_BYTES);
        let bits = 8.0 * bytes.max(shortest).saturating_add(around) as f64;
        let share = bits / (self.bits_per_second.get() as f64 * seconds);
        (seconds > 0.0).then_some(share)
    }

    /// Returns the share of the line that a rate takes, one way: above 1 it exceeds the line. `None` when such a packet
    /// cannot be sent here, or for a rate in bits of packets without payload.
    pub fn share(&self, packet: LinePacket, rate: Rate) -> Option<f64> {
        let packets_per_second = match rate.unit() {
            RateUnit::PacketsPerSecond => rate.per_second(),
            RateUnit::BitsPerSecond => match self.cost(packet).ok()?.rated_bytes() {
                0 => return None,
                bytes => rate.per_second() * packet.counted() as f64 / (8 * bytes) as f64,
            },
        };
        self.share_of_packets(packet, packets_per_second)
    }

    /// Returns that share for a measured packet rate. `None` also when the rate is negative or not finite.
    pub fn share_of_packets(&self, packet: LinePacket, packets_per_second: f64) -> Option<f64> {
        let is_rate = packets_per_second.is_finite() && packets_per_second >= 0.0;
        let line_bits = (8 * self.cost(packet).ok()?.line_bytes) as f64 / packet.counted() as f64;
        is_rate.then(|| packets_per_second * line_bits / self.bits_per_second.get() as f64)
    }

    /// Computes how many whole units per second a full line carries, with `each_packet` units in a packet.
    fn at_full(&self, each_packet: u64, cost: &Cost) -> u64 {
        let all = u128::from(each_packet) * u128::from(self.bits_per_second.get());
        u64::try_from(all / u128::from(8 * cost.line_bytes)).unwrap_or(u64::MAX)
    }

    /// Returns the packet rate of a full line.
    pub fn packets_per_second(&self, cost: &Cost) -> u64 {
        self.at_full(1, cost)
    }

    fn mix(&self) -> Result<Cost, LineError> {
        let mut all = Cost::default();
        for (times, bytes) in IMIX {
            let one = self.frame(bytes)?;
            all.frames += times;
            all.frame_bytes += times * one.frame_bytes;
            all.padding_bytes += times * one.padding_bytes;
            all.line_bytes += times * one.line_bytes;
        }
        Ok(all)
    }

    fn frame(&self, bytes: u32) -> Result<Cost, LineError> {
        let data_bytes = u64::from(bytes).saturating_sub(MAC_HEADER_BYTES + FCS_BYTES);
        if data_bytes > u64::from(self.mtu_bytes) {
            // An Ethernet frame is never fragmented.
            return Err(LineError(format!(
                "a frame of {bytes} bytes carries {data_bytes}, which is above the MTU of {}, and a frame is not \
                 fragmented; give an MTU of {data_bytes} or a shorter frame",
                self.mtu_bytes
            )));
        }
        // A short frame is padded before it is tagged, as on a port that adds the tag.
        let padded = u64::from(bytes).max(FRAME_MIN_BYTES);
        let frame_bytes = padded + u64::from(self.vlan_tags) * VLAN_TAG_BYTES;
        Ok(Cost {
            frames: 1,
            payload_bytes: None,
            frame_bytes,
            padding_bytes: padded - u64::from(bytes),
            line_bytes: frame_bytes + PREAMBLE_BYTES + GAP_BYTES,
        })
    }

    fn datagram(&self, ip: IpVersion, payload_bytes: u32) -> Result<Cost, LineError> {
        self.see_that_ip_fits(ip)?;
        let payload = u64::from(payload_bytes);
        let counted = match ip {
            IpVersion::V4 => ip.header_bytes() + UDP_HEADER_BYTES,
            IpVersion::V6 => UDP_HEADER_BYTES,
        };
        let max_bytes = LENGTH_FIELD_MAX - counted;
        if payload > max_bytes {
            return Err(LineError(format!(
                "a UDP payload of {payload_bytes} bytes is too long; it can have {max_bytes}"
            )));
        }
        let mut cost = Cost::of(payload);
        let cut = self.cut(ip, payload);
        self.add(&mut cost, cut.full_ones, cut.header + cut.full);
        self.add(&mut cost, 1, cut.header + cut.last);
        Ok(cost)
    }

    /// Returns how IP carries a datagram: in one packet, or in fragments.
    fn cut(&self, ip: IpVersion, payload: u64) -> Cut {
        let mtu = u64::from(self.mtu_bytes);
        let datagram = payload + UDP_HEADER_BYTES;
        let mut header = ip.header_bytes();
        let (mut full, mut full_ones) = (0, 0);
        if datagram + header > mtu {
            if ip == IpVersion::V6 {
                header += IPV6_FRAGMENT_BYTES;
            }
            let last_max = mtu - header;
            full = last_max / FRAGMENT_UNIT_BYTES * FRAGMENT_UNIT_BYTES;
            full_ones = (datagram - last_max).div_ceil(full);
        }
        Cut {
            header,
            full,
            full_ones,
            last: datagram - full_ones * full,
        }
    }

    /// Returns the frames of one UDP datagram, in order: one, or one per fragment.
    ///
    /// # Errors
    /// [`LineError`] when such a datagram cannot be sent here.
    pub fn datagram_frames(
        &self,
        ip: IpVersion,
        payload_bytes: u32,
    ) -> Result<Vec<DatagramFrame>, LineError> {
        self.datagram(ip, payload_bytes)?;
        let cut = self.cut(ip, u64::from(payload_bytes));
        let mut left = payload_bytes;
        let full = std::iter::repeat_n(cut.full, cut.full_ones as usize);
        let frame = |(index, carried): (usize, u64)| {
            let mut cost = Cost::of(0);
            self.add(&mut cost, 1, cut.header + carried);
            // The UDP header is in the first. All lengths are below 2^16 bytes, frames a little above.
            let udp = if index == 0 { UDP_HEADER_BYTES } else { 0 };
            let payload_bytes = left.min((carried - udp) as u32);
            left -= payload_bytes;
            DatagramFrame {
                line_bytes: cost.line_bytes as u32,
                payload_bytes,
            }
        };
        Ok(full.chain([cut.last]).enumerate().map(frame).collect())
    }

    fn segments(
        &self,
        ip: IpVersion,
        payload_bytes: u32,
        has_timestamps: bool,
    ) -> Result<Cost, LineError> {
        self.see_that_ip_fits(ip)?;
        let options = u64::from(has_timestamps) * TCP_TIMESTAMPS_BYTES;
        let header = ip.header_bytes() + TCP_HEADER_BYTES + options;
        let segment = u64::from(self.mtu_bytes) - header;
        let payload = u64::from(payload_bytes);
        let mut cost = Cost::of(payload);
        let full_ones = payload / segment;
        self.add(&mut cost, full_ones, header + segment);
        let rest = payload % segment;
        // A segment without payload is an acknowledgement.
        if rest > 0 || full_ones == 0 {
            self.add(&mut cost, 1, header + rest);
        }
        Ok(cost)
    }

    fn see_that_ip_fits(&self, ip: IpVersion) -> Result<(), LineError> {
        // RFC 791, RFC 8200 section 5.
        let min_bytes = match ip {
            IpVersion::V4 => 68,
            IpVersion::V6 => 1280,
        };
        if self.mtu_bytes < min_bytes {
            return Err(LineError(format!(
                "an MTU of {} is too small for this version of IP; give {min_bytes} or more",
                self.mtu_bytes
            )));
        }
        Ok(())
    }

    /// Adds frames with this many bytes of IP packet each.
    fn add(&self, cost: &mut Cost, frames: u64, ip_bytes: u64) {
        let tags = u64::from(self.vlan_tags) * VLAN_TAG_BYTES;
        let bare = MAC_HEADER_BYTES + tags + ip_bytes + FCS_BYTES;
        let frame = bare.max(FRAME_MIN_BYTES);
        cost.frames += frames;
        cost.frame_bytes += frames * frame;
        cost.padding_bytes += frames * (frame - bare);
        cost.line_bytes += frames * (frame + PREAMBLE_BYTES + GAP_BYTES);
    }
}

impl Cost {
    fn of(payload_bytes: u64) -> Self {
        Cost {
            payload_bytes: Some(payload_bytes),
            ..Cost::default()
        }
    }

    /// The bytes that a rate in bits counts.
    fn rated_bytes(&self) -> u64 {
        self.payload_bytes.unwrap_or(self.frame_bytes)
    }
}

/// Why a packet cannot be sent on a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LineError(String);

/// Name and version of the JSON of [`LineRates`].
pub const LINE_RATES_SCHEMA: &str = "nicpoll.linerate/1";

/// Rates of a line at full load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRates {
    /// Name and version of this layout: [`LINE_RATES_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The line.
    pub line: LineFacts,
    /// One row for each packet in question.
    pub rows: Vec<LineRow>,
}

/// The line of the rates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineFacts {
    /// Speed at layer 1, each way.
    pub bits_per_second: u64,
    /// Longest IP packet in a frame.
    pub mtu_bytes: u32,
    /// VLAN tags in each frame.
    pub vlan_tags: u8,
    /// The interface with this speed; null when the speed was given.
    pub interface: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// Whether the interface has no line, and its driver merely reports a speed. Null when the speed was given.
    pub is_nominal: Option<bool>,
}

/// Version of the Internet Protocol, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpNumber(
    /// 4 or 6.
    #[schemars(range(min = 4, max = 6))]
    pub u8,
);

impl From<IpVersion> for IpNumber {
    fn from(ip: IpVersion) -> Self {
        IpNumber(match ip {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        })
    }
}

/// Full-line rates of one kind of packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRow {
    /// `frame`, `imix` (seven frames of 64 bytes, four of 594, one of 1518, counted together), `udp` or `tcp`.
    pub packet: String,
    /// IP version; null for a frame.
    pub ip_version: Option<IpNumber>,
    /// Requested length: payload, or the frame with its check sequence and without tags.
    pub asked_bytes: u32,
    /// Cost of a packet on the line.
    #[serde(flatten)]
    pub cost: Cost,
    /// Whole packets per second at full line.
    pub packets_per_second: u64,
    /// Whole frames per second at full line.
    pub frames_per_second: u64,
    /// Bits of frames (layer 2) per second at full line, rounded down.
    pub frame_bits_per_second: u64,
    /// Bits of payload per second at full line, rounded down; null for a frame.
    pub payload_bits_per_second: Option<u64>,
    /// The rate in question; null when none was given.
    pub rate: Option<RateShare>,
}

/// A rate as a share of the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateShare {
    /// Packets per second, if the rate was given so.
    pub packets_per_second: Option<f64>,
    /// Bits of payload (for a frame: of layer 2) per second, if the rate was given so.
    pub bits_per_second: Option<f64>,
    /// Share of the line, each way; above 1 the rate exceeds the line. Null for a rate in bits of packets without
    /// payload.
    pub line_ratio: Option<f64>,
}

impl LineRow {
    /// Computes the rates of a packet on a line, and the share of the line that a rate takes.
    ///
    /// # Errors
    /// See [`Line::cost`].
    pub fn new(line: &Line, packet: LinePacket, rate: Option<Rate>) -> Result<Self, LineError> {
        let cost = line.cost(packet)?;
        let (name, ip, asked_bytes) = match packet {
            LinePacket::Frame { bytes } => ("frame", None, bytes),
            LinePacket::Imix => (
                "imix",
                None,
                IMIX.map(|(times, bytes)| times as u32 * bytes).iter().sum(),
            ),
            LinePacket::Udp { ip, payload_bytes } => ("udp", Some(ip), payload_bytes),
            LinePacket::Tcp {
                ip, payload_bytes, ..
            } => ("tcp", Some(ip), payload_bytes),
        };
        Ok(LineRow {
            packet: String::from(name),
            ip_version: ip.map(IpNumber::from),
            asked_bytes,
            cost,
            packets_per_second: line.at_full(packet.counted(), &cost),
            frames_per_second: line.at_full(cost.frames, &cost),
            frame_bits_per_second: line.at_full(8 * cost.frame_bytes, &cost),
            payload_bits_per_second: cost
                .payload_bytes
                .map(|bytes| line.at_full(8 * bytes, &cost)),
            rate: rate.map(|rate| {
                let of = |unit| (rate.unit() == unit).then(|| rate.per_second());
                RateShare {
                    packets_per_second: of(RateUnit::PacketsPerSecond),
                    bits_per_second: of(RateUnit::BitsPerSecond),
                    line_ratio: line.share(packet, rate),
                }
            }),
        })
    }
}

#[cfg(test)]
mod tests;
