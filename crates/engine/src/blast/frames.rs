//! The frames of one link: their lengths, marks and order, or those of a capture, and when each is due.
//!
//! Flows take turns, the numbers of each count up from 0, and each flow has all lengths in turn; the kernel's program
//! (bpf/xdp_blast.bpf.c) does the same. Due times are fixed at the start, so a delay shifts nothing that follows. What is read
//! of a capture is bounded, whatever the file claims.

use nicpoll_model::Refused;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use nicpoll_model::Pace;
use nicpoll_sys::bpf_maps::Template;
use nicpoll_sys::packet::Joining;
use nicpoll_wire::frame::{FRAME_BYTES_MIN, FrameError, Mac, Mark, UdpPath, UdpTemplate};
use nicpoll_wire::pcap::{Capture, PcapError};

use crate::error::EngineError;
use crate::runner::clock::now_ns;

/// A simple internet mix: 7 frames of 64 bytes, 4 of 594 and 1 of 1518, no two of the longer ones in a row.
const IMIX: [u32; 12] = [64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594];
const IMIX_NAME: &str = "imix";

/// Lengths in a list, at most: as many as the kernel's program has places for.
const LENGTHS_MAX: usize = 64;
/// Ethernet's shortest frame, and the longest that a page of the kernel's memory may hold.
const FRAME_BYTES: RangeInclusive<u32> = 64..=9_018;

/// The lengths of frames, with FCS, in the order in which each flow has them, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLengths {
    frame_bytes: Vec<u32>,
    is_mix: bool,
}

impl FrameLengths {
    /// The lengths with FCS. In a mix the shortest frame of a network takes the place of shorter ones.
    pub fn frame_bytes(&self, shortest: u32) -> Vec<u32> {
        let at_least = if self.is_mix { shortest } else { 0 };
        let lengths = self.frame_bytes.iter();
        lengths.map(|bytes| (*bytes).max(at_least)).collect()
    }
}

impl FromStr for FrameLengths {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        if text == IMIX_NAME {
            return Ok(FrameLengths {
                frame_bytes: IMIX.to_vec(),
                is_mix: true,
            });
        }
        let length = |part: &str| {
            let length = part.trim().parse().ok();
            length.filter(|length| FRAME_BYTES.contains(length))
        };
        let lengths: Option<Vec<u32>> = text.split(',').map(length).collect();
        match lengths {
            Some(frame_bytes) if frame_bytes.len() <= LENGTHS_MAX => Ok(FrameLengths {
                frame_bytes,
                is_mix: false,
            }),
            _ => Err(format!(
                "'{text}': lengths of frames with FCS were expected, 64 to 9018, {LENGTHS_MAX} at most: 64, or 64,594,1518, \
                 or imix"
            ).into()),
        }
    }
}

/// Flows differ in the sender's port, and these are the ports that nobody is registered for.
pub const FLOW_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// Frames that are handed over as one datagram, and the bytes of their payloads, at most: with more the kernel takes
/// longer for each (measured on a veth).
const JOINED_MAX: usize = 32;
const JOINED_BYTES_MAX: usize = 60_000;

/// FCS, which the card adds.
pub(super) const FCS_BYTES: u32 = nicpoll_model::line::FCS_BYTES as u32;

/// The frames.
#[derive(Clone, Debug)]
pub(super) struct FrameStream {
    path: UdpPath,
    kinds: Vec<FrameKind>,
    pub(super) flows: u16,
    /// What the first flow is called in its marks: another link has flows of its own.
    pub(super) first_flow: u16,
    next: NextFrame,
}

/// Frames of one length.
#[derive(Clone, Debug)]
struct FrameKind {
    template: UdpTemplate,
    bytes: Vec<u8>,
}

/// Which frame is next.
#[derive(Clone, Copy, Debug, Default)]
struct NextFrame {
    sequence: u64,
    flow: u16,
    kind: usize,
    kind_of_first_flow: usize,
}

impl FrameStream {
    /// Frames on a path, whose own port is that of the first flow, of so many bytes each, with FCS, in turn.
    ///
    /// # Errors
    /// When a frame has no room for headers and mark.
    pub(super) fn new(
        path: &UdpPath,
        frame_bytes: &[u32],
        flows: u16,
        first_flow: u16,
    ) -> Result<Self, FrameError> {
        let kind = |frame_bytes: &u32| {
            let mut bytes = vec![0; (frame_bytes - FCS_BYTES) as usize];
            let template = UdpTemplate::new(path, &mut bytes)?;
            Ok(FrameKind { template, bytes })
        };
        Ok(FrameStream {
            path: *path,
            kinds: frame_bytes
                .iter()
                .map(kind)
                .collect::<Result<_, FrameError>>()?,
            flows,
            first_flow,
            next: NextFrame::default(),
        })
    }

