//! What counting polls costs: measured, since a counter that slows what it counts must say so.
//!
//! It costs most at one poll a packet, which is `udp64` under `interrupt`. Two figures are taken there:
//! the delivered rate with the counter over the rate without, in pairs whose order alternates; and the
//! run time of the counting program by the kernel's own BPF statistics.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use nicpoll_model::{CountingCost, Setting, Workload};
use nicpoll_observe::{PollCounter, RunTime};
use nicpoll_stats::{Confidence, Pair, ratio_interval};

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

/// Measures the cost on a lab whose settings are as they came up, and leaves them so.
pub fn measure(lab: &mut Lab, quick: bool, cancel: &AtomicBool) -> Result<CountingCost> {
    let (pairs, run) = if quick {
        (QUICK_PAIRS, QUICK_RUN)
    } else {
        (PAIRS, RUN)
    };
    let applied = setting::apply(lab, Setting::Interrupt, 0)?;
    let netns_inode = lab.receiver.netns().inode();
    lab.polls.watch(netns_inode, applied.napi_id)?;
    let outcome = measure_applied(lab, pairs, run, cancel);
    lab.polls.attach()?;
    lab.restore()?;
    outcome
}

fn measure_applied(
    lab: &mut Lab,
    pairs: u32,
    run: Duration,
    cancel: &AtomicBool,
) -> Result<CountingCost> {
    delivered_pps(lab, run, cancel)?;
    let mut rates = Vec::new();
    for pair in 0..pairs {
        let (mut with, mut without) = (None, None);
        for counting in [pair % 2 == 0, pair % 2 != 0] {
            if counting {
                lab.polls.attach()?;
                with = delivered_pps(lab, run, cancel)?;
            } else {
                lab.polls.detach()?;
                without = delivered_pps(lab, run, cancel)?;
            }
        }
        rates.push(Pair {
            setting: with,
            reference: without,
        });
    }
    let ratio = ratio_interval(&rates, Confidence::PERCENT_95).ok();
    let (time, polls_per_second) = time_polls(lab, run, cancel)?;
    Ok(CountingCost {
        ns_per_poll: time.map(|time| time.ns_per_run),
        polls_per_second,
        delivered_ratio: ratio.map(|ratio| ratio.estimate),
        delivered_ratio_low: ratio.map(|ratio| ratio.low),
        delivered_ratio_high: ratio.map(|ratio| ratio.high),
        pairs,
    })
}

fn time_polls(
    lab: &mut Lab,
    run: Duration,
    cancel: &AtomicBool,
) -> Result<(Option<RunTime>, Option<f64>)> {
    lab.polls.attach()?;
    let timing = PollCounter::start_timing()?;
    let before = lab.polls.timed_runs()?;
    let polls_before = lab.polls.read()?.polls();
    delivered_pps(lab, run, cancel)?;
    let polls = lab.polls.read()?.polls() - polls_before;
    let time = lab.polls.timed_runs()?.since(before);
    drop(timing);
    Ok((time, Some(polls as f64 / run.as_secs_f64())))
}

/// Datagrams a second at the receiver, by its own clock.
fn delivered_pps(lab: &Lab, run: Duration, cancel: &AtomicBool) -> Result<Option<f64>> {
    let mut running = Running::start(lab, WORKLOAD, run)?;
    running.wait_for_sender(cancel)?;
    Ok(running.drain(QUIET)?.receiver.packets_per_second)
}
