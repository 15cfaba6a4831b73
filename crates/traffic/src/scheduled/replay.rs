//! Replay: the datagrams of a capture, with the lengths and at the times that were recorded.
//!
//! What must hold: what is read is bounded, whatever the file claims. Addresses, ports and contents are not
//! replayed: the datagrams go to the study's own receiver and carry numbers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nicpoll_model::{Side, WorkUnit};
use nicpoll_wire::pcap::{Capture, PcapError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Due, Sender};
use crate::netrate::Receiver;
use crate::workload::{End, PreparedEnd, Workload, WorkloadError};

/// Bytes of a capture.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What there is to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayWorkload {
    /// The capture: a classic pcap file of at most 64 MiB. It begins anew when it is over.
    pub file: PathBuf,
    /// Receive buffer to ask for; null asks for 128 KiB, as netreceive does.
    pub receive_buffer_bytes: Option<usize>,
}

/// Why a capture cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is longer than what is read.
    #[error(
        "{} is longer than {} MiB; cut it: tcpdump -r OLD -w NEW -c PACKETS",
        .file.display(),
        FILE_BYTES_MAX >> 20
    )]
    TooLong {
        /// The file.
        file: PathBuf,
    },
    /// It is no capture.
    #[error("cannot replay {}: {source}", .file.display())]
    Capture {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: PcapError,
    },
    /// It holds nothing to replay.
    #[error("{} holds no UDP datagram that is whole; UDP is what is replayed", .file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
}

impl ReplayWorkload {
    /// Whether the capture can be replayed.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn check(&self) -> Result<(), ReplayError> {
        self.datagrams().map(|_| ())
    }

    /// The capture's datagrams.
    fn datagrams(&self) -> Result<Vec<Due>, ReplayError> {
        let file = || self.file.clone();
        let read = read(&self.file).map_err(|source| ReplayError::Read {
            file: file(),
            source,
        })?;
        let bytes = read.ok_or_else(|| ReplayError::TooLong { file: file() })?;
        let of_capture = |source| ReplayError::Capture {
            file: file(),
            source,
        };
        let mut datagrams: Vec<Due> = Vec::new();
        for packet in Capture::parse(&bytes).map_err(of_capture)?.packets() {
            let packet = packet.map_err(of_capture)?;
            datagrams.extend(packet.udp_payload_bytes().map(|payload_bytes| Due {
                at: Duration::from_nanos(packet.time_ns),
                payload_bytes,
            }));
        }
        if datagrams.is_empty() {
            return Err(ReplayError::Empty { file: file() });
        }
        Ok(datagrams)
    }
}

/// The file; `None` when it is too long.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_BYTES_MAX).then_some(bytes))
}

impl Workload for ReplayWorkload {
    fn unit(&self) -> WorkUnit {
        WorkUnit::Datagrams
    }

    fn datagram_bytes(&self) -> Option<u32> {
        None
    }

    fn prepare(&self, end: &End) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => {
                let datagrams = self.datagrams().map_err(WorkloadError::failed)?;
                Box::new(Sender::new(over_and_over(datagrams), end)?)
            }
            Side::Receiver => Box::new(Receiver::at(end.receiver, self.receive_buffer_bytes)?),
        })
    }
}

/// The capture, and the capture again: its first datagram comes as long after the last one as datagrams of it are
/// apart on average, 1 us at least.
fn over_and_over(datagrams: Vec<Due>) -> impl Iterator<Item = Due> {
    let first = datagrams.first().map_or(Duration::ZERO, |due| due.at);
    let length = datagrams
        .last()
        .map_or(Duration::ZERO, |due| due.at - first);
    let gap = length / (datagrams.len() as u32).saturating_sub(1).max(1);
    let round = length + gap.max(Duration::from_micros(1));
    let count = datagrams.len();
    (0_usize..).map(move |sent| {
        let due = datagrams[sent % count];
        Due {
            at: round * (sent / count) as u32 + (due.at - first),
            ..due
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_begins_anew_a_gap_after_its_end() {
        let due = |micros, payload_bytes| Due {
            at: Duration::from_micros(micros),
            payload_bytes,
        };
        let sent: Vec<Due> = over_and_over(vec![due(7, 1), due(9, 2), due(17, 3)])
            .take(5)
            .collect();
        assert_eq!(
            sent,
            [due(0, 1), due(2, 2), due(10, 3), due(15, 1), due(17, 2)]
        );
    }

    #[test]
    fn what_cannot_be_replayed_is_named_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.pcap");
        let replay = ReplayWorkload {
            file: file.clone(),
            receive_buffer_bytes: None,
        };
        let told = |words: &str| {
            let error = replay.check().unwrap_err().to_string();
            assert!(
                error.contains(words) && error.contains("log.pcap"),
                "{error}"
            );
        };
        told("cannot read");
        std::fs::write(&file, "GET / HTTP/1.1").unwrap();
        told("no pcap file");
        let mut empty = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        empty.resize(20, 0);
        empty.extend(1_u32.to_le_bytes());
        std::fs::write(&file, &empty).unwrap();
        told("no UDP datagram");
        File::create(&file)
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        told("longer than 64 MiB");
    }
}
