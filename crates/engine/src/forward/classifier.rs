//! The XDP program of a forwarder at one interface: it says of each frame whether nothing is left but to send it on.

use std::os::fd::{AsFd, AsRawFd};

use aya::maps::xdp::DevMapHash;
use aya::maps::{MapData, PerCpuArray, XskMap};
use nicpoll_model::forward::PASSED;
use nicpoll_sys::xdp::{AttachMode, XdpSocket};
use nicpoll_wire::frame::Mac;

use crate::error::EngineError;
use crate::interface::Interface;
use crate::program::Program;

/// What the program does with a frame that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It changes the headers and sends it out.
    SendOn,
    /// It gives it to the socket of its queue.
    Take,
}

impl Verdict {
    fn program(self) -> &'static str {
        match self {
            Verdict::SendOn => "forward_frames",
            Verdict::Take => "take_frames_to_forward",
        }
    }
}

/// What became of the frames that came to the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Sent on or taken.
    pub(super) forwarded: u64,
    /// Left to the kernel, in the order of [`PASSED`].
    pub(super) passed: [u64; PASSED.len()],
}

impl Seen {
    /// All of them.
    pub(super) fn frames(&self) -> u64 {
        self.forwarded + self.passed.iter().sum::<u64>()
    }
}

/// The program.
pub(super) struct Classifier {
    program: Program,
    exits: DevMapHash<MapData>,
    sockets: XskMap<MapData>,
    frames: PerCpuArray<MapData, u64>,
}

impl Classifier {
    /// Loads the program. It forwards nothing until it has exits and is attached.
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(super) fn load(interface: &Interface, verdict: Verdict) -> Result<Self, EngineError> {
        let object = aya::include_bytes_aligned!("../../bpf/xdp_forward.bpf.o");
        let constants = [("OWN_ADDRESS", as_number(interface.mac))];
        let mut program = Program::load(&interface.name, object, verdict.program(), &constants)?;
        Ok(Classifier {
            exits: program.map("EXITS")?,
            sockets: program.map("SOCKETS")?,
            frames: program.map("FRAMES")?,
            program,
        })
    }

    /// Forwards to an interface from now on, or no longer.
    pub(super) fn set_exit(&mut self, ifindex: u32, is_exit: bool) -> Result<(), EngineError> {
        if is_exit {
            let inserted = self.exits.insert(ifindex, ifindex, None, 0);
            return inserted.map_err(|error| self.program.refused(&error));
        }
        // The kernel has removed an interface that is gone by itself.
        let _ = self.exits.remove(ifindex);
        Ok(())
    }

    /// Gives the frames of a queue to a socket.
    pub(super) fn serve(&mut self, queue: u32, socket: &XdpSocket) -> Result<(), EngineError> {
        let fd = socket.as_fd().as_raw_fd();
        let outcome = self.sockets.set(queue, fd, 0);
        outcome.map_err(|error| self.program.refused(&error))
    }

    /// Attaches the program.
    ///
    /// # Errors
    /// When the interface has an XDP program.
    pub(super) fn attach(&mut self, interface: &Interface) -> Result<AttachMode, EngineError> {
        self.program.attach(interface.ifindex)
    }

    /// Takes the program off the interface; its counters stay.
    pub(super) fn detach(&mut self) {
        self.program.detach();
    }

    /// What became of all frames so far.
    pub(super) fn seen(&self) -> Result<Seen, EngineError> {
        let [forwarded, passed @ ..] = self.program.sums::<{ PASSED.len() + 1 }>(&self.frames)?;
        Ok(Seen { forwarded, passed })
    }
}

/// A hardware address as the program compares it: its six bytes, and two of zero.
fn as_number(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_ne_bytes([a, b, c, d, e, f, 0, 0])
}
