//! The XDP program that takes frames out of the kernel's way, and who gets them.
//!
//! What must hold: only what was asked for is taken; ARP, neighbour discovery and TCP always pass, so that a login over
//! the interface survives. The program leaves the interface with the [`Taker`], or with the process.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};

use aya::maps::{Array, MapData, PerCpuArray, XskMap};
use nicpoll_sys::xdp::{AttachMode, XdpSocket};
use nicpoll_wire::frame::{Frame, Packet, Transport};

use crate::error::EngineError;
use crate::program::Program;
use crate::xdp_port::FrameMemory;

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

/// What became of the frames that came to the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Given to a socket.
    pub taken: u64,
    /// Left to the kernel, as not asked for; `None` where nobody counts them.
    pub passed: Option<u64>,
    /// Asked for, and left to the kernel because their queue had no socket.
    pub without_socket: u64,
    /// Asked for, and left to the kernel because no socket had memory for them.
    pub too_long: u64,
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
        let object = aya::include_bytes_aligned!("../bpf/xdp_take.bpf.o");
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

    /// What became of all frames so far.
    pub fn fates(&self) -> Result<Fates, EngineError> {
        let [taken, passed, without_socket, too_long] = self.program.sums(&self.frames)?;
        Ok(Fates {
            taken,
            passed: Some(passed),
            without_socket,
            too_long,
        })
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
