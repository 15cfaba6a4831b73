//! A recorded trace as the workload.

use std::sync::Arc;

use nicpoll_model::sim::SimFigures;
use nicpoll_sim::{
    HostModel, PathHost, ReceiveDiscipline, Simulation, Trace, TraceReader, TrafficModel, simulate,
};

fn host() -> HostModel {
    HostModel::parse(include_str!("../../../sim/hosts/generic.toml")).unwrap()
}

fn trace(text: &str) -> Arc<Trace> {
    let mut reader = TraceReader::default();
    for line in text.lines() {
        reader.line(line.as_bytes()).unwrap();
    }
    Arc::new(reader.finish("test").unwrap())
}

fn plan(workload: TrafficModel, duration_ns: u64) -> Simulation {
    Simulation {
        stops: vec![PathHost {
            host: host(),
            discipline: ReceiveDiscipline::parse("napi").unwrap(),
        }],
        workload,
        duration_ns,
        warmup_ns: 0,
        seed: 1,
        slices: 0,
    }
}

fn run(text: &str, options: &[(&str, &str)], duration_ns: u64) -> SimFigures {
    let workload = TrafficModel::replay(trace(text), options).unwrap();
    let figures = simulate(&plan(workload, duration_ns)).unwrap();
    assert!(figures.ledger.is_closed());
    figures
}

#[test]
fn each_packet_of_a_trace_comes_once_with_its_own_size() {
    let figures = run("0 64\n0.001 1000\n0.002 10", &[], 1_000_000_000);
    assert_eq!((figures.ledger.offered, figures.ledger.delivered), (3, 3));
    let bits = 8.0 * (64.0 + 1000.0 + 10.0);
    assert!((figures.delivered_payload_bits_per_second - bits).abs() < 1e-6);
}

#[test]
fn a_trace_that_repeats_keeps_its_rhythm() {
    // Three packets in 2 ms, and a mean gap of 1 ms: a round takes 3 ms.
    let figures = run("5 64\n5.001 64\n5.002 64", &[("repeat", "1")], 300_000_000);
    assert_eq!(figures.ledger.offered, 300);
    assert_eq!(
        figures.ledger.delivered + figures.ledger.in_flight_at_end,
        300
    );
}

#[test]
fn a_trace_of_equal_gaps_is_a_constant_rate() {
    let lines: Vec<_> = (0..1000)
        .map(|packet| format!("{}ns 64", packet * 20_000))
        .collect();
    let traced = run(&lines.join("\n"), &[], 20_000_000);
    let constant = TrafficModel::parse("constant:rate=50k").unwrap();
    let constant = simulate(&plan(constant, 20_000_000)).unwrap();
    assert!(traced.ledger.offered.abs_diff(constant.ledger.offered) <= 1);
    assert!((traced.hosts[0].cpu.idle - constant.hosts[0].cpu.idle).abs() < 0.01);
}

#[test]
fn a_bottleneck_is_one_place_whoever_recorded_it() {
    // All at once: more than the ring holds.
    let text = "0 64\n".repeat(5000);
    let figures = run(&text, &[], 1_000_000_000);
    assert_eq!(figures.ledger.offered, 5000);
    assert!(figures.ledger.lost() > 0);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_remedy() {
    let large = TrafficModel::replay(trace("0 2000"), &[]).unwrap();
    let error = simulate(&plan(large, 1_000_000)).unwrap_err().to_string();
    assert!(
        error.contains("fragments of a trace are not simulated"),
        "{error}"
    );
    for (option, words) in [
        (("rate", "5"), "it has repeat, ip"),
        (("repeat", "2"), "give 0 to 1"),
        (("ip", "5"), "4 or 6"),
    ] {
        let error = TrafficModel::replay(trace("0 64"), &[option])
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
    let small = TrafficModel::replay(trace("0 64"), &[]).unwrap();
    assert!(small.at(1000).unwrap_err().to_string().contains("no rate"));
    assert!(
        TrafficModel::parse("trace")
            .unwrap_err()
            .to_string()
            .contains("trace:FILE")
    );
}
