//! A receive queue by an AF_XDP socket, which may send too.

use std::io;
use std::os::fd::BorrowedFd;

use nicpoll_core::{Command, Device};
use nicpoll_sys::xdp::{XdpConfig, XdpSocket};
use rustix::io::Errno;

use crate::error::EngineError;
use crate::interface::{index_of, mtu_of};
use crate::port::{BusyPolling, LinkWatch, PacketInput, Port, PortDrops, PortInto, Transmit};
use crate::take::{Take, Taker};
use crate::xdp_queue::XdpQueue;

/// Frames that a port keeps until they are polled for, unless less is asked.
pub const FRAMES_MAX: u32 = 4096;
/// Ethernet's header, with a VLAN tag.
const HEADER_BYTES: u32 = 18;
/// Memory that a frame may get. Where the larger one does not hold it, it comes in several pieces.
const FRAME_MEMORY_BYTES: [u32; 2] = [2048, 4096];

/// A receive queue of an interface, whose packets go to `I`.
pub struct XdpPort<I> {
    queue: XdpQueue,
    input: I,
    busy_polling: Option<BusyPolling>,
}

impl<I: PacketInput> XdpPort<I> {
    /// Opens every receive queue of an interface of the calling thread's network namespace, and has their frames be
    /// taken. Each keeps up to `frames`, a power of two.
    ///
    /// # Errors
    /// When there is no such interface, it has an XDP program, its MTU is too large, or a privilege is missing. An MTU
    /// above 3822 bytes takes Linux 6.6.
    pub fn open(
        interface: &str,
        take: &Take,
        frames: u32,
        input: impl FnMut() -> I,
    ) -> Result<(Taker, Vec<Self>), EngineError> {
        Self::open_both_ways(interface, take, frames, 0, input)
    }

    /// The same, and each port also sends, by the transmit queue of the same number: it has room for `transmit_frames`, a
    /// power of two.
    ///
    /// # Errors
    /// As of [`XdpPort::open`]; an MTU above 3822 bytes is too large to send.
    pub fn open_both_ways(
        interface: &str,
        take: &Take,
        frames: u32,
        transmit_frames: u32,
        mut input: impl FnMut() -> I,
    ) -> Result<(Taker, Vec<Self>), EngineError> {
        let ifindex = index_of(interface)?;
        let memory = FrameMemory::of(interface, transmit_frames == 0)?;
        let mut taker = Taker::load(interface, take, &memory)?;
        let sockets = open_sockets(interface, frames, transmit_frames, |queue, socket| {
            taker.serve(queue, socket)
        })?;
        let port = |socket| XdpPort {
            queue: XdpQueue::new(socket),
            input: input(),
            busy_polling: None,
        };
        let ports = sockets.into_iter().map(port).collect();
        // Last: whatever it takes finds its socket.
        taker.attach(ifindex)?;
        Ok((taker, ports))
    }

    /// Whether frames come without being copied.
    pub fn is_zero_copy(&self) -> bool {
        self.queue.socket.is_zero_copy()
    }

    /// What it sends by, when it was opened both ways.
    pub fn sender(&mut self) -> &mut impl Transmit {
        &mut self.queue.socket
    }

    /// The kernel may tell the socket its NAPI with the first frame.
    fn look_for_napi(&mut self) {
        if self.busy_polling == Some(BusyPolling::NoNapi) && self.queue.socket.has_napi() {
            self.busy_polling = Some(BusyPolling::Acts);
        }
    }
}

impl<I: PacketInput> Device for XdpPort<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            self.queue.check_status();
            self.look_for_napi();
        }
        if self.busy_polling == Some(BusyPolling::Acts) {
            self.queue.socket.poll_napi();
        }
        let input = &mut self.input;
        self.queue
            .socket
            .receive(count, |frame| input.packet(frame))
    }

    fn set_interrupts(&mut self, on: bool) {
        self.queue.set_interrupts(on);
    }
}

impl<I: PacketInput> Port for XdpPort<I> {
    fn waiting(&self) -> u32 {
        self.queue.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_up()
    }

    fn link(&self) -> LinkWatch {
        self.queue.link()
    }

    fn drops(&self) -> PortDrops {
        self.queue.drops()
    }

    fn prefer_busy_polling(&mut self) {
        self.busy_polling = Some(match self.queue.socket.prefer_busy_poll() {
            Ok(()) => BusyPolling::NoNapi,
            Err(_) => BusyPolling::Refused,
        });
        self.look_for_napi();
    }

    fn busy_polling(&self) -> Option<BusyPolling> {
        self.busy_polling
    }
}

impl<I: PacketInput> PortInto<I> for XdpPort<I> {
    fn input(&self) -> &I {
        &self.input
    }

    fn input_mut(&mut self) -> &mut I {
        &mut self.input
    }
}

