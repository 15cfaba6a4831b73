//! Interrupt storms on a router, with a driver that hands over what a pass does not take, and with one that does not.

mod common;

use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

const ROUTER: &str = include_str!("../../../sim/hosts/net6501.toml");
const NODE: &str = include_str!("../../../sim/hosts/node.toml");

/// A router of 100 ticks a second under a load that it does not quite carry.
fn run(options: &str, seconds: u64) -> SimFigures {
    let stop = |text: &str, discipline: &str| PathHost {
        host: HostModel::parse(text).unwrap(),
        discipline: ReceiveDiscipline::parse(discipline).unwrap(),
    };
    let router = format!("freebsd-interrupt:cpu.hz=100:{options}");
    let node = || stop(NODE, "freebsd-interrupt");
    let plan = Simulation {
        stops: vec![node(), stop(ROUTER, &router), node()],
        workload: TrafficModel::parse("iperf-udp:rate=1g").unwrap(),
        duration_ns: seconds * 1_000_000_000,
        warmup_ns: 3_000_000_000,
        seed: 1,
        slices: 0,
    };
    let figures = simulate(&plan).unwrap();
    common::path::assert_closed(&figures);
    figures
}

/// Without a task a throttled pass is all that a tick brings, and the source never goes quiet.
#[test]
fn a_throttled_driver_without_a_task_falls_and_stays_down() {
    let calm = run("card.hands_over=0:storm.threshold=0", 1);
    let storm = run("card.hands_over=0:storm.threshold=1000", 2);
    assert!(storm.delivered_pps < 0.25 * calm.delivered_pps);
    // A hundred passes of a hundred packets a second.
    assert!((storm.delivered_pps / 10_000.0 - 1.0).abs() < 0.02);
    let of = storm.hosts[1].storm.unwrap();
    assert_eq!(of.reports, 2, "{of:?}");
}

/// With a task the storm is reported, and costs nothing: what a throttled pass leaves the task takes.
#[test]
fn a_driver_that_hands_over_weathers_the_storm() {
    let calm = run("card.hands_over=1:storm.threshold=0", 1);
    let storm = run("card.hands_over=1:storm.threshold=1000", 2);
    let of = storm.hosts[1].storm.unwrap();
    assert!(of.throttled > 0 && of.reports > 0, "{of:?}");
    assert!(
        storm.delivered_pps > 0.99 * calm.delivered_pps,
        "{} and {}",
        storm.delivered_pps,
        calm.delivered_pps
    );
    // The task goes on without interrupts, while more comes than a pass takes.
    let interrupts = |figures: &SimFigures| figures.hosts[1].cards[0].interrupts;
    assert_eq!(interrupts(&calm), 0, "{:?}", calm.hosts[1].cards);
}
