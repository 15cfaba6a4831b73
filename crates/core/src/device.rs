//! What the poller is given: devices to ask for packets, their list in the order of the calls, and moments of the caller's
//! clock.

use crate::knob::Errno;

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

/// Devices that can be registered at once (`POLL_LIST_LEN`).
pub const POLL_LIST_LEN: usize = 128;

/// The original's `pr[]`.
#[derive(Clone, Debug)]
pub(crate) struct List {
    devices: [DeviceId; POLL_LIST_LEN],
    length: usize,
}

impl List {
    pub(crate) const fn new() -> Self {
        List {
            devices: [DeviceId(0); POLL_LIST_LEN],
            length: 0,
        }
    }

    pub(crate) fn as_slice(&self) -> &[DeviceId] {
        &self.devices[..self.length]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a device. A full list is full also for a device that it holds, as in the original.
    pub(crate) fn register(&mut self, id: DeviceId) -> Result<(), Errno> {
        if self.length >= POLL_LIST_LEN {
            return Err(Errno::Enomem);
        }
        if self.as_slice().contains(&id) {
            return Err(Errno::Eexist);
        }
        self.devices[self.length] = id;
        self.length += 1;
        Ok(())
    }

    /// Takes a device out; the last one moves into its place.
    pub(crate) fn deregister(&mut self, id: DeviceId) -> Result<(), Errno> {
        let found = self.as_slice().iter().position(|device| *device == id);
        let place = found.ok_or(Errno::Enoent)?;
        self.length -= 1;
        self.devices[place] = self.devices[self.length];
        Ok(())
    }
}

/// A moment, in nanoseconds since an origin of the caller's choice. It never runs backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    ns: u64,
}

impl Time {
    /// `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Time { ns }
    }

    /// `us` microseconds after the origin.
    pub const fn from_us(us: u64) -> Self {
        Time {
            ns: us.saturating_mul(1000),
        }
    }

    /// Nanoseconds after the origin.
    pub const fn ns(self) -> u64 {
        self.ns
    }

    /// Whole microseconds after the origin: what `microuptime` gives the original.
    pub const fn us(self) -> u64 {
        self.ns / 1000
    }

    /// Microseconds since `earlier`, as the original takes the difference of two readings.
    pub(crate) fn us_since(self, earlier: Time) -> i64 {
        self.us().wrapping_sub(earlier.us()) as i64
    }
}
