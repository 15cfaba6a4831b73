//! What chance alone does to a result that hangs on where two clocks lie to each other.

use nicpoll_sim::{
    HostModel, PathHost, ReceiveDiscipline, Simulation, Spread, TrafficModel, simulate,
};

fn stop(name: &str, discipline: &str) -> PathHost {
    let path = format!("{}/../../sim/hosts/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    PathHost {
        host: HostModel::parse(&std::fs::read_to_string(path).unwrap()).unwrap(),
        discipline: ReceiveDiscipline::parse(discipline).unwrap(),
    }
}

/// UDP between the two servers of table A: under polling what is lost is a matter of phase, under interrupts it is not.
#[test]
fn what_hangs_on_the_phase_of_two_clocks_has_a_range() {
    let loss = |discipline: &str| {
        let plan = Simulation {
            stops: vec![stop("asa633", discipline), stop("poweredge", discipline)],
            workload: TrafficModel::parse("iperf-udp:rate=500m").unwrap(),
            duration_ns: 500_000_000,
            warmup_ns: 500_000_000,
            seed: 1,
            slices: 0,
        };
        let runs = plan.with_seeds(12);
        let lost = runs.filter_map(|plan| simulate(&plan).unwrap().loss_ratio);
        Spread::of(lost).unwrap()
    };
    let polled = loss("freebsd-polling");
    assert!(polled.most - polled.least > 0.1, "{polled:?}");
    assert!((polled.least..=polled.most).contains(&polled.median));
    let interrupted = loss("freebsd-interrupt");
    assert!(
        interrupted.most - interrupted.least < 0.02,
        "{interrupted:?}"
    );
}