/// A socket for each receive queue of an interface, which `serve` is shown with the queue's number.
pub(crate) fn open_sockets(
    interface: &str,
    frames: u32,
    transmit_frames: u32,
    mut serve: impl FnMut(u32, &XdpSocket) -> Result<(), EngineError>,
) -> Result<Vec<XdpSocket>, EngineError> {
    let ifindex = index_of(interface)?;
    let memory = FrameMemory::of(interface, transmit_frames == 0)?;
    let mut sockets = Vec::new();
    // The kernel says which queue is none.
    for queue in 0..nicpoll_core::POLL_LIST_LEN as u32 {
        let config = memory.config((ifindex, queue), frames, transmit_frames);
        match XdpSocket::bind(&config) {
            Ok(socket) => {
                serve(queue, &socket)?;
                sockets.push(socket);
            }
            Err(error) if queue > 0 && is(&error, Errno::INVAL) => break,
            // A kernel that knows no frames in pieces.
            Err(error) if memory.has_pieces && is(&error, Errno::INVAL) => {
                return Err(FrameMemory::too_large(interface, memory.mtu_bytes, false));
            }
            Err(error) => return Err(socket_error(interface, queue, error)),
        }
    }
    Ok(sockets)
}

/// The least memory that holds a frame of an interface.
pub(crate) struct FrameMemory {
    mtu_bytes: u32,
    bytes: u32,
    /// Whether its frames may come in several pieces.
    pub(crate) has_pieces: bool,
}

impl FrameMemory {
    /// Of an interface of the calling thread's network namespace; in pieces only where they may be.
    ///
    /// # Errors
    /// When there is no such interface, or its frames are too long.
    pub(crate) fn of(interface: &str, may_have_pieces: bool) -> Result<Self, EngineError> {
        let mtu_bytes = mtu_of(interface)?;
        Self::of_mtu(mtu_bytes, may_have_pieces)
            .ok_or_else(|| Self::too_large(interface, mtu_bytes, may_have_pieces))
    }

    fn of_mtu(mtu_bytes: u32, may_have_pieces: bool) -> Option<Self> {
        let [least, most] = FRAME_MEMORY_BYTES;
        let memory = |bytes, has_pieces| FrameMemory {
            mtu_bytes,
            bytes,
            has_pieces,
        };
        [
            memory(least, false),
            memory(most, false),
            memory(most, true),
        ]
        .into_iter()
        .filter(|memory| may_have_pieces || !memory.has_pieces)
        .find(|memory| mtu_bytes <= memory.mtu_bytes_max())
    }

    fn too_large(interface: &str, mtu_bytes: u32, may_have_pieces: bool) -> EngineError {
        let most = FrameMemory {
            mtu_bytes,
            bytes: FRAME_MEMORY_BYTES[1],
            has_pieces: may_have_pieces,
        };
        EngineError::Mtu {
            interface: interface.to_owned(),
            mtu_bytes,
            mtu_bytes_max: most.mtu_bytes_max(),
        }
    }

    /// A socket with such memory, at the queue of an interface.
    pub(crate) fn config(
        &self,
        (ifindex, queue): (u32, u32),
        frames: u32,
        transmit_frames: u32,
    ) -> XdpConfig {
        XdpConfig {
            ifindex,
            queue,
            frames,
            transmit_frames,
            frame_memory_bytes: self.bytes,
            has_pieces: self.has_pieces,
        }
    }

    /// The longest frame that it holds.
    pub(crate) fn frame_bytes_max(&self) -> u32 {
        self.config((0, 0), 1, 0).frame_bytes_max()
    }

    fn mtu_bytes_max(&self) -> u32 {
        self.frame_bytes_max() - HEADER_BYTES
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}

pub(crate) fn socket_error(interface: &str, queue: u32, source: io::Error) -> EngineError {
    if is(&source, Errno::PERM) {
        return EngineError::Privileges {
            doing: "opening an AF_XDP socket",
            capabilities: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
            source,
        };
    }
    let remedy = match Errno::from_io_error(&source) {
        Some(Errno::BUSY) => "; another program has one at this queue, so stop that first",
        Some(Errno::NETDOWN) => "; bring the interface up first",
        Some(Errno::NOBUFS) => "; the limit of locked memory is too low (ulimit -l)",
        _ => "",
    };
    EngineError::Socket {
        interface: interface.to_owned(),
        queue,
        source,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_gets_the_least_memory_that_holds_its_frames() {
        let memory = |mtu_bytes, may_have_pieces| {
            let memory = FrameMemory::of_mtu(mtu_bytes, may_have_pieces)?;
            assert!(mtu_bytes + HEADER_BYTES <= memory.frame_bytes_max());
            Some((memory.bytes, memory.has_pieces))
        };
        assert_eq!(memory(1500, true), Some((2048, false)));
        assert_eq!(memory(3822, true), Some((4096, false)));
        assert_eq!(memory(9000, true), Some((4096, true)));
        assert_eq!(memory(65_536, true), None);
        // What is sent lies in one piece.
        assert_eq!(memory(3822, false), Some((4096, false)));
        assert_eq!(memory(3823, false), None);
    }
}
