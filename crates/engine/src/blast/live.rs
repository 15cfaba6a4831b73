//! Frames that the kernel makes itself: an XDP program writes each into memory of the kernel and sends it out by the
//! interface, run over and over by BPF_PROG_TEST_RUN with live frames.
//!
//! What must hold: frames that the interface would not take vanish without a word, so it is asked before. The program
//! counts what it sends; what the driver took of it, the driver's own counters say.

use std::io;
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use nicpoll_sys::bpf_maps::{Blasted, Template};
use nicpoll_sys::ethtool;
use rustix::io::Errno;

use super::outlet::{Built, Counts, Outlet};
use super::path::BlastPath;
use super::stream::{FLOW_PORTS, Stream};
use super::target::UpCheck;
use crate::error::EngineError;
use crate::interface::Interface;
use crate::program::Program;

const PROGRAM: &str = "blast_frame";
/// Frames that the kernel makes before it hands them on: its default, and NAPI's budget.
const BATCH: u32 = 64;
/// Frames of one system call. The kernel sets memory up anew for each and waits until all of it is given back, some 30
/// ms in which nothing is sent; and a call is not ended before its time. So a call takes about half a second.
const FRAMES_A_CALL: std::ops::RangeInclusive<u32> = 8192..=1 << 21;
const CALL_TIME: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(300)..=Duration::from_millis(700);
/// By how much a call has more frames than the one before, at most.
const GROWTH_MAX: u128 = 8;
/// A frame lies in one page, behind room for headers and before what the kernel notes of it.
pub(super) const FRAME_BYTES_MAX: usize = 3_000;

/// Endings of what drivers call their counters of frames that XDP programs sent out by them.
const SENT: &str = "xdp_xmit";
const REFUSED: &str = "xdp_xmit_errors";

/// The program.
pub(super) struct Live {
    interface: String,
    program: Program,
    blasted: Array<MapData, Blasted>,
    longest: Vec<u8>,
    now: Blasted,
    frames_a_call: u32,
    driver: Option<(u64, u64)>,
    up: UpCheck,
}

impl Live {
    /// Loads the program with the frames that it is to send.
    ///
    /// # Errors
    /// Without the privileges for BPF, and before Linux 5.18.
    pub(super) fn open(interface: &Interface, stream: &Stream) -> Result<Self, EngineError> {
        let templates: Vec<Template> = stream.templates().collect();
        let constants = [
            ("INTERFACE", u64::from(interface.ifindex)),
            ("HEADER_BYTES", stream.header_bytes() as u64),
            ("TEMPLATES_USED", templates.len() as u64),
            ("LONGEST_BYTES", stream.longest().len() as u64),
            ("FLOWS", u64::from(stream.flows())),
            ("FIRST_FLOW", u64::from(stream.first_flow())),
            ("FIRST_PORT", u64::from(*FLOW_PORTS.start())),
        ];
        let up = UpCheck::new(interface.ifindex).map_err(|source| EngineError::Thread {
            doing: format!("watching '{}'", interface.name),
            source,
        })?;
        let object = aya::include_bytes_aligned!("../../bpf/xdp_blast.bpf.o");
        let mut program = Program::load(&interface.name, object, PROGRAM, &constants)?;
        let mut places: Array<_, Template> = program.map("TEMPLATES")?;
        for (place, template) in templates.into_iter().enumerate() {
            let set = places.set(place as u32, template, 0);
            set.map_err(|error| program.refused(&error))?;
        }
        if !program.knows_live_frames(stream.longest()) {
            let why = "the kernel knows no live frames, which take Linux 5.18";
            return Err(BlastPath::Live.no(interface, why).into());
        }
        Ok(Live {
            interface: interface.name.clone(),
            blasted: program.map("BLASTED")?,
            program,
            longest: stream.longest().to_vec(),
            now: Blasted::default(),
            frames_a_call: *FRAMES_A_CALL.start(),
            driver: driver_counts(&interface.name),
            up,
        })
    }
}

impl Live {
    /// Makes calls longer or shorter, after one of so many frames that took so long.
    fn adapt(&mut self, frames: u32, took: Duration) {
        if took > *CALL_TIME.end() {
            self.frames_a_call = (self.frames_a_call / 2).max(*FRAMES_A_CALL.start());
        } else if took < *CALL_TIME.start() && frames == self.frames_a_call {
            let too_short = CALL_TIME.start().as_micros() / took.as_micros().max(1);
            let growth = too_short.clamp(2, GROWTH_MAX) as u32;
            self.frames_a_call = (self.frames_a_call * growth).min(*FRAMES_A_CALL.end());
        }
    }
}

impl Outlet for Live {
    fn at_a_time(&self) -> u32 {
        self.frames_a_call
    }

    fn send(&mut self, most: u32) -> io::Result<u32> {
        self.up.check()?;
        let began = Instant::now();
        match self.program.run_live(&self.longest, most, BATCH) {
            // A signal came: what was sent until then is counted.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
            outcome => outcome?,
        }
        self.adapt(most, began.elapsed());
        let now = self.blasted.get(&0, 0).map_err(io::Error::other)?;
        let sent = now.frames - self.now.frames;
        self.now = now;
        // The program leaves a frame out only when the kernel gives it too little memory.
        match sent {
            0 => Err(Errno::NOMEM.into()),
            sent => Ok(sent as u32),
        }
    }

    fn built(&self) -> Built {
        Built {
            frames: self.now.frames,
            bytes: self.now.bytes,
        }
    }

    fn counts(&mut self) -> Counts {
        let driver = self
            .driver
            .zip(driver_counts(&self.interface))
            .map(|(before, now)| {
                (
                    now.0.saturating_sub(before.0),
                    now.1.saturating_sub(before.1),
                )
            });
        Counts {
            handed: self.now.frames,
            refused: driver.map(|(_, refused)| refused),
            completed: driver.map(|(sent, _)| sent),
        }
    }
}

/// What the driver sent and refused of the frames that XDP programs sent out by it; `None` where it does not count
/// them.
fn driver_counts(interface: &str) -> Option<(u64, u64)> {
    let statistics = ethtool::statistics(interface).ok()?;
    let sum = |ending: &str| {
        let mut found = statistics.iter().filter(|(name, _)| name.ends_with(ending));
        let (_, first) = found.next()?;
        Some(found.fold(*first, |sum, (_, value)| sum + value))
    };
    Some((sum(SENT)?, sum(REFUSED)?))
}
