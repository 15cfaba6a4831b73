//! The XDP program of a forwarder at one interface: it decides for each frame whether it only has to be sent on.

use std::os::fd::{AsFd, AsRawFd};

use aya::maps::xdp::DevMap;
use aya::maps::{HashMap, MapData, PerCpuArray, XskMap};
use nicpoll_model::engine::PASSED;
use nicpoll_sys::xdp::{AttachMode, XdpSocket};
use nicpoll_wire::frame::Mac;

use crate::device::interface::Interface;
use crate::device::xdp::Program;
use crate::error::EngineError;
use crate::forward::path::NextHops;

/// What the program does with a frame that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It changes the headers and sends it out.
    SendOn,
    /// It changes the headers and gives it to the socket of its queue, with the place of its exit.
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

/// Reasons of [`PASSED`] that the program has; the last is the engine's.
const REASONS: usize = PASSED.len() - 1;

/// What became of the frames that came to the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Sent on or taken.
    pub(super) forwarded: u64,
    /// Left to the kernel, in the order of [`PASSED`].
    passed: [u64; REASONS],
}

impl Seen {
    /// All of them.
    pub(super) fn frames(&self) -> u64 {
        self.forwarded + self.passed.iter().sum::<u64>()
    }

    /// Those left to the kernel, in the order of [`PASSED`], with those that the engine gave back.
    pub(super) fn passed(&self, given_back: u64) -> [u64; PASSED.len()] {
        let mut passed = [given_back; PASSED.len()];
        passed[..REASONS].copy_from_slice(&self.passed);
        passed
    }
}

/// The program.
pub(super) struct Classifier {
    program: Program,
    places: HashMap<MapData, u32, u32>,
    sockets: XskMap<MapData>,
    frames: PerCpuArray<MapData, u64>,
    next_hops: Option<NextHops>,
}

impl Classifier {
    /// Loads the program of an interface. Of `exits`, by interface index, it forwards to none until it is told to, and
    /// is attached.
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(super) fn load(
        interface: &Interface,
        verdict: Verdict,
        exits: &[u32],
    ) -> Result<Self, EngineError> {
        let object = aya::include_bytes_aligned!("../../bpf/xdp_forward.bpf.o");
        let constants = [("OWN_ADDRESS", as_number(interface.mac))];
        let mut program = Program::load(&interface.name, object, verdict.program(), &constants)?;
        let mut of_places: DevMap<MapData> = program.map("EXITS")?;
        for (place, ifindex) in exits.iter().enumerate() {
            let set = of_places.set(place as u32, *ifindex, None, 0);
            set.map_err(|error| program.refused(&error))?;
        }
        Ok(Classifier {
            places: program.map("PLACES")?,
            sockets: program.map("SOCKETS")?,
            frames: program.map("FRAMES")?,
            next_hops: Some(program.map("NEXT_HOPS")?),
            program,
        })
    }

    /// Forwards to the exit of a place from now on, or no longer.
    pub(super) fn set_exit(
        &mut self,
        (place, ifindex): (usize, u32),
        takes: bool,
    ) -> Result<(), EngineError> {
        if takes {
            let inserted = self.places.insert(ifindex, place as u32, 0);
            return inserted.map_err(|error| self.program.refused(&error));
        }
        // It may have had no place.
        let _ = self.places.remove(&ifindex);
        Ok(())
    }

    /// Takes what it notes of those to whom frames go.
    pub(super) fn take_next_hops(&mut self) -> Option<NextHops> {
        self.next_hops.take()
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
        let [forwarded, passed @ ..] = self.program.sums::<{ REASONS + 1 }>(&self.frames)?;
        Ok(Seen { forwarded, passed })
    }
}

/// A hardware address as the program compares it: its six bytes, and two of zero.
fn as_number(mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_ne_bytes([a, b, c, d, e, f, 0, 0])
}
