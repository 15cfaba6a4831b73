//! Any text may be handed over as a host file. Reading it never panics; what is refused is
//! refused with a line that the text has; and what was read is within every range and can be simulated,
//! or says why not, with all packets accounted for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_sim::{HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate};

fuzz_target!(|text: &str| {
    let host = match HostModel::parse(text) {
        Ok(host) => host,
        Err(error) => {
            assert!((1..=text.lines().count() + 1).contains(&error.line));
            assert!(!error.message.is_empty());
            return;
        }
    };
    for field in HostModel::FIELDS {
        let value = host.get(field.name).expect("every field was read");
        assert!((field.min..=field.max).contains(&value));
    }
    for discipline in ["freebsd-interrupt", "freebsd-polling", "napi-timer"] {
        let plan = Simulation {
            stops: vec![PathHost {
                host: host.clone(),
                discipline: ReceiveDiscipline::parse(discipline).expect("it is one"),
            }],
            workload: TrafficModel::parse("constant:rate=100k").expect("it is one"),
            duration_ns: 1_000_000,
            warmup_ns: 0,
            seed: 1,
            slices: 0,
        };
        if let Ok(figures) = simulate(&plan) {
            assert!(figures.ledger.is_closed());
        }
    }
    // A veth pair has two ends.
    let stop = || PathHost {
        host: host.clone(),
        discipline: ReceiveDiscipline::parse("napi-timer").expect("it is one"),
    };
    let plan = Simulation {
        stops: vec![stop(), stop()],
        workload: TrafficModel::parse("netblast").expect("it is one"),
        duration_ns: 100_000,
        warmup_ns: 0,
        seed: 1,
        slices: 0,
    };
    if let Ok(figures) = simulate(&plan) {
        assert!(figures.ledger.is_closed());
    }
});
