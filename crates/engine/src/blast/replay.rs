//! The frames of a capture, at the times at which they were recorded.
//!
//! What must hold: what is read is bounded, whatever the file claims. A frame that the recording cut off is not sent,
//! and is counted.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nicpoll_wire::frame::{FRAME_BYTES_MIN, Mac};
use nicpoll_wire::pcap::Capture;

use super::error::BlastError;
use super::schedule::Schedule;
use super::source::FrameSource;
use super::stream::FCS_BYTES;

/// Bytes of a capture.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The frames, sent once or over and over.
#[derive(Clone)]
pub(super) struct Replay {
    frames: Arc<[Recorded]>,
    next: usize,
    is_endless: bool,
    /// The hardware address that frames are sent to instead of that which was recorded.
    mac: Option<Mac>,
    /// Frames that the recording cut off.
    pub(super) cut_off_frames: u64,
}

/// A frame and when it came, since the first.
struct Recorded {
    at: Duration,
    bytes: Box<[u8]>,
}

impl Replay {
    /// Reads a capture of Ethernet frames.
    ///
    /// # Errors
    /// When it cannot be read, or holds no whole frame.
    pub(super) fn read(
        file: &Path,
        is_endless: bool,
        mac: Option<Mac>,
    ) -> Result<Self, BlastError> {
        let bytes = contents(file).map_err(|source| BlastError::Read {
            file: file.to_owned(),
            source,
        })?;
        let capture = |source| BlastError::Capture {
            file: file.to_owned(),
            source,
        };
        let nothing = |why| BlastError::NothingToReplay {
            file: file.to_owned(),
            why,
        };
        let (mut frames, mut cut_off_frames) = (Vec::new(), 0);
        for packet in Capture::parse(&bytes).map_err(capture)?.packets() {
            let packet = packet.map_err(capture)?;
            if !packet.is_ethernet() {
                return Err(nothing(
                    "its packets have no Ethernet header; record them at an Ethernet interface, not at 'any'",
                ));
            }
            if packet.is_cut_off() {
                cut_off_frames += 1;
                continue;
            }
            let mut frame = packet.bytes.to_vec();
            frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
            frames.push(Recorded {
                at: Duration::from_nanos(packet.time_ns),
                bytes: frame.into(),
            });
        }
        if frames.is_empty() {
            return Err(nothing(
                "it holds no frame that is whole; record with tcpdump -s 0",
            ));
        }
        Ok(Replay {
            frames: frames.into(),
            next: 0,
            is_endless,
            mac,
            cut_off_frames,
        })
    }

    /// The longest frame, with FCS.
    pub(super) fn frame_bytes_max(&self) -> u32 {
        let lengths = self.frames.iter().map(|frame| frame.bytes.len() as u32);
        lengths.max().unwrap_or(0) + FCS_BYTES
    }

    /// When its frames are due.
    pub(super) fn schedule(&self) -> Schedule {
        Schedule::recorded(self.frames.iter().map(|frame| frame.at))
    }
}

impl FrameSource for Replay {
    fn write(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.next == self.frames.len() {
            if !self.is_endless {
                return None;
            }
            self.next = 0;
        }
        let frame = &self.frames[self.next].bytes;
        self.next += 1;
        into[..frame.len()].copy_from_slice(frame);
        if let Some(mac) = self.mac {
            into[..6].copy_from_slice(&mac.0);
        }
        Some(frame.len())
    }
}

fn contents(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = File::open(file)?.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it is longer than {} MiB; cut it: tcpdump -r OLD -w NEW -c PACKETS",
            FILE_BYTES_MAX >> 20
        )));
    }
    Ok(bytes)
}
