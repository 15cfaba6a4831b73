//! The plots of a workload.
//!
//! What must hold: each draws what the trials hold and no more. A plot that would be empty is left out.

mod core_use;
mod cpu;
mod ecdf;
mod flow;
mod latency;
mod order;
mod rates;
mod ratios;
pub mod scatter;
mod simulated;
mod strips;
mod sweep;
mod trials;

pub use self::sweep::of_sweep;
pub use self::trials::capital;

use nicpoll_model::{Study, TrialFigures, WorkUnit, WorkloadFacts};

use super::figure::Figure;
use crate::figures::Group;

/// Said where lengths from the axis cannot be compared.
pub const CUT: &str = " The axis does not begin at 0.";

/// The names of a study's settings, in its order.
fn setting_names(study: &Study) -> Vec<&str> {
    let settings = study.settings.iter();
    settings.map(|facts| facts.setting.as_str()).collect()
}

/// A figure of a trial: its name with its unit, and how it is read.
pub struct Reading {
    /// What it is, with its unit.
    pub name: String,
    read: fn(&TrialFigures) -> Option<f64>,
    /// One of the unit in that of `read`.
    scale: f64,
}

impl Reading {
    fn new(name: &str, scale: f64, read: fn(&TrialFigures) -> Option<f64>) -> Self {
        let name = String::from(name);
        Reading { name, read, scale }
    }

    /// The rate that decides under a workload, in the unit that suits the greatest one.
    fn rate(study: &Study, facts: &WorkloadFacts) -> Self {
        if facts.unit == WorkUnit::Transactions {
            return Reading::new("transactions a second", 1.0, |figures| {
                Some(figures.round_trip?.transactions_per_second)
            });
        }
        let read: fn(&TrialFigures) -> Option<f64> =
            |figures| Some(figures.delivered_bits_per_second);
        let groups = Group::of_workload(study, &facts.workload);
        let greatest = groups.iter().filter_map(|group| group.range(read));
        let greatest = greatest.map(|(_, most)| most).fold(0.0, f64::max);
        match greatest >= 1e9 {
            true => Reading::new("delivered, Gbit/s of payload", 1e9, read),
            false => Reading::new("delivered, Mbit/s of payload", 1e6, read),
        }
    }

    /// The figure of a trial, in the unit of its name; `None` when it was not measured.
    pub fn of(&self, figures: &TrialFigures) -> Option<f64> {
        Some((self.read)(figures)? / self.scale)
    }
}

/// All plots that a workload's trials allow.
pub fn of_workload(study: &Study, facts: &WorkloadFacts) -> Vec<Figure> {
    let rate = Reading::rate(study, facts);
    let events = [
        Reading::new("interrupts a second, whole machine", 1.0, |figures| {
            figures.interrupts_per_second
        }),
        Reading::new("context switches a second, whole machine", 1.0, |figures| {
            Some(figures.context_switches_per_second)
        }),
        Reading::new("polls a second, receiver", 1.0, |figures| {
            figures.polls_per_second
        }),
    ];
    let plots = [
        trials::plot(study, facts, &rate),
        ratios::plot(study, facts, &rate),
        order::plot(study, facts, &rate),
        rates::plot(study, facts),
    ];
    let more = [
        // Trials of earlier versions hold five quantiles alone.
        ecdf::round_trips(study, facts).or_else(|| latency::plot(study, facts)),
        ecdf::one_way(study, facts),
        cpu::plot(study, facts),
        flow::plot(study, facts),
        simulated::plot(study, facts),
    ];
    let events = events.iter().map(|event| trials::plot(study, facts, event));
    let plots = plots.into_iter().flatten();
    plots
        .chain(core_use::plots(study, facts))
        .chain(more.into_iter().chain(events).flatten())
        .collect()
}
