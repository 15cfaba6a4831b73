//! AF_XDP: receive queues whose frames an XDP program takes out of the kernel's way, and sending by a socket.
//!
//! The program takes only what [`Take`] says. ARP, neighbour discovery and TCP always pass, so a login over the interface
//! survives. The program leaves the interface with its [`LoadedProgram`], or with the process, and never replaces another program.

use std::error::Error as StdError;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{Array, Map, MapError, PerCpuArray, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use nicpoll_model::engine::SinkFates;
use nicpoll_sys::link::LinkHandle;
use nicpoll_sys::packet::ReceiverDrops;
use nicpoll_sys::xdp::{AttachMode, XdpConfig, XdpLink, XdpSendHalf, XdpSocket};
use rustix::io::Errno;

use crate::device::interface::link_of;
use crate::device::port::{
    BusyPolling, DeviceKind, Intake, Opened, PacketInput, Port, ReceiveQueue, Reception, Take,
};
use crate::error::EngineError;

/// Frames that a port keeps until they are polled for, unless less is asked.
pub const FRAMES_MAX: u32 = 4096;
/// Ethernet's header, with a VLAN tag.
const HEADER_BYTES: u32 = 18;
/// Memory that a frame may get, and whether it comes in several pieces where that does not hold it.
const FRAME_MEMORY_BYTES: [(u32, bool); 3] = [(2048, false), (4096, false), (4096, true)];

/// A receive queue of an interface by an AF_XDP socket.
pub(crate) struct XdpQueue {
    socket: XdpSocket,
    busy_polling: Option<BusyPolling>,
}

/// Opens every receive queue of an interface of the calling thread's network namespace, and has their frames be taken.
///
/// # Errors
/// When there is no such interface, it has an XDP program, its MTU is too large, or a privilege is missing. An MTU above
/// 3822 bytes takes Linux 6.6, and is too large to send.
pub(super) fn open<I: PacketInput + Send + 'static>(
    reception: &Reception<'_>,
    mut input: impl FnMut() -> I,
) -> Result<Opened<I>, EngineError> {
    let interface = reception.interface;
    let config = config(interface, reception.frames, reception.transmit_frames)?;
    // First: a kernel that knows no frames in pieces says so here.
    let sockets = open_sockets(interface, config, |_, _| Ok(()))?;
    let mut program = take_program(interface, reception.take, &config)?;
    for (queue, socket) in (0..).zip(&sockets) {
        program.serve(queue, socket)?;
    }
    let is_zero_copy = sockets.iter().all(XdpSocket::is_zero_copy);
    let (mut ports, mut senders) = (Vec::new(), Vec::new());
    for mut socket in sockets {
        senders.extend(socket.sending.take());
        ports.push(XdpQueue::port(socket, link_of(interface)?.0, input()));
    }
    // Last: whatever it takes finds its socket.
    let mode = program.attach(config.ifindex)?;
    Ok(Opened {
        kind: DeviceKind::AfXdp,
        ports,
        senders,
        intake: Box::new(program),
        program_mode: Some(mode),
        is_zero_copy,
        refused: Vec::new(),
    })
}

impl XdpQueue {
    /// The port of a socket at an interface.
    pub(crate) fn port<I: PacketInput + Send + 'static>(
        socket: XdpSocket,
        link: LinkHandle,
        input: I,
    ) -> Port<I> {
        let queue = XdpQueue {
            socket,
            busy_polling: None,
        };
        Port::new(queue, link, input)
    }

    /// The kernel may tell the socket its NAPI with the first frame.
    fn look_for_napi(&mut self) {
        if self.busy_polling == Some(BusyPolling::NoNapi) && self.socket.has_napi() {
            self.busy_polling = Some(BusyPolling::Acts);
        }
    }
}

