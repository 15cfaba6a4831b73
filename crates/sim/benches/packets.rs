//! Simulated packets per second of wall time, on one core.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nicpoll_sim::{Discipline, Host, Plan, Workload, simulate};

const GENERIC: &str = include_str!("../../../sim/hosts/generic.toml");

fn packets(criterion: &mut Criterion) {
    let host = Host::parse(GENERIC).expect("the example host is right");
    let mut group = criterion.benchmark_group("packets of 64 B");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for (discipline, rate_pps) in [
        ("polling", 50_000),
        ("polling", 100_000),
        ("interrupt", 50_000),
        ("interrupt", 100_000),
        ("napi", 50_000),
        ("napi-timer", 50_000),
        ("busy-poll", 50_000),
    ] {
        let workload = Workload::parse("constant").and_then(|workload| workload.at(rate_pps));
        let plan = Plan {
            discipline: Discipline::parse(discipline).expect("it is one"),
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
                bencher.iter(|| simulate(black_box(&host), black_box(&plan)));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);
