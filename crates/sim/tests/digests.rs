//! The results of runs to the last digit, as one digest for each host and discipline or path: refactoring the
//! simulator must not change its predictions.
//!
//! A line of `digests/golden.txt` is a case's number and the FNV-1a digest of its figures' values, without
//! their names, in the order in which [`of_host`] and [`of_path`] name them. When a prediction changes on
//! purpose, the commit that does so replaces the file by the one that the failing test writes, and says why.

#[path = "sim/common.rs"]
mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{named, stop};
use nicpoll_model::sim::{SIM_PLACES, SimBottleneck, SimFigures};
use nicpoll_sim::{
    HostModel, PathHost, Simulation, TracePacket, TraceReader, TrafficModel, explain, simulate,
};
use serde::Serialize;

const GOLDEN: &str = include_str!("digests/golden.txt");

const HOSTS: [&str; 4] = ["generic", "wrap", "net6501", "marketdata"];
const DISCIPLINES: [&str; 10] = [
    "freebsd-interrupt",
    "freebsd-interrupt:card.moderation_ns=100us:cpu.refill_ns=2us",
    "freebsd-interrupt:network.ip_queue_packets=0:background.interrupt_ns=3us",
    "freebsd-polling",
    "freebsd-polling:controller=share:user_frac=20",
    "freebsd-polling:idle_poll=1:reg_frac=5",
    "napi",
    "napi:budget=64:weight=16:cpu.refill_ns=1us",
    "napi-timer:timeout=200us",
    "busy-poll",
];
const WORKLOADS: [&str; 10] = [
    "constant:rate=20k",
    "poisson:rate=90k",
    "poisson:rate=250k:payload=200",
    "pulses:rate=50k",
    "rr:clients=50",
    "rr:clients=9:links=2",
    "poisson:rate=60k:clients=100:links=4",
    "blast:payload=1470",
    "constant:rate=10k:payload=4000",
    "constant:rate=30k:payload=1470:ip=6",
];
/// Host and discipline of each stop, a path a line.
const PATHS: &str = "\
generic freebsd-interrupt -> generic freebsd-interrupt
generic freebsd-polling -> generic freebsd-polling:idle_poll=1
generic napi -> generic napi-timer:timeout=200us
generic napi -> generic busy-poll
generic busy-poll -> generic busy-poll
asa633 freebsd-interrupt -> poweredge freebsd-interrupt
poweredge freebsd-polling -> t5000 freebsd-interrupt
wan freebsd-interrupt -> wan freebsd-polling:controller=share
generic freebsd-interrupt -> generic freebsd-polling -> generic freebsd-interrupt
generic napi -> net6501 napi -> generic napi
generic freebsd-interrupt:link.half_duplex=1:link.bits_per_second=100m -> wrap freebsd-polling -> generic freebsd-interrupt:network.ip_queue_packets=0 -> generic freebsd-interrupt
generic freebsd-interrupt:cpu.tick_slow_ppm=60 -> wrap freebsd-polling";
const PATH_WORKLOADS: [&str; 8] = [
    "netblast",
    "netblast:payload=1470:ip=6",
    "netblast:payload=4000",
    "iperf-udp:rate=50m",
    "iperf-tcp",
    "iperf-tcp:window=32k:dual=1",
    "iperf-tcp:ip=6:window=256k",
    "rr",
];

/// FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The values of a figure, without their names.
fn values(text: &mut String, figure: &impl Serialize) {
    let json = serde_json::to_string(figure).unwrap();
    let mut rest = json.as_str();
    while let Some((before, from_quote)) = rest.split_once('"') {
        let (quoted, after) = from_quote.split_once('"').unwrap();
        text.push_str(before);
        match after.strip_prefix(':') {
            Some(value) => rest = value,
            None => {
                text.push_str(quoted);
                rest = after;
            }
        }
    }
    let _ = writeln!(text, "{rest}");
}

