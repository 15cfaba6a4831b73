//! What the engine polls and sends by: a receive queue of an interface as a [`Port`], and a [`Transmit`].
//!
//! [`QueuePort`] is the one port: a [`Queue`] of any device, and a [`PacketInput`] that gets its frames. A poll makes one
//! call for a batch of frames; which device it is costs one virtual call per poll.

use std::io;
use std::os::fd::BorrowedFd;

use nicpoll_core::{Command, Device};
use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::XdpDrops;

use crate::error::EngineError;

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

/// Frames that a port lost, by place, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// The ring had no room.
    pub ring_full: u64,
    /// No memory was free, or the frame was too long for it.
    pub no_memory: u64,
}

impl PortDrops {
    /// All of them.
    pub fn frames(self) -> u64 {
        self.ring_full + self.no_memory
    }
}

impl From<XdpDrops> for PortDrops {
    fn from(drops: XdpDrops) -> Self {
        PortDrops {
            ring_full: drops.ring_full,
            no_memory: drops.no_memory,
        }
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

/// A device with what only a real one has.
///
/// `count` of [`Device::poll`] counts frames, and so does its work. With interrupts off no arrival wakes anybody.
pub trait Port: Device + Send {
    /// Where its packets go.
    type Input;

    /// Where its packets go.
    fn input(&self) -> &Self::Input;

    /// The same, to be changed.
    fn input_mut(&mut self) -> &mut Self::Input;

    /// Frames that wait for a poll; 1 while any wait, where the device does not tell how many.
    fn waiting(&self) -> u32;

    /// What poll(2) reports as readable while frames wait; `None` while interrupts are off, and once the interface is
    /// gone: nothing will come from it.
    fn wake_up(&self) -> Option<BorrowedFd<'_>>;

    /// The interface, as checks of status found it.
    fn link(&self) -> LinkWatch;

    /// What was lost here.
    fn drops(&self) -> PortDrops;

    /// Asks the kernel to run its NAPI in this port's polls, where the device has such a thing.
    fn prefer_busy_polling(&mut self) {}

    /// What came of that; `None` where it was not asked for, or the device has no such thing.
    fn busy_polling(&self) -> Option<BusyPolling> {
        None
    }
}

/// A port of whatever device: which one is asked once a poll, and not once a packet.
pub type AnyPort<I> = Box<dyn Port<Input = I>>;

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

/// A device that sends frames, Ethernet header first and without FCS.
///
/// Waits for nothing. Each frame that `fill` wrote is handed to the kernel or stays in the device's
/// ring, where the next call finds it; none is lost in between. The kernel may still drop what it was handed, and
/// counts that at the interface.
pub trait Transmit {
    /// Frames that could be written now.
    fn room(&mut self) -> u32;

    /// Has up to `most` frames written and hands them to the kernel. `fill` writes a frame to the start of the device's
    /// own memory, which has room for the interface's longest and holds anything, and returns its length, or `None` when
    /// there is no more to send. Returns how many were written: 0 when there is no room.
    ///
    /// # Errors
    /// When the interface is down or gone. What was written before stays in the ring.
    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32>;

    /// Frames that the kernel has finished with since the device was opened: sent, or dropped by the interface.
    fn sent(&self) -> u64;

    /// Of those, how many the interface dropped since its queue was full; `None` where the kernel does not say.
    fn refused(&self) -> Option<u64> {
        None
    }
}

/// What checks of status saw of an interface.
#[derive(Clone, Copy, Debug)]
pub struct LinkWatch {
    state: LinkState,
    losses: u64,
    /// As of the last check, if any.
    mtu_bytes: Option<u32>,
    mtu_changes: u64,
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

    /// What the last check found.
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// Checks that found it no longer up.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Checks that found another MTU than the one before.
    pub fn mtu_changes(&self) -> u64 {
        self.mtu_changes
    }
}

/// A receive queue of some device.
pub trait Queue: Send {
    /// Shows up to `most` frames that wait, oldest first, without waiting for any. Returns how many.
    fn receive(&mut self, most: u32, each: impl FnMut(&[u8])) -> u32;

    /// As [`Port::waiting`].
    fn waiting(&self) -> u32;

    /// What poll(2) reports as readable while frames wait.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Looks at the interface: its state and MTU. One that is gone has none.
    fn check(&mut self) -> (LinkState, Option<u32>);

    /// As [`Port::drops`], also once the interface is gone.
    fn drops(&self) -> PortDrops;

    /// As [`Port::prefer_busy_polling`].
    fn prefer_busy_polling(&mut self) {}

    /// As [`Port::busy_polling`].
    fn busy_polling(&self) -> Option<BusyPolling> {
        None
    }
}

/// A queue whose packets go to `I`.
pub struct QueuePort<Q, I> {
    pub(super) queue: Q,
    input: I,
    has_interrupts: bool,
    link: LinkWatch,
}

impl<Q: Queue, I: PacketInput> QueuePort<Q, I> {
    /// Of a queue that was just opened, at an interface that is up.
    pub(crate) fn new(mut queue: Q, input: I) -> Self {
        let mut link = LinkWatch::up();
        link.observe(LinkState::Up, queue.check().1);
        QueuePort {
            queue,
            input,
            has_interrupts: true,
            link,
        }
    }
}

impl<Q: Queue, I: PacketInput> Device for QueuePort<Q, I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            let (state, mtu_bytes) = self.queue.check();
            self.link.observe(state, mtu_bytes);
            self.input.note_link(state);
        }
        let input = &mut self.input;
        input.begin_poll();
        let received = self.queue.receive(count, |frame| input.packet(frame));
        input.end_poll(received);
        received
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }
}

