//! What the poller works on: devices, their list in the order of the calls, and readings of the caller's clock.

use crate::knob::Errno;

/// The command of a poll (`enum poll_cmd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Move packets (`POLL_ONLY`).
    PollOnly,
    /// Move packets, and read status registers or do other expensive work that is rarely needed
    /// (`POLL_AND_CHECK_STATUS`).
    PollAndCheckStatus,
}

/// An interface that can be polled.
///
/// The time that a poll takes grows about linearly with `count`.
pub trait Device {
    /// Moves up to `count` packets, in the device's own unit. Returns how many it moved; a controller may learn from
    /// that what one costs.
    fn poll(&mut self, command: Command, count: u32) -> u32;

    /// Turns the device's own interrupts on or off. They are off while it is registered.
    fn set_interrupts(&mut self, on: bool);
}

/// Identifies an interface to the poller; the original uses its `struct ifnet` pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

/// Polls devices by identifier.
pub trait Devices {
    /// Lets device `id`, which is registered, move up to `count` packets. Returns how many it moved.
    fn poll(&mut self, id: DeviceId, command: Command, count: u32) -> u32;
}

/// Devices identified by their index.
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

    /// Appends a device. A full list refuses with `ENOMEM` even a device that it holds, as the original does.
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

    /// Removes a device; the last one takes its place.
    pub(crate) fn deregister(&mut self, id: DeviceId) -> Result<(), Errno> {
        let found = self.as_slice().iter().position(|device| *device == id);
        let place = found.ok_or(Errno::Enoent)?;
        self.length -= 1;
        self.devices[place] = self.devices[self.length];
        Ok(())
    }
}

/// Nanoseconds in a second.
pub const NS_PER_SECOND: u64 = 1_000_000_000;

/// A reading of the caller's clock, which never runs backwards: nanoseconds since an origin of the caller's choice.
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

    /// Microseconds since `earlier`, as the original subtracts two readings.
    pub(crate) fn us_since(self, earlier: Time) -> i64 {
        self.us().wrapping_sub(earlier.us()) as i64
    }
}
