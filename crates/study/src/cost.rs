//! What counting costs: measured, since a counter that slows what it counts must say so.
//!
//! The design says under which workload and setting counters have most to do. Two figures of each are
//! taken there: the delivered rate with the counter over the rate without, in pairs whose order
//! alternates; and the run time of its programs by the kernel's own BPF statistics.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nicpoll_model::{CountingCost, EventCounter};
use nicpoll_stats::{Confidence, Pair, ratio_interval};

use crate::design::{Dearest, Design};
use crate::error::StudyError;
use crate::host::{Counter, Timed};
use crate::judge::watched;
use crate::lab::Lab;
use crate::run::Running;
use crate::trial::apply;
use crate::workload::WorkloadRequest;

const PAIRS: u32 = 6;
const RUN: Duration = Duration::from_millis(300);
const QUICK_PAIRS: u32 = 4;
const QUICK_RUN: Duration = Duration::from_millis(200);
/// For stragglers of a run to be read.
const QUIET: Duration = Duration::from_millis(5);

/// Measures the costs on a lab whose settings are as they came up, and leaves them so.
pub fn measure(
    lab: &mut Lab,
    design: &Design,
    quick: bool,
    cancel: &AtomicBool,
) -> Result<Vec<CountingCost>, StudyError> {
    let Dearest { workload, setting } = &design.dearest;
    let missing = || StudyError::Unexpected(format!("the study has no setting {setting}"));
    let setting = design.setting(setting).ok_or_else(missing)?;
    let (pairs, run) = if quick {
        (QUICK_PAIRS, QUICK_RUN)
    } else {
        (PAIRS, RUN)
    };
    let mut load = Load {
        workload,
        setting: setting.name(),
        lab,
        run,
        pairs,
        cancel,
    };
    apply(load.lab, setting, None)?;
    let napis = load.lab.receiver.napis()?;
    load.lab.receiver.watch_polls(watched(&napis))?;
    let outcome = load.measure_both();
    load.lab.receiver.count(Counter::Polls, true)?;
    if load.lab.exact_cpu_refused.is_none() {
        load.lab.receiver.count(Counter::Cpu, false)?;
    }
    load.lab.restore()?;
    outcome
}

/// The traffic that counters are tried under.
struct Load<'a> {
    lab: &'a mut Lab,
    workload: &'a WorkloadRequest,
    setting: &'a str,
    run: Duration,
    pairs: u32,
    cancel: &'a AtomicBool,
}

impl Load<'_> {
    fn measure_both(&mut self) -> Result<Vec<CountingCost>, StudyError> {
        let mut costs = vec![self.measure(Counter::Polls)?];
        if self.lab.exact_cpu_refused.is_none() {
            costs.push(self.measure(Counter::Cpu)?);
        }
        Ok(costs)
    }

    fn measure(&mut self, counter: Counter) -> Result<CountingCost, StudyError> {
        self.delivered_pps()?;
        let mut rates = Vec::new();
        for pair in 0..self.pairs {
            let (mut with, mut without) = (None, None);
            for counting in [pair % 2 == 0, pair % 2 != 0] {
                self.lab.receiver.count(counter, counting)?;
                let delivered = self.delivered_pps()?;
                if counting {
                    with = delivered;
                } else {
                    without = delivered;
                }
            }
            rates.push(Pair {
                setting: with,
                reference: without,
            });
        }
        self.lab.receiver.count(counter, true)?;
        self.lab.receiver.open_timing(counter)?;
        self.delivered_pps()?;
        let timed = self.lab.receiver.close_timing(counter)?;
        self.lab.receiver.count(counter, false)?;
        let delivered = ratio_interval(&rates, Confidence::PERCENT_95).ok();
        Ok(CountingCost {
            counter: match counter {
                Counter::Polls => EventCounter::Polls,
                Counter::Cpu => EventCounter::CpuTime,
            },
            workload: String::from("udp64"),
            setting: String::from(self.setting),
            ns_per_event: timed.runs.map(|runs| runs.ns_per_run),
            events_per_second: runs_per_second(timed),
            delivered_ratio: delivered.map(|ratio| ratio.estimate),
            delivered_ratio_low: delivered.map(|ratio| ratio.low),
            delivered_ratio_high: delivered.map(|ratio| ratio.high),
            pairs: self.pairs,
        })
    }

    /// Datagrams a second at the receiver, by its own clock.
    fn delivered_pps(&mut self) -> Result<Option<f64>, StudyError> {
        let mut running = Running::start(self.lab, self.workload, self.run)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        Ok(running.drain(self.lab, QUIET)?.receiver.packets_per_second)
    }
}

fn runs_per_second(Timed { runs, seconds }: Timed) -> Option<f64> {
    runs.map(|runs| runs.runs as f64 / seconds)
}
