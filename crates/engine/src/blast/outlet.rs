//! What frames leave by, whichever way that is.

use std::io;

use crate::port::Transmit;

use super::source::FrameSource;

/// Frames that a device is given at a time: enough that the system call for them costs each little.
const FRAMES_AT_A_TIME: u32 = 256;

/// Frames that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) frames: u64,
    /// Their bytes, without FCS.
    pub(super) bytes: u64,
}

/// What became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Of those written, how many the kernel has taken.
    pub(super) handed: u64,
    /// Of those taken, how many the interface refused; `None` where the kernel does not say.
    pub(super) refused: Option<u64>,
    /// Of those taken, how many the interface has sent; `None` where the kernel does not say.
    pub(super) completed: Option<u64>,
}

/// A way for frames to leave.
pub(super) trait Outlet: Send {
    /// Frames that are best sent together.
    fn at_a_time(&self) -> u32;

    /// Sends up to `most` frames, and says how many; 0 when there is no room.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is down, `ENXIO` when it is gone; `ENODATA` when the frames are at their end.
    fn send(&mut self, most: u32) -> io::Result<u32>;

    /// What was written so far.
    fn built(&self) -> Built;

    /// What became of it. It may take longer than sending does.
    fn counts(&mut self) -> Counts;
}

/// A device, and the frames that it sends.
pub(super) struct DeviceOutlet<T, S> {
    device: T,
    source: S,
    built: Built,
}

impl<T: Transmit, S: FrameSource> DeviceOutlet<T, S> {
    pub(super) fn new(device: T, source: S) -> Self {
        DeviceOutlet {
            device,
            source,
            built: Built::default(),
        }
    }
}

impl<T: Transmit + Send, S: FrameSource> Outlet for DeviceOutlet<T, S> {
    fn at_a_time(&self) -> u32 {
        FRAMES_AT_A_TIME
    }

    fn send(&mut self, most: u32) -> io::Result<u32> {
        let (mut written, mut bytes, mut is_at_end) = (0, 0, false);
        let source = &mut self.source;
        let outcome = self.device.transmit(most, &mut |memory| {
            let length = source.write(memory);
            is_at_end = length.is_none();
            written += u32::from(length.is_some());
            bytes += length.unwrap_or(0) as u64;
            length
        });
        self.built.frames += u64::from(written);
        self.built.bytes += bytes;
        outcome?;
        if is_at_end && written == 0 {
            return Err(rustix::io::Errno::NODATA.into());
        }
        Ok(written)
    }

    fn built(&self) -> Built {
        self.built
    }

    fn counts(&mut self) -> Counts {
        // The kernel says what it is done with when it is asked for room.
        let _ = self.device.room();
        let (handed, refused) = (self.device.sent(), self.device.refused());
        Counts {
            handed,
            refused,
            completed: refused.map(|refused| handed.saturating_sub(refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many frames, and is done with all but one.
    struct Narrow(u32, u64);

    impl Transmit for Narrow {
        fn room(&mut self) -> u32 {
            self.0
        }

        fn transmit(
            &mut self,
            most: u32,
            fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
        ) -> io::Result<u32> {
            let mut written = 0;
            while written < most.min(self.0) && fill(&mut [0; 64]).is_some() {
                written += 1;
            }
            self.1 += u64::from(written);
            Ok(written)
        }

        fn sent(&self) -> u64 {
            self.1.saturating_sub(1)
        }

        fn refused(&self) -> Option<u64> {
            Some(1)
        }
    }

    struct Three(u32);

    impl FrameSource for Three {
        fn write(&mut self, _: &mut [u8]) -> Option<usize> {
            self.0 += 1;
            (self.0 <= 3).then_some(60)
        }
    }

    #[test]
    fn what_a_device_takes_is_counted_until_there_is_no_more() {
        let mut outlet = DeviceOutlet::new(Narrow(2, 0), Three(0));
        assert_eq!(outlet.send(5).unwrap(), 2);
        assert_eq!(outlet.send(5).unwrap(), 1);
        let ended = outlet.send(5).unwrap_err();
        assert_eq!(
            ended.raw_os_error(),
            Some(rustix::io::Errno::NODATA.raw_os_error())
        );
        let (frames, bytes) = (3, 180);
        assert_eq!(outlet.built(), Built { frames, bytes });
        let counts = outlet.counts();
        assert_eq!(counts.handed, 2);
        assert_eq!((counts.refused, counts.completed), (Some(1), Some(1)));
    }
}
