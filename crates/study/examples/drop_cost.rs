//! Measures the cost of watching dropped packets by reason on this machine. In 16 pairs of runs, with and without the
//! program in alternating order: CPU time for each dropped and each delivered datagram, with 95 % signed-rank
//! intervals; then the kernel's own statistics of a run. Only this process's CPU time counts, so other programs
//! disturb little. Needs root; takes 20 to 60 s.
//!
//! ```text
//! sudo -E cargo run --release -p nicpoll-study --example drop_cost
//! ```

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};

use nicpoll_observe::{DropReasons, start_timing};
use nicpoll_stats::{Confidence, signed_rank_interval};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::schedule::process_cpu_time;

const PAIRS: usize = 16;
/// Sends of one run.
const DATAGRAMS: u32 = 100_000;
/// Sends between two reads of the receiving socket, few enough for its buffer.
const READ_EVERY: u32 = 64;

/// Fate of the datagrams.
#[derive(Clone, Copy)]
enum End {
    /// There is no socket.
    Dropped,
    /// A socket reads them.
    Delivered,
}

fn main() -> Result<(), Box<dyn Error>> {
    let netns = NetNamespace::current()?.inode();
    for (end, what) in [(End::Dropped, "dropped"), (End::Delivered, "delivered")] {
        let mut differences = Vec::new();
        let mut without = Vec::new();
        for pair in 0..PAIRS {
            let mut ns = [0.0; 2];
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for watched in order {
                let _watching = match watched {
                    0 => None,
                    _ => Some(DropReasons::begin(&[netns])?),
                };
                ns[watched] = ns_per_datagram(end)?;
            }
            differences.push(ns[1] - ns[0]);
            without.push(ns[0]);
        }
        without.sort_by(f64::total_cmp);
        let interval = signed_rank_interval(&differences, Confidence::PERCENT_95)?;
        println!(
            "{what}: {:.0} ns of CPU time a datagram without, {:+.0} ns [{:+.0}, {:+.0}] with; {PAIRS} pairs",
            without[PAIRS / 2],
            interval.estimate,
            interval.low,
            interval.high
        );
    }
    by_statistics(netns)
}

/// Prints the kernel's statistics of the program's runs, which include the cost of timing.
fn by_statistics(netns: u64) -> Result<(), Box<dyn Error>> {
    let began = cpu_ns()?;
    let watching = DropReasons::begin(&[netns])?;
    println!("{:.1} ms of CPU time to begin", (cpu_ns()? - began) / 1e6);
    let timing = start_timing()?;
    let before = watching.programs.timed_runs()?;
    ns_per_datagram(End::Dropped)?;
    if let Some(run) = watching.programs.timed_runs()?.since(before) {
        println!(
            "{:.0} ns a run by the kernel's statistics, timing included, {} runs",
            run.ns_per_run, run.runs
        );
    }
    drop(timing);
    Ok(())
}

/// Measures this process's CPU time for each datagram over the loopback.
fn ns_per_datagram(end: End) -> Result<f64, Box<dyn Error>> {
    let receiver = UdpSocket::bind(("127.0.0.1", 0))?;
    receiver.set_nonblocking(true)?;
    let to = match end {
        End::Dropped => SocketAddr::from(([127, 0, 0, 1], 9)),
        End::Delivered => receiver.local_addr()?,
    };
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    let began = cpu_ns()?;
    for sent in 1..=DATAGRAMS {
        socket.send_to(&[0; 64], to)?;
        if sent % READ_EVERY == 0 {
            while receiver.recv(&mut [0; 64]).is_ok() {}
        }
    }
    Ok((cpu_ns()? - began) / f64::from(DATAGRAMS))
}

fn cpu_ns() -> Result<f64, Box<dyn Error>> {
    let used = process_cpu_time()?;
    Ok((used.user + used.system).as_secs_f64() * 1e9)
}
