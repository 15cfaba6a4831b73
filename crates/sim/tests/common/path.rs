//! Runs of several hosts.

use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

/// The example host once for each discipline.
pub fn stops(disciplines: &[&str]) -> Vec<PathHost> {
    let stop = |text: &&str| PathHost {
        host: super::host(),
        discipline: ReceiveDiscipline::parse(text).unwrap(),
    };
    disciplines.iter().map(stop).collect()
}

pub fn plan(disciplines: &[&str], workload: &str) -> Simulation {
    Simulation {
        stops: stops(disciplines),
        workload: TrafficModel::parse(workload).unwrap(),
        duration_ns: 200_000_000,
        warmup_ns: 200_000_000,
        seed: 1,
        slices: 0,
    }
}

#[allow(dead_code, reason = "not every test asks")]
pub fn run(disciplines: &[&str], workload: &str) -> SimFigures {
    let figures = simulate(&plan(disciplines, workload)).unwrap();
    assert_closed(&figures);
    figures
}

/// Every ledger is closed: of all hosts together, and of each.
pub fn assert_closed(figures: &SimFigures) {
    assert!(figures.ledger.is_closed(), "{:?}", figures.ledger);
    for host in &figures.hosts {
        assert!(host.ledger.is_closed(), "{:?}", host.ledger);
    }
}

/// Frames a second of a full line.
#[allow(dead_code, reason = "not every test asks")]
pub fn line_pps(bits_per_second: f64, line_bytes: u32) -> f64 {
    bits_per_second / (8.0 * f64::from(line_bytes))
}
