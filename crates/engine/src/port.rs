//! What the engine polls: a receive queue of an interface, with all that `core::Device` leaves out; and what it sends
//! by. A device may be both.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nicpoll_core::{Command, Device};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::XdpDrops;

/// Where the packets of a port go: the protocols, in the original.
pub trait PacketInput {
    /// A frame has come, Ethernet header first. It is gone after the call.
    fn packet(&mut self, frame: &[u8]);
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
pub trait Port: Device {
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

/// A device that sends frames, Ethernet header first and without FCS.
///
/// What must hold: it waits for nothing. Each frame that `fill` wrote is handed to the kernel or stays in the device's
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

/// A port whose packets go to an `I`.
pub trait PortInto<I>: Port {
    /// Where its packets go.
    fn input(&self) -> &I;

    /// The same, to be changed.
    fn input_mut(&mut self) -> &mut I;
}

/// A port of whatever device: which one is asked once a poll, and not once a packet.
pub type AnyPort<I> = Box<dyn PortInto<I> + Send>;

impl<I> Device for AnyPort<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        (**self).poll(command, count)
    }

    fn set_interrupts(&mut self, on: bool) {
        (**self).set_interrupts(on);
    }
}

impl<I> Port for AnyPort<I> {
    fn waiting(&self) -> u32 {
        (**self).waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        (**self).wake_up()
    }

    fn link(&self) -> LinkWatch {
        (**self).link()
    }

    fn drops(&self) -> PortDrops {
        (**self).drops()
    }

    fn prefer_busy_polling(&mut self) {
        (**self).prefer_busy_polling();
    }

    fn busy_polling(&self) -> Option<BusyPolling> {
        (**self).busy_polling()
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
    pub fn observe(&mut self, state: LinkState, mtu_bytes: Option<u32>) {
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

/// What a port of any device keeps of its interface, and of whether arrivals may wake anybody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortState {
    has_interrupts: bool,
    link: LinkWatch,
}

impl PortState {
    /// Of a port that was just opened, with interrupts, at an interface with this MTU.
    pub(crate) fn opened(mtu_bytes: Option<u32>) -> Self {
        let mut link = LinkWatch::up();
        link.observe(LinkState::Up, mtu_bytes);
        PortState {
            has_interrupts: true,
            link,
        }
    }

    pub(crate) fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }

    /// Takes note of what a check of status found.
    pub(crate) fn check(&mut self, state: LinkState, mtu_bytes: Option<u32>) {
        self.link.observe(state, mtu_bytes);
    }

    /// The device as [`Port::wake_up`] has it.
    pub(crate) fn wake_up<'a>(&self, device: &'a impl AsFd) -> Option<BorrowedFd<'a>> {
        let can_wake = self.has_interrupts && self.link.state() != LinkState::Gone;
        can_wake.then(|| device.as_fd())
    }

    pub(crate) fn link(&self) -> LinkWatch {
        self.link
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn arrivals_wake_nobody_without_interrupts_or_without_an_interface() {
        let (device, _other) = std::io::pipe().unwrap();
        let mut state = PortState::opened(Some(1500));
        assert!(state.wake_up(&device).is_some());
        state.set_interrupts(false);
        assert!(state.wake_up(&device).is_none());
        state.set_interrupts(true);
        state.check(LinkState::Down, Some(1500));
        assert!(state.wake_up(&device).is_some(), "it may come up again");
        state.check(LinkState::Gone, None);
        assert!(state.wake_up(&device).is_none());
    }
}
