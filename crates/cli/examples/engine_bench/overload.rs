//! Beyond the knee: the delivered part of a load that exceeds what can be received, and the CPU share left to
//! programs.
//!
//! Each contender spends the same CPU time on each packet, and the kernel's receive work is on the receiver's core. A
//! ladder of loads, each rung 1.41 times the one below, goes eight times beyond the knee: the least load at which nearly
//! as much is delivered as at any. Every rung is a trial of every round, so that its figure is a median.
//!
//! What must hold: the row counts only if a socket of the kernel's breaks down here.

use anyhow::Result;

use crate::contest::{Contender, Medians};
use crate::course::Course;
use crate::kernel::Kernel;
use crate::trial::{Delivered, End, Outcome, Receiver, Trial};

/// Name of the row.
pub const NAME: &str = "overload";
/// Work on each packet.
pub const WORK_NS: u64 = 2000;
/// The lowest load of the ladder, frames a second, and the most that one core sends one by one.
const LADDER: [f64; 2] = [25_000.0, 1_200_000.0];
/// Factor from each rung to the next: two rungs double the load.
const RUNG: f64 = std::f64::consts::SQRT_2;
const RUNGS_TO_DOUBLE: usize = 2;
/// Share of the peak that counts as nearly all.
const AT_PEAK: f64 = 0.95;
/// Loads beyond the knee, as multiples of it.
pub const BEYOND: [usize; 3] = [2, 4, 8];
/// Share of its own peak to hold at the greatest load.
pub const HOLDS: f64 = 0.98;
/// Share of its peak below which a kernel's socket breaks down.
pub const BREAKS_DOWN: f64 = 0.6;
/// Share that the sink leaves to programs.
pub const USER_SHARE: f64 = 0.5;
pub const SHARE_TOLERANCE: f64 = 0.02;

/// Ours first, next to a program and alone on its core; then the kernel's references.
pub const CONTENDERS: [Contender; 4] = [
    Contender {
        name: "sink, polling",
        kernel: Kernel::OfProgram,
        feeder: None,
        receiver: SINK,
    },
    Contender {
        name: ALONE,
        kernel: Kernel::OfProgram,
        feeder: None,
        receiver: SINK,
    },
    Contender {
        name: "socket, RPS",
        kernel: Kernel::Rps,
        feeder: None,
        receiver: SOCKET,
    },
    Contender {
        name: "socket, threaded NAPI at SCHED_FIFO",
        kernel: Kernel::ThreadedFifo,
        feeder: None,
        receiver: SOCKET,
    },
];

/// The contender without a program on its core.
const ALONE: &str = "sink, polling, alone";

const SINK: Receiver = Receiver {
    command: sink!(
        "--json-stream --interval 0.1 --discipline polling --hz 1000",
        share!(),
        "--set user_frac=50 --kernel-side threaded --kernel-cpu 1 --work 2000"
    ),
    ready: None,
    end: End::Signal,
    delivered: Delivered::Streamed,
};

const SOCKET: Receiver = Receiver {
    command: "bench helper socket 9 2000",
    ready: Some("ready"),
    end: End::Signal,
    delivered: Delivered::Sockets,
};

/// Results of one contender.
pub struct Climbed {
    /// Requested loads with their results.
    pub rungs: Vec<(u32, Medians)>,
    knee: usize,
}

impl Climbed {
    fn of(rungs: Vec<(u32, Medians)>) -> Self {
        let delivered = |rung: &(u32, Medians)| rung.1.of.delivered;
        let peak = rungs.iter().map(delivered).fold(0.0, f64::max);
        let knee = rungs
            .iter()
            .position(|rung| delivered(rung) >= AT_PEAK * peak);
        Climbed {
            knee: knee.unwrap_or(0),
            rungs,
        }
    }

    /// Returns the load at the knee, and the highest delivered rate up to there.
    pub fn knee(&self) -> (u32, f64) {
        let below = self.rungs[..=self.knee].iter();
        let most = below.map(|(_, medians)| medians.of.delivered);
        (self.rungs[self.knee].0, most.fold(0.0, f64::max))
    }

    /// Returns the result at this multiple of the knee's load; `None` if no sender offers that.
    pub fn beyond(&self, times: usize) -> Option<&Medians> {
        let rungs = RUNGS_TO_DOUBLE * times.ilog2() as usize;
        self.rungs
            .get(self.knee + rungs)
            .map(|(_, medians)| medians)
    }

    /// Returns the smallest share of the peak that it delivered beyond the knee.
    pub fn kept(&self) -> f64 {
        let (_, peak) = self.knee();
        let beyond = BEYOND.iter().filter_map(|times| self.beyond(*times));
        let shares = beyond.map(|medians| medians.of.delivered / peak);
        shares.fold(f64::INFINITY, f64::min)
    }
}

/// Climbs the ladder with each contender in turn, this many rounds. The first round shows how far each must go.
pub fn hold(course: &Course, rounds: usize) -> Result<Vec<Climbed>> {
    let mut outcomes: Vec<Vec<Vec<Outcome>>> = Vec::new();
    for contender in &CONTENDERS {
        let mut first = Vec::new();
        for load in loads() {
            first.push(vec![run(course, contender, load)?]);
            if has_seen_enough(&first) {
                break;
            }
        }
        outcomes.push(first);
    }
    for _ in 1..rounds {
        for (contender, rungs) in CONTENDERS.iter().zip(&mut outcomes) {
            for (load, outcomes) in loads().zip(rungs) {
                outcomes.push(run(course, contender, load)?);
            }
        }
    }
    let climbed = outcomes.into_iter().map(|rungs| {
        let medians = rungs.into_iter().map(Medians::new);
        Climbed::of(loads().zip(medians).collect())
    });
    Ok(climbed.collect())
}

/// Returns the rungs.
fn loads() -> impl Iterator<Item = u32> {
    let [lowest, most] = LADDER;
    let rungs = std::iter::successors(Some(lowest), |load| Some(load * RUNG));
    let rungs = rungs.take_while(move |load| *load <= most);
    // Rounded to thousands.
    rungs.map(|load| (load / 1e3).round() as u32 * 1000)
}

/// Returns whether the ladder has the greatest multiple of the knee, and one more rung: by medians the knee may be a
/// rung higher.
fn has_seen_enough(first: &[Vec<Outcome>]) -> bool {
    let rungs = first
        .iter()
        .map(|outcomes| (0, Medians::new(outcomes.clone())));
    let most = BEYOND.into_iter().max().unwrap_or(1);
    let further = RUNGS_TO_DOUBLE * most.ilog2() as usize + 1;
    Climbed::of(rungs.collect()).knee + further < first.len()
}

fn run(course: &Course, contender: &Contender, load: u32) -> Result<Outcome> {
    let feeder = feeder(load);
    let trial = Trial {
        kernel: contender.kernel,
        receiver: &contender.receiver,
        feeder: Some(&feeder),
        is_sender: false,
        has_spinner: contender.name != ALONE,
    };
    trial.run(course)
}

/// Returns the feeder for this many frames a second, sent singly: the kernel's own frames come in bursts of
/// thousands.
pub fn feeder(load: u32) -> String {
    format!("{} --rate {load}", crate::rows::ONE_BY_ONE)
}