fn of_host(text: &mut String, figures: &SimFigures) {
    values(text, &figures.ledger.in_flight_at_start_datagrams);
    values(text, &figures.ledger.offered_datagrams);
    values(text, &figures.ledger.delivered_datagrams);
    for place in SIM_PLACES {
        values(text, &figures.ledger.lost_at(0, place));
    }
    values(text, &figures.ledger.in_flight_at_end_datagrams);
    values(text, &figures.offered_packets_per_second);
    values(text, &figures.delivered_packets_per_second);
    values(text, &figures.delivered_payload_bits_per_second);
    values(text, &figures.loss_ratio);
    let host = &figures.hosts[0];
    values(text, &host.line_ratio());
    values(text, &figures.latency);
    values(text, &figures.jitter_ns);
    values(text, &figures.clients);
    values(text, &host.cards);
    values(text, &host.cpu);
    values(text, &host.context_switches);
    let delivered = figures.ledger.delivered_datagrams;
    let switches = host.context_switches as f64 / delivered as f64;
    values(text, &(delivered > 0).then_some(switches));
    values(text, &host.interrupts);
    values(text, &figures.slices);
    values(text, &host.queues);
    values(text, &host.storm);
    values(text, &host.polling);
    values(text, &host.napi);
}

fn of_path(text: &mut String, figures: &SimFigures) {
    let ledger = &figures.ledger;
    values(
        text,
        &[
            ledger.in_flight_at_start_datagrams,
            ledger.offered_datagrams,
        ],
    );
    values(
        text,
        &[
            ledger.delivered_datagrams,
            ledger.in_flight_at_end_datagrams,
        ],
    );
    for loss in &ledger.losses {
        values(text, &(loss.host, loss.place, loss.datagrams));
    }
    for flow in &figures.flows {
        values(text, &(&flow.name, flow.from, flow.to, flow.payload_bytes));
        values(
            text,
            &(flow.calls, flow.send_errors, flow.delivered_datagrams),
        );
        values(
            text,
            &(
                flow.sent_packets_per_second,
                flow.delivered_packets_per_second,
            ),
        );
        values(text, &flow.sent_payload_bits_per_second);
        values(text, &flow.delivered_payload_bits_per_second);
        values(text, &(flow.missing_datagrams, flow.out_of_order_datagrams));
        values(text, &(&flow.latency, &flow.round_trip, flow.jitter_ns));
    }
    for host in &figures.hosts {
        values(text, &(&host.host, &host.cpu, host.context_switches));
        values(text, &(host.interrupts, &host.ledger, &host.queues));
        values(text, &(&host.storm, &host.polling, &host.napi));
    }
    values(text, &figures.lines);
    values(text, &figures.connections);
}

fn run(
    stops: Vec<PathHost>,
    workload: TrafficModel,
    milliseconds: u64,
    seed: u64,
    slices: u32,
) -> String {
    let plan = Simulation {
        stops,
        workload,
        duration_ns: milliseconds * 1_000_000,
        warmup_ns: 20_000_000,
        seed,
        slices,
    };
    let mut text = String::new();
    match simulate(&plan) {
        Ok(figures) if plan.stops.len() == 1 => of_host(&mut text, &figures),
        Ok(figures) => of_path(&mut text, &figures),
        Err(_) => text.push_str("refused\n"),
    }
    text
}

fn run_host(host: &HostModel, discipline: &str, workload: TrafficModel, seed: u64) -> String {
    run(vec![stop(host, discipline)], workload, 40, seed, 4)
}

fn run_path(stops: Vec<PathHost>, workload: &str, seed: u64) -> String {
    // Only connections have slices.
    let slices = if workload.starts_with("iperf-tcp") {
        3
    } else {
        0
    };
    run(
        stops,
        TrafficModel::parse(workload).unwrap(),
        60,
        seed,
        slices,
    )
}

fn hosts() -> Vec<String> {
    let mut cases = Vec::new();
    for name in HOSTS {
        let host = named(name);
        for discipline in DISCIPLINES {
            let mut text = String::new();
            for (number, workload) in WORKLOADS.iter().enumerate() {
                let workload = TrafficModel::parse(workload).unwrap();
                text += &run_host(&host, discipline, workload, 1 + number as u64);
            }
            cases.push(text);
        }
    }
    cases.push(traces());
    cases
}

