//! Simulated packets per second of wall time, on one core.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

const GENERIC: &str = include_str!("../../../sim/hosts/generic.toml");

fn packets(criterion: &mut Criterion) {
    let host = HostModel::parse(GENERIC).expect("the example host is right");
    let mut group = criterion.benchmark_group("packets of 64 B");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for (discipline, rate_pps) in [
        ("freebsd-polling", 50_000),
        ("freebsd-polling", 100_000),
        ("freebsd-interrupt", 50_000),
        ("freebsd-interrupt", 100_000),
        ("napi", 50_000),
        ("napi-timer", 50_000),
        ("busy-poll", 50_000),
    ] {
        let workload = TrafficModel::parse("constant").and_then(|workload| workload.at(rate_pps));
        let plan = Simulation {
            stops: vec![PathHost {
                host: host.clone(),
                discipline: ReceiveDiscipline::parse(discipline).expect("it is one"),
            }],
            workload: workload.expect("it has a rate"),
            duration_ns: 4_000_000_000,
            warmup_ns: 0,
            seed: 1,
            slices: 0,
        };
        group.throughput(Throughput::Elements(4 * rate_pps));
        group.bench_function(
            format!("{discipline}, {rate_pps}/s offered, 4 s"),
            |bencher| {
                bencher.iter(|| simulate(black_box(&plan)));
            },
        );
    }
    group.finish();
}

/// A minute of TCP between two hosts, both ways at once too.
fn tcp(criterion: &mut Criterion) {
    let host = HostModel::parse(GENERIC).expect("the example host is right");
    let mut group = criterion.benchmark_group("60 s of TCP");
    group.sample_size(10);
    for (discipline, workload) in [
        ("freebsd-interrupt", "iperf-tcp"),
        ("freebsd-polling", "iperf-tcp"),
        ("freebsd-polling", "iperf-tcp:dual=1"),
    ] {
        let stop = PathHost {
            host: host.clone(),
            discipline: ReceiveDiscipline::parse(discipline).expect("it is one"),
        };
        let plan = Simulation {
            stops: vec![stop.clone(), stop],
            workload: TrafficModel::parse(workload).expect("it is one"),
            duration_ns: 60_000_000_000,
            warmup_ns: 0,
            seed: 1,
            slices: 0,
        };
        let figures = simulate(&plan).expect("the hosts can run it");
        // Segments and acknowledgements.
        group.throughput(Throughput::Elements(figures.ledger.offered_datagrams));
        group.bench_function(format!("{discipline}, {workload}"), |bencher| {
            bencher.iter(|| simulate(black_box(&plan)));
        });
    }
    group.finish();
}

criterion_group!(benches, packets, tcp);
criterion_main!(benches);
