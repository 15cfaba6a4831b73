//! What nicpoll writes into the payload of each frame that it sends: its number, when it went, and of which flow it is.
//!
//! What must hold: the mark begins with netblast's number, so whoever checks those can read it; and all of it fits the
//! shortest Ethernet frame of UDP over IPv4, whose payload has 18 bytes.
//!
//! | bytes | what, big-endian |
//! |---|---|
//! | 0 to 3 | the lower half of the sequence number: netblast's counter |
//! | 4 to 7 | its upper half |
//! | 8 to 15 | when it was sent, in ns of CLOCK_MONOTONIC |
//! | 16 to 17 | the flow |

use super::Sum;

/// Bytes of a mark.
pub const MARK_BYTES: usize = 18;

/// A stamp of a later time is none, and so is one that is older than this.
const AGE_NS_MAX: u64 = 3_600_000_000_000;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Number within the flow, from 0.
    pub sequence: u64,
    /// When it was sent, by CLOCK_MONOTONIC of the sender.
    pub time_ns: u64,
    /// The flow, from 0.
    pub flow: u16,
}

impl Mark {
    /// The mark at the start of a payload; `None` when that is too short. Any 18 bytes are a mark: [`Mark::age_ns`]
    /// tells whether they are likely to be one.
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

    /// How long ago it was sent, by the clock that its sender read; `None` for a time that is not within the last hour.
    /// The chance that other bytes pass for a time is one in five million; those of a sender on another host are
    /// not told apart by it.
    pub fn age_ns(&self, now_ns: u64) -> Option<u64> {
        let age_ns = now_ns.checked_sub(self.time_ns)?;
        (self.time_ns > 0 && age_ns <= AGE_NS_MAX).then_some(age_ns)
    }

    /// The mark as bytes of a payload.
    pub fn to_bytes(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..4].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        bytes[4..8].copy_from_slice(&((self.sequence >> 32) as u32).to_be_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes[16..].copy_from_slice(&self.flow.to_be_bytes());
        bytes
    }

    /// What it adds to a checksum.
    pub fn sum(self, sum: Sum) -> Sum {
        // The halves of the sequence number may stand in either order.
        sum.long(self.sequence)
            .long(self.time_ns)
            .word(u32::from(self.flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark {
        sequence: 0x0102_0304_0506_0708,
        time_ns: 0x1112_1314_1516_1718,
        flow: 0x2122,
    };

    #[test]
    fn a_mark_begins_with_the_number_of_netblast() {
        let bytes = MARK.to_bytes();
        assert_eq!(bytes[..4], 0x0506_0708_u32.to_be_bytes());
        assert_eq!(Mark::parse(&bytes), Some(MARK));
        assert_eq!(Mark::parse(&bytes[..17]), None);
        assert_eq!(
            MARK.sum(Sum::default()).folded(),
            Sum::default().bytes(&bytes).folded()
        );
    }

    #[test]
    fn a_time_that_cannot_be_is_none() {
        let sent = |time_ns| Mark { time_ns, ..MARK };
        assert_eq!(sent(1000).age_ns(1500), Some(500));
        assert_eq!(sent(1501).age_ns(1500), None);
        assert_eq!(sent(0).age_ns(1500), None);
        assert_eq!(sent(1).age_ns(AGE_NS_MAX + 2), None);
    }
}
