//! The XDP program of a forwarder at one interface: it decides for each frame whether it only has to be sent on.

use aya::maps::xdp::DevMap;
use aya::maps::{HashMap, MapData};
use nicpoll_model::engine::{ForwardAccount, Lost, PASSED};
use nicpoll_sys::bpf_maps::NextHop;

use crate::device::interface::EthernetInterface;
use crate::device::xdp::LoadedProgram;
use crate::error::EngineError;

/// Program that changes the headers of a frame that can be forwarded, and sends it out.
pub(super) const SENDS_ON: &str = "forward_frames";
/// Program that changes the headers, and gives the frame to the socket of its queue, with the place of its exit.
pub(super) const TAKES: &str = "take_frames_to_forward";

/// Reasons of [`PASSED`] that the program has; the last is the engine's.
const REASONS: usize = PASSED.len() - 1;

/// What became of the frames of an interface that the program sent on or took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassifierResult {
    /// Handed to their exits.
    pub(super) forwarded: u64,
    /// Given back to the kernel: their exit was gone.
    pub(super) given_back: u64,
    /// Lost, by place.
    pub(super) lost: Lost,
}

impl ClassifierResult {
    pub(super) fn add(&mut self, more: &ClassifierResult) {
        self.forwarded += more.forwarded;
        self.given_back += more.given_back;
        self.lost.add(&more.lost);
    }
}

/// The next hops of one program, each with the kernel's clock tick in which it was last one.
pub(super) type NextHops = HashMap<MapData, NextHop, u64>;

/// The program.
pub(super) struct Classifier {
    pub(super) program: LoadedProgram,
    places: HashMap<MapData, u32, u32>,
}

impl Classifier {
    /// Loads the program of an interface. Of `exits`, by interface index, it forwards to none until it is told to, and
    /// is attached. Also returns what it notes of those to whom frames go.
    ///
    /// # Errors
    /// Without the privileges for BPF.
    pub(super) fn load(
        interface: &EthernetInterface,
        name: &'static str,
        exits: &[u32],
    ) -> Result<(Self, NextHops), EngineError> {
        let object = aya::include_bytes_aligned!("../../bpf/xdp_forward.bpf.o");
        // A hardware address as the program compares it: its six bytes, and two of zero.
        let [a, b, c, d, e, f] = interface.mac.0;
        let address = u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]);
        let constants = [("OWN_ADDRESS", address)];
        let mut program = LoadedProgram::load(&interface.name, object, name, &constants)?;
        let mut of_places: DevMap<MapData> = program.map("EXITS")?;
        for (place, ifindex) in exits.iter().enumerate() {
            program.explained(of_places.set(place as u32, *ifindex, None, 0))?;
        }
        let (places, next_hops) = (program.map("PLACES")?, program.map("NEXT_HOPS")?);
        Ok((Classifier { program, places }, next_hops))
    }

    /// Forwards to the exit of a place from now on, or no longer.
    pub(super) fn set_exit(
        &mut self,
        (place, ifindex): (usize, u32),
        takes: bool,
    ) -> Result<(), EngineError> {
        if takes {
            let inserted = self.places.insert(ifindex, place as u32, 0);
            return self.program.explained(inserted);
        }
        // It may have had no place.
        let _ = self.places.remove(&ifindex);
        Ok(())
    }

    /// What became of all frames that came to the interface so far, of which `done` is known already.
    pub(super) fn account(&self, done: &ClassifierResult) -> Result<ForwardAccount, EngineError> {
        let [taken, passed @ ..] = self.program.frames::<{ REASONS + 1 }>()?;
        let frames = taken + passed.iter().sum::<u64>();
        let mut fates = [done.given_back; PASSED.len()];
        fates[..REASONS].copy_from_slice(&passed);
        Ok(ForwardAccount::of(frames, done.forwarded, fates, done.lost))
    }
}
