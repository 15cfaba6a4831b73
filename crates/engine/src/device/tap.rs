//! This process's end of a TAP interface: it gets what the host sends through the interface, and the host receives what is
//! sent here. Frames that were not asked for are read, counted and dropped, since nothing is behind this end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::LinkState;
use nicpoll_sys::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::device::interface::mtu_of;
use crate::device::port::{Intake, PacketInput, PortDrops, Queue, QueuePort, Transmit};
use crate::device::xdp::Take;
use crate::error::EngineError;

/// Ethernet's header, with a VLAN tag, and a byte by which a frame is known that is longer.
const BEYOND_MTU_BYTES: usize = 18 + 1;

/// The frames that come to this end of a TAP interface.
pub struct TapQueue {
    end: Arc<TapEnd>,
    take: Take,
    memory: Vec<u8>,
    last_drops: u64,
    /// Frames that were longer than the memory, since the MTU had been raised.
    too_long: u64,
    sent: u64,
}

/// This end of a TAP interface, whose packets go to `I`.
pub type TapPort<I> = QueuePort<TapQueue, I>;

/// What the port and who watches it share.
pub struct TapEnd {
    tap: Tap,
    wanted: AtomicU64,
    others: AtomicU64,
}

impl<I: PacketInput> TapPort<I> {
    /// Opens the end of a TAP interface of the calling thread's network namespace, which is made when there is none of
    /// that name.
    ///
    /// # Errors
    /// When there is an interface of that name that is no TAP or has a program, or a privilege is missing.
    pub fn open(
        interface: &str,
        take: &Take,
        input: I,
    ) -> Result<(Arc<TapEnd>, Self), EngineError> {
        let tap = Tap::open(interface).map_err(|source| refusal(interface, source))?;
        let mtu_bytes = mtu_of(interface)?;
        let memory = vec![0; mtu_bytes as usize + BEYOND_MTU_BYTES];
        let end = Arc::new(TapEnd {
            tap,
            wanted: AtomicU64::new(0),
            others: AtomicU64::new(0),
        });
        let queue = TapQueue {
            end: Arc::clone(&end),
            take: take.clone(),
            memory,
            last_drops: 0,
            too_long: 0,
            sent: 0,
        };
        Ok((end, QueuePort::new(queue, input)))
    }
}

impl TapQueue {
    fn ring_full(&self) -> u64 {
        self.end.tap.drops().unwrap_or(self.last_drops)
    }
}

fn refusal(interface: &str, source: io::Error) -> EngineError {
    let remedy = match Errno::from_io_error(&source) {
        Some(Errno::PERM) => {
            return EngineError::Privileges {
                doing: "making a TAP interface",
                capabilities: "CAP_NET_ADMIN",
                source,
            };
        }
        Some(Errno::ACCESS) => {
            return EngineError::Privileges {
                doing: "opening /dev/net/tun",
                capabilities: "mode 666, which udev gives it, or CAP_DAC_OVERRIDE",
                source,
            };
        }
        Some(Errno::BUSY) => "; another program has its end, so stop that first",
        Some(Errno::INVAL) => {
            "; use the name of a TAP interface, or one that no interface has, of up to 15 letters"
        }
        Some(Errno::NOENT) => "; the kernel has no TAP interfaces (/dev/net/tun)",
        _ => "",
    };
    EngineError::Device {
        device: format!("'{interface}' cannot be a TAP interface of nicpoll's"),
        source,
        remedy,
    }
}

impl Queue for TapQueue {
    fn receive(&mut self, most: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let mut work = 0;
        let memory_bytes = self.memory.len();
        // Frames that nobody asked for take their time, too.
        for _ in 0..most {
            let Some(frame) = self.end.tap.receive(&mut self.memory) else {
                break;
            };
            if frame.len() == memory_bytes {
                // Its end is lost, so whether it was asked for nobody can tell.
                self.end.wanted.fetch_add(1, Ordering::Relaxed);
                self.too_long += 1;
            } else if self.take.wants(frame) {
                self.end.wanted.fetch_add(1, Ordering::Relaxed);
                each(frame);
                work += 1;
            } else {
                self.end.others.fetch_add(1, Ordering::Relaxed);
            }
        }
        work
    }

    fn waiting(&self) -> u32 {
        let mut fds = [PollFd::new(&self.end.tap, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec::default()));
        u32::from(fds[0].revents().contains(PollFlags::IN))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.end.tap.as_fd()
    }

    /// Also makes room for frames as long as they may be now.
    fn check(&mut self) -> (LinkState, Option<u32>) {
        self.last_drops = self.ring_full();
        let mtu_bytes = self.end.tap.mtu_bytes().ok();
        let wanted = mtu_bytes.unwrap_or(0) as usize + BEYOND_MTU_BYTES;
        if wanted > self.memory.len() {
            self.memory.resize(wanted, 0);
        }
        (self.end.tap.link_state(), mtu_bytes)
    }

    fn drops(&self) -> PortDrops {
        PortDrops {
            ring_full: self.ring_full(),
            no_memory: self.too_long,
        }
    }
}

/// A frame is written at once, so there is always room for one more.
impl<I: PacketInput> Transmit for TapPort<I> {
    fn room(&mut self) -> u32 {
        u32::MAX
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        for written in 0..most {
            let Some(length) = fill(&mut self.queue.memory) else {
                return Ok(written);
            };
            let length = length.min(self.queue.memory.len());
            self.queue.end.tap.send(&self.queue.memory[..length])?;
            self.queue.sent += 1;
        }
        Ok(most)
    }

    fn sent(&self) -> u64 {
        self.queue.sent
    }
}

impl Intake for Arc<TapEnd> {
    fn stop(&mut self) {
        // An interface that is gone brings nothing more.
        let _ = self.tap.stop();
    }

    /// A frame that found the queue full, or was too long, counts as taken: whether it was asked for nobody knows.
    fn fates(&self) -> Result<SinkFates, EngineError> {
        Ok(SinkFates {
            taken_packets: self.wanted.load(Ordering::Relaxed) + self.tap.drops().unwrap_or(0),
            passed_packets: Some(self.others.load(Ordering::Relaxed)),
            ..SinkFates::default()
        })
    }
}
