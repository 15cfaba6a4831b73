//! AF_XDP: receive queues whose frames an XDP program takes out of the kernel's way, and sending by a socket.
//!
//! The program takes only what [`Take`] says. ARP, neighbour discovery and TCP always pass, so a login over the interface
//! survives. The program leaves the interface with its [`Taker`], or with the process, and never replaces another program.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{Array, Map, MapData, MapError, PerCpuArray, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::LinkState;
use nicpoll_sys::xdp::{AttachMode, XdpConfig, XdpLink, XdpSocket};
use nicpoll_wire::frame::{Frame, Packet, Transport};
use rustix::io::Errno;

use crate::device::interface::{index_of, mtu_of};
use crate::device::port::{
    BusyPolling, Intake, PacketInput, PortDrops, Queue, QueuePort, Transmit,
};
use crate::error::EngineError;

/// Frames that a port keeps until they are polled for, unless less is asked.
pub const FRAMES_MAX: u32 = 4096;
/// Ethernet's header, with a VLAN tag.
const HEADER_BYTES: u32 = 18;
/// Memory that a frame may get. Where the larger one does not hold it, it comes in several pieces.
const FRAME_MEMORY_BYTES: [u32; 2] = [2048, 4096];

/// A receive queue of an interface by an AF_XDP socket, which may send too.
pub struct XdpQueue {
    socket: XdpSocket,
    /// As of when the interface went, if it did: it has no counters any more.
    last_drops: PortDrops,
    busy_polling: Option<BusyPolling>,
}

/// A receive queue of an interface, whose packets go to `I`.
pub type XdpPort<I> = QueuePort<XdpQueue, I>;

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
        let port = |socket| QueuePort::new(XdpQueue::new(socket), input());
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
}

impl XdpQueue {
    pub(crate) fn new(socket: XdpSocket) -> Self {
        XdpQueue {
            socket,
            last_drops: PortDrops::default(),
            busy_polling: None,
        }
    }

    /// The kernel may tell the socket its NAPI with the first frame.
    fn look_for_napi(&mut self) {
        if self.busy_polling == Some(BusyPolling::NoNapi) && self.socket.has_napi() {
            self.busy_polling = Some(BusyPolling::Acts);
        }
    }
}

impl Queue for XdpQueue {
    fn receive(&mut self, most: u32, each: impl FnMut(&[u8])) -> u32 {
        if self.busy_polling == Some(BusyPolling::Acts) {
            self.socket.poll_napi();
        }
        self.socket.receive(most, each)
    }

