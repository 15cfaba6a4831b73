//! What counting costs: measured, since a counter that slows what it counts must say so.
//!
//! Counting polls costs most at one poll a packet, and accounting for CPU time at one interrupt a
//! packet: both are `udp64` under `interrupt`. Two figures of each are taken there: the delivered rate
//! with the counter over the rate without, in pairs whose order alternates; and the run time of its
//! programs by the kernel's own BPF statistics.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use nicpoll_model::{CountingCost, CpuCountingCost, Setting, Workload};
use nicpoll_observe::{BpfError, RunTime, TimedRuns, start_timing};
use nicpoll_stats::{Confidence, Interval, Pair, ratio_interval};

use crate::lab::Lab;
use crate::run::Running;
use crate::setting;

const WORKLOAD: Workload = Workload::Udp64;
const PAIRS: u32 = 6;
const RUN: Duration = Duration::from_millis(300);
const QUICK_PAIRS: u32 = 4;
const QUICK_RUN: Duration = Duration::from_millis(200);
/// For stragglers of a run to be read.
const QUIET: Duration = Duration::from_millis(5);

/// What each counter costs.
pub struct Costs {
    /// Counting polls.
    pub polls: CountingCost,
    /// Accounting for CPU time; `None` when it cannot be done exactly.
    pub cpu: Option<CpuCountingCost>,
}

/// Measures the costs on a lab whose settings are as they came up, and leaves them so.
pub fn measure(lab: &mut Lab, quick: bool, cancel: &AtomicBool) -> Result<Costs> {
    let applied = setting::apply(lab, Setting::Interrupt, 0)?;
    let netns_inode = lab.receiver.netns().inode();
    lab.polls.watch(netns_inode, applied.napi_id)?;
    let outcome = measure_both(lab, quick, cancel);
    Counter::Polls.attach(lab)?;
    Counter::Cpu.detach(lab)?;
    lab.restore()?;
    outcome
}

fn measure_both(lab: &mut Lab, quick: bool, cancel: &AtomicBool) -> Result<Costs> {
    let polls = Cost::measure(Counter::Polls, lab, quick, cancel)?;
    let cpu = match lab.exact_cpu {
        Ok(_) => Some(Cost::measure(Counter::Cpu, lab, quick, cancel)?),
        Err(_) => None,
    };
    Ok(Costs {
        polls: CountingCost {
            ns_per_poll: polls.runs.map(|runs| runs.ns_per_run),
            polls_per_second: polls.runs_per_second(),
            delivered_ratio: polls.delivered.map(|ratio| ratio.estimate),
            delivered_ratio_low: polls.delivered.map(|ratio| ratio.low),
            delivered_ratio_high: polls.delivered.map(|ratio| ratio.high),
            pairs: polls.pairs,
        },
        cpu: cpu.map(|cpu| CpuCountingCost {
            ns_per_event: cpu.runs.map(|runs| runs.ns_per_run),
            events_per_second: cpu.runs_per_second(),
            delivered_ratio: cpu.delivered.map(|ratio| ratio.estimate),
            delivered_ratio_low: cpu.delivered.map(|ratio| ratio.low),
            delivered_ratio_high: cpu.delivered.map(|ratio| ratio.high),
            pairs: cpu.pairs,
        }),
    })
}

/// One of the lab's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Polls,
    Cpu,
}

impl Counter {
    fn attach(self, lab: &mut Lab) -> Result<(), BpfError> {
        match (self, &mut lab.exact_cpu) {
            (Counter::Polls, _) => lab.polls.attach(),
            (Counter::Cpu, Ok(cpu)) => cpu.attach(),
            (Counter::Cpu, Err(_)) => Ok(()),
        }
    }

    fn detach(self, lab: &mut Lab) -> Result<(), BpfError> {
        match (self, &mut lab.exact_cpu) {
            (Counter::Polls, _) => lab.polls.detach(),
            (Counter::Cpu, Ok(cpu)) => cpu.detach(),
            (Counter::Cpu, Err(_)) => Ok(()),
        }
    }

    fn timed_runs(self, lab: &mut Lab) -> Result<TimedRuns, BpfError> {
        match (self, &mut lab.exact_cpu) {
            (Counter::Polls, _) => lab.polls.timed_runs(),
            (Counter::Cpu, Ok(cpu)) => cpu.timed_runs(),
            (Counter::Cpu, Err(_)) => Ok(TimedRuns::default()),
        }
    }
}

/// What one counter costs.
struct Cost {
    runs: Option<RunTime>,
    /// How long the runs were timed.
    seconds: f64,
    delivered: Option<Interval>,
    pairs: u32,
}

impl Cost {
    fn measure(counter: Counter, lab: &mut Lab, quick: bool, cancel: &AtomicBool) -> Result<Self> {
        let (pairs, run) = if quick {
            (QUICK_PAIRS, QUICK_RUN)
        } else {
            (PAIRS, RUN)
        };
        delivered_pps(lab, run, cancel)?;
        let mut rates = Vec::new();
        for pair in 0..pairs {
            let (mut with, mut without) = (None, None);
            for counting in [pair % 2 == 0, pair % 2 != 0] {
                if counting {
                    counter.attach(lab)?;
                    with = delivered_pps(lab, run, cancel)?;
                } else {
                    counter.detach(lab)?;
                    without = delivered_pps(lab, run, cancel)?;
                }
            }
            rates.push(Pair {
                setting: with,
                reference: without,
            });
        }
        let (runs, seconds) = time_runs(counter, lab, run, cancel)?;
        counter.detach(lab)?;
        Ok(Cost {
            runs,
            seconds,
            delivered: ratio_interval(&rates, Confidence::PERCENT_95).ok(),
            pairs,
        })
    }

    fn runs_per_second(&self) -> Option<f64> {
        self.runs.map(|runs| runs.runs as f64 / self.seconds)
    }
}

fn time_runs(
    counter: Counter,
    lab: &mut Lab,
    run: Duration,
    cancel: &AtomicBool,
) -> Result<(Option<RunTime>, f64)> {
    counter.attach(lab)?;
    let timing = start_timing()?;
    let (before, from) = (counter.timed_runs(lab)?, Instant::now());
    delivered_pps(lab, run, cancel)?;
    let seconds = from.elapsed().as_secs_f64();
    let runs = counter.timed_runs(lab)?.since(before);
    drop(timing);
    Ok((runs, seconds))
}

/// Datagrams a second at the receiver, by its own clock.
fn delivered_pps(lab: &Lab, run: Duration, cancel: &AtomicBool) -> Result<Option<f64>> {
    let mut running = Running::start(lab, WORKLOAD, run)?;
    running.wait_for_sender(cancel)?;
    Ok(running.drain(QUIET)?.receiver.packets_per_second)
}
