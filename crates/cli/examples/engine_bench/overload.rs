//! Beyond the knee: what is delivered of a load that is more than can be received, and what is left to others.
//!
//! Each contender spends the same CPU time on each packet, and the kernel's receive work is on the receiver's core.
//! First a ladder of loads finds what each delivers at most, and at which load; then it is offered twice and four times
//! that load.
//!
//! What must hold: the row counts only if a socket of the kernel's breaks down here.

use anyhow::Result;

use crate::contest::{Contender, Medians};
use crate::course::Course;
use crate::kernel::Kernel;
use crate::trial::{Delivered, End, Receiver, Trial};

/// The name by which the row is chosen.
pub const NAME: &str = "overload";
/// Loads of the ladder, frames a second.
const LADDER: [u32; 5] = [50_000, 100_000, 200_000, 300_000, 400_000];
/// Loads beyond the knee, as multiples of it.
pub const BEYOND: [u32; 2] = [2, 4];
/// Of its own peak, at the greatest load.
pub const HOLDS: f64 = 0.98;
/// A kernel's socket that keeps more of its peak does not break down.
pub const BREAKS_DOWN: f64 = 0.6;

/// Ours first; then references of the kernel's.
pub const CONTENDERS: [Contender; 3] = [
    Contender {
        name: "sink, polling, threaded NAPI",
        kernel: Kernel::Threaded,
        feeder: None,
        receiver: Receiver {
            command: "nicpoll sink em0 --json --cpu 1 --discipline polling --hz 1000 --set burst_max=4000 --work 2000",
            ready: None,
            end: End::Signal,
            delivered: Delivered::Printed("\"received_packets\""),
        },
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

const SOCKET: Receiver = Receiver {
    command: "bench helper socket 9 2000",
    ready: Some("ready"),
    end: End::Signal,
    delivered: Delivered::Sockets,
};

/// What one contender came to.
pub struct Beyond {
    /// What it delivered at each load of the ladder.
    pub ladder: Vec<(u32, f64)>,
    /// The load at which it delivered most, and how much that was.
    pub peak: (u32, f64),
    /// At each multiple of that load.
    pub beyond: Vec<Medians>,
}

/// Runs the ladder once, and the loads beyond the knee so often.
pub fn hold(course: &Course, rounds: usize) -> Result<Vec<Beyond>> {
    let mut all = Vec::new();
    for contender in &CONTENDERS {
        let mut ladder = Vec::new();
        for load in LADDER {
            ladder.push((load, run(course, contender, load)?.delivered));
        }
        let peak = ladder
            .iter()
            .copied()
            .max_by(|one, other| one.1.total_cmp(&other.1));
        all.push((ladder, peak.unwrap_or_default()));
    }
    let mut outcomes = vec![vec![Vec::new(); BEYOND.len()]; CONTENDERS.len()];
    for _ in 0..rounds {
        for ((contender, (_, peak)), outcomes) in CONTENDERS.iter().zip(&all).zip(&mut outcomes) {
            for (times, outcomes) in BEYOND.iter().zip(outcomes) {
                outcomes.push(run(course, contender, times * peak.0)?);
            }
        }
    }
    let beyond = outcomes.into_iter().zip(all);
    Ok(beyond
        .map(|(outcomes, (ladder, peak))| Beyond {
            ladder,
            peak,
            beyond: outcomes.into_iter().map(Medians::new).collect(),
        })
        .collect())
}

fn run(course: &Course, contender: &Contender, load: u32) -> Result<crate::trial::Outcome> {
    let feeder = feeder(load);
    let trial = Trial {
        kernel: contender.kernel,
        receiver: &contender.receiver,
        feeder: Some(&feeder),
        has_spinner: true,
    };
    trial.run(course)
}

/// What offers so many frames a second.
pub fn feeder(load: u32) -> String {
    format!("{} --rate {load}", crate::rows::FLOOD)
}
