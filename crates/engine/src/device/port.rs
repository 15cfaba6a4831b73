//! What the engine polls: a receive queue of an interface as a [`Port`].
//!
//! A port has a [`ReceiveQueue`] of any device, and a [`PacketInput`] that gets its frames. A poll makes one call for a batch of
//! frames.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

use nicpoll_core::{Command, Device};
use nicpoll_model::engine::{RefusedDevice, SinkFates};
use nicpoll_sys::link::{LinkHandle, LinkState};
use nicpoll_sys::packet::ReceiverDrops;
use nicpoll_sys::xdp::{AttachMode, XdpSendHalf};
use nicpoll_wire::frame::{Frame, FramePayload, Transport};

use crate::device::presence::state_of;
use crate::error::EngineError;

/// A way to an interface's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A card's queue in memory that the kernel and the program share, past the kernel's stack.
    AfXdp,
    /// A copy of each frame; the kernel goes on with it.
    AfPacket,
    /// The program's own end of a link.
    Tap,
}

/// Which frames are taken: UDP over IPv4 and IPv6, by destination port. Fragments, packets with IPv4 options or IPv6
/// extension headers, and frames with a VLAN tag are left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// UDP to one of these ports.
    Ports(BTreeSet<u16>),
    /// All UDP.
    AllUdp,
}

impl Take {
    pub(crate) fn word(&self, word: u32) -> u64 {
        match self {
            Take::AllUdp => u64::MAX,
            Take::Ports(ports) => ports
                .iter()
                .filter(|port| u32::from(**port) / 64 == word)
                .fold(0, |bits, port| bits | 1 << (port % 64)),
        }
    }

    /// Whether a frame is one of these, where no program of the kernel's has looked.
    pub(crate) fn wants(&self, frame: &[u8]) -> bool {
        let Ok(Frame {
            vlan: None,
            packet: FramePayload::Ip(ip),
            ..
        }) = Frame::parse(frame)
        else {
            return false;
        };
        match ip.transport {
            Transport::Udp(udp) if !ip.is_fragment && !ip.has_extensions => match self {
                Take::Ports(ports) => ports.contains(&udp.destination),
                Take::AllUdp => true,
            },
            _ => false,
        }
    }
}

/// What is to be received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reception<'a> {
    /// The interface, in the network namespace of the calling thread.
    pub interface: &'a str,
    /// Which packets.
    pub take: &'a Take,
    /// Frames that each queue keeps until they are polled for, where that can be chosen; a power of two.
    pub frames: u32,
    /// Frames that each queue has room for until they are sent, for a device that sends too; a power of two, or 0 to send
    /// nothing.
    pub transmit_frames: u32,
}

/// An interface that is open for receiving.
pub struct Opened<I> {
    /// By what.
    pub kind: DeviceKind,
    /// Its receive queues.
    pub ports: Vec<Port<I>>,
    /// What each of them sends by, where that was asked for: the transmit queue of the same number.
    pub senders: Vec<XdpSendHalf>,
    /// What brings their frames. It has to outlive the ports' use.
    pub intake: Box<dyn Intake>,
    /// Where the XDP program runs, if there is one.
    pub program_mode: Option<AttachMode>,
    /// Whether frames come without being copied.
    pub is_zero_copy: bool,
    /// The faster devices that do not work here, and why.
    pub refused: Vec<RefusedDevice>,
}

impl<I: PacketInput + Send + 'static> Opened<I> {
    /// An interface that is open by one queue, without an XDP program.
    pub(super) fn by(kind: DeviceKind, port: Port<I>, intake: impl Intake + 'static) -> Self {
        Opened {
            kind,
            ports: vec![port],
            senders: Vec::new(),
            intake: Box::new(intake),
            program_mode: None,
            is_zero_copy: false,
            refused: Vec::new(),
        }
    }
}

/// Where the packets of a port go: the protocols, in the original.
pub trait PacketInput {
    /// A frame has come, Ethernet header first. It is gone after the call.
    fn packet(&mut self, frame: &[u8]);

    /// A poll begins.
    fn begin_poll(&mut self) {}

    /// A poll ends, which brought so many frames.
    fn end_poll(&mut self, _frames: u32) {}

