//! The devices that are polled, in the order in which they are called.

use crate::device::DeviceId;
use crate::knob::Errno;

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
