//! The simulator for a browser. `cargo xtask page` compiles this for WebAssembly (WASI) and puts it into one page with
//! the files of `web/`: `docs/simulator.html`.
//!
//! A call is a run: `SEED DURATION_NS SLICES WORKLOAD HOST DISCIPLINE [HOST DISCIPLINE]...`, the hosts by name in the
//! order of the path. Its first line is the SHA-256 of the rest, and the rest is to the byte what `nicpoll sim run
//! --no-explain --json` prints for the same run. A refused run prints why, and fails.

use std::io::{self, Write as _};
use std::process::ExitCode;

use nicpoll_model::sim::{SIM_RUN_SCHEMA, SimRun};
use nicpoll_sim::{
    EmbeddedHost, HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, bottleneck,
    number, simulate, warmup_ns,
};
use sha2::{Digest as _, Sha256};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (text, code) = match answer(&args) {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(refusal) => (refusal, ExitCode::FAILURE),
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs what was asked for. Fails with the sentence that the page shows.
fn answer(args: &[String]) -> Result<String, String> {
    let [seed, duration_ns, slices, workload, stops @ ..] = args else {
        return Err(String::from(
            "a run has a seed, a length, slices, a workload and hosts",
        ));
    };
    let say = |error: nicpoll_sim::SimError| error.to_string();
    let stops: Result<Vec<_>, _> = stops.chunks(2).map(stop).collect();
    let stops = stops?;
    let plan = Simulation {
        warmup_ns: warmup_ns(&stops),
        stops,
        workload: TrafficModel::parse(workload).map_err(say)?,
        duration_ns: number(duration_ns).map_err(say)?,
        seed: number(seed).map_err(say)?,
        slices: number(slices).map_err(say)?.try_into().unwrap_or(u32::MAX),
    };
    let figures = simulate(&plan).map_err(say)?;
    let run = SimRun {
        schema: String::from(SIM_RUN_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: bottleneck(&plan, &figures),
        figures,
    };
    let json = serde_json::to_string_pretty(&run).map_err(|error| error.to_string())? + "\n";
    let digest = Sha256::digest(&json);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{digest}\n{json}"))
}

fn stop(words: &[String]) -> Result<PathHost, String> {
    let [host, discipline] = words else {
        return Err(String::from("each host has a discipline"));
    };
    let host = EmbeddedHost::named(host).ok_or_else(|| format!("there is no host '{host}'"))?;
    Ok(PathHost {
        host: HostModel::parse(host.text).map_err(|error| error.to_string())?,
        discipline: ReceiveDiscipline::parse(discipline).map_err(|error| error.to_string())?,
    })
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
        let run = asked("1 1ms 0 poisson:rate=50k generic napi").unwrap();
        assert_eq!(run.lines().next().unwrap().len(), 64);
        for (text, part) in [
            ("1 1ms", "a run has a seed"),
            ("1 1ms 0 poisson:rate=50k none napi", "no host 'none'"),
            (
                "1 1ms 0 poisson:rate=50k generic",
                "each host has a discipline",
            ),
            ("1 1ms 0 poisson generic napi", "the workload has no rate"),
        ] {
            assert!(asked(text).unwrap_err().contains(part), "{text}");
        }
    }
}
