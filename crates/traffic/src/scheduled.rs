//! Datagrams on a schedule known in advance: pulses, mixes of lengths, and replayed captures.
//!
//! Pulses are bursts of datagrams with silence between them, as from a server that replays a log. A replay has
//! the lengths and times of a capture, but not its addresses and contents. Each datagram is due at its own
//! time, whatever happened to the previous one, so a delayed sender catches up. Datagrams are numbered like
//! netblast's, and netreceive counts them. The size of a capture is limited.

use nicpoll_model::{Refused, Side};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_sys::stdio;
use nicpoll_wire::pcap::{Capture, PcapError};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use serde::{Deserialize, Serialize};

use crate::netrate::sending::{connect_first, number, set_up};
use crate::netrate::workload::NetreceiveEnd;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends, SocketBuffer};
use crate::workload::{EndBooks, EndTerms, Payload, PreparedEnd, Workload, WorkloadError};

/// A scheduled datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DueDatagram {
    /// When, since the start.
    at: Duration,
    /// Its length.
    payload_bytes: u16,
}

/// Sends what is due until its time is over.
struct ScheduledSender {
    socket: UdpSocket,
    flags: SendFlags,
    schedule: Box<dyn Iterator<Item = DueDatagram> + Send>,
    duration: Duration,
    buffer: SocketBuffer,
    /// Sends that the kernel refused.
    refused: RefusedSends,
}

impl ScheduledSender {
    /// A sender connected to the receiver of `end`.
    fn new(
        schedule: impl Iterator<Item = DueDatagram> + Send + 'static,
        end: &EndTerms,
    ) -> Result<Self, WorkloadError> {
        let (socket, peer) = connect_first(&[end.receiver])?;
        Ok(ScheduledSender {
            flags: set_up(&socket, peer, true).map_err(WorkloadError::failed)?,
            buffer: sockets::send_buffer(&socket, None).map_err(WorkloadError::failed)?,
            socket,
            schedule: Box::new(schedule),
            duration: end.duration,
            refused: RefusedSends::default(),
        })
    }

    /// Sends one datagram; returns whether the kernel took it. Waits for room in the socket buffer.
    fn send(&mut self, datagram: &[u8], signals: &Signals) -> bool {
        loop {
            let Err(errno) = send(&self.socket, datagram, self.flags) else {
                return true;
            };
            self.refused.note(&errno.into(), 1);
            let may_pass = matches!(errno, Errno::AGAIN | Errno::INTR);
            if !may_pass || signals.is_cancelled() || signals.is_finishing() {
                return false;
            }
        }
    }
}

impl PreparedEnd for ScheduledSender {
    fn run(mut self: Box<Self>, signals: &Signals) -> Result<EndBooks, WorkloadError> {
        // By default, the kernel may wake a sleeping thread 50 us late: too late for a pulse.
        let slack = current_timer_slack();
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let begun = Instant::now();
        let mut datagram = Vec::new();
        let (mut packets, mut bytes, mut counter) = (0, 0, 0_u32);
        let mut now = Duration::ZERO;
        while let Some(due) = self.schedule.next().filter(|due| due.at < self.duration) {
            while now < due.at && !signals.is_cancelled() && !signals.is_finishing() {
                thread::sleep((due.at - now).min(LOOK_EVERY));
                now = begun.elapsed();
            }
            if signals.is_cancelled() || signals.is_finishing() {
                break;
            }
            datagram.resize(due.payload_bytes.into(), 0);
            number(&mut datagram, counter);
            counter = counter.wrapping_add(1);
            if self.send(&datagram, signals) {
                packets += 1;
                bytes += u64::from(due.payload_bytes);
            }
            now = begun.elapsed();
            // Datagrams late at the end stay unsent: the receiver stops then, too.
            if now >= self.duration {
                break;
            }
        }
        if let Ok(slack) = slack {
            let _ = set_current_timer_slack(NonZeroU64::new(slack));
        }
        signals.check()?;
        let sent = Payload {
            packets: Some(packets),
            bytes,
        };
        // The last pulse ends before its period: the rate is over the requested time.
        let seconds = begun.elapsed().max(self.duration).as_secs_f64();
        Ok(EndBooks {
            control_sent: self.refused.control().to_vec(),
            ..EndBooks::of_sender(sent, seconds, self.buffer)
        })
    }
}