    fn waiting(&self) -> u32 {
        self.socket.waiting()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn check(&mut self) -> (LinkState, Option<u32>) {
        self.look_for_napi();
        let (link, mtu_bytes) = (self.socket.link_state(), self.socket.mtu_bytes());
        self.last_drops = self.drops();
        (link, mtu_bytes.ok())
    }

    fn drops(&self) -> PortDrops {
        self.socket.drops().map_or(self.last_drops, PortDrops::from)
    }

    fn prefer_busy_polling(&mut self) {
        self.busy_polling = Some(match self.socket.prefer_busy_poll() {
            Ok(()) => BusyPolling::NoNapi,
            Err(_) => BusyPolling::Refused,
        });
        self.look_for_napi();
    }

    fn busy_polling(&self) -> Option<BusyPolling> {
        self.busy_polling
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
    EngineError::Device {
        device: format!("queue {queue} of interface '{interface}' gets no AF_XDP socket"),
        source,
        remedy,
    }
}

/// Frames that a socket of its own has room for until the kernel has sent them.
const FRAMES: u32 = 1024;

/// Opens a transmit queue, from 0 on, of an interface of the calling thread's network namespace, by a socket that
/// receives nothing.
///
/// # Errors
/// When there is no such interface or queue, its MTU is too large, or a privilege is missing.
pub(crate) fn open_sender(interface: &str, queue: u32) -> Result<XdpSocket, EngineError> {
    let at = (index_of(interface)?, queue);
    let config = FrameMemory::of(interface, false)?.config(at, 0, FRAMES);
    XdpSocket::bind(&config).map_err(|source| socket_error(interface, queue, source))
}

impl Transmit for XdpSocket {
    fn room(&mut self) -> u32 {
        XdpSocket::room(self)
    }

    fn transmit(
        &mut self,
        most: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> io::Result<u32> {
        XdpSocket::transmit(self, most, fill)
    }

    fn sent(&self) -> u64 {
        XdpSocket::sent(self).completed
    }

    fn refused(&self) -> Option<u64> {
        Some(XdpSocket::sent(self).refused)
    }
}

const PROGRAM: &str = "take_frames";
/// For frames in several pieces.
const PROGRAM_OF_PIECES: &str = "take_long_frames";
/// `PORT_WORDS` of the program, each with 64 ports.
const PORT_WORDS: u32 = 1024;

/// Which frames are taken: UDP over IPv4 and IPv6, by destination port. Fragments, packets with IPv4 options or IPv6
/// extension headers, and frames with a VLAN tag are left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// UDP to one of these ports.
    Ports(BTreeSet<u16>),
    /// All UDP.
    AllUdp,
}

impl Take {
    fn word(&self, word: u32) -> u64 {
        match self {
            Take::AllUdp => u64::MAX,
            Take::Ports(ports) => ports
                .iter()
                .filter(|port| u32::from(**port) / 64 == word)
                .fold(0, |bits, port| bits | 1 << (port % 64)),
        }
    }

    /// Whether a frame is one of these, where no program of the kernel's has looked.
    pub(crate) fn wants(&self, frame: &[u8]) -> bool {
        let Ok(Frame {
            vlan: None,
            packet: Packet::Ip(ip),
            ..
        }) = Frame::parse(frame)
        else {
            return false;
        };
        match ip.transport {
            Transport::Udp(udp) if !ip.is_fragment && !ip.has_extensions => match self {
                Take::Ports(ports) => ports.contains(&udp.destination),
                Take::AllUdp => true,
            },
            _ => false,
        }
    }
}

/// The program at an interface.
pub struct Taker {
    program: Program,
    sockets: XskMap<MapData>,
    frames: PerCpuArray<MapData, u64>,
}

impl Taker {
    /// Loads the program. Nothing is taken until [`Taker::attach`].
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(crate) fn load(
        interface: &str,
        take: &Take,
        memory: &FrameMemory,
    ) -> Result<Self, EngineError> {
        let object = aya::include_bytes_aligned!("../../bpf/xdp_take.bpf.o");
        let name = match memory.has_pieces {
            true => PROGRAM_OF_PIECES,
            false => PROGRAM,
        };
        let constants = [("FRAME_BYTES_MAX", u64::from(memory.frame_bytes_max()))];
        let mut program = Program::load(interface, object, name, &constants)?;
        let mut ports: Array<_, u64> = program.map("PORTS")?;
        for word in 0..PORT_WORDS {
            let bits = take.word(word);
            if bits != 0 {
                let set = ports.set(word, bits, 0);
                set.map_err(|error| program.refused(&error))?;
            }
        }
        Ok(Taker {
            sockets: program.map("SOCKETS")?,
            frames: program.map("FRAMES")?,
            program,
        })
    }

    /// Gives the frames of a queue to a socket.
    pub fn serve(&mut self, queue: u32, socket: &XdpSocket) -> Result<(), EngineError> {
        let fd = socket.as_fd().as_raw_fd();
        let outcome = self.sockets.set(queue, fd, 0);
        outcome.map_err(|error| self.program.refused(&error))
    }

    /// Attaches the program to the interface: in its driver where that runs programs, else in the kernel's own code.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub fn attach(&mut self, ifindex: u32) -> Result<AttachMode, EngineError> {
        self.program.attach(ifindex)
    }

    /// Takes the program off the interface; its counters stay.
    pub fn detach(&mut self) {
        self.program.detach();
    }

    /// Where the program runs; `None` before it is attached.
    pub fn mode(&self) -> Option<AttachMode> {
        self.program.mode()
    }
}

impl Intake for Taker {
    fn stop(&mut self) {
        self.program.detach();
    }

    fn fates(&self) -> Result<SinkFates, EngineError> {
        let [taken, passed, without_socket, too_long] = self.program.sums(&self.frames)?;
        Ok(SinkFates {
            taken_packets: taken,
            passed_packets: Some(passed),
            without_socket_packets: without_socket,
            too_long_packets: too_long,
        })
    }
}

/// A loaded program with its maps, for one interface.
pub(crate) struct Program {
    interface: String,
    name: &'static str,
    ebpf: Ebpf,
    attached: Option<(XdpLink, AttachMode)>,
}

impl Program {
    /// Loads the program of a name out of an object, with the values of its constants.
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(crate) fn load(
        interface: &str,
        object: &[u8],
        name: &'static str,
        constants: &[(&str, u64)],
    ) -> Result<Self, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(interface, error);
        let mut loader = EbpfLoader::new();
        for (name, value) in constants {
            loader.override_global(name, value, true);
        }
        let mut ebpf = loader.load(object).map_err(|error| refused(&error))?;
        let program = find(&mut ebpf, name).map_err(|error| refused(&error))?;
        program.load().map_err(|error| refused(&error))?;
        Ok(Program {
            interface: interface.to_owned(),
            name,
            ebpf,
            attached: None,
        })
    }

    /// Takes one of its maps.
    pub(crate) fn map<M>(&mut self, name: &str) -> Result<M, EngineError>
    where
        M: TryFrom<Map, Error = MapError>,
    {
        let map = self.ebpf.take_map(name);
        let map = map.ok_or_else(|| EngineError::Program {
            interface: self.interface.clone(),
            why: format!("it has no map {name}"),
        })?;
        map.try_into()
            .map_err(|error: MapError| self.refused(&error))
    }