    /// Bytes before the payload.
    pub(super) fn header_bytes(&self) -> usize {
        self.kinds[0].template.header_bytes()
    }

    /// The longest frame.
    pub(super) fn longest(&self) -> &[u8] {
        let kinds = self.kinds.iter();
        let longest = kinds.max_by_key(|kind| kind.bytes.len());
        longest.map_or(&[], |kind| &kind.bytes)
    }

    /// How frames can be handed over joined; `None` where one is not like the next.
    pub(super) fn joining(&self) -> Option<Joining> {
        let [kind] = &self.kinds[..] else { return None };
        let payload_bytes = kind.bytes.len() - kind.template.header_bytes();
        let most = (JOINED_BYTES_MAX / payload_bytes).min(JOINED_MAX);
        if self.flows != 1 || most < 2 {
            return None;
        }
        let headers = (1..=most).map(|frames| self.path.partial_headers(frames * payload_bytes));
        Some(Joining {
            headers: headers.collect::<Result<_, _>>().ok()?,
            payload_bytes: payload_bytes as u16,
        })
    }

    /// The frames as the kernel's program has them.
    pub(super) fn templates(&self) -> impl Iterator<Item = Template> {
        self.kinds.iter().map(|kind| {
            let mut head = [0; 64];
            let headers = kind.template.header_bytes();
            head[..headers].copy_from_slice(&kind.bytes[..headers]);
            Template {
                head,
                // In one's complement the order of the bytes of all summands and of the sum may be turned round.
                sum: u32::from(kind.template.sum().folded().swap_bytes()),
                bytes: kind.bytes.len() as u32,
            }
        })
    }

    /// Writes the next frame to the start of memory that has room for it, and returns its length.
    pub(super) fn write(&mut self, into: &mut [u8]) -> Option<usize> {
        let next = self.next;
        let kind = &self.kinds[next.kind];
        let frame = &mut into[..kind.bytes.len()];
        frame.copy_from_slice(&kind.bytes);
        let mark = Mark {
            sequence: next.sequence,
            time_ns: now_ns(),
            flow: self.first_flow.wrapping_add(next.flow),
        };
        let port = FLOW_PORTS.start() + next.flow;
        kind.template.mark(port, mark, frame);
        self.next = next.after(self.flows, self.kinds.len());
        Some(kind.bytes.len())
    }
}

impl FrameStream {
    /// The number of the next frames.
    pub(super) fn sequence(&self) -> u64 {
        self.next.sequence
    }
}

