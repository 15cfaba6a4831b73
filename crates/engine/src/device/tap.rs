//! This process's end of a TAP interface: it gets what the host sends through the interface. Frames that were not asked for
//! are read, counted and dropped, since nothing is behind this end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::tap::Tap;
use nicpoll_sys::packet::ReceiverDrops;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::device::interface::link_of;
use crate::device::port::{
    DeviceKind, Intake, Opened, PacketInput, Port, ReceiveQueue, Reception, Take,
};
use crate::error::EngineError;

/// Ethernet's header, with a VLAN tag, and a byte by which a frame is known that is longer.
const BEYOND_MTU_BYTES: usize = 18 + 1;

/// The frames that come to this end of a TAP interface.
struct TapQueue {
    end: Arc<TapEnd>,
    take: Take,
    memory: Vec<u8>,
    /// Frames that were longer than the memory, since the MTU had been raised.
    too_long: u64,
}

/// What the port and who watches it share.
struct TapEnd {
    tap: Tap,
    wanted: AtomicU64,
    others: AtomicU64,
}

/// Opens the end of a TAP interface of the calling thread's network namespace, which is made when there is none of that
/// name.
///
/// # Errors
/// When there is an interface of that name that is no TAP or has a program, or a privilege is missing.
pub(super) fn open<I: PacketInput + Send + 'static>(
    reception: &Reception<'_>,
    input: I,
) -> Result<Opened<I>, EngineError> {
    let interface = reception.interface;
    let tap = Tap::open(interface).map_err(|source| refusal(interface, source))?;
    let (link, mtu_bytes) = link_of(interface)?;
    let end = Arc::new(TapEnd {
        tap,
        wanted: AtomicU64::new(0),
        others: AtomicU64::new(0),
    });
    let queue = TapQueue {
        end: Arc::clone(&end),
        take: reception.take.clone(),
        memory: vec![0; mtu_bytes as usize + BEYOND_MTU_BYTES],
        too_long: 0,
    };
    let port = Port::new(queue, link, input);
    Ok(Opened::by(DeviceKind::Tap, port, end))
}

fn refusal(interface: &str, source: io::Error) -> EngineError {
    if Errno::from_io_error(&source) == Some(Errno::ACCESS) {
        return EngineError::Privileges {
            doing: "opening /dev/net/tun",
            capabilities: "mode 666, which udev gives it, or CAP_DAC_OVERRIDE",
            source,
        };
    }
    EngineError::device(
        format!("'{interface}' cannot be a TAP interface of nicpoll's"),
        ("making a TAP interface", "CAP_NET_ADMIN"),
        &[
            (
                Errno::BUSY,
                "; another program has its end, so stop that first",
            ),
            (
                Errno::INVAL,
                "; use the name of a TAP interface, or one that no interface has, of up to 15 letters",
            ),
            (
                Errno::NOENT,
                "; the kernel has no TAP interfaces (/dev/net/tun)",
            ),
        ],
        source,
    )
}

impl<I: PacketInput> ReceiveQueue<I> for TapQueue {
    fn receive(&mut self, most: u32, input: &mut I) -> u32 {
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
                input.packet(frame);
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

    fn drops(&self) -> io::Result<ReceiverDrops> {
        Ok(ReceiverDrops {
            ring_full: self.end.tap.drops()?,
            no_memory: self.too_long,
        })
    }

    /// Makes room for frames as long as they may be now.
    fn note_check(&mut self, mtu_bytes: Option<u32>) {
        let wanted = mtu_bytes.unwrap_or(0) as usize + BEYOND_MTU_BYTES;
        if wanted > self.memory.len() {
            self.memory.resize(wanted, 0);
        }
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