impl<Q: Queue, I: PacketInput + Send> Port for QueuePort<Q, I> {
    type Input = I;

    fn input(&self) -> &I {
        &self.input
    }

    fn input_mut(&mut self) -> &mut I {
        &mut self.input
    }

    fn waiting(&self) -> u32 {
        self.queue.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        let can_wake = self.has_interrupts && self.link.state() != LinkState::Gone;
        can_wake.then(|| self.queue.fd())
    }

    fn link(&self) -> LinkWatch {
        self.link
    }

    fn drops(&self) -> PortDrops {
        self.queue.drops()
    }

    fn prefer_busy_polling(&mut self) {
        self.queue.prefer_busy_polling();
    }

    fn busy_polling(&self) -> Option<BusyPolling> {
        self.queue.busy_polling()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_link_counts_losses_and_changes_of_its_mtu_whatever_comes_with_them() {
        let mut link = LinkWatch::up();
        let seen = |link: &LinkWatch| (link.state(), link.losses(), link.mtu_changes());
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

    /// A queue without frames at an interface of this state.
    struct Pipe(std::io::PipeReader, LinkState);

    impl Queue for Pipe {
        fn receive(&mut self, _most: u32, _each: impl FnMut(&[u8])) -> u32 {
            0
        }

        fn waiting(&self) -> u32 {
            0
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        fn check(&mut self) -> (LinkState, Option<u32>) {
            (self.1, Some(1500))
        }

        fn drops(&self) -> PortDrops {
            PortDrops::default()
        }
    }

    #[test]
    fn arrivals_wake_nobody_without_interrupts_or_without_an_interface() {
        let (pipe, _other) = std::io::pipe().unwrap();
        let mut port = QueuePort::new(Pipe(pipe, LinkState::Up), |_: &[u8]| ());
        assert!(port.wake_up().is_some());
        port.set_interrupts(false);
        assert!(port.wake_up().is_none());
        port.set_interrupts(true);
        // One that is down may come up again.
        for (state, wakes) in [(LinkState::Down, true), (LinkState::Gone, false)] {
            port.queue.1 = state;
            port.poll(Command::PollAndCheckStatus, 0);
            assert_eq!(port.wake_up().is_some(), wakes, "{state:?}");
        }
    }
}