/// Time between pulses.
const PERIOD: Duration = Duration::from_millis(1);

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PulseWorkload {
    /// Bytes of UDP payload in each datagram.
    pub payload_bytes: u16,
    /// Datagrams per pulse. Pulses are 1 ms apart.
    pub packets_per_pulse: NonZeroU32,
    /// Receive buffer to ask for; null is 128 KiB, as in netreceive.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for PulseWorkload {
    fn datagram_bytes(&self) -> Option<u32> {
        Some(self.payload_bytes.into())
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(ScheduledSender::new(schedule(*self), end)?),
            Side::Receiver => Box::new(NetreceiveEnd::at(end.receiver, self.receive_buffer_bytes)?),
        })
    }
}

fn schedule(pulses: PulseWorkload) -> impl Iterator<Item = DueDatagram> {
    let PulseWorkload {
        payload_bytes,
        packets_per_pulse,
        ..
    } = pulses;
    (0_u32..).flat_map(move |pulse| {
        let due = DueDatagram {
            at: PERIOD * pulse,
            payload_bytes,
        };
        std::iter::repeat_n(due, packets_per_pulse.get() as usize)
    })
}

/// Parameters of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixWorkload {
    /// Bytes of UDP payload of the datagrams, one after the other; repeated when they end.
    pub payload_bytes: Vec<u16>,
    /// Datagrams a second, evenly spaced.
    pub packets_per_second: NonZeroU64,
    /// Receive buffer to ask for; null is 128 KiB, as in netreceive.
    pub receive_buffer_bytes: Option<usize>,
}

impl Workload for MixWorkload {
    fn datagram_bytes(&self) -> Option<u32> {
        let first = *self.payload_bytes.first()?;
        let is_even = self.payload_bytes.iter().all(|bytes| *bytes == first);
        is_even.then_some(first.into())
    }

    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => Box::new(ScheduledSender::new(mixed(self.clone()), end)?),
            Side::Receiver => Box::new(NetreceiveEnd::at(end.receiver, self.receive_buffer_bytes)?),
        })
    }
}

fn mixed(mix: MixWorkload) -> impl Iterator<Item = DueDatagram> {
    let gap_ns = 1e9 / mix.packets_per_second.get() as f64;
    let lengths = mix.payload_bytes.into_iter().cycle();
    (0_u64..)
        .zip(lengths)
        .map(move |(number, payload_bytes)| DueDatagram {
            at: Duration::from_nanos((number as f64 * gap_ns) as u64),
            payload_bytes,
        })
}

/// Longest capture.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Parameters of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayWorkload {
    /// The capture: a classic pcap file of at most 64 MiB, repeated when it ends.
    pub file: PathBuf,
    /// Receive buffer to ask for; null is 128 KiB, as in netreceive.
    pub receive_buffer_bytes: Option<usize>,
}

impl ReplayWorkload {
    /// Checks that the capture can be replayed.
    ///
    /// # Errors
    /// Why not, with the file name.
    pub fn check(&self) -> Result<(), Refused> {
        self.datagrams().map(|_| ())
    }

