//! The XDP program that takes frames out of the kernel's way, and who gets them.
//!
//! What must hold: only what was asked for is taken; ARP, neighbour discovery and TCP always pass, so that a login over
//! the interface survives. The program leaves the interface with the [`Taker`], or with the process.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray, XskMap};
use aya::programs::Xdp;
use nicpoll_sys::xdp::{AttachMode, XdpLink, XdpSocket};
use rustix::io::Errno;

use crate::error::EngineError;

const PROGRAM: &str = "take_frames";
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
}

/// What became of the frames that came to the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Given to a socket.
    pub taken: u64,
    /// Left to the kernel, as not asked for.
    pub passed: u64,
    /// Asked for, and left to the kernel because their queue had no socket.
    pub without_socket: u64,
}

/// The program at an interface.
pub struct Taker {
    interface: String,
    ebpf: Ebpf,
    sockets: XskMap<MapData>,
    frames: PerCpuArray<MapData, u64>,
    attached: Option<(XdpLink, AttachMode)>,
}

impl Taker {
    /// Loads the program. Nothing is taken until [`Taker::attach`].
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub fn load(interface: &str, take: &Take) -> Result<Self, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(interface, error);
        let object = aya::include_bytes_aligned!("../bpf/xdp_take.bpf.o");
        let mut ebpf = Ebpf::load(object).map_err(|error| refused(&error))?;
        let program: &mut Xdp = program(&mut ebpf).map_err(|error| refused(&error))?;
        program.load().map_err(|error| refused(&error))?;
        let mut map = |name: &str| {
            let map = ebpf.take_map(name);
            map.ok_or_else(|| EngineError::Program {
                interface: interface.to_owned(),
                why: format!("it has no map {name}"),
            })
        };
        let mut ports: Array<_, u64> = map("PORTS")?.try_into().map_err(|e| refused(&e))?;
        let sockets = map("SOCKETS")?.try_into().map_err(|e| refused(&e))?;
        let frames = map("FRAMES")?.try_into().map_err(|e| refused(&e))?;
        for word in 0..PORT_WORDS {
            let bits = take.word(word);
            if bits != 0 {
                ports.set(word, bits, 0).map_err(|error| refused(&error))?;
            }
        }
        Ok(Taker {
            interface: interface.to_owned(),
            ebpf,
            sockets,
            frames,
            attached: None,
        })
    }

    /// Gives the frames of a queue to a socket.
    pub fn serve(&mut self, queue: u32, socket: &XdpSocket) -> Result<(), EngineError> {
        let fd = socket.as_fd().as_raw_fd();
        let outcome = self.sockets.set(queue, fd, 0);
        outcome.map_err(|error| refusal(&self.interface, &error))
    }

    /// Attaches the program to the interface: in its driver where that runs programs, else in the kernel's own code.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub fn attach(&mut self, ifindex: u32) -> Result<AttachMode, EngineError> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal(&self.interface, error);
        let program: &mut Xdp = program(&mut self.ebpf).map_err(|error| refused(&error))?;
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

    /// Takes the program off the interface; its counters stay.
    pub fn detach(&mut self) {
        self.attached = None;
    }

    /// Where the program runs; `None` before it is attached.
    pub fn mode(&self) -> Option<AttachMode> {
        self.attached.as_ref().map(|(_, mode)| *mode)
    }

    /// What became of all frames so far.
    pub fn fates(&self) -> Result<Fates, EngineError> {
        let [mut taken, mut passed, mut without_socket] = [0; 3];
        for (key, sum) in [&mut taken, &mut passed, &mut without_socket]
            .into_iter()
            .enumerate()
        {
            let by_cpu = self.frames.get(&(key as u32), 0);
            let by_cpu = by_cpu.map_err(|error| refusal(&self.interface, &error))?;
            *sum = by_cpu.iter().sum();
        }
        Ok(Fates {
            taken,
            passed,
            without_socket,
        })
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp, aya::EbpfError> {
    let program = ebpf.program_mut(PROGRAM).ok_or(aya::EbpfError::NoBTF)?;
    Ok(program.try_into()?)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::BUSY | Errno::EXIST)
    )
}

/// The error of a refusal, from the innermost cause.
fn refusal(interface: &str, error: &(dyn std::error::Error + 'static)) -> EngineError {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let errno = cause
        .downcast_ref::<io::Error>()
        .and_then(Errno::from_io_error);
    match errno {
        Some(errno @ (Errno::PERM | Errno::ACCESS)) => EngineError::Privileges {
            doing: "taking frames by an XDP program",
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
}