    /// Attaches the program to the interface: in its driver where that runs programs, else in the kernel's own code.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub(crate) fn attach(&mut self, ifindex: u32) -> Result<AttachMode, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(&self.interface, error);
        let program = find(&mut self.ebpf, self.name).map_err(|error| refused(&error))?;
        let program = program.fd().map_err(|error| refused(&error))?;
        let program = program.as_fd();
        let mut attached = Err(io::Error::from(Errno::OPNOTSUPP));
        for mode in [AttachMode::Driver, AttachMode::Generic] {
            attached = XdpLink::attach(program, ifindex, mode).map(|link| (link, mode));
            // Another mode is tried where the driver will not have it, not where the interface is taken.
            if attached.is_ok() || attached.as_ref().is_err_and(is_taken) {
                break;
            }
        }
        match attached {
            Ok((link, mode)) => {
                self.attached = Some((link, mode));
                Ok(mode)
            }
            Err(error) if is_taken(&error) => Err(EngineError::ForeignProgram {
                interface: self.interface.clone(),
            }),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Runs the program `runs` times on frames that are sent where it says, `batch` at a time, and attaches it nowhere.
    /// The kernel makes memory for them that holds `frame`; what comes back from receivers is used again as it is.
    ///
    /// # Errors
    /// What the kernel says; `EINTR` when a signal came, after part of the runs.
    pub(crate) fn run_live(&self, frame: &[u8], runs: u32, batch: u32) -> io::Result<()> {
        let program = self.ebpf.program(self.name);
        let program: &Xdp = program
            .and_then(|program| program.try_into().ok())
            .ok_or(io::ErrorKind::NotFound)?;
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: runs,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::new()
        };
        match program.test_run(options) {
            Ok(_) => Ok(()),
            Err(ProgramError::SyscallError(error)) => Err(error.io_error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Whether the kernel knows of such frames. None is sent: it is asked for more at a time than any kernel allows.
    pub(crate) fn knows_live_frames(&self, frame: &[u8]) -> bool {
        !is_unknown(&self.run_live(frame, 1, u32::MAX))
    }

    /// Takes the program off the interface; its maps stay.
    pub(crate) fn detach(&mut self) {
        self.attached = None;
    }

    /// Where the program runs; `None` before it is attached.
    pub(crate) fn mode(&self) -> Option<AttachMode> {
        self.attached.as_ref().map(|(_, mode)| *mode)
    }

    /// The first `N` counters of a map, each summed over all CPUs.
    pub(crate) fn sums<const N: usize>(
        &self,
        counters: &PerCpuArray<MapData, u64>,
    ) -> Result<[u64; N], EngineError> {
        let mut sums = [0; N];
        for (key, sum) in sums.iter_mut().enumerate() {
            let by_cpu = counters.get(&(key as u32), 0);
            *sum = by_cpu.map_err(|error| self.refused(&error))?.iter().sum();
        }
        Ok(sums)
    }

    /// The error of a refusal.
    pub(crate) fn refused(&self, error: &(dyn std::error::Error + 'static)) -> EngineError {
        refusal(&self.interface, error)
    }
}

fn find<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, aya::EbpfError> {
    let program = ebpf.program_mut(name).ok_or(aya::EbpfError::NoBTF)?;
    Ok(program.try_into()?)
}

/// Linux before 5.18 calls a request with a number of frames at a time invalid; later ones say that it is too large.
fn is_unknown(outcome: &io::Result<()>) -> bool {
    let error = outcome.as_ref().err();
    error.and_then(Errno::from_io_error) == Some(Errno::INVAL)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::BUSY | Errno::EXIST)
    )
}

/// The error of a refusal, from the innermost cause.
pub(crate) fn refusal(interface: &str, error: &(dyn std::error::Error + 'static)) -> EngineError {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let errno = cause
        .downcast_ref::<io::Error>()
        .and_then(Errno::from_io_error);
    match errno {
        Some(errno @ (Errno::PERM | Errno::ACCESS)) => EngineError::Privileges {
            doing: "an XDP program for frames",
            capabilities: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
            source: errno.into(),
        },
        _ => EngineError::Program {
            interface: interface.to_owned(),
            why: cause.to_string(),
        },
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

    #[test]
    fn each_port_is_one_bit() {
        let take = Take::Ports(BTreeSet::from([0, 63, 64, 9000, 65535]));
        assert_eq!(take.word(0), 1 | 1 << 63);
        assert_eq!(take.word(1), 1);
        assert_eq!(take.word(9000 / 64), 1 << (9000 % 64));
        assert_eq!(take.word(1023), 1 << 63);
        assert_eq!(take.word(2), 0);
        let bits = |take: &Take| {
            (0..PORT_WORDS)
                .map(|word| take.word(word).count_ones())
                .sum::<u32>()
        };
        assert_eq!(bits(&take), 5);
        assert_eq!(bits(&Take::AllUdp), 65_536);
    }

    #[test]
    fn a_kernel_without_live_frames_calls_the_request_invalid() {
        let answer = |errno: Errno| Err(io::Error::from(errno));
        assert!(is_unknown(&answer(Errno::INVAL)));
        assert!(!is_unknown(&answer(Errno::TOOBIG)));
    }
}
