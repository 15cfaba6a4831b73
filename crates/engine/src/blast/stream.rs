//! The frames of one link: which come after which, with what ports, lengths and marks.
//!
//! What must hold: flows take turns, the numbers of each count up from 0, and each flow has all lengths in turn. The
//! kernel's program (bpf/xdp_blast.bpf.c) does the same.

use std::ops::RangeInclusive;

use nicpoll_sys::bpf_maps::Template;
use nicpoll_sys::packet::Joining;
use nicpoll_wire::frame::{FrameError, Mark, UdpPath, UdpTemplate};

use super::source::FrameSource;
use crate::clock::now_ns;

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
pub(super) struct Stream {
    path: UdpPath,
    kinds: Vec<Kind>,
    flows: u16,
    /// What the first flow is called in its marks: another link has flows of its own.
    first_flow: u16,
    next: Next,
}

/// Frames of one length.
#[derive(Clone, Debug)]
struct Kind {
    template: UdpTemplate,
    bytes: Vec<u8>,
}

/// Which frame is next.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    sequence: u64,
    flow: u16,
    kind: usize,
    kind_of_first_flow: usize,
}

impl Stream {
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
            Ok(Kind { template, bytes })
        };
        Ok(Stream {
            path: *path,
            kinds: frame_bytes
                .iter()
                .map(kind)
                .collect::<Result<_, FrameError>>()?,
            flows,
            first_flow,
            next: Next::default(),
        })
    }

    /// Bytes before the payload.
    pub(super) fn header_bytes(&self) -> usize {
        self.kinds[0].template.header_bytes()
    }

    pub(super) fn flows(&self) -> u16 {
        self.flows
    }

    pub(super) fn first_flow(&self) -> u16 {
        self.first_flow
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
}

impl FrameSource for Stream {
    fn write(&mut self, into: &mut [u8]) -> Option<usize> {
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

impl Next {
    fn after(self, flows: u16, kinds: usize) -> Self {
        let turn = |kind: usize| if kind + 1 < kinds { kind + 1 } else { 0 };
        if self.flow + 1 < flows {
            return Next {
                flow: self.flow + 1,
                kind: turn(self.kind),
                ..self
            };
        }
        let kind = turn(self.kind_of_first_flow);
        Next {
            sequence: self.sequence + 1,
            flow: 0,
            kind,
            kind_of_first_flow: kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nicpoll_wire::frame::{Frame, Mac};

    use super::*;

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
        let mut stream = Stream::new(&path, &[64, 594, 1518], 4, 100).unwrap();
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
            let stream = Stream::new(&path, lengths, flows, 0).unwrap();
            stream.joining().map(|joining| joining.headers.len())
        };
        assert_eq!(joining(&[64], 1), Some(32));
        assert_eq!(joining(&[9018], 1), Some(6));
        assert_eq!(joining(&[64], 2), None);
        assert_eq!(joining(&[64, 594], 1), None);
        let stream = Stream::new(&path, &[64], 1, 0).unwrap();
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
        assert!(Stream::new(&ipv6, &[84], 1, 0).is_ok());
        assert!(Stream::new(&ipv6, &[83], 1, 0).is_err());
    }

    #[test]
    fn the_kernels_frames_have_the_sum_of_ours() {
        let path = path("198.18.0.1:49152", "198.18.0.2:9");
        let mut stream = Stream::new(&path, &[64], 1, 0).unwrap();
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
}
