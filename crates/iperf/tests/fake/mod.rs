//! Imitates iperf 2.0.5 to 2.0.13: what they send, and what they accept.
//!
//! Bytes, ids and order are those that the originals were seen to send, and an answer counts only where the
//! original looks for it. Does not use the parsers under test.

pub mod tcp;
pub mod udp_client;
pub mod udp_server;

use std::time::Duration;

/// Longer than any answer takes, so a missing one fails instead of hanging.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A version, by its patch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

pub const V2_0_5: Version = Version(5);
pub const V2_0_8: Version = Version(8);
pub const V2_0_10: Version = Version(10);
pub const V2_0_12: Version = Version(12);
pub const V2_0_13: Version = Version(13);

pub const ALL: [Version; 5] = [V2_0_5, V2_0_8, V2_0_10, V2_0_12, V2_0_13];

impl Version {
    /// Offset of the client header in a datagram, and of the report in an answer.
    pub fn base(self) -> usize {
        if self < V2_0_10 { 12 } else { 16 }
    }

    /// Length below which an answer counts as a bare acknowledgement.
    pub fn shortest_report(self) -> usize {
        match self.0 {
            0..=5 => 52,
            6..=9 => 112,
            10..=12 => 120,
            _ => 128,
        }
    }

    /// Whether this version writes the upper half of an id.
    pub fn has_wide_ids(self) -> bool {
        self >= V2_0_13
    }

    /// The answer to a client header with an extension.
    pub fn header_ack(self) -> Vec<u8> {
        words(&[2, 28, 0, 0x0002_0000, self.0 << 16 | 3, 0, 0])
    }
}

/// Whether a client sends its header (not with -C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Sent,
    LeftOut,
}

/// Digits, as in every buffer.
pub fn filler(length: usize) -> Vec<u8> {
    (0..length)
        .map(|offset| b'0' + (offset % 10) as u8)
        .collect()
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

pub fn put(bytes: &mut [u8], offset: usize, values: &[u32]) {
    let values = words(values);
    bytes[offset..offset + values.len()].copy_from_slice(&values);
}

/// A server's report, as sent or as the client read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub bytes: u64,
    pub lost: u64,
    pub out_of_order: u64,
    pub datagrams: u64,
    /// Seconds and microseconds.
    pub jitter: (u32, u32),
    pub elapsed: (u32, u32),
}