    /// A check of status found the interface like that.
    fn note_link(&mut self, _state: LinkState) {}
}

impl<F: FnMut(&[u8])> PacketInput for F {
    fn packet(&mut self, frame: &[u8]) {
        self(frame);
    }
}

/// What came of asking the kernel to run a port's NAPI in the port's own polls, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BusyPolling {
    /// The kernel does not allow it.
    Refused,
    /// Nothing: the kernel told the port no NAPI, as on a veth.
    NoNapi,
    /// It runs there.
    Acts,
}

impl BusyPolling {
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            BusyPolling::Refused => "refused",
            BusyPolling::NoNapi => "no-napi",
            BusyPolling::Acts => "acts",
        }
    }
}

/// What brings an interface's frames to its ports, for as long as it lives.
pub trait Intake: Send {
    /// Brings nothing more; what has come already stays.
    fn stop(&mut self);

    /// What became of all frames so far.
    ///
    /// # Errors
    /// When what counted them cannot be read.
    fn fates(&self) -> Result<SinkFates, EngineError>;
}

/// What checks of status saw of an interface.
#[derive(Clone, Copy, Debug)]
pub struct LinkWatch {
    /// What the last check found.
    pub state: LinkState,
    /// Checks that found it no longer up.
    pub losses: u64,
    /// As of the last check, if any.
    mtu_bytes: Option<u32>,
    /// Checks that found another MTU than the one before.
    pub mtu_changes: u64,
}

impl LinkWatch {
    /// Of an interface that was up when its device was opened.
    pub fn up() -> Self {
        LinkWatch {
            state: LinkState::Up,
            losses: 0,
            mtu_bytes: None,
            mtu_changes: 0,
        }
    }

    /// Takes note of what a check found. An interface that is gone has no MTU.
    pub(crate) fn observe(&mut self, state: LinkState, mtu_bytes: Option<u32>) {
        if state != LinkState::Up && self.state == LinkState::Up {
            self.losses += 1;
        }
        self.state = state;
        let Some(mtu_bytes) = mtu_bytes else { return };
        let before = self.mtu_bytes.replace(mtu_bytes);
        self.mtu_changes += u64::from(before.is_some_and(|before| before != mtu_bytes));
    }
}

/// A receive queue of some device, whose packets go to an `I`. Which device it is costs one virtual call per poll.
pub trait ReceiveQueue<I>: Send {
    /// Gives up to `most` frames that wait to `input`, oldest first, without waiting for any. Returns how many.
    fn receive(&mut self, most: u32, input: &mut I) -> u32;

    /// Frames that wait for a poll; 1 while any wait, where the device does not tell how many.
    fn waiting(&self) -> u32;

    /// What poll(2) reports as readable while frames wait.
    fn fd(&self) -> BorrowedFd<'_>;

    /// What was lost here.
    ///
    /// # Errors
    /// When the interface is gone, and its counters with it.
    fn drops(&self) -> io::Result<ReceiverDrops>;

    /// A check of status found this MTU; `None` when the interface is gone.
    fn note_check(&mut self, _mtu_bytes: Option<u32>) {}

    /// Asks the kernel to run its NAPI in this queue's polls, where the device has such a thing.
    fn prefer_busy_polling(&mut self) {}

    /// What came of that; `None` where it was not asked for, or the device has no such thing.
    fn busy_polling(&self) -> Option<BusyPolling> {
        None
    }
}

/// A receive queue at an interface.
///
/// `count` of [`Device::poll`] counts frames, and so does its work. With interrupts off no arrival wakes anybody.
pub struct Port<I> {
    /// The queue.
    pub queue: Box<dyn ReceiveQueue<I>>,
    /// Where its packets go.
    pub input: I,
    /// Whether arrivals wake anybody.
    pub has_interrupts: bool,
    /// The interface, as checks of status found it.
    pub watch: LinkWatch,
    link: LinkHandle,
    /// As of the last check of status that found its counters.
    last_drops: ReceiverDrops,
}

