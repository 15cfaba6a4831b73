//! TAP: an interface whose other end is this process. The process reads the frames that the host sends through the
//! interface, and the host receives the frames that the process writes (Documentation/networking/tuntap.rst).
//!
//! An interface created here disappears with the process; one that existed before stays.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;

use crate::kernel::{ifreq, ioctl};
use crate::link::LinkHandle;
use crate::packet::FrameFilter;

/// Device that hands out the process's ends.
const CLONE: &str = "/dev/net/tun";
/// Interface counters of the namespace in which the file was opened, whichever thread reads it.
const COUNTERS: &str = "/proc/thread-self/net/dev";
/// Column of frames dropped on sending, counted after the interface's name.
const SEND_DROPS_COLUMN: usize = 11;
/// Buffer for the counters, at about 130 bytes for each interface.
const COUNTERS_BYTES: usize = 1 << 16;

/// The process's end of a TAP interface.
#[derive(Debug)]
pub struct Tap {
    device: File,
    counters: File,
    name: String,
    drops_before: u64,
    /// Drops at the time of [`Tap::stop`], after which every frame is dropped.
    drops_when_stopped: OnceLock<u64>,
}

impl Tap {
    /// Opens this process's end of a TAP interface of the calling thread's network namespace: an existing one of that
    /// name (`ip tuntap add NAME mode tap`), or else a new one, which is brought up.
    ///
    /// # Errors
    /// `EBUSY` if another program has it open; `EINVAL` if the name is invalid or belongs to an interface that is no
    /// TAP; `EPERM` without CAP_NET_ADMIN, and if the interface belongs to another user.
    pub fn open(interface: &str) -> io::Result<Self> {
        let is_new = LinkHandle::named(interface).is_err();
        let device = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(CLONE)?;
        attach(&device, interface)?;
        if is_new {
            LinkHandle::named(interface)?.bring_up()?;
        }
        let mut tap = Tap {
            device,
            counters: File::open(COUNTERS)?,
            name: interface.to_owned(),
            drops_before: 0,
            drops_when_stopped: OnceLock::new(),
        };
        tap.drops_before = tap.drops()?;
        Ok(tap)
    }

    /// Reads the oldest frame that the host sent. `None` if no frame waits or the interface is gone. A frame longer
    /// than `memory` is truncated.
    pub fn receive<'a>(&self, memory: &'a mut [u8]) -> Option<&'a [u8]> {
        let length = (&self.device).read(memory).ok()?;
        memory.get(..length)
    }

    /// Accepts no more frames; those that the host has sent already can still be read.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn stop(&self) -> io::Result<()> {
        let drops = self.drops()?;
        let _ = self.drops_when_stopped.set(drops);
        let filter = FrameFilter::nothing();
        // SAFETY: the kernel reads the program, which `filter` holds throughout the call, and keeps a copy.
        unsafe { ioctl(&self.device, libc::TUNATTACHFILTER, &mut filter.program()) }
    }

    /// Passes a frame to the host.
    ///
    /// # Errors
    /// `EINVAL` if it is shorter than an Ethernet header; `EIO` when the interface is down; `EBADFD` when it is gone.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.device).write(frame).map(|_| ())
    }

    /// Counts the host's frames that found the interface's queue full since this end was opened.
    ///
    /// # Errors
    /// If the interface is gone or was renamed.
    pub fn drops(&self) -> io::Result<u64> {
        if let Some(drops) = self.drops_when_stopped.get() {
            return Ok(*drops);
        }
        let mut memory = vec![0; COUNTERS_BYTES];
        let length = self.counters.read_at(&mut memory, 0)?;
        let text = String::from_utf8_lossy(&memory[..length]);
        let counted = send_drops(&text, &self.name);
        let counted = counted.ok_or(io::ErrorKind::NotFound)?;
        Ok(counted.saturating_sub(self.drops_before))
    }
}

impl AsFd for Tap {
    /// Readable in poll(2) while frames wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn send_drops(text: &str, interface: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, counters) = lines.find(|(name, _)| name.trim() == interface)?;
    counters
        .split_whitespace()
        .nth(SEND_DROPS_COLUMN)?
        .parse()
        .ok()
}

/// Attaches the descriptor to an interface.
fn attach(device: &File, interface: &str) -> io::Result<()> {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    if interface.is_empty() || interface.contains('%') {
        return Err(invalid());
    }
    let mut request = ifreq(interface).map_err(|_| invalid())?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel reads and writes the request alone.
    unsafe { ioctl(device, libc::TUNSETIFF, &mut request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_are_those_of_the_interface_on_the_way_out() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop ...\n\
            tap10: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  tap1: 0 0 0 0 0 0 0 0 0 0 0 77 0 0 0 0\n";
        assert_eq!(send_drops(text, "tap1"), Some(77));
        assert_eq!(send_drops(text, "tap10"), Some(12));
        assert_eq!(send_drops(text, "tap2"), None);
    }

    #[test]
    fn no_name_is_made_up() {
        for name in ["", "tap%d", "a-name-that-is-too-long"] {
            let error = Tap::open(name).unwrap_err();
            assert!(
                matches!(
                    error.raw_os_error(),
                    Some(libc::EINVAL | libc::ENOENT | libc::EACCES)
                ),
                "{error}"
            );
        }
    }
}
