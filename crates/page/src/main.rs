//! The simulator for a browser. `cargo xtask page` compiles this for WebAssembly (WASI) and puts it into one page with
//! the files of `web/`: `docs/simulator.html`.
//!
//! A call is a run: `SEED WARMUP DURATION SLICES WORKLOAD HOST DISCIPLINE [HOST DISCIPLINE]...`, the hosts by name in
//! the order of the path; a warm-up of 0 is as long as the program's own. Its first line is the SHA-256 of the rest, and the rest is to the byte what `nicpoll sim run
//! --no-explain --json` prints for the same run. A refused run prints why, and fails.

use std::io::{self, Write as _};
use std::process::ExitCode;

use nicpoll_model::sim::{SIM_RUN_SCHEMA, SimRun};
use nicpoll_sim::{
    EmbeddedHost, HostModel, PathHost, ReceiveDiscipline, SimError, Simulation, TrafficModel,
    bottleneck, number, simulate, warmup_ns,
};
use sha2::{Digest as _, Sha256};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (text, code) = match answer(&args) {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(refusal) => (refusal.to_string(), ExitCode::FAILURE),
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs what was asked for. Fails with the sentence that the page shows.
fn answer(args: &[String]) -> Result<String, SimError> {
    let [seed, warmup, duration, slices, workload, stops @ ..] = args else {
        return Err(wrong(
            "a run has a seed, a warm-up, a length, slices, a workload and hosts",
        ));
    };
    let stops: Vec<_> = stops.chunks(2).map(stop).collect::<Result<_, _>>()?;
    let plan = Simulation {
        warmup_ns: match number(warmup)? {
            0 => warmup_ns(&stops),
            given_ns => given_ns,
        },
        stops,
        workload: TrafficModel::parse(workload)?,
        duration_ns: number(duration)?,
        seed: number(seed)?,
        slices: number(slices)?.try_into().unwrap_or(u32::MAX),
    };
    let figures = simulate(&plan)?;
    let run = SimRun {
        schema: String::from(SIM_RUN_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: bottleneck(&plan, &figures),
        figures,
    };
    let json = serde_json::to_string_pretty(&run).map_err(wrong)? + "\n";
    let digest = Sha256::digest(&json);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{digest}\n{json}"))
}

fn stop(words: &[String]) -> Result<PathHost, SimError> {
    let [host, discipline] = words else {
        return Err(wrong("each host has a discipline"));
    };
    let host = EmbeddedHost::named(host).ok_or_else(|| wrong(format!("no host '{host}'")))?;
    Ok(PathHost {
        host: HostModel::parse(host.text).map_err(wrong)?,
        discipline: ReceiveDiscipline::parse(discipline)?,
    })
}

fn wrong(what: impl ToString) -> SimError {
    SimError::from(what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_cannot_be_is_refused_with_the_reason() {
        let asked = |text: &str| {
            let words: Vec<_> = text.split(' ').map(String::from).collect();
            answer(&words)
        };
        let run = asked("1 0 1ms 0 poisson:rate=50k generic napi").unwrap();
        assert_eq!(run.lines().next().unwrap().len(), 64);
        for (text, part) in [
            ("1 0 1ms", "a run has a seed"),
            ("1 0 1ms 0 poisson:rate=50k none napi", "no host 'none'"),
            (
                "1 0 1ms 0 poisson:rate=50k generic",
                "each host has a discipline",
            ),
            ("1 0 1ms 0 poisson generic napi", "the workload has no rate"),
        ] {
            let refusal = asked(text).unwrap_err().to_string();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
