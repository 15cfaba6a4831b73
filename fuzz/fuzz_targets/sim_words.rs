//! Disciplines and workloads are words of a command line. Reading them never panics; what
//! was read prints as something that reads the same; and it can be simulated, or says why not, with every packet
//! accounted for.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

/// Longer runs and larger ones only take longer.
const DURATION_NS: u64 = 50_000;
const BYTES_MAX: f64 = 16e6;

static HOST: LazyLock<HostModel> = LazyLock::new(|| {
    HostModel::parse(include_str!("../../sim/hosts/generic.toml")).expect("it is a host file")
});

fuzz_target!(|text: &str| {
    let Some((discipline, workload)) = text.split_once('\n') else {
        return;
    };
    let discipline = ReceiveDiscipline::parse(discipline).map(|read| {
        assert_eq!(
            ReceiveDiscipline::parse(&read.to_string()).as_ref(),
            Ok(&read)
        );
        read
    });
    let workload = TrafficModel::parse(workload).map(|read| {
        assert_eq!(TrafficModel::parse(&read.to_string()).as_ref(), Ok(&read));
        read
    });
    let (discipline, workload) = match (discipline, workload) {
        (Ok(discipline), Ok(workload)) => (discipline, workload),
        (Err(error), _) | (_, Err(error)) => return assert!(!error.to_string().is_empty()),
    };
    let stop = || PathHost {
        host: HOST.clone(),
        discipline: discipline.clone(),
    };
    let plan = Simulation {
        stops: vec![stop()],
        workload: workload.clone(),
        duration_ns: DURATION_NS,
        warmup_ns: 0,
        seed: 1,
        slices: 0,
    };
    if plan.memory_bytes() > BYTES_MAX {
        return;
    }
    if let Ok(figures) = simulate(&plan) {
        assert!(figures.ledger.is_closed(), "{:?}", figures.ledger);
    }
    let plan = Simulation {
        stops: vec![stop(), stop()],
        workload,
        duration_ns: DURATION_NS,
        warmup_ns: 0,
        seed: 1,
        slices: 0,
    };
    if let Ok(figures) = simulate(&plan) {
        assert!(figures.ledger.is_closed(), "{:?}", figures.ledger);
    }
});
