//! Frames on their way from a receive queue to an exit, in batches of one poll.
//!
//! The XDP program hands each frame over one hop on, with the place of its exit in place of its type. Each frame is handed to
//! its exit's driver, waits in its ring until the next call, is given back to the kernel by a TAP interface of this process
//! when its exit has gone, or is counted as lost at one place. Frames of one receive queue leave an exit by one transmit
//! queue, so none overtakes another.

use std::fs;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netlink_socket2::NetlinkSocket;
use nicpoll_sys::link::tap::Tap;
use nicpoll_sys::link::{LinkHandle, LinkState};
use nicpoll_sys::packet::Transmit;
use nicpoll_sys::xdp::{XdpSendHalf, XdpSocket};
use nicpoll_wire::frame::{ETHERNET_BYTES, Mac};

use crate::device::interface::EthernetInterface;
use crate::device::port::{PacketInput, Port};
use crate::device::xdp::XdpQueue;
use crate::forward::classifier::ClassifierResult;

/// Where the type is in a frame, and the exit's place in its stead.
const TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Where TTL and checksum are in IPv4's header, and the hop limit in IPv6's.
const TTL_AT: usize = ETHERNET_BYTES + 8;
const CHECKSUM_AT: usize = ETHERNET_BYTES + 10;
const HOP_LIMIT_AT: usize = ETHERNET_BYTES + 7;
/// The bytes of a frame that are looked at.
const HEAD_BYTES: usize = CHECKSUM_AT + 2;

/// The place of the exit, as the program wrote it. `None` when the frame is none of the program's.
pub(super) fn place(frame: &[u8]) -> Option<usize> {
    let head: &[u8; HEAD_BYTES] = frame.first_chunk()?;
    kind(head)?;
    let place = u16::from_ne_bytes([head[TYPE_AT], head[TYPE_AT + 1]]);
    Some(usize::from(place))
}

/// Writes a copy of the frame to the start of `memory` as it is to be sent. Returns its length; `None` when it does not
/// fit.
pub(super) fn write_to_send(frame: &[u8], memory: &mut [u8]) -> Option<usize> {
    let copy = memory.get_mut(..frame.len())?;
    copy.copy_from_slice(frame);
    let head: &mut [u8; HEAD_BYTES] = copy.first_chunk_mut()?;
    let kind = kind(head)?;
    head[TYPE_AT..ETHERNET_BYTES].copy_from_slice(&kind);
    Some(frame.len())
}

/// Writes a copy of the frame to the start of `memory` as it came, but for its addresses: it is for `to`. Returns its
/// length; `None` when it does not fit.
pub(super) fn write_as_it_came(frame: &[u8], to: Mac, memory: &mut [u8]) -> Option<usize> {
    let length = write_to_send(frame, memory)?;
    let head: &mut [u8; HEAD_BYTES] = memory.first_chunk_mut()?;
    head[..6].copy_from_slice(&to.0);
    if kind(head)? == IPV4 {
        head[TTL_AT] += 1;
        // RFC 1624, equation 3: the TTL is the high byte of its word, so the word is 0x0100 more, and its complement as
        // much less.
        let checksum = u16::from_be_bytes([head[CHECKSUM_AT], head[CHECKSUM_AT + 1]]);
        let (sum, borrow) = checksum.overflowing_sub(0x0100);
        let sum = sum - u16::from(borrow);
        head[CHECKSUM_AT..].copy_from_slice(&sum.to_be_bytes());
    } else {
        head[HOP_LIMIT_AT] += 1;
    }
    Some(length)
}

/// The type of the packet in a frame that the program has sent one hop on.
fn kind(head: &[u8; HEAD_BYTES]) -> Option<[u8; 2]> {
    // One with more hops than a byte holds was never one hop on.
    match head[ETHERNET_BYTES] >> 4 {
        4 if head[TTL_AT] < u8::MAX => Some(IPV4),
        6 if head[HOP_LIMIT_AT] < u8::MAX => Some(IPV6),
        _ => None,
    }
}

/// An interface that frames leave by.
struct Exit {
    queues: Vec<Mutex<XdpSendHalf>>,
    frame_bytes_max: usize,
    is_up: AtomicBool,
}

