//! What each program of the exact account of CPU time costs on this machine as it is now, by the kernel's own
//! statistics: for reckoning what `nicpoll watch` takes under a load. Needs root.
//!
//! ```text
//! sudo -E cargo run --release -p nicpoll-observe --example event_cost -- 5
//! ```

use std::thread;
use std::time::{Duration, Instant};

use nicpoll_observe::{BpfError, ExactCpu, ExactCpuOptions};

fn main() -> Result<(), BpfError> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(1, |text| text.parse().expect("a whole number of seconds"));
    let mut exact = ExactCpu::load(&ExactCpuOptions::default())?;
    exact.attach()?;
    let timing = nicpoll_observe::start_timing()?;
    let (before, began) = (exact.timed_runs_by_program()?, Instant::now());
    thread::sleep(Duration::from_secs(seconds));
    let after = exact.timed_runs_by_program()?;
    let elapsed = began.elapsed().as_secs_f64();
    drop(timing);
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
        let percent = per_second * run.ns_per_run / 1e7;
        sum += percent;
        println!(
            "{name:<30}{per_second:>12.0}{:>10.0}{percent:>12.3}",
            run.ns_per_run
        );
    }
    println!("{:<52}{sum:>12.3}", "all");
    Ok(())
}
