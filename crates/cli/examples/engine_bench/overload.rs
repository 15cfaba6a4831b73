//! Beyond the knee: what is delivered of a load that is more than can be received, and what is left to others.
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

/// The name by which the row is chosen.
pub const NAME: &str = "overload";
/// Work on each packet.
pub const WORK_NS: u64 = 2000;
/// The lowest load of the ladder, frames a second, and the most that one core sends one by one.
const LADDER: [f64; 2] = [25_000.0, 1_200_000.0];
/// From each rung to the next: two of them double the load.
const RUNG: f64 = std::f64::consts::SQRT_2;
const RUNGS_TO_DOUBLE: usize = 2;
/// Nearly as much as at any load.
const AT_PEAK: f64 = 0.95;
/// Loads beyond the knee, as multiples of it.
pub const BEYOND: [usize; 3] = [2, 4, 8];
/// Of its own peak, at the greatest load.
pub const HOLDS: f64 = 0.98;
/// A kernel's socket that keeps more of its peak does not break down.
pub const BREAKS_DOWN: f64 = 0.6;
/// What the sink leaves to programs, and how far the share that one gets may be from it.
pub const USER_SHARE: f64 = 0.5;
pub const SHARE_TOLERANCE: f64 = 0.02;

/// Ours first, beside a program and alone on its core; then references of the kernel's.
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

/// The contender without a program beside it.
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

/// What one contender came to.
pub struct Climbed {
    /// Loads that were asked for, and what came of each.
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

    /// The load at the knee, and the most that was delivered at any up to there.
    pub fn knee(&self) -> (u32, f64) {
        let below = self.rungs[..=self.knee].iter();
        let most = below.map(|(_, medians)| medians.of.delivered);
        (self.rungs[self.knee].0, most.fold(0.0, f64::max))
    }

    /// What came of so many times the load at the knee; `None` where no sender offers that.
    pub fn beyond(&self, times: usize) -> Option<&Medians> {
        let rungs = RUNGS_TO_DOUBLE * times.ilog2() as usize;
        self.rungs
            .get(self.knee + rungs)
            .map(|(_, medians)| medians)
    }

    /// The least share of the peak that it delivered beyond the knee.
    pub fn kept(&self) -> f64 {
        let (_, peak) = self.knee();
        let beyond = BEYOND.iter().filter_map(|times| self.beyond(*times));
        let shares = beyond.map(|medians| medians.of.delivered / peak);
        shares.fold(f64::INFINITY, f64::min)
    }
}

/// Climbs the ladder so often with each contender, in turn. The first round shows how far each has to go.
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

/// The rungs.
fn loads() -> impl Iterator<Item = u32> {
    let [lowest, most] = LADDER;
    let rungs = std::iter::successors(Some(lowest), |load| Some(load * RUNG));
    let rungs = rungs.take_while(move |load| *load <= most);
    // In whole thousands, which are easier to read.
    rungs.map(|load| (load / 1e3).round() as u32 * 1000)
}

/// Whether the greatest multiple of the knee is there, and one more rung: the knee may lie a rung higher by medians.
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
        has_spinner: contender.name != ALONE,
    };
    trial.run(course)
}

/// What offers so many frames a second, one by one: the kernel's own frames come in bursts of thousands.
pub fn feeder(load: u32) -> String {
    format!("{} --rate {load}", crate::rows::ONE_BY_ONE)
}
