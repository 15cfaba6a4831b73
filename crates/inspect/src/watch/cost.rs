//! What the BPF programs of a watch take.
//!
//! What must hold: the time that the kernel's timing itself takes is no part of it, since the programs are
//! timed for a moment only.

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::{BpfError, ExactCpu, RunTime, TimedPrograms, TimedRuns, start_timing};

/// The programs' share of one core while the kernel times them for so long.
pub fn bpf_cpu_ratio(
    exact: &mut ExactCpu,
    others: &[&dyn TimedPrograms],
    time: Duration,
) -> Result<f64, BpfError> {
    let ((runs, seconds), idle) = exact.beside_idle_program(|exact| {
        let timing = start_timing()?;
        let (before, began) = (timed_runs(exact, others)?, Instant::now());
        thread::sleep(time);
        let seconds = began.elapsed().as_secs_f64();
        let after = timed_runs(exact, others)?;
        drop(timing);
        let runs = after.iter().zip(before);
        let runs = runs.filter_map(|(after, before)| after.since(before));
        Ok((runs.collect::<Vec<RunTime>>(), seconds))
    })?;
    let timing_ns = idle.map_or(0.0, |idle| idle.ns_per_run);
    Ok(own_ns(&runs, timing_ns) / 1e9 / seconds)
}

/// One entry for each set of programs.
fn timed_runs(
    exact: &mut ExactCpu,
    others: &[&dyn TimedPrograms],
) -> Result<Vec<TimedRuns>, BpfError> {
    let others = others.iter().map(|programs| programs.timed_runs());
    std::iter::once(exact.timed_runs()).chain(others).collect()
}

fn own_ns(runs: &[RunTime], timing_ns: f64) -> f64 {
    runs.iter()
        .map(|run| run.runs as f64 * (run.ns_per_run - timing_ns).max(0.0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_is_taken_off_each_run_and_none_is_below_nothing() {
        let run = |runs, ns_per_run| RunTime { runs, ns_per_run };
        let runs = [run(10, 130.0), run(4, 200.0)];
        assert_eq!(own_ns(&runs, 0.0), 2_100.0);
        assert_eq!(own_ns(&runs, 80.0), 980.0);
        assert_eq!(own_ns(&runs, 150.0), 200.0);
    }
}
