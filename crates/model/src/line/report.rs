//! What `nicpoll linerate --json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IpVersion, Line, LineError, Packet};
use crate::{Rate, RateUnit};

/// Name and version of the JSON that [`LineRates`] becomes.
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
    /// One for each packet that was asked for.
    pub rows: Vec<LineRow>,
}

/// The line that rates are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineFacts {
    /// Speed at layer 1, each way.
    pub bits_per_second: u64,
    /// The longest IP packet in a frame.
    pub mtu_bytes: u32,
    /// VLAN tags in each frame.
    pub vlan_tags: u8,
    /// The interface whose speed it is; null when the speed was given.
    pub interface: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// Whether the interface has no line, so that its speed is a mere word of its driver. Null when
    /// the speed was given.
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

/// What the line carries of one kind of packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRow {
    /// `frame`, `udp` or `tcp`.
    pub packet: String,
    /// What carries it; null for a frame.
    pub ip_version: Option<IpNumber>,
    /// What was asked for: payload, or the frame with its check sequence and without tags.
    pub asked_bytes: u32,
    /// Payload a packet; null for a frame.
    pub payload_bytes: Option<u64>,
    /// Frames a packet: above 1 it is fragmented (UDP) or segmented (TCP).
    pub frames: u64,
    /// All frames of a packet, padding and check sequences included (layer 2).
    pub frame_bytes: u64,
    /// Padding in them.
    pub padding_bytes: u64,
    /// Frames with preamble and gap (layer 1). The exact rate is the line's bits a second over eight
    /// times this.
    pub line_bytes: u64,
    /// Whole packets a second at full line.
    pub packets_per_second: u64,
    /// Whole frames a second at full line.
    pub frames_per_second: u64,
    /// Bits of frames a second (layer 2) at full line, cut to a whole number.
    pub frame_bits_per_second: u64,
    /// Bits of payload a second at full line, cut to a whole number; null for a frame.
    pub payload_bits_per_second: Option<u64>,
    /// The rate that was asked about; null when none was.
    pub rate: Option<RateShare>,
}

/// A rate as a share of the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateShare {
    /// Packets a second, when they were asked about.
    pub packets_per_second: Option<f64>,
    /// Bits of payload (of a frame: of layer 2) a second, when they were asked about.
    pub bits_per_second: Option<f64>,
    /// Share of the line, each way; above 1 it is more than the line can carry. Null when packets
    /// without payload were to make bits.
    pub line_ratio: Option<f64>,
}

impl LineRow {
    /// The rates of a packet on a line, and the share of it that a rate takes.
    ///
    /// # Errors
    /// See [`Line::cost`].
    pub fn new(line: &Line, packet: Packet, rate: Option<Rate>) -> Result<Self, LineError> {
        let cost = line.cost(packet)?;
        let (name, ip, asked_bytes) = match packet {
            Packet::Frame { bytes } => ("frame", None, bytes),
            Packet::Udp { ip, payload_bytes } => ("udp", Some(ip), payload_bytes),
            Packet::Tcp {
                ip, payload_bytes, ..
            } => ("tcp", Some(ip), payload_bytes),
        };
        Ok(LineRow {
            packet: String::from(name),
            ip_version: ip.map(IpNumber::from),
            asked_bytes,
            payload_bytes: cost.payload_bytes,
            frames: cost.frames,
            frame_bytes: cost.frame_bytes,
            padding_bytes: cost.padding_bytes,
            line_bytes: cost.line_bytes,
            packets_per_second: line.packets_per_second(&cost),
            frames_per_second: line.frames_per_second(&cost),
            frame_bits_per_second: line.frame_bits_per_second(&cost),
            payload_bits_per_second: line.payload_bits_per_second(&cost),
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
