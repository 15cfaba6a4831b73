//! One look at running traffic: what the kernel and both programs spent between two moments.
//!
//! Every figure of a probe covers the same stretch of time, in which traffic was at full speed: the traffic's start
//! and end are outside.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_lab::{
    Lab, LabError, RECEIVER_THREAD, Running, SENDER_THREAD, WorkloadRequest, own_process,
};
use nicpoll_observe::{
    CpuTimes, ExactCpu, ExactSample, InterruptSource, Interrupts, PollCounter, PollCounts,
    SOFTIRQ_NAMES, ThreadTimes,
};
use nicpoll_traffic::netrate::NetrateWorkload;

/// The measurements of one repeat.
#[derive(Clone, Debug, Default)]
pub struct ProbeBlock {
    /// Probes without traffic, each with the kernel's timeout.
    pub empty: Vec<(u64, WorkProbe)>,
    pub timed: Vec<WorkProbe>,
    pub paced: Vec<WorkProbe>,
    pub small: WorkProbe,
    pub large: WorkProbe,
    pub nobody: WorkProbe,
    /// Time of one event of the CPU account.
    pub event_ns: Option<f64>,
    pub round_trip_ns: Option<f64>,
    pub switch_ns: f64,
    pub wake_ns: f64,
    pub tick_ns: Option<f64>,
    /// Share of the two processors that the hypervisor kept over the whole repeat, 0 to 1.
    pub steal_ratio: Option<f64>,
}

impl ProbeBlock {
    pub fn probes(&self) -> impl Iterator<Item = &WorkProbe> {
        let empty = self.empty.iter().map(|(_, probe)| probe);
        let paced = self.timed.iter().chain(&self.paced);
        empty
            .chain(paced)
            .chain([&self.small, &self.large, &self.nobody])
    }
}

type Result<T> = std::result::Result<T, LabError>;

/// The name of the processors' own timer in the account.
const TIMER: &str = "local_timer";

/// Time for stragglers of a run to be read.
pub const QUIET: Duration = Duration::from_millis(5);

/// Any port will do at an address that no host has.
const DISCARD: u16 = 9;

const SMALL: WorkloadRequest = WorkloadRequest::Netrate(NetrateWorkload { payload_bytes: 64 });

/// Time to send a few datagrams.
const TOUCH: Duration = Duration::from_micros(100);

/// The work between two moments.
#[derive(Clone, Debug, Default)]
pub struct WorkProbe {
    /// Polls of the receiver's NAPI.
    pub polls: PollCounts,
    /// Time of receiving in software interrupts, both processors together.
    pub net_rx_ns: f64,
    /// Interrupts of the processors' own timers, and their time; `None` where the kernel shows none.
    pub timer: Option<(u64, f64)>,
    /// The sender's program.
    pub sender: ThreadWork,
    /// The receiver's program.
    pub receiver: ThreadWork,
    /// Length of the probe.
    pub wall_ns: f64,
    /// Time of other processes, both processors together.
    pub others_ns: f64,
}

impl WorkProbe {
    /// Returns the share of the two processors that other processes had; `None` when no time passed.
    pub fn others_ratio(&self) -> Option<f64> {
        (self.wall_ns > 0.0).then(|| self.others_ns / (2.0 * self.wall_ns))
    }
}

/// The work of a program's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadWork {
    /// In user mode.
    pub user_ns: f64,
    /// In the kernel, without interrupts.
    pub system_ns: f64,
    /// How often it left a processor.
    pub slices: f64,
}

