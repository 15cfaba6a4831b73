//! What counting dropped packets by reason costs on this machine as it is now: the kernel's own statistics for each
//! dropped packet, and the rate at which datagrams to a closed port of the loopback go with the program and without.
//! Needs root.
//!
//! ```text
//! sudo -E cargo run --release -p nicpoll-observe --example drop_cost
//! ```

use std::error::Error;
use std::net::UdpSocket;
use std::time::Instant;

use nicpoll_observe::{DropReasons, start_timing};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::usage::process_cpu_time;

const DATAGRAMS: u32 = 200_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let netns = NetNamespace::current()?.inode();
    let mut ns_per_drop = [Vec::new(), Vec::new()];
    let mut begin_ms = Vec::new();
    for _ in 0..ROUNDS {
        ns_per_drop[0].push(send()?);
        let began = cpu_ms()?;
        let counting = DropReasons::begin(&[netns])?;
        begin_ms.push(cpu_ms()? - began);
        ns_per_drop[1].push(send()?);
        drop(counting);
    }
    let [without, with] = ns_per_drop.map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    });
    println!("ms of CPU time to begin: {begin_ms:.1?}");
    println!("ns for each datagram sent and dropped, median of {ROUNDS} rounds:");
    println!("without {without:.0}, with {with:.0}");
    let mut counting = DropReasons::begin(&[netns])?;
    let timing = start_timing()?;
    let before = counting.timed_runs()?;
    send()?;
    if let Some(run) = counting.timed_runs()?.since(before) {
        println!(
            "{:.0} ns a run by the kernel's statistics, {} runs",
            run.ns_per_run, run.runs
        );
    }
    drop(timing);
    println!("{:#?}", counting.read()?);
    Ok(())
}

/// CPU time of this process so far: other programs do not matter.
fn cpu_ms() -> Result<f64, Box<dyn Error>> {
    let used = process_cpu_time()?;
    Ok((used.user + used.system).as_secs_f64() * 1e3)
}

/// Nanoseconds for each datagram.
fn send() -> Result<f64, Box<dyn Error>> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    let began = Instant::now();
    for _ in 0..DATAGRAMS {
        socket.send_to(&[0; 64], ("127.0.0.1", 9))?;
    }
    Ok(began.elapsed().as_nanos() as f64 / f64::from(DATAGRAMS))
}