/// Where the frames of all queues go.
pub(super) struct Ways {
    /// The exits, by their places.
    exits: Vec<Exit>,
    /// `None` where the kernel has no TAP interfaces.
    pub(super) leftovers: Option<Leftovers>,
}

impl Ways {
    /// Exits with these queues.
    pub(super) fn new(queues: Vec<Vec<XdpSendHalf>>, leftovers: Option<Leftovers>) -> Self {
        let exits = queues.into_iter().map(|queues| {
            let longest = queues.iter().map(XdpSendHalf::frame_bytes_max);
            Exit {
                frame_bytes_max: longest.min().unwrap_or(0),
                queues: queues.into_iter().map(Mutex::new).collect(),
                is_up: AtomicBool::new(true),
            }
        });
        Ways {
            exits: exits.collect(),
            leftovers,
        }
    }

    /// Whether a frame of so many bytes can leave by an exit.
    pub(super) fn takes(&self, place: usize, frame_bytes: usize) -> bool {
        self.exits.get(place).is_some_and(|exit| {
            exit.is_up.load(Ordering::Relaxed) && frame_bytes <= exit.frame_bytes_max
        })
    }

    /// Takes note of whether an exit is up.
    pub(super) fn note_link(&self, place: usize, is_up: bool) {
        self.exits[place].is_up.store(is_up, Ordering::Relaxed);
    }

    /// Hands the driver what it did not take before.
    pub(super) fn flush(&self, place: usize, queue: usize) {
        if let Some(mut queue) = self.queue(place, queue) {
            let _ = queue.transmit(0, |_| None);
        }
    }

    /// Sends so many frames, which `fill` writes, for the receive queue of that number. Returns how many the driver took,
    /// or are in its ring; for the others ring or driver had no room.
    pub(super) fn send(
        &self,
        place: usize,
        queue: usize,
        frames: u64,
        mut fill: impl FnMut(&mut [u8]) -> Option<usize>,
    ) -> u64 {
        let (mut written, mut refused) = (0, 0);
        if let Some(mut queue) = self.queue(place, queue) {
            let refused_before = queue.refused().unwrap_or(0);
            // When the exit is down, what was written waits in its ring.
            let outcome = queue.transmit(frames as u32, |memory| {
                let length = fill(memory);
                written += u64::from(length.is_some());
                length
            });
            if outcome.is_err() {
                // Until its port finds it up again.
                self.note_link(place, false);
            }
            refused = (queue.refused().unwrap_or(0) - refused_before).min(written);
        }
        written - refused
    }

    /// The transmit queue for frames of the receive queue of that number, as far as the exit has as many.
    fn queue(&self, place: usize, queue: usize) -> Option<MutexGuard<'_, XdpSendHalf>> {
        let queues = &self.exits.get(place)?.queues;
        let queue = queues.get(queue % queues.len().max(1))?;
        Some(queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The beginning of its name, before the number of the process.
const NAME: &str = "npfwd";
/// What a packet that comes by it is treated by: as one that came by any interface of the router.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/conf/{}/forwarding", "1"),
    ("ipv4/conf/{}/rp_filter", "0"),
    ("ipv6/conf/{}/forwarding", "1"),
    ("ipv6/conf/{}/accept_ra", "0"),
];

/// The way back to the kernel.
pub(super) struct Leftovers {
    tap: Tap,
    pub(super) name: String,
    mac: Mac,
}

impl Leftovers {
    /// Makes the interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel has no TAP interfaces.
    pub(super) fn open(socket: &mut NetlinkSocket) -> io::Result<Self> {
        // One process may forward in several namespaces, and again in one.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME}{}-{number}", std::process::id());
        let tap = Tap::open(&name)?;
        // Nobody reads here: what the kernel sends out by it is dropped at once.
        tap.stop()?;
        for (path, value) in SETTINGS {
            // A kernel without a family has no such setting.
            let _ = fs::write(
                format!("/proc/sys/net/{}", path.replace("{}", &name)),
                value,
            );
        }
        let interface = EthernetInterface::named(socket, &name).map_err(io::Error::other)?;
        Ok(Leftovers {
            tap,
            name,
            mac: interface.mac,
        })
    }