fn traces() -> String {
    let packet = |number: u64| TracePacket {
        at_ns: number * 11_000 + number % 7 * 900,
        payload_bytes: 20 + (number * 37 % 1400) as u32,
    };
    let mut reader = TraceReader::default();
    for packet in (0..500).map(packet) {
        let line = format!("{}ns {}", packet.at_ns, packet.payload_bytes);
        reader.line(line.as_bytes()).unwrap();
    }
    let trace = Arc::new(reader.finish("t").unwrap());
    let workload = TrafficModel::replay(trace, &[("repeat", "1")]).unwrap();
    let of = |discipline: &&str| run_host(&common::host(), discipline, workload.clone(), 1);
    DISCIPLINES.iter().map(of).collect()
}

/// The bottlenecks named, and the results of the changes tried.
fn bottlenecks() -> Vec<String> {
    let single = DISCIPLINES.iter().map(|discipline| {
        let mut text = String::new();
        for workload in ["poisson:rate=90k", "rr:clients=4"] {
            let mut plan = common::plan(discipline, workload);
            plan.duration_ns = 100_000_000;
            let figures = simulate(&plan).unwrap();
            bottleneck(&mut text, &explain(&plan, &figures).unwrap());
        }
        text
    });
    let several = ["netblast", "iperf-tcp", "rr"].map(|workload| {
        let mut text = String::new();
        let plan = common::path(
            &["freebsd-interrupt", "freebsd-polling", "freebsd-interrupt"],
            workload,
        );
        let figures = simulate(&plan).unwrap();
        bottleneck(&mut text, &explain(&plan, &figures).unwrap());
        text
    });
    single.chain(several).collect()
}

fn bottleneck(text: &mut String, found: &SimBottleneck) {
    values(
        text,
        &(&found.resource, found.fullness_ratio, found.is_binding),
    );
    for tried in found.moves.iter().flatten() {
        values(text, &(tried.delivered_packets_per_second, tried.ratio));
    }
}

fn paths() -> Vec<String> {
    let all = PATHS.lines().map(|path| {
        let stops = path.split(" -> ").map(|of| {
            let (name, discipline) = of.split_once(' ').unwrap();
            stop(&named(name), discipline)
        });
        let stops: Vec<_> = stops.collect();
        let workloads = PATH_WORKLOADS.iter().enumerate();
        let texts = workloads.map(|(seed, of)| run_path(stops.clone(), of, 1 + seed as u64));
        texts.collect()
    });
    all.chain([veth_pairs()]).collect()
}

fn veth_pairs() -> String {
    let mut text = String::new();
    for [forth, back] in [
        ["napi", "napi"],
        ["napi-timer:timeout=100us", "napi-timer:timeout=100us"],
        ["napi:veth.wake_delay_ns=0", "napi-timer:defer=3"],
    ] {
        let end = |discipline: &str| {
            let mut host = common::host();
            for (name, value) in [
                ("veth.pair", 1),
                ("veth.wake_ns", 900),
                ("veth.wake_delay_ns", 4_000),
                ("veth.timer_delay_ns", 2_000),
                ("network.ip_queue_packets", 0),
            ] {
                host.set(name, value).unwrap();
            }
            stop(&host, discipline)
        };
        for workload in ["netblast", "iperf-udp:rate=20m", "rr", "iperf-tcp"] {
            text += &run_path(vec![end(forth), end(back)], workload, 5);
        }
    }
    text
}

#[test]
fn predictions_are_what_they_were_to_the_last_digit() {
    let cases = [hosts(), paths(), bottlenecks()].concat();
    let mut found = String::new();
    for (number, text) in cases.iter().enumerate() {
        let _ = writeln!(found, "{number:03} {:016x}", digest(text));
    }
    if found != GOLDEN {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::write(folder.join("golden.txt"), &found).unwrap();
        for (number, text) in cases.iter().enumerate() {
            fs::write(folder.join(format!("case-{number:03}.txt")), text).unwrap();
        }
        let differ = found.lines().zip(GOLDEN.lines()).filter(|(a, b)| a != b);
        let numbers: Vec<_> = differ.map(|(found, _)| &found[..3]).collect();
        panic!(
            "cases {numbers:?} differ; see golden.txt and case-*.txt in {}",
            folder.display()
        );
    }
}