impl<I: PacketInput> ReceiveQueue<I> for XdpQueue {
    fn receive(&mut self, most: u32, input: &mut I) -> u32 {
        if self.busy_polling == Some(BusyPolling::Acts) {
            self.socket.poll_napi();
        }
        self.socket.receive(most, |frame| input.packet(frame))
    }

    fn waiting(&self) -> u32 {
        self.socket.waiting()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn drops(&self) -> io::Result<ReceiverDrops> {
        self.socket.drops()
    }

    fn note_check(&mut self, _mtu_bytes: Option<u32>) {
        self.look_for_napi();
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

/// A socket for the first queue of an interface, with the least memory that holds its frames: in pieces only where
/// nothing is sent.
///
/// # Errors
/// When there is no such interface, or its frames are too long.
pub(crate) fn config(
    interface: &str,
    frames: u32,
    transmit_frames: u32,
) -> Result<XdpConfig, EngineError> {
    let (link, mtu_bytes) = link_of(interface)?;
    let config = XdpConfig {
        ifindex: link.ifindex(),
        frames,
        transmit_frames,
        ..XdpConfig::default()
    };
    fitting(config, mtu_bytes).map_err(|most| too_large(interface, mtu_bytes, most))
}

/// The same with memory for packets of that length, or the longest packet that there is memory for.
fn fitting(config: XdpConfig, mtu_bytes: u32) -> Result<XdpConfig, u32> {
    let mut most = 0;
    for (frame_memory_bytes, has_pieces) in FRAME_MEMORY_BYTES {
        if has_pieces && config.transmit_frames > 0 {
            break;
        }
        let config = XdpConfig {
            frame_memory_bytes,
            has_pieces,
            ..config
        };
        most = config.frame_bytes_max() - HEADER_BYTES;
        if mtu_bytes <= most {
            return Ok(config);
        }
    }
    Err(most)
}

fn too_large(interface: &str, mtu_bytes: u32, most: u32) -> EngineError {
    EngineError::Device(format!(
        "interface '{interface}' has an MTU of {mtu_bytes} bytes, and {most} are the most that can be received here; \
         lower the MTU with 'ip link set {interface} mtu {most}'"
    ))
}

/// A socket for each receive queue of an interface, which `serve` is shown with the queue's number.
pub(crate) fn open_sockets(
    interface: &str,
    config: XdpConfig,
    mut serve: impl FnMut(u32, &XdpSocket) -> Result<(), EngineError>,
) -> Result<Vec<XdpSocket>, EngineError> {
    let mut sockets = Vec::new();
    // The kernel says which queue is none.
    for queue in 0..nicpoll_core::POLL_LIST_LEN as u32 {
        match XdpSocket::bind(&XdpConfig { queue, ..config }) {
            Ok(socket) => {
                serve(queue, &socket)?;
                sockets.push(socket);
            }
            Err(error) if queue > 0 && is(&error, Errno::INVAL) => break,
            // A kernel that knows no frames in pieces.
            Err(error) if config.has_pieces && is(&error, Errno::INVAL) => {
                let whole = XdpConfig {
                    has_pieces: false,
                    ..config
                };
                let (_, mtu_bytes) = link_of(interface)?;
                let most = whole.frame_bytes_max() - HEADER_BYTES;
                return Err(too_large(interface, mtu_bytes, most));
            }
            Err(error) => return Err(socket_error(interface, queue, error)),
        }
    }
    Ok(sockets)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}

fn socket_error(interface: &str, queue: u32, source: io::Error) -> EngineError {
    EngineError::device(
        format!("queue {queue} of interface '{interface}' gets no AF_XDP socket"),
        ("opening an AF_XDP socket", CAPABILITIES),
        &[
            (
                Errno::BUSY,
                "; another program has one at this queue, so stop that first",
            ),
            (Errno::NETDOWN, "; bring the interface up first"),
            (
                Errno::NOBUFS,
                "; the limit of locked memory is too low (ulimit -l)",
            ),
        ],
        source,
    )
}

const CAPABILITIES: &str = "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";

/// Frames that a socket of its own has room for until the kernel has sent them.
const FRAMES: u32 = 1024;

/// Opens the first transmit queue of an interface of the calling thread's network namespace, by a socket that receives
/// nothing.
///
/// # Errors
/// When there is no such interface, its MTU is too large, or a privilege is missing.
pub(crate) fn open_sender(interface: &str) -> Result<XdpSendHalf, EngineError> {
    let socket = XdpSocket::bind(&config(interface, 0, FRAMES)?);
    let socket = socket.map_err(|source| socket_error(interface, 0, source))?;
    Ok(socket.sending.expect("it was asked for room to send"))
}

/// `PORT_WORDS` of the program, each with 64 ports.
const PORT_WORDS: u32 = 1024;

/// Loads the program that takes frames. Nothing is taken until it is attached.
fn take_program(
    interface: &str,
    take: &Take,
    config: &XdpConfig,
) -> Result<LoadedProgram, EngineError> {
    let object = aya::include_bytes_aligned!("../../bpf/xdp_take.bpf.o");
    let name = match config.has_pieces {
        true => "take_long_frames",
        false => "take_frames",
    };
    let constants = [("FRAME_BYTES_MAX", u64::from(config.frame_bytes_max()))];
    let mut program = LoadedProgram::load(interface, object, name, &constants)?;
    let mut ports: Array<_, u64> = program.map("PORTS")?;
    for word in 0..PORT_WORDS {
        let bits = take.word(word);
        if bits != 0 {
            program.explained(ports.set(word, bits, 0))?;
        }
    }
    Ok(program)
}

impl Intake for LoadedProgram {
    fn stop(&mut self) {
        self.detach();
    }

    fn fates(&self) -> Result<SinkFates, EngineError> {
        let [taken, passed, without_socket, too_long] = self.frames()?;
        Ok(SinkFates {
            taken_packets: taken,
            passed_packets: Some(passed),
            without_socket_packets: without_socket,
            too_long_packets: too_long,
        })
    }
}

/// A loaded program with its maps, for one interface.
pub(crate) struct LoadedProgram {
    interface: String,
    name: &'static str,
    ebpf: Ebpf,
    attached: Option<(XdpLink, AttachMode)>,
}

impl LoadedProgram {
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
        let mut loader = EbpfLoader::new();
        for (name, value) in constants {
            loader.override_global(name, value, true);
        }
        let mut ebpf = explained(interface, loader.load(object))?;
        let program = explained(interface, find(&mut ebpf, name))?;
        explained(interface, program.load())?;
        Ok(LoadedProgram {
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
        map(&mut self.ebpf, &self.interface, name)
    }

    /// Gives the frames of a queue to a socket.
    pub(crate) fn serve(&mut self, queue: u32, socket: &XdpSocket) -> Result<(), EngineError> {
        let sockets = self.ebpf.map_mut("SOCKETS").map(XskMap::try_from);
        let mut sockets = explained(&self.interface, sockets.expect("the program has sockets"))?;
        let fd = socket.as_fd().as_raw_fd();
        explained(&self.interface, sockets.set(queue, fd, 0))
    }

    /// Attaches the program to the interface: in its driver where that runs programs, else in the kernel's own code.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub(crate) fn attach(&mut self, ifindex: u32) -> Result<AttachMode, EngineError> {
        let program = explained(&self.interface, find(&mut self.ebpf, self.name))?;
        let program = explained(&self.interface, program.fd())?.as_fd();
        let mut attached = Err(io::Error::from(Errno::OPNOTSUPP));
        for mode in [AttachMode::Driver, AttachMode::Generic] {
            attached = XdpLink::attach(program, ifindex, mode).map(|link| (link, mode));
            // Another mode is tried where the driver will not have it, not where the interface is taken.
            if attached.is_ok() || attached.as_ref().is_err_and(is_taken) {
                break;
            }
        }
        let interface = &self.interface;
        if attached.as_ref().is_err_and(is_taken) {
            return Err(EngineError::Device(format!(
                "interface '{interface}' has an XDP program of another program, which nicpoll does not replace; stop the \
                 program that attached it ('ip link show {interface}' shows it)"
            )));
        }
        let (link, mode) = explained(interface, attached)?;
        self.attached = Some((link, mode));
        Ok(mode)
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

    /// Takes the program off the interface; its maps stay.
    pub(crate) fn detach(&mut self) {
        self.attached = None;
    }

    /// Where the program runs; `None` before it is attached.
    pub(crate) fn mode(&self) -> Option<AttachMode> {
        self.attached.as_ref().map(|(_, mode)| *mode)
    }

    /// The first `N` counters of frames, each summed over all CPUs.
    pub(crate) fn frames<const N: usize>(&self) -> Result<[u64; N], EngineError> {
        let counters = self.ebpf.map("FRAMES").map(PerCpuArray::<_, u64>::try_from);
        let counters = self.explained(counters.expect("the program counts frames"))?;
        let mut sums = [0; N];
        for (key, sum) in sums.iter_mut().enumerate() {
            *sum = self.explained(counters.get(&(key as u32), 0))?.iter().sum();
        }
        Ok(sums)
    }

    /// An outcome, whose error names the interface.
    pub(crate) fn explained<T>(
        &self,
        outcome: Result<T, impl StdError + 'static>,
    ) -> Result<T, EngineError> {
        explained(&self.interface, outcome)
    }
}

/// Takes a map of a loaded object.
pub(crate) fn map<M>(ebpf: &mut Ebpf, interface: &str, name: &str) -> Result<M, EngineError>
where
    M: TryFrom<Map, Error = MapError>,
{
    let map = ebpf.take_map(name);
    let map = map.ok_or_else(|| refused(interface, &format!("it has no map {name}")))?;
    explained(interface, map.try_into())
}

fn find<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, aya::EbpfError> {
    let program = ebpf.program_mut(name).ok_or(aya::EbpfError::NoBTF)?;
    Ok(program.try_into()?)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::BUSY | Errno::EXIST)
    )
}

fn refused(interface: &str, why: &str) -> EngineError {
    EngineError::Device(format!(
        "the kernel refused the XDP program for '{interface}': {why}"
    ))
}

/// An outcome with the kernel, whose error tells of the interface and the innermost cause.
pub(crate) fn explained<T>(
    interface: &str,
    outcome: Result<T, impl StdError + 'static>,
) -> Result<T, EngineError> {
    outcome.map_err(|error| {
        let mut cause: &(dyn StdError + 'static) = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let errno = cause
            .downcast_ref::<io::Error>()
            .and_then(Errno::from_io_error);
        match errno {
            Some(errno @ (Errno::PERM | Errno::ACCESS)) => EngineError::Privileges {
                doing: "an XDP program for frames",
                capabilities: CAPABILITIES,
                source: errno.into(),
            },
            _ => refused(interface, &cause.to_string()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mtu_gets_the_least_memory_that_holds_its_frames() {
        let memory = |mtu_bytes, transmit_frames| {
            let config = XdpConfig {
                transmit_frames,
                ..XdpConfig::default()
            };
            fitting(config, mtu_bytes).map(|fit| (fit.frame_memory_bytes, fit.has_pieces))
        };
        assert_eq!(memory(1500, 0), Ok((2048, false)));
        assert_eq!(memory(3822, 0), Ok((4096, false)));
        assert_eq!(memory(9000, 0), Ok((4096, true)));
        assert!(memory(65_536, 0).is_err());
        // What is sent lies in one piece.
        assert_eq!(memory(3822, 1), Ok((4096, false)));
        assert_eq!(memory(3823, 1), Err(3822));
    }
}