impl<I: PacketInput> Port<I> {
    /// Of a queue that was just opened, at an interface that is up.
    pub fn new(queue: impl ReceiveQueue<I> + 'static, link: LinkHandle, input: I) -> Self {
        let mut watch = LinkWatch::up();
        watch.observe(LinkState::Up, link.mtu_bytes().ok());
        Port {
            queue: Box::new(queue),
            input,
            has_interrupts: true,
            watch,
            link,
            last_drops: ReceiverDrops::default(),
        }
    }

    /// Checks the interface's status.
    pub(crate) fn check(&mut self) {
        let (state, mtu_bytes) = (state_of(&self.link), self.link.mtu_bytes().ok());
        self.watch.observe(state, mtu_bytes);
        self.queue.note_check(mtu_bytes);
        self.last_drops = self.drops();
        self.input.note_link(state);
    }

    /// What poll(2) reports as readable while frames wait; `None` while interrupts are off, and once the interface is
    /// gone: nothing will come from it.
    pub fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        let can_wake = self.has_interrupts && self.watch.state != LinkState::Gone;
        can_wake.then(|| self.queue.fd())
    }

    /// What was lost here; as of the last check once the interface is gone.
    pub fn drops(&self) -> ReceiverDrops {
        self.queue.drops().unwrap_or(self.last_drops)
    }
}

impl<I: PacketInput> Device for Port<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            self.check();
        }
        self.input.begin_poll();
        let received = self.queue.receive(count, &mut self.input);
        self.input.end_poll(received);
        received
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_link_counts_losses_and_changes_of_its_mtu_whatever_comes_with_them() {
        let mut link = LinkWatch::up();
        let seen = |link: &LinkWatch| (link.state, link.losses, link.mtu_changes);
        for (state, mtu_bytes, losses, mtu_changes) in [
            (LinkState::Up, Some(1500), 0, 0),
            (LinkState::Up, Some(1500), 0, 0),
            (LinkState::Down, Some(9000), 1, 1),
            (LinkState::Down, Some(9000), 1, 1),
            (LinkState::Up, Some(1500), 1, 2),
            (LinkState::Gone, None, 2, 2),
        ] {
            link.observe(state, mtu_bytes);
            assert_eq!(seen(&link), (state, losses, mtu_changes));
        }
    }

    /// A queue without frames.
    struct Pipe(std::io::PipeReader);

    impl<I> ReceiveQueue<I> for Pipe {
        fn receive(&mut self, _most: u32, _input: &mut I) -> u32 {
            0
        }

        fn waiting(&self) -> u32 {
            0
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        fn drops(&self) -> io::Result<ReceiverDrops> {
            Ok(ReceiverDrops::default())
        }
    }

    #[test]
    fn each_port_is_one_bit() {
        let take = Take::Ports(BTreeSet::from([0, 63, 64, 9000, 65535]));
        assert_eq!(take.word(0), 1 | 1 << 63);
        assert_eq!(take.word(1), 1);
        assert_eq!(take.word(9000 / 64), 1 << (9000 % 64));
        assert_eq!(take.word(1023), 1 << 63);
        assert_eq!(take.word(2), 0);
        let bits = |take: &Take| {
            (0..1024)
                .map(|word| take.word(word).count_ones())
                .sum::<u32>()
        };
        assert_eq!(bits(&take), 5);
        assert_eq!(bits(&Take::AllUdp), 65_536);
    }

    #[test]
    fn arrivals_wake_nobody_without_interrupts_or_without_an_interface() {
        let (pipe, _other) = std::io::pipe().unwrap();
        let link = LinkHandle::named("lo").unwrap();
        let mut port = Port::new(Pipe(pipe), link, |_: &[u8]| ());
        assert!(port.wake_up().is_some());
        port.set_interrupts(false);
        assert!(port.wake_up().is_none());
        port.set_interrupts(true);
        // One that is down may come up again.
        for (state, wakes) in [(LinkState::Down, true), (LinkState::Gone, false)] {
            port.watch.observe(state, None);
            assert_eq!(port.wake_up().is_some(), wakes, "{state:?}");
        }
        // No interface has this index.
        (port.link, port.watch) = (LinkHandle::of_index(1 << 30).unwrap(), LinkWatch::up());
        port.poll(Command::PollAndCheckStatus, 0);
        assert_eq!(port.watch.state, LinkState::Gone);
    }
}
