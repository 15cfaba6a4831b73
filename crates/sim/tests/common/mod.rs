//! What the tests share: the example host, and runs of it.

#[allow(dead_code, reason = "not every test asks")]
pub mod path;

use nicpoll_model::sim::{SimFigures, SimPlace};
use nicpoll_sim::{Discipline, Host, Plan, Workload, simulate};

pub const GENERIC: &str = include_str!("../../../../sim/hosts/generic.toml");

pub fn host() -> Host {
    Host::parse(GENERIC).expect("the example host is right")
}

/// A short run, after the burst has had time to settle.
pub fn plan(discipline: &str, workload: &str) -> Plan {
    Plan {
        discipline: Discipline::parse(discipline).unwrap(),
        workload: Workload::parse(workload).unwrap(),
        duration_ns: 200_000_000,
        warmup_ns: 200_000_000,
        seed: 1,
        slices: 0,
    }
}

#[allow(dead_code, reason = "not every test asks")]
pub fn run(discipline: &str, workload: &str) -> SimFigures {
    let figures = simulate(&host(), &plan(discipline, workload)).unwrap();
    assert!(
        figures.ledger.is_closed(),
        "{discipline}, {workload}: {:?}",
        figures.ledger
    );
    figures
}

#[allow(dead_code, reason = "not every test asks")]
pub fn lost(figures: &SimFigures, place: SimPlace) -> u64 {
    let mut losses = figures.ledger.losses.iter();
    losses.find(|loss| loss.place == place).unwrap().packets
}
