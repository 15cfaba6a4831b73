//! This process's end of a TAP interface: what the host sends through the interface comes here, and what is sent here
//! the host receives.
//!
//! What must hold: nothing is behind this end. What was not asked for is read and counted, and has ended.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicpoll_core::{Command, Device};
use nicpoll_sys::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::device::Intake;
use crate::error::EngineError;
use crate::interface::mtu_of;
use crate::port::{LinkWatch, PacketInput, Port, PortDrops, PortInto, PortState, Transmit};
use crate::take::{Fates, Take};

/// Ethernet's header, with a VLAN tag, and a byte by which a frame is known that is longer.
const BEYOND_MTU_BYTES: usize = 18 + 1;

/// This end of a TAP interface, whose packets go to `I`.
pub struct TapPort<I> {
    end: Arc<TapEnd>,
    take: Take,
    input: I,
    memory: Vec<u8>,
    state: PortState,
    last_drops: u64,
    /// Frames that were longer than the memory, since the MTU had been raised.
    too_long: u64,
    sent: u64,
}

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
        let port = TapPort {
            end: Arc::clone(&end),
            take: take.clone(),
            input,
            memory,
            state: PortState::opened(Some(mtu_bytes)),
            last_drops: 0,
            too_long: 0,
            sent: 0,
        };
        Ok((end, port))
    }

    fn ring_full(&self) -> u64 {
        self.end.tap.drops().unwrap_or(self.last_drops)
    }

    /// Looks at the interface, and makes room for frames as long as they may be now.
    fn check_status(&mut self) {
        let mtu_bytes = self.end.tap.mtu_bytes().ok();
        self.state.check(self.end.tap.link_state(), mtu_bytes);
        self.last_drops = self.ring_full();
        let wanted = mtu_bytes.unwrap_or(0) as usize + BEYOND_MTU_BYTES;
        if wanted > self.memory.len() {
            self.memory.resize(wanted, 0);
        }
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
    EngineError::Tap {
        interface: interface.to_owned(),
        source,
        remedy,
    }
}

impl<I: PacketInput> Device for TapPort<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            self.check_status();
        }
        let mut work = 0;
        let memory_bytes = self.memory.len();
        // Frames that nobody asked for take their time, too.
        for _ in 0..count {
            let Some(frame) = self.end.tap.receive(&mut self.memory) else {
                break;
            };
            if frame.len() == memory_bytes {
                // Its end is lost, so whether it was asked for nobody can tell.
                self.end.wanted.fetch_add(1, Ordering::Relaxed);
                self.too_long += 1;
            } else if self.take.wants(frame) {
                self.end.wanted.fetch_add(1, Ordering::Relaxed);
                self.input.packet(frame);
                work += 1;
            } else {
                self.end.others.fetch_add(1, Ordering::Relaxed);
            }
        }
        work
    }

    fn set_interrupts(&mut self, on: bool) {
        self.state.set_interrupts(on);
    }
}

impl<I: PacketInput> Port for TapPort<I> {
    fn waiting(&self) -> u32 {
        let mut fds = [PollFd::new(&self.end.tap, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec::default()));
        u32::from(fds[0].revents().contains(PollFlags::IN))
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.state.wake_up(&self.end.tap)
    }

    fn link(&self) -> LinkWatch {
        self.state.link()
    }

    fn drops(&self) -> PortDrops {
        PortDrops {
            ring_full: self.ring_full(),
            no_memory: self.too_long,
        }
    }
}

impl<I: PacketInput> PortInto<I> for TapPort<I> {
    fn input(&self) -> &I {
        &self.input
    }

    fn input_mut(&mut self) -> &mut I {
        &mut self.input
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
            let Some(length) = fill(&mut self.memory) else {
                return Ok(written);
            };
            let length = length.min(self.memory.len());
            self.end.tap.send(&self.memory[..length])?;
            self.sent += 1;
        }
        Ok(most)
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}

impl Intake for Arc<TapEnd> {
    fn stop(&mut self) {
        // An interface that is gone brings nothing more.
        let _ = self.tap.stop();
    }

    /// A frame that found the queue full, or was too long, counts as taken: whether it was asked for nobody knows.
    fn fates(&self) -> Result<Fates, EngineError> {
        Ok(Fates {
            taken: self.wanted.load(Ordering::Relaxed) + self.tap.drops().unwrap_or(0),
            passed: Some(self.others.load(Ordering::Relaxed)),
            ..Fates::default()
        })
    }
}
