//! Prints the present cost of each program of the exact CPU account on this machine, by the kernel's own statistics: a
//! basis to estimate the cost of `nicpoll watch` under a load, or with `threads` that of a trial's account. Needs root.
//!
//! ```text
//! sudo -E cargo run --release -p nicpoll-observe --example event_cost -- 5 [threads]
//! ```

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::{BpfError, ExactCpu, ExactCpuOptions};

fn main() -> Result<(), BpfError> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(1, |text| text.parse().expect("a whole number of seconds"));
    let mut exact = ExactCpu::load(&ExactCpuOptions {
        has_threads: std::env::args().nth(2).as_deref() == Some("threads"),
        ..ExactCpuOptions::default()
    })?;
    exact.attach()?;
    let ((before, after, elapsed), idle) = exact.with_idle_program(|exact| {
        let timing = nicpoll_observe::start_timing()?;
        let (before, began) = (exact.programs.timed_runs_by_program()?, Instant::now());
        thread::sleep(Duration::from_secs(seconds));
        let after = exact.programs.timed_runs_by_program()?;
        drop(timing);
        Ok((before, after, began.elapsed().as_secs_f64()))
    })?;
    let timing_ns = idle.map_or(0.0, |idle| idle.ns_per_run);
    println!("{timing_ns:.0} ns of each run are the timing's own and are taken off.");
    let mut sum = 0.0;
    println!(
        "{:<30}{:>12}{:>10}{:>12}",
        "program", "runs/s", "ns/run", "% of a core"
    );
    for ((name, after), (_, before)) in after.iter().zip(before) {
        let Some(run) = after.since(before) else {
            continue;
        };
        let per_second = run.runs as f64 / elapsed;
        let ns = (run.ns_per_run - timing_ns).max(0.0);
        let percent = per_second * ns / 1e7;
        sum += percent;
        println!("{name:<30}{per_second:>12.0}{ns:>10.0}{percent:>12.3}");
    }
    println!("{:<52}{sum:>12.3}", "all");
    Ok(())
}