    /// The datagrams of the capture.
    fn datagrams(&self) -> Result<Vec<DueDatagram>, Refused> {
        let file = self.file.display();
        let bytes = stdio::read_bytes(&self.file, FILE_BYTES_MAX).map_err(|error| {
            let cut = match error.kind() {
                ErrorKind::FileTooLarge => "; cut it: tcpdump -r OLD -w NEW -c PACKETS",
                _ => "",
            };
            format!("cannot read {file}: {error}{cut}")
        })?;
        let of_capture = |error: PcapError| format!("cannot replay {file}: {error}");
        let mut datagrams: Vec<DueDatagram> = Vec::new();
        for packet in Capture::parse(&bytes).map_err(of_capture)?.packets() {
            let packet = packet.map_err(of_capture)?;
            datagrams.extend(packet.udp_payload_bytes().map(|payload_bytes| DueDatagram {
                at: Duration::from_nanos(packet.time_ns),
                payload_bytes,
            }));
        }
        if datagrams.is_empty() {
            return Err(
                format!("{file} has no complete UDP datagram, and only UDP is replayed").into(),
            );
        }
        Ok(datagrams)
    }
}

impl Workload for ReplayWorkload {
    fn prepare(&self, end: &EndTerms) -> Result<Box<dyn PreparedEnd>, WorkloadError> {
        Ok(match end.side {
            Side::Sender => {
                let datagrams = self.datagrams().map_err(io::Error::other);
                let datagrams = datagrams.map_err(WorkloadError::failed)?;
                Box::new(ScheduledSender::new(over_and_over(datagrams), end)?)
            }
            Side::Receiver => Box::new(NetreceiveEnd::at(end.receiver, self.receive_buffer_bytes)?),
        })
    }
}

/// Repeats the capture. The gap between its last and first datagram is the average gap within it, at least 1
/// us.
fn over_and_over(datagrams: Vec<DueDatagram>) -> impl Iterator<Item = DueDatagram> {
    let first = datagrams.first().map_or(Duration::ZERO, |due| due.at);
    let length = datagrams
        .last()
        .map_or(Duration::ZERO, |due| due.at - first);
    let gap = length / (datagrams.len() as u32).saturating_sub(1).max(1);
    let round = length + gap.max(Duration::from_micros(1));
    let count = datagrams.len();
    (0_usize..).map(move |sent| {
        let due = datagrams[sent % count];
        DueDatagram {
            at: round * (sent / count) as u32 + (due.at - first),
            ..due
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_is_due_at_once_and_the_next_one_a_period_after_its_beginning() {
        let pulses = PulseWorkload {
            payload_bytes: 100,
            packets_per_pulse: NonZeroU32::new(3).unwrap(),
            receive_buffer_bytes: None,
        };
        let times: Vec<u128> = schedule(pulses)
            .take(7)
            .map(|due| due.at.as_micros())
            .collect();
        assert_eq!(times, [0, 0, 0, 1000, 1000, 1000, 2000]);
    }

    #[test]
    fn a_mix_repeats_its_lengths_at_its_rate() {
        let mix = MixWorkload {
            payload_bytes: vec![18, 18, 548],
            packets_per_second: NonZeroU64::new(1000).unwrap(),
            receive_buffer_bytes: None,
        };
        assert_eq!(mix.datagram_bytes(), None);
        let sent: Vec<_> = mixed(mix).skip(999).take(4).collect();
        let sent = sent
            .iter()
            .map(|due| (due.at.as_millis(), due.payload_bytes));
        assert_eq!(
            sent.collect::<Vec<_>>(),
            [(999, 18), (1000, 18), (1001, 548), (1002, 18)]
        );
    }

    #[test]
    fn a_capture_begins_anew_a_gap_after_its_end() {
        let due = |micros, payload_bytes| DueDatagram {
            at: Duration::from_micros(micros),
            payload_bytes,
        };
        let sent: Vec<DueDatagram> = over_and_over(vec![due(7, 1), due(9, 2), due(17, 3)])
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
        told("not a pcap file");
        let mut empty = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        empty.resize(20, 0);
        empty.extend(1_u32.to_le_bytes());
        std::fs::write(&file, &empty).unwrap();
        told("no complete UDP datagram");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        told("longer than 64 MiB");
    }
}
