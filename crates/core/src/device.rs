//! What the poller asks for packets.

/// What a poll is for (`enum poll_cmd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Move packets (`POLL_ONLY`).
    PollOnly,
    /// Move packets, and look at status registers or do other dear work that is rarely needed
    /// (`POLL_AND_CHECK_STATUS`).
    PollAndCheckStatus,
}

/// An interface that can be polled.
///
/// The time that a poll takes grows about linearly with `count`.
pub trait Device {
    /// Moves up to `count` packets; what `count` counts is the device's to say. Returns how many it moved, by
    /// which a controller may learn what one costs.
    fn poll(&mut self, command: Command, count: u32) -> u32;

    /// Turns the device's own interrupts on or off. Off while it is registered.
    fn set_interrupts(&mut self, on: bool);
}

/// An interface's name for the poller; in the original its `struct ifnet` pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

/// Those whom the poller's identifiers mean.
pub trait Devices {
    /// Has device `id` move up to `count` packets. Identifiers are those that were registered. Returns how
    /// many it moved.
    fn poll(&mut self, id: DeviceId, command: Command, count: u32) -> u32;
}

/// Devices that are identified by their place.
impl<D: Device> Devices for [D] {
    fn poll(&mut self, id: DeviceId, command: Command, count: u32) -> u32 {
        self.get_mut(id.0 as usize)
            .map_or(0, |device| device.poll(command, count))
    }
}

impl<F: FnMut(DeviceId, Command, u32) -> u32> Devices for F {
    fn poll(&mut self, id: DeviceId, command: Command, count: u32) -> u32 {
        self(id, command, count)
    }
}