impl ThreadWork {
    pub fn total_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// The instruments of a probe. The lab's own account omits threads, which makes it cheaper; here their times are
/// needed.
pub struct Instruments {
    /// CPU time, with that of threads.
    pub exact: ExactCpu,
    /// Polls of the receiver's NAPI.
    pub polls: PollCounter,
}

/// The counters at one edge of a probe.
struct ProbeEdge {
    at: Instant,
    threads: Vec<ThreadTimes>,
    cpus: ExactSample,
    interrupts: Interrupts,
    polls: PollCounts,
}

impl ProbeEdge {
    fn now(instruments: &Instruments) -> Result<Self> {
        let Instruments { exact, polls } = instruments;
        Ok(ProbeEdge {
            // Listing the threads takes longest: the rest is read together afterwards, at both edges alike.
            threads: exact.threads()?,
            at: Instant::now(),
            cpus: exact.read()?,
            interrupts: exact.interrupts()?,
            polls: polls.read()?,
        })
    }
}

/// Probes what runs for `time`. The account must be attached.
pub fn look(lab: &Lab, instruments: &Instruments, time: Duration) -> Result<WorkProbe> {
    let process = own_process(&instruments.exact)?;
    let before = ProbeEdge::now(instruments)?;
    thread::sleep(time);
    let after = ProbeEdge::now(instruments)?;
    let cpus = after.cpus.since(&before.cpus, &lab.cpus());
    let sum = |of: fn(&CpuTimes) -> u64| cpus.iter().map(of).sum::<u64>() as f64;
    Ok(WorkProbe {
        polls: after.polls.since(&before.polls),
        net_rx_ns: sum(net_rx_ns),
        timer: timer(&before.interrupts, &after.interrupts),
        sender: work(&before, &after, process, SENDER_THREAD),
        receiver: work(&before, &after, process, RECEIVER_THREAD),
        wall_ns: (after.at - before.at).as_nanos() as f64,
        others_ns: (sum(|times| times.user_ns + times.nice_ns + times.system_ns)
            - work(&before, &after, process, "").total_ns())
        .max(0.0),
    })
}

/// Starts traffic that lasts `time`, and probes its middle part.
pub fn look_at(
    lab: &mut Lab,
    instruments: &Instruments,
    workload: &WorkloadRequest,
    time: Duration,
    cancel: &AtomicBool,
) -> Result<WorkProbe> {
    let mut running = Running::start(lab, workload, time)?;
    thread::sleep(time / 5);
    let probe = look(lab, instruments, time * 3 / 5)?;
    running.wait_for_sender(lab, cancel)?;
    running.drain(lab, QUIET)?;
    Ok(probe)
}

/// Probes datagrams sent at full speed to an address that no host has.
pub fn look_at_nobody(
    lab: &mut Lab,
    instruments: &Instruments,
    time: Duration,
    nobody: IpAddr,
    cancel: &AtomicBool,
) -> Result<WorkProbe> {
    let peer = SocketAddr::new(nobody, DISCARD);
    let mut running = Running::start_to_nobody(lab, &SMALL, peer, time)?;
    thread::sleep(time / 5);
    let probe = look(lab, instruments, time * 3 / 5)?;
    running.wait_for_sender(lab, cancel)?;
    Ok(probe)
}

/// Sends a few datagrams to an address that no host has, to make the receiver's NAPI run.
pub fn touch(lab: &mut Lab, nobody: IpAddr, cancel: &AtomicBool) -> Result<()> {
    let peer = SocketAddr::new(nobody, DISCARD);
    Running::start_to_nobody(lab, &SMALL, peer, TOUCH)?.wait_for_sender(lab, cancel)?;
    thread::sleep(QUIET);
    Ok(())
}

fn net_rx_ns(times: &CpuTimes) -> u64 {
    let index = SOFTIRQ_NAMES.iter().position(|name| *name == "NET_RX");
    index.map_or(0, |index| times.softirq_ns[index])
}

/// Returns the number and time of the processors' own timer interrupts between two readings.
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

/// Sums up the process's threads whose names begin with `name`. A thread that has not left a processor yet has no
/// name; at most one has none, the sender at full speed.
fn work(before: &ProbeEdge, after: &ProbeEdge, process: u32, name: &str) -> ThreadWork {
    let is_meant = |thread: &&ThreadTimes| {
        let is_nameless = thread.name.is_empty() && name != RECEIVER_THREAD;
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