impl NextFrame {
    fn after(self, flows: u16, kinds: usize) -> Self {
        let turn = |kind: usize| if kind + 1 < kinds { kind + 1 } else { 0 };
        if self.flow + 1 < flows {
            return NextFrame {
                flow: self.flow + 1,
                kind: turn(self.kind),
                ..self
            };
        }
        let kind = turn(self.kind_of_first_flow);
        NextFrame {
            sequence: self.sequence + 1,
            flow: 0,
            kind,
            kind_of_first_flow: kind,
        }
    }
}

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
    ) -> Result<Self, EngineError> {
        let shown = file.display();
        let bytes = contents(file)
            .map_err(|error| EngineError::Usage(format!("cannot read {shown}: {error}")))?;
        let refused = |why: String| EngineError::Usage(format!("cannot replay {shown}: {why}"));
        let capture = |error: PcapError| refused(error.to_string());
        let (mut frames, mut cut_off_frames) = (Vec::new(), 0);
        for packet in Capture::parse(&bytes).map_err(capture)?.packets() {
            let packet = packet.map_err(capture)?;
            if !packet.is_ethernet() {
                let why = "its packets have no Ethernet header; record them at an Ethernet interface, not at 'any'";
                return Err(refused(String::from(why)));
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
            let why = "it holds no frame that is whole; record with tcpdump -s 0";
            return Err(refused(String::from(why)));
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
    pub(super) fn schedule(&self) -> FrameSchedule {
        FrameSchedule::recorded(self.frames.iter().map(|frame| frame.at))
    }

    /// Writes the next frame to the start of memory that has room for it, and returns its length; `None` at the end.
    pub(super) fn write(&mut self, into: &mut [u8]) -> Option<usize> {
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

/// Recorded frames come again this long after the last one at least.
const GAP_MIN: Duration = Duration::from_micros(1);

/// When frames are due.
#[derive(Clone, Debug)]
pub(super) enum FrameSchedule {
    /// All at once: as fast as they go.
    Unpaced,
    /// At a rate.
    Paced(Pace),
    /// At times since the start, and again after the last one.
    Recorded {
        times: Arc<[Duration]>,
        /// From one beginning to the next.
        round: Duration,
    },
}

impl FrameSchedule {
    /// Times that do not run backwards, one at least. The first is due at once; the first of the next round as long
    /// after the last as they are apart on average.
    pub(super) fn recorded(times: impl Iterator<Item = Duration>) -> Self {
        let times: Arc<[Duration]> = times.collect();
        let last = times.last().copied().unwrap_or_default();
        let gaps = (times.len() as u32).saturating_sub(1).max(1);
        FrameSchedule::Recorded {
            round: last + (last / gaps).max(GAP_MIN),
            times,
        }
    }

    /// How long until the frame is due that follows on `sent` others, `elapsed` after the start.
    pub(super) fn ahead(&self, sent: u64, elapsed: Duration) -> Duration {
        match self {
            FrameSchedule::Unpaced => Duration::ZERO,
            FrameSchedule::Paced(pace) => pace.ahead(sent, elapsed),
            FrameSchedule::Recorded { times, round } => {
                recorded_at(times, *round, sent).saturating_sub(elapsed)
            }
        }
    }

    /// How many frames are due, of which the next is; `most` at most.
    pub(super) fn due(&self, sent: u64, elapsed: Duration, most: u64) -> u64 {
        match self {
            FrameSchedule::Unpaced => most,
            FrameSchedule::Paced(pace) => pace.due_together(sent, elapsed).min(most),
            FrameSchedule::Recorded { times, round } => (0..most)
                .take_while(|more| recorded_at(times, *round, sent + more) <= elapsed)
                .count() as u64,
        }
    }
}

fn recorded_at(times: &[Duration], round: Duration, sent: u64) -> Duration {
    let rounds = sent / times.len() as u64;
    let at = times[(sent % times.len() as u64) as usize];
    let before = round.as_nanos().saturating_mul(u128::from(rounds));
    Duration::from_nanos(u64::try_from(before).unwrap_or(u64::MAX)).saturating_add(at)
}

/// The frames of a link.
#[derive(Clone)]
pub(super) enum Frames {
    /// Datagrams, made as they are sent.
    Stream(FrameStream),
    /// Those of a capture.
    Replay(Replay),
}

impl Frames {
    /// Writes the next frame to the start of memory that has room for it, and returns its length; `None` at the end.
    pub(super) fn write(&mut self, into: &mut [u8]) -> Option<usize> {
        match self {
            Frames::Stream(stream) => stream.write(into),
            Frames::Replay(replay) => replay.write(into),
        }
    }

    /// Goes on behind so many frames that were sent before: no number comes twice.
    pub(super) fn skip(&mut self, sent: u64) {
        match self {
            Frames::Stream(stream) => {
                stream.next.sequence = sent.div_ceil(u64::from(stream.flows));
            }
            Frames::Replay(replay) => {
                let frames = replay.frames.len() as u64;
                replay.next = match replay.is_endless {
                    true => sent % frames.max(1),
                    false => sent.min(frames),
                } as usize;
            }
        }
    }

    /// How frames can be handed over joined; `None` where one is not like the next.
    pub(super) fn joining(&self) -> Option<Joining> {
        match self {
            Frames::Stream(stream) => stream.joining(),
            Frames::Replay(_) => None,
        }
    }
}

#[cfg(test)]
impl Frames {
    /// So many frames of so many zeros, once.
    pub(super) fn of_zeros(frames: usize, bytes: usize) -> Self {
        let frame = || Recorded {
            at: Duration::ZERO,
            bytes: vec![0; bytes].into(),
        };
        Frames::Replay(Replay {
            frames: (0..frames).map(|_| frame()).collect(),
            next: 0,
            is_endless: false,
            mac: None,
            cut_off_frames: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nicpoll_model::Rate;
    use nicpoll_wire::frame::{Frame, Mac};

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

    fn path(source: &str, destination: &str) -> UdpPath {
        UdpPath {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    #[test]
    fn each_flow_counts_up_and_has_every_length_in_turn() {
        let path = path("198.18.0.1:49152", "198.18.0.2:9");
        let mut stream = FrameStream::new(&path, &[64, 594, 1518], 4, 100).unwrap();
        let mut flows: BTreeMap<u16, Vec<(u64, usize)>> = BTreeMap::new();
        let mut memory = [0; 1514];
        for _ in 0..24 {
            let length = stream.write(&mut memory).unwrap();
            let frame = Frame::parse(&memory[..length]).unwrap();
            let (ip, udp) = frame.udp().unwrap();
            assert!(ip.checksums_hold());
            let mark = Mark::parse(udp.payload).unwrap();
            assert_eq!(udp.source, 49_152 + mark.flow - 100);
            assert!(mark.age_ns(now_ns()).is_some());
            flows
                .entry(mark.flow)
                .or_default()
                .push((mark.sequence, length));
        }
        assert_eq!(
            flows.keys().copied().collect::<Vec<_>>(),
            [100, 101, 102, 103]
        );
        for frames in flows.values() {
            assert!(frames.iter().map(|(number, _)| *number).eq(0..6));
            for length in [60, 590, 1514] {
                assert_eq!(frames.iter().filter(|(_, it)| *it == length).count(), 2);
            }
        }
    }

    #[test]
    fn only_frames_of_one_flow_and_one_length_are_joined() {
        let path = path("198.18.0.1:49152", "198.18.0.2:9");
        let joining = |lengths: &[u32], flows| {
            let stream = FrameStream::new(&path, lengths, flows, 0).unwrap();
            stream.joining().map(|joining| joining.headers.len())
        };
        assert_eq!(joining(&[64], 1), Some(32));
        assert_eq!(joining(&[9018], 1), Some(6));
        assert_eq!(joining(&[64], 2), None);
        assert_eq!(joining(&[64, 594], 1), None);
        let stream = FrameStream::new(&path, &[64], 1, 0).unwrap();
        let Joining {
            headers,
            payload_bytes,
        } = stream.joining().unwrap();
        assert_eq!(payload_bytes, 18);
        // Three frames: the length of IP's packet and of UDP's datagram, and where the first frame is from.
        let of_three = &headers[2];
        assert_eq!(of_three[16..18], 82u16.to_be_bytes());
        assert_eq!(of_three[38..40], 62u16.to_be_bytes());
        assert_eq!(of_three[34..36], 49_152u16.to_be_bytes());
    }

    #[test]
    fn a_frame_that_cannot_hold_its_mark_is_refused() {
        let ipv6 = path("[2001:2::1]:49152", "[2001:2::2]:9");
        assert!(FrameStream::new(&ipv6, &[84], 1, 0).is_ok());
        assert!(FrameStream::new(&ipv6, &[83], 1, 0).is_err());
    }

    #[test]
    fn the_kernels_frames_have_the_sum_of_ours() {
        let path = path("198.18.0.1:49152", "198.18.0.2:9");
        let mut stream = FrameStream::new(&path, &[64], 1, 0).unwrap();
        let [template] = stream.templates().collect::<Vec<_>>()[..] else {
            panic!("one length, one template");
        };
        let mut memory = [0; 60];
        stream.write(&mut memory).unwrap();
        // As the kernel's program does: 16-bit words as a little-endian CPU reads them.
        let changing = [&memory[34..36], &memory[42..60]].concat();
        let words = changing
            .chunks(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]));
        let mut sum = u64::from(template.sum) + words.map(u64::from).sum::<u64>();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!((!(sum as u16)).to_le_bytes(), memory[40..42]);
        assert_eq!(template.head[..34], memory[..34]);
    }

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn recorded_frames_are_due_when_they_came_and_come_again() {
        let schedule = FrameSchedule::recorded([0, 2, 10].into_iter().map(US));
        // A gap of 5 us on average: the second round begins at 15.
        for (sent, elapsed, ahead) in [(0, 0, 0), (1, 0, 2), (2, 3, 7), (3, 10, 5), (4, 0, 17)] {
            assert_eq!(schedule.ahead(sent, US(elapsed)), US(ahead), "{sent}");
        }
        assert_eq!(schedule.due(0, US(2), 64), 2);
        // Six rounds, and the three frames of the seventh at 90, 92 and 100.
        assert_eq!(schedule.due(0, US(100), 64), 21);
        assert_eq!(schedule.due(0, US(100), 5), 5);
    }

    #[test]
    fn one_recorded_frame_does_not_come_all_at_once() {
        let schedule = FrameSchedule::recorded([Duration::ZERO].into_iter());
        assert_eq!(schedule.due(0, US(0), 64), 1);
        assert_eq!(schedule.ahead(1, US(0)), US(1));
    }

    #[test]
    fn a_rate_is_kept_and_no_rate_is_as_fast_as_it_goes() {
        let rate = Rate::packets_per_second(1000).unwrap();
        let paced = FrameSchedule::Paced(Pace::of_datagrams(rate, 0).in_bursts(10));
        assert_eq!(paced.due(0, US(0), 256), 10);
        assert_eq!(paced.ahead(10, US(0)), Duration::from_millis(10));
        assert_eq!(FrameSchedule::Unpaced.due(7, US(0), 256), 256);
    }
}
