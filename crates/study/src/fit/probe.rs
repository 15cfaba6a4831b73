//! One look at traffic on its way: what the kernel and both programs spent between two moments.
//!
//! What must hold: every figure of a probe is of the same stretch of time, in which traffic was at its speed:
//! its start and its end are outside.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nicpoll_observe::{
    CpuTimes, ExactCpu, ExactSample, InterruptSource, Interrupts, PollCounts, SOFTIRQ_NAMES,
    ThreadTimes,
};
use rustix::time::{ClockId, clock_gettime};

use crate::lab::Lab;
use crate::run::Running;

/// Threads of the two programs, by their names' beginnings: the kernel keeps 15 letters.
const SENDER: &str = "nicpoll-send";
const RECEIVER: &str = "nicpoll-receive";
/// The processors' own timer, as the account calls it.
const TIMER: &str = "local_timer";
/// For stragglers of a run to be read.
pub const QUIET: Duration = Duration::from_millis(5);
/// Any port will do where nobody is.
const DISCARD: u16 = 9;
const SMALL_BYTES: usize = 64;

/// What happened between two moments.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// Polls of the receiver's NAPI.
    pub polls: PollCounts,
    /// The processors together: receiving in software interrupts.
    pub net_rx_ns: f64,
    /// Interrupts of the processors' own timers, and their time; `None` where the kernel shows none.
    pub timer: Option<(u64, f64)>,
    /// The sender's program.
    pub sender: ThreadWork,
    /// The receiver's program.
    pub receiver: ThreadWork,
    /// How long.
    pub wall_ns: f64,
    /// Time that other processes had, of the processors together.
    pub others_ns: f64,
}

/// What a program's threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadWork {
    /// In user mode.
    pub user_ns: f64,
    /// In the kernel, interrupts left out.
    pub system_ns: f64,
    /// How often it left a processor.
    pub slices: f64,
}

impl ThreadWork {
    pub fn total_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// What has been counted so far.
struct Edge {
    at: Instant,
    threads: Vec<ThreadTimes>,
    cpus: ExactSample,
    interrupts: Interrupts,
    polls: PollCounts,
}

impl Edge {
    fn now(lab: &Lab, exact: &ExactCpu) -> Result<Self> {
        Ok(Edge {
            // The list of threads takes longest: what follows is read together, at both edges alike.
            threads: exact.threads()?,
            at: Instant::now(),
            cpus: exact.read()?,
            interrupts: exact.interrupts()?,
            polls: lab.polls.read()?,
        })
    }
}

/// The number of this process as the account tells it, which is not [`std::process::id`] in a container: a
/// thread with a name of its own gives it away. The account is attached.
fn own_process(exact: &ExactCpu) -> Result<u32> {
    let name = format!("np-{:x}", clock_gettime(ClockId::Monotonic).tv_nsec);
    // It has to leave a processor to be seen.
    let marker = || thread::sleep(Duration::from_millis(1));
    let marker = thread::Builder::new().name(name.clone()).spawn(marker)?;
    marker
        .join()
        .map_err(|_| anyhow!("the marker thread panicked"))?;
    let threads = exact.threads()?;
    let found = threads.iter().find(|thread| thread.name == name);
    let found =
        found.ok_or_else(|| anyhow!("the account of CPU time does not show this process"))?;
    Ok(found.pid)
}

/// Looks at what goes on for a while. The account is attached.
pub fn look(lab: &Lab, time: Duration) -> Result<Probe> {
    let exact = account(lab)?;
    let process = own_process(exact)?;
    let before = Edge::now(lab, exact)?;
    thread::sleep(time);
    let after = Edge::now(lab, exact)?;
    let cpus = after.cpus.since(&before.cpus, &lab.cpus());
    let sum = |of: fn(&CpuTimes) -> u64| cpus.iter().map(of).sum::<u64>() as f64;
    Ok(Probe {
        polls: after.polls.since(&before.polls),
        net_rx_ns: sum(net_rx_ns),
        timer: timer(&before.interrupts, &after.interrupts),
        sender: work(&before, &after, process, SENDER),
        receiver: work(&before, &after, process, RECEIVER),
        wall_ns: (after.at - before.at).as_nanos() as f64,
        others_ns: (sum(|times| times.user_ns + times.nice_ns + times.system_ns)
            - work(&before, &after, process, "").total_ns())
        .max(0.0),
    })
}

/// Starts traffic that lasts `time`, and looks at its middle part.
pub fn look_at(
    lab: &Lab,
    time: Duration,
    cancel: &AtomicBool,
    start: impl FnOnce(&Lab, Duration) -> Result<Running>,
) -> Result<Probe> {
    let mut running = start(lab, time)?;
    thread::sleep(time / 5);
    let probe = look(lab, time * 3 / 5)?;
    running.wait_for_sender(cancel)?;
    running.drain(QUIET)?;
    Ok(probe)
}

/// Looks at datagrams to an address that no host has, sent as fast as it goes.
pub fn look_at_nobody(lab: &Lab, time: Duration, nobody: IpAddr) -> Result<Probe> {
    let sender = lab.sender.spawn_pinned(lab.sender_cpu, "send", move || {
        let begin = Instant::now();
        send_to(nobody, || begin.elapsed() < time)
    })?;
    thread::sleep(time / 5);
    let probe = look(lab, time * 3 / 5)?;
    join(sender)?;
    Ok(probe)
}

/// Sends one datagram to an address that no host has, so that the receiver's NAPI runs once.
pub fn touch(lab: &Lab, nobody: IpAddr) -> Result<()> {
    let mut is_first = true;
    join(lab.sender.spawn_pinned(lab.sender_cpu, "send", move || {
        send_to(nobody, || std::mem::take(&mut is_first))
    })?)
}

fn send_to(nobody: IpAddr, mut goes_on: impl FnMut() -> bool) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((nobody, DISCARD))?;
    while goes_on() {
        socket.send(&[0; SMALL_BYTES])?;
    }
    Ok(())
}

