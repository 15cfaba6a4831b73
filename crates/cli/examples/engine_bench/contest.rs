//! Runs contenders in turn on the same link, and compares their medians.

use std::fmt;

use anyhow::Result;
use nicpoll_stats::Summary;

use crate::course::{Course, Place};
use crate::kernel::Kernel;
use crate::trial::{Outcome, Receiver, Trial};

/// A peer counts if it was fed at least this many times what it took.
const SURPLUS: f64 = 1.3;

/// A receiver under a setting of the kernel's.
#[derive(Clone, Copy)]
pub struct Contender {
    /// Its name in the row.
    pub name: &'static str,
    /// How the kernel receives.
    pub kernel: Kernel,
    /// The receiving program.
    pub receiver: Receiver,
    /// Feeder in place of the row's: the contender itself, if senders are compared.
    pub feeder: Option<&'static str>,
}

/// An aim: one contender against others, by their indices.
#[derive(Clone, Copy)]
pub enum Target {
    /// The best of ours delivers at least this many times what the best of the others does.
    Delivers(f64, &'static [usize], &'static [usize]),
    /// It sends at least this many times what the best of the others does.
    Sends(f64, usize, &'static [usize]),
    /// The best of ours with at most this share of that peer's CPU time delivers at least this many times what the
    /// peer does.
    DeliversFor(f64, f64, &'static [usize], usize),
    /// It takes at most this share of a CPU.
    TakesAtMost(f64, usize),
    /// It takes no more CPU time than the other.
    TakesNoMore(usize, usize),
}

/// One comparison.
pub struct Row {
    /// Name by which it is chosen.
    pub name: &'static str,
    /// What is measured.
    pub title: &'static str,
    /// Place of its contenders.
    pub place: Place,
    /// The feeder; `None` leaves the link idle.
    pub feeder: Option<&'static str>,
    /// Whether contenders must be fed more than they take.
    pub needs_surplus: bool,
    /// The contenders.
    pub contenders: &'static [Contender],
    /// The aims.
    pub targets: &'static [Target],
}

/// The medians of one contender.
#[derive(Clone, Debug)]
pub struct Medians {
    /// Each round.
    pub rounds: Vec<Outcome>,
    /// The median of each figure.
    pub of: Outcome,
}

impl Medians {
    /// Medians of rounds.
    pub fn new(rounds: Vec<Outcome>) -> Self {
        let median = |of: fn(&Outcome) -> f64| {
            let values: Vec<f64> = rounds.iter().map(of).collect();
            Summary::of(&values).map_or(0.0, |summary| summary.median)
        };
        let spinner = rounds.iter().all(|it| it.spinner.is_some());
        let of = Outcome {
            fed: median(|it| it.fed),
            delivered: median(|it| it.delivered),
            cpu: median(|it| it.cpu),
            busy: [median(|it| it.busy[0]), median(|it| it.busy[1])],
            spinner: spinner.then(|| median(|it| it.spinner.unwrap_or(0.0))),
            delay: None,
        };
        Medians { rounds, of }
    }

    /// Returns whether it was fed enough for what it took.
    pub fn has_surplus(&self) -> bool {
        self.of.fed >= SURPLUS * self.of.delivered
    }
}

impl Row {
    /// Runs every contender in turn, this many rounds.
    pub fn hold(&self, course: &Course, rounds: usize) -> Result<Vec<Medians>> {
        let mut outcomes = vec![Vec::new(); self.contenders.len()];
        for _ in 0..rounds {
            for (contender, outcomes) in self.contenders.iter().zip(&mut outcomes) {
                let trial = Trial {
                    kernel: contender.kernel,
                    receiver: &contender.receiver,
                    feeder: contender.feeder.or(self.feeder),
                    is_sender: contender.feeder.is_some(),
                    has_spinner: false,
                };
                outcomes.push(trial.run(course)?);
            }
        }
        Ok(outcomes.into_iter().map(Medians::new).collect())
    }
}

impl Target {
    /// Returns what was reached, and whether that meets the aim; `None` if nothing can be compared.
    pub fn reached(&self, medians: &[Medians]) -> Option<(f64, bool)> {
        let delivered = |index: &usize| medians[*index].of.delivered;
        let cpu = |index: usize| medians[index].of.cpu;
        let best = |of: &[usize]| of.iter().map(delivered).reduce(f64::max);
        match *self {
            Target::Delivers(least, ours, others) => {
                let ratio = best(ours)? / best(others)?;
                Some((ratio, ratio >= least))
            }
            Target::Sends(least, ours, others) => {
                let sent = |index: &usize| medians[*index].of.fed;
                let ratio = sent(&ours) / others.iter().map(sent).reduce(f64::max)?;
                Some((ratio, ratio >= least))
            }
            Target::DeliversFor(least, share, ours, peer) => {
                let cheap = ours
                    .iter()
                    .filter(|index| cpu(**index) <= share * cpu(peer));
                let ratio = cheap.map(delivered).reduce(f64::max).unwrap_or(0.0) / delivered(&peer);
                Some((ratio, ratio >= least))
            }
            Target::TakesAtMost(most, index) => Some((cpu(index), cpu(index) <= most)),
            Target::TakesNoMore(ours, other) => {
                let ratio = cpu(ours) / cpu(other);
                Some((ratio, ratio <= 1.0))
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Target::Delivers(least, ..) | Target::Sends(least, ..) => {
                write!(f, "ours by the best peer's, at least {least}")
            }
            Target::DeliversFor(least, share, ..) => write!(
                f,
                "ours by the peer's, for {:.0} % of its CPU time, at least {least}",
                100.0 * share
            ),
            Target::TakesAtMost(most, _) => {
                write!(f, "CPU of ours, at most {:.0} %", 100.0 * most)
            }
            Target::TakesNoMore(..) => write!(f, "CPU of ours by the peer's, at most 1"),
        }
    }
}
