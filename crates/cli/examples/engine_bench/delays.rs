//! Delays of packets from sender to program: every discipline at a low load, and at half of what the slowest one
//! takes.

use anyhow::{Context, Result};
use nicpoll_model::engine::{Delays, DelaysAtLoad, DisciplineDelay};
use nicpoll_model::numbers::counted;
use nicpoll_stats::Summary;

use crate::contest::Medians;
use crate::course::Course;
use crate::kernel::Kernel;
use crate::rows::ONE_BY_ONE;
use crate::trial::{Delivered, End, Outcome, Receiver, Trial};

/// The name by which the row is chosen.
pub const NAME: &str = "delays";
const LOW_LOAD: u32 = 10_000;

/// nicpoll's sink, which times each packet by its mark.
macro_rules! delay_sink {
    ($($options:expr),+) => {
        sink!("--json --check mark", $($options),+)
    };
}

/// A discipline.
struct Discipline {
    name: &'static str,
    kernel: Kernel,
    receiver: Receiver,
}

const SOCKET: Receiver = Receiver {
    command: "bench helper delay 9",
    ready: Some("ready"),
    end: End::Enter,
    delivered: Delivered::Sockets,
};

const fn engine(name: &'static str, command: &'static str) -> Discipline {
    Discipline {
        name,
        kernel: Kernel::OfSender,
        receiver: Receiver {
            command,
            ready: None,
            end: End::Signal,
            delivered: Delivered::Printed("\"received_packets\""),
        },
    }
}

const DISCIPLINES: [Discipline; 7] = [
    Discipline {
        name: "interrupt: the kernel's, a UDP socket",
        kernel: Kernel::OfSender,
        receiver: SOCKET,
    },
    Discipline {
        name: "polling: the kernel's, by a timer of 200 us, a UDP socket",
        kernel: Kernel::Timer,
        receiver: SOCKET,
    },
    engine(
        "the engine's interrupt",
        delay_sink!("--discipline interrupt"),
    ),
    engine(
        "the engine's polling at 1000 Hz",
        delay_sink!("--discipline polling --hz 1000", share!()),
    ),
    engine(
        "the engine's polling at 5000 Hz",
        delay_sink!("--discipline polling --hz 5000", share!()),
    ),
    engine(
        "the engine's adaptive at 5000 Hz",
        delay_sink!("--discipline adaptive --hz 5000", share!()),
    ),
    engine(
        "the engine's busy-poll",
        delay_sink!("--discipline busy-poll"),
    ),
];

/// Measures all disciplines in turn at each load, this many rounds.
pub fn hold(course: &Course, rounds: usize) -> Result<Delays> {
    let mut most = Vec::new();
    for discipline in &DISCIPLINES {
        most.push(discipline.run(course, ONE_BY_ONE)?.delivered);
    }
    let slowest = most.into_iter().fold(f64::INFINITY, f64::min);
    let half_load = (slowest / 2e3) as u32 * 1000;
    let mut loads = Vec::new();
    for load in [LOW_LOAD, half_load] {
        let feeder = format!("{ONE_BY_ONE} --rate {load}");
        let mut outcomes = vec![Vec::new(); DISCIPLINES.len()];
        for _ in 0..rounds {
            for (discipline, outcomes) in DISCIPLINES.iter().zip(&mut outcomes) {
                outcomes.push(discipline.run(course, &feeder)?);
            }
        }
        let disciplines = DISCIPLINES.iter().zip(outcomes);
        let disciplines = disciplines.map(|(discipline, outcomes)| discipline.delay(outcomes));
        loads.push(DelaysAtLoad {
            asked_pps: f64::from(load),
            disciplines: disciplines.collect(),
        });
    }
    Ok(Delays {
        facts: crate::facts(&format!(
            "frames of 64 bytes, sent one by one, {}",
            counted(rounds as u32, "round")
        ))?,
        loads,
    })
}

impl Discipline {
    fn run(&self, course: &Course, feeder: &str) -> Result<Outcome> {
        let trial = Trial {
            kernel: self.kernel,
            receiver: &self.receiver,
            feeder: Some(feeder),
            is_sender: false,
            has_spinner: false,
        };
        trial.run(course).context(self.name)
    }

    fn delay(&self, outcomes: Vec<Outcome>) -> DisciplineDelay {
        let percentile = |of: fn(&nicpoll_model::traffic::Latency) -> Option<u64>| {
            let known = outcomes.iter().filter_map(|it| of(it.delay.as_ref()?));
            let known: Vec<f64> = known.map(|ns| ns as f64).collect();
            Summary::of(&known).map(|summary| summary.median)
        };
        let (p50_ns, p99_ns, p999_ns) = (
            percentile(|delay| delay.p50_ns),
            percentile(|delay| delay.p99_ns),
            percentile(|delay| delay.p999_ns),
        );
        let medians = Medians::new(outcomes).of;
        DisciplineDelay {
            name: String::from(self.name),
            fed_pps: medians.fed,
            delivered_pps: medians.delivered,
            program_cpu: medians.cpu,
            p50_ns,
            p99_ns,
            p999_ns,
        }
    }
}