    /// Gives a frame back; `memory` is for a copy. Returns whether the kernel took it.
    pub(super) fn give_back(&self, frame: &[u8], memory: &mut Vec<u8>) -> bool {
        memory.resize(frame.len(), 0);
        let length = write_as_it_came(frame, self.mac, memory);
        length.is_some_and(|length| self.tap.send(&memory[..length]).is_ok())
    }
}

/// The frames of one poll.
#[derive(Default)]
struct FrameBatch {
    /// The exit of each frame, and where its bytes are.
    staged: Vec<(usize, Range<usize>)>,
    bytes: Vec<u8>,
}

impl FrameBatch {
    fn add(&mut self, frame: &[u8], exit: usize) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.staged.push((exit, begin..self.bytes.len()));
    }

    /// The frames for an exit, in the order in which they came.
    fn of_exit(&self, exit: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let staged = self.staged.iter().filter(move |(own, _)| *own == exit);
        staged.filter_map(|(_, place)| self.bytes.get(place.clone()))
    }
}

/// Where the frames of a receive queue go.
pub(super) struct Router {
    /// Its interface, by its place.
    pub(super) interface: usize,
    /// Its number at the interface.
    number: usize,
    ways: Arc<Ways>,
    batch: FrameBatch,
    memory: Vec<u8>,
    /// What became of its frames once they were received.
    pub(super) done: ClassifierResult,
}

impl Router {
    /// Of a queue of an interface, both by their numbers.
    pub(super) fn new(interface: usize, number: usize, ways: Arc<Ways>) -> Self {
        Router {
            interface,
            number,
            ways,
            batch: FrameBatch::default(),
            memory: Vec::new(),
            done: ClassifierResult::default(),
        }
    }

    /// The port of the queue.
    pub(super) fn port(self, socket: XdpSocket, link: LinkHandle) -> Port<Self> {
        XdpQueue::port(socket, link, self)
    }

    fn send(&mut self) {
        for exit in 0..self.ways.exits.len() {
            let mut frames = self.batch.of_exit(exit);
            let wanted = frames.clone().count() as u64;
            if wanted == 0 {
                continue;
            }
            let taken = self.ways.send(exit, self.number, wanted, |memory| {
                write_to_send(frames.next()?, memory)
            });
            self.done.forwarded += taken;
            self.done.lost.exit_full += wanted - taken;
        }
        self.batch.staged.clear();
        self.batch.bytes.clear();
    }
}

impl PacketInput for Router {
    /// Hands the driver what it did not take yet.
    fn begin_poll(&mut self) {
        self.ways.flush(self.interface, self.number);
    }

    fn packet(&mut self, frame: &[u8]) {
        let exit = place(frame).filter(|exit| self.ways.takes(*exit, frame.len()));
        match (exit, &self.ways.leftovers) {
            (Some(exit), _) => self.batch.add(frame, exit),
            (None, Some(leftovers)) if leftovers.give_back(frame, &mut self.memory) => {
                self.done.given_back += 1;
            }
            (None, _) => self.done.lost.exit_refused += 1,
        }
    }

    fn end_poll(&mut self, frames: u32) {
        if frames > 0 {
            self.send();
        }
    }

