//! Shared by the tests: hosts, runs, and comparisons that print what was found.
#![allow(dead_code, unused_imports, reason = "not every program needs all")]

use std::fmt::Debug;
use std::ops::RangeBounds;

use nicpoll_model::LossPlace;
use nicpoll_model::sim::{SimCpu, SimFigures};
use nicpoll_sim::{
    EmbeddedHost, HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate,
};

/// Returns the cells of a table with a case a line, separated by ` | `; empty lines are skipped.
pub fn cases<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let cells = lines.map(|line| line.split(" | ").map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| cells.try_into().expect("each line has all cells"))
        .collect()
}

/// A committed host.
pub fn named(name: &str) -> HostModel {
    HostModel::parse(EmbeddedHost::named(name).unwrap().text).unwrap()
}

/// The example host.
pub fn host() -> HostModel {
    named("generic")
}

pub fn stop(host: &HostModel, discipline: &str) -> PathHost {
    PathHost {
        host: host.clone(),
        discipline: ReceiveDiscipline::parse(discipline).unwrap(),
    }
}

/// A short run between these hosts, after the burst has had time to settle.
pub fn between(stops: Vec<PathHost>, workload: &str) -> Simulation {
    Simulation {
        stops,
        workload: TrafficModel::parse(workload).unwrap(),
        duration_ns: 200_000_000,
        warmup_ns: 200_000_000,
        seed: 1,
        slices: 0,
    }
}

/// The example host once for each discipline.
pub fn path(disciplines: &[&str], workload: &str) -> Simulation {
    let stops = disciplines.iter().map(|text| stop(&host(), text));
    between(stops.collect(), workload)
}

/// The example host alone.
pub fn plan(discipline: &str, workload: &str) -> Simulation {
    path(&[discipline], workload)
}

/// Runs a plan. Asserts that every ledger is closed: of all hosts together, and of each.
pub fn figures(plan: &Simulation) -> SimFigures {
    let figures = simulate(plan).unwrap();
    assert_closed(&figures);
    figures
}

pub fn assert_closed(figures: &SimFigures) {
    assert!(figures.ledger.is_closed(), "{:?}", figures.ledger);
    for host in &figures.hosts {
        assert!(host.ledger.is_closed(), "{:?}", host.ledger);
    }
}

pub fn run_path(disciplines: &[&str], workload: &str) -> SimFigures {
    figures(&path(disciplines, workload))
}

pub fn run(discipline: &str, workload: &str) -> SimFigures {
    figures(&plan(discipline, workload))
}

/// The same plan on another host.
pub fn on(host: &HostModel, plan: &Simulation) -> Simulation {
    let mut plan = plan.clone();
    plan.stops[0].host = host.clone();
    plan
}

pub fn lost(figures: &SimFigures, place: LossPlace) -> u64 {
    figures.ledger.lost_in(place)
}

/// The first host's processor.
pub fn cpu(figures: &SimFigures) -> SimCpu {
    figures.hosts[0].cpu
}

/// Frames a second of a full line.
pub fn line_pps(bits_per_second: f64, line_bytes: u32) -> f64 {
    bits_per_second / (8.0 * f64::from(line_bytes))
}

/// Asserts that the simulation is refused with these words.
#[track_caller]
pub fn assert_refused(plan: &Simulation, words: &str) {
    let error = simulate(plan).unwrap_err().to_string();
    assert!(error.contains(words), "{words}: {error}");
}

/// Asserts that `found` is within this share of `expected`.
#[track_caller]
pub fn close(found: f64, expected: f64, share: f64) {
    near(found, expected, share * expected);
}

#[track_caller]
pub fn near(found: f64, expected: f64, error: f64) {
    assert!(
        (found - expected).abs() <= error,
        "{found} where {expected} was expected"
    );
}

#[track_caller]
pub fn within<T: PartialOrd + Debug>(found: T, range: impl RangeBounds<T> + Debug) {
    assert!(range.contains(&found), "{found:?} is not in {range:?}");
}

#[track_caller]
pub fn below<T: PartialOrd + Debug>(found: T, limit: T) {
    assert!(found < limit, "{found:?} is not below {limit:?}");
}

#[track_caller]
pub fn above<T: PartialOrd + Debug>(found: T, limit: T) {
    assert!(found > limit, "{found:?} is not above {limit:?}");
}