fn join(sender: thread::JoinHandle<std::io::Result<Result<()>>>) -> Result<()> {
    sender
        .join()
        .map_err(|_| anyhow!("the sender's thread panicked"))??
}

/// The account, or why the kernel refuses one.
pub fn account(lab: &Lab) -> Result<&ExactCpu> {
    lab.exact_cpu
        .as_ref()
        .map_err(|error| anyhow!("CPU time cannot be accounted for exactly here: {error}"))
}

fn net_rx_ns(times: &CpuTimes) -> u64 {
    let index = SOFTIRQ_NAMES.iter().position(|name| *name == "NET_RX");
    index.map_or(0, |index| times.softirq_ns[index])
}

/// What the processors' own timers interrupted between two counts.
pub fn timer(before: &Interrupts, after: &Interrupts) -> Option<(u64, f64)> {
    let of = |interrupts: &Interrupts| {
        let mut all = interrupts.0.iter();
        let timer = all.find(|of| of.source == InterruptSource::Vector(TIMER))?;
        Some((timer.entries, timer.ns))
    };
    let (entries, ns) = of(after)?;
    let (entries_before, ns_before) = of(before).unwrap_or_default();
    let entries = entries.saturating_sub(entries_before);
    (entries > 0).then(|| (entries, ns.saturating_sub(ns_before) as f64))
}

/// Sums up the process's threads of a name, which may be cut short. One that has not left a processor yet has no name; there is one
/// at most, the sender at full speed.
fn work(before: &Edge, after: &Edge, process: u32, name: &str) -> ThreadWork {
    let is_meant = |thread: &&ThreadTimes| {
        let is_nameless = thread.name.is_empty() && name != RECEIVER;
        thread.pid == process && (thread.name.starts_with(name) || is_nameless)
    };
    let mut work = ThreadWork::default();
    for thread in after.threads.iter().filter(is_meant) {
        let earlier = before.threads.iter().find(|other| other.tid == thread.tid);
        let then = earlier.map(|earlier| (earlier.times, earlier.slices));
        let (times, slices) = then.unwrap_or_default();
        work.user_ns += (thread.times.user_ns + thread.times.nice_ns) as f64
            - (times.user_ns + times.nice_ns) as f64;
        work.system_ns += thread.times.system_ns as f64 - times.system_ns as f64;
        work.slices += thread.slices.saturating_sub(slices) as f64;
    }
    work
}
