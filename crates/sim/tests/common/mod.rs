//! What the tests share: the example host, and runs of it.

#[allow(dead_code, reason = "not every test asks")]
pub mod path;

use nicpoll_model::LossPlace;
use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

pub const GENERIC: &str = include_str!("../../../../sim/hosts/generic.toml");

pub fn host() -> HostModel {
    HostModel::parse(GENERIC).expect("the example host is right")
}

/// A short run, after the burst has had time to settle.
pub fn plan(discipline: &str, workload: &str) -> Simulation {
    Simulation {
        stops: vec![PathHost {
            host: host(),
            discipline: ReceiveDiscipline::parse(discipline).unwrap(),
        }],
        workload: TrafficModel::parse(workload).unwrap(),
        duration_ns: 200_000_000,
        warmup_ns: 200_000_000,
        seed: 1,
        slices: 0,
    }
}

#[allow(dead_code, reason = "not every test asks")]
pub fn run(discipline: &str, workload: &str) -> SimFigures {
    let figures = simulate(&plan(discipline, workload)).unwrap();
    assert!(
        figures.ledger.is_closed(),
        "{discipline}, {workload}: {:?}",
        figures.ledger
    );
    figures
}

/// The same plan on another host.
#[allow(dead_code, reason = "not every test asks")]
pub fn on(host: &HostModel, plan: &Simulation) -> Simulation {
    let mut plan = plan.clone();
    plan.stops[0].host = host.clone();
    plan
}

#[allow(dead_code, reason = "not every test asks")]
pub fn lost(figures: &SimFigures, place: LossPlace) -> u64 {
    figures.ledger.lost_in(place)
}

/// The simulation is refused with these words.
#[allow(dead_code, reason = "not every test asks")]
pub fn assert_refused(plan: &Simulation, words: &str) {
    let error = simulate(plan).unwrap_err().to_string();
    assert!(error.contains(words), "{words}: {error}");
}
