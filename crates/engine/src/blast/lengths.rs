//! How long the frames are that follow on each other.

use std::str::FromStr;

use thiserror::Error;

/// A simple internet mix: 7 frames of 64 bytes, 4 of 594 and 1 of 1518, none of the longer ones beside each other.
const IMIX: [u32; 12] = [64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594];
const IMIX_NAME: &str = "imix";

/// Lengths in a list, at most: as many as the kernel's program has places for.
const LENGTHS_MAX: usize = 64;
/// Ethernet's shortest frame, and the longest that a page of the kernel's memory may hold.
const FRAME_BYTES: std::ops::RangeInclusive<u32> = 64..=9_018;

/// The lengths of frames, with FCS, in the order in which each flow has them, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLengths {
    frame_bytes: Vec<u32>,
    is_mix: bool,
}

/// A text is no list of lengths.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}': lengths of frames with FCS were expected, 64 to 9018, {LENGTHS_MAX} at most: 64, or 64,594,1518, or imix"
)]
pub struct LengthsError(String);

impl FrameLengths {
    /// All frames of one length, with FCS.
    pub fn one(frame_bytes: u32) -> Self {
        FrameLengths {
            frame_bytes: vec![frame_bytes],
            is_mix: false,
        }
    }

    /// The lengths with FCS. In a mix the shortest frame of a network takes the place of shorter ones.
    pub fn frame_bytes(&self, shortest: u32) -> Vec<u32> {
        let at_least = if self.is_mix { shortest } else { 0 };
        let lengths = self.frame_bytes.iter();
        lengths.map(|bytes| (*bytes).max(at_least)).collect()
    }
}

impl FromStr for FrameLengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, LengthsError> {
        if text == IMIX_NAME {
            return Ok(FrameLengths {
                frame_bytes: IMIX.to_vec(),
                is_mix: true,
            });
        }
        let of = |part: &str| {
            part.trim()
                .parse()
                .ok()
                .filter(|it| FRAME_BYTES.contains(it))
        };
        let lengths: Option<Vec<u32>> = text.split(',').map(of).collect();
        lengths
            .filter(|lengths| lengths.len() <= LENGTHS_MAX)
            .map(|frame_bytes| FrameLengths {
                frame_bytes,
                is_mix: false,
            })
            .ok_or_else(|| LengthsError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_seven_to_four_to_one() {
        let mix: FrameLengths = "imix".parse().unwrap();
        let count = |bytes| {
            mix.frame_bytes(64)
                .iter()
                .filter(|it| **it == bytes)
                .count()
        };
        assert_eq!([count(64), count(594), count(1518)], [7, 4, 1]);
        // What cannot be as short, such as IPv6 with a mark, is as short as can be.
        assert_eq!(mix.frame_bytes(84)[..3], [84, 594, 84]);
    }

    #[test]
    fn a_list_is_taken_as_it_is_and_nonsense_is_refused() {
        let list: FrameLengths = "64, 1518".parse().unwrap();
        assert_eq!(list.frame_bytes(84), [64, 1518]);
        let many = vec!["64"; 65].join(",");
        for text in ["", "63", "9019", "64,", "IMIX", "64;65", many.as_str()] {
            assert!(text.parse::<FrameLengths>().is_err(), "{text}");
        }
    }
}
