//! A receive queue by an AF_XDP socket, which may send too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nicpoll_core::{Command, Device};
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::{XdpConfig, XdpSocket};
use rustix::io::Errno;

use crate::error::EngineError;
use crate::interface::{index_of, mtu_of};
use crate::port::{LinkWatch, PacketInput, Port, PortDrops, PortInto, Transmit};
use crate::take::{Take, Taker};

/// Frames that a port keeps until they are polled for, unless less is asked.
pub const FRAMES_MAX: u32 = 4096;
/// Ethernet's header, with a VLAN tag.
const HEADER_BYTES: u32 = 18;
/// Memory that a frame may get.
const FRAME_MEMORY_BYTES: [u32; 2] = [2048, 4096];

/// A receive queue of an interface, whose packets go to `I`.
pub struct XdpPort<I> {
    socket: XdpSocket,
    input: I,
    has_interrupts: bool,
    link: LinkWatch,
    /// As of when the interface went, if it did: it has no counters any more.
    last_drops: PortDrops,
}

impl<I: PacketInput> XdpPort<I> {
    /// Opens every receive queue of an interface of the calling thread's network namespace, and has their frames be
    /// taken. Each keeps up to `frames`, a power of two.
    ///
    /// # Errors
    /// When there is no such interface, it has an XDP program, its MTU is too large, or a privilege is missing.
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
    /// As of [`XdpPort::open`].
    pub fn open_both_ways(
        interface: &str,
        take: &Take,
        frames: u32,
        transmit_frames: u32,
        mut input: impl FnMut() -> I,
    ) -> Result<(Taker, Vec<Self>), EngineError> {
        let ifindex = index_of(interface)?;
        let mut taker = Taker::load(interface, take)?;
        let sockets = open_sockets(interface, frames, transmit_frames, |queue, socket| {
            taker.serve(queue, socket)
        })?;
        let ports = sockets.into_iter();
        let ports = ports.map(|socket| Self::new(socket, input())).collect();
        // Last: whatever it takes finds its socket.
        taker.attach(ifindex)?;
        Ok((taker, ports))
    }

    fn new(socket: XdpSocket, input: I) -> Self {
        XdpPort {
            socket,
            input,
            has_interrupts: true,
            link: LinkWatch::new(),
            last_drops: PortDrops::default(),
        }
    }

    /// Whether frames come without being copied.
    pub fn is_zero_copy(&self) -> bool {
        self.socket.is_zero_copy()
    }

    /// What it sends by, when it was opened both ways.
    pub fn sender(&mut self) -> &mut impl Transmit {
        &mut self.socket
    }

    fn check_status(&mut self) {
        self.link.observe(self.socket.link_state());
        self.last_drops = self.drops();
    }
}

impl<I: PacketInput> Device for XdpPort<I> {
    fn poll(&mut self, command: Command, count: u32) -> u32 {
        if command == Command::PollAndCheckStatus {
            self.check_status();
        }
        let input = &mut self.input;
        self.socket.receive(count, |frame| input.packet(frame))
    }

    fn set_interrupts(&mut self, on: bool) {
        self.has_interrupts = on;
    }
}

impl<I: PacketInput> Port for XdpPort<I> {
    fn waiting(&self) -> u32 {
        self.socket.waiting()
    }

    fn wake_up(&self) -> Option<BorrowedFd<'_>> {
        let can_wake = self.has_interrupts && self.link.state() != LinkState::Gone;
        can_wake.then(|| self.socket.as_fd())
    }

    fn link_state(&self) -> LinkState {
        self.link.state()
    }

    fn link_losses(&self) -> u64 {
        self.link.losses()
    }

    fn drops(&self) -> PortDrops {
        self.socket.drops().map_or(self.last_drops, PortDrops::from)
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
    let frame_memory_bytes = frame_memory_bytes(interface)?;
    let mut sockets = Vec::new();
    // The kernel says which queue is none.
    for queue in 0..nicpoll_core::POLL_LIST_LEN as u32 {
        let config = XdpConfig {
            ifindex,
            queue,
            frames,
            transmit_frames,
            frame_memory_bytes,
        };
        match XdpSocket::bind(&config) {
            Ok(socket) => {
                serve(queue, &socket)?;
                sockets.push(socket);
            }
            Err(error) if queue > 0 && is(&error, Errno::INVAL) => break,
            Err(error) => return Err(socket_error(interface, queue, error)),
        }
    }
    Ok(sockets)
}

/// The least memory that holds a frame of the interface.
pub(crate) fn frame_memory_bytes(interface: &str) -> Result<u32, EngineError> {
    let mtu_bytes = mtu_of(interface)?;
    let holds = |memory: u32| {
        let config = XdpConfig {
            ifindex: 0,
            queue: 0,
            frames: 1,
            transmit_frames: 0,
            frame_memory_bytes: memory,
        };
        config.frame_bytes_max() - HEADER_BYTES
    };
    let mut memories = FRAME_MEMORY_BYTES.into_iter();
    memories
        .find(|memory| mtu_bytes <= holds(*memory))
        .ok_or_else(|| EngineError::Mtu {
            interface: interface.to_owned(),
            mtu_bytes,
            mtu_bytes_max: holds(FRAME_MEMORY_BYTES[1]),
        })
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