    fn note_link(&mut self, state: LinkState) {
        let is_up = state == LinkState::Up;
        self.ways.note_link(self.interface, is_up);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use nicpoll_sys::netns::{NetNamespace, NetnsThread};
    use nicpoll_testkit::{needs, shell};
    use nicpoll_wire::frame::{Frame, FramePayload, Sum};
    use proptest::prelude::*;

    use super::*;

    const TO: Mac = Mac([2, 0, 0, 0, 0, 9]);

    /// A frame with a right checksum, and the same after one hop as the program makes it, with a place.
    fn before_and_after(mut header: [u8; 20], place: u16) -> (Vec<u8>, Vec<u8>) {
        (header[0], header[2], header[3]) = (0x45, 0, 20);
        (header[6], header[7], header[9]) = (0, 0, 253);
        header[8] = header[8].max(2);
        let with_checksum = |mut header: [u8; 20]| {
            header[10..12].fill(0);
            let checksum = Sum::default().bytes(&header).checksum();
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        };
        let frame = |kind: [u8; 2], header| [&[7; 12][..], &kind, &with_checksum(header)].concat();
        let before = frame(IPV4, header);
        header[8] -= 1;
        (before, frame(place.to_ne_bytes(), header))
    }

    proptest! {
        #[test]
        fn a_frame_is_sent_with_its_type_or_given_back_as_it_came(header: [u8; 20], at in 0..64u16) {
            let (before, handed) = before_and_after(header, at);
            prop_assert_eq!(place(&handed), Some(usize::from(at)));
            let mut memory = [0; 100];
            let length = write_to_send(&handed, &mut memory).unwrap();
            prop_assert_eq!(&memory[..12], &handed[..12]);
            prop_assert_eq!(memory[12..14].to_vec(), IPV4);
            prop_assert_eq!(&memory[14..length], &handed[14..]);
            let length = write_as_it_came(&handed, TO, &mut memory).unwrap();
            prop_assert_eq!(&memory[..6], &TO.0);
            // Of the two zeros of one's complement either is right.
            prop_assert_eq!(&memory[12..CHECKSUM_AT], &before[12..CHECKSUM_AT]);
            prop_assert_eq!(&memory[CHECKSUM_AT + 2..length], &before[CHECKSUM_AT + 2..]);
            let FramePayload::Ip(ip) = Frame::parse(&memory[..length]).unwrap().packet else {
                return Err(TestCaseError::fail("it is no IP"));
            };
            prop_assert!(ip.checksums_hold());
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let mut memory = [0; 100];
            let sent = write_to_send(&bytes, &mut memory);
            prop_assert_eq!(sent.is_some(), place(&bytes).is_some() && bytes.len() <= 100);
            prop_assert_eq!(write_as_it_came(&bytes, TO, &mut memory), sent);
        }
    }

    #[test]
    fn an_ipv6_packet_gets_its_hop_back() {
        let mut packet = [0; 40];
        (packet[0], packet[7]) = (0x60, 1);
        let handed = [&[7; 12][..], &3u16.to_ne_bytes(), &packet].concat();
        assert_eq!(place(&handed), Some(3));
        let mut memory = [0; 54];
        assert_eq!(write_as_it_came(&handed, TO, &mut memory), Some(54));
        assert_eq!((&memory[12..14], memory[HOP_LIMIT_AT]), (&IPV6[..], 2));
        assert_eq!(place(&handed[..20]), None);
    }

    #[test]
    fn the_kernel_takes_a_frame_back_as_it_came() {
        needs!(Root, Ip);
        let host = NetnsThread::enter(NetNamespace::create().unwrap(), || ()).unwrap();
        shell(&host, "ip link set lo up\nip addr add 198.18.0.1/32 dev lo");
        let (name, payload) = host
            .run(|()| {
                let receiver = UdpSocket::bind("198.18.0.1:9").unwrap();
                receiver
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
                let leftovers = Leftovers::open(&mut NetlinkSocket::new()).unwrap();
                // To 198.18.0.1 from 198.18.0.2, one hop on, with its exit in place of its type; no UDP checksum.
                let mut frame = vec![7; 12];
                frame.extend([3, 0]);
                frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 63, 17, 0xef, 0xa5]);
                frame.extend([198, 18, 0, 2, 198, 18, 0, 1]);
                frame.extend([0, 9, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
                assert!(leftovers.give_back(&frame, &mut Vec::new()));
                assert!(!leftovers.give_back(&frame[..20], &mut Vec::new()));
                let mut payload = [0; 4];
                receiver.recv(&mut payload).unwrap();
                (leftovers.name.clone(), payload)
            })
            .unwrap();
        assert_eq!(payload, [1, 2, 3, 4]);
        // It goes with its value.
        let links = shell(&host, "ip link");
        assert!(!links.contains(&name), "{links}");
    }
}
