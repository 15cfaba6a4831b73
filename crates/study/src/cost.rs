//! What counting costs: measured, since a counter that slows what it counts must say so.
//!
//! What an event costs is the counter's; how many events there are is the workload's and the setting's,
//! so each pair of them has its own figures. Of the poll counter, which runs while rates are measured, the
//! delivered rate with and without it is compared in pairs of short runs before the study. The account
//! of CPU time never runs meanwhile: its pairs are the two runs of each trial. How long their programs
//! run for each event is the kernel's own statistics of BPF programs.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_model::{CountingCost, EventCounter, Plan, Trial};
use nicpoll_stats::{Confidence, Pair, ratio_interval};

use crate::design::{Design, Evidence, NamedSetting, NamedWorkload};
use crate::error::{Doing, StudyError};
use crate::host::{Counter, Timed};
use crate::judge::watched;
use crate::lab::Lab;
use crate::run::Running;
use crate::trial::apply;

/// Share of a study's time in which costs are measured, and how much that is at the most.
const SHARE: f64 = 0.1;
const TIME_MAX: Duration = Duration::from_secs(15);
/// Traffic of one run.
const RUN: Duration = Duration::from_millis(100);
/// For stragglers of a run to be read.
const QUIET: Duration = Duration::from_millis(5);

/// A time in seconds with that in which costs are measured before it.
pub(crate) fn with_time_of_counting(seconds: f64) -> f64 {
    let share = SHARE / (1.0 - SHARE) * seconds;
    seconds + share.min(TIME_MAX.as_secs_f64())
}

/// Measures what both counters cost under each workload and setting, on a lab whose settings are as they
/// came up, and leaves them so. It takes a tenth of the study's time, which counts from `begin`.
pub fn measure(
    lab: &mut Lab,
    design: &Design,
    plan: &Plan,
    begin: Instant,
    cancel: &AtomicBool,
) -> Result<Vec<CountingCost>, StudyError> {
    let places = (design.workloads.len() * design.settings.len()) as u32;
    let time = Duration::from_secs_f64(SHARE * plan.limit_seconds).min(TIME_MAX) / places.max(1);
    let mut costs = Vec::new();
    // A program takes a second at least, and the runs here a fraction of one.
    let workloads = design.workloads.iter();
    for workload in workloads.filter(|one| one.request.programs().is_empty()) {
        for setting in &design.settings {
            // On a machine so busy that little fits, the trials come first.
            if begin.elapsed().as_secs_f64() > 1.5 * SHARE * plan.limit_seconds {
                return Ok(costs);
            }
            let mut load = Load {
                lab,
                workload,
                setting,
                cancel,
            };
            let outcome = load.measure(time);
            load.lab.restore()?;
            let place = || {
                format!(
                    "measuring costs: {} under {}",
                    workload.name,
                    setting.name()
                )
            };
            match outcome {
                // The trials will tell of what befalls this traffic.
                Err(error) if error.of_traffic().is_some() || error.is_out_of_time() => {}
                outcome => costs.extend(outcome.doing(place)?),
            }
        }
    }
    Ok(costs)
}

/// Adds what trials show of the account of CPU time: what was delivered in its window over what was
/// delivered without it. The windows of a trial take turns in coming first.
pub fn add_pairs_of_trials(costs: &mut [CountingCost], trials: &[Trial]) {
    let mut pairs: BTreeMap<(&str, &str), Vec<Pair>> = BTreeMap::new();
    for trial in trials {
        let figures = trial.result();
        let cpu = figures.and_then(|figures| figures.cpu.as_ref());
        let of_both = (trial.workload.as_str(), trial.setting.as_str());
        pairs.entry(of_both).or_default().push(Pair {
            setting: cpu.and_then(|cpu| cpu.delivered_bits_per_second),
            reference: figures.map(|figures| figures.delivered_bits_per_second),
        });
    }
    for cost in costs {
        let of_both = (cost.workload.as_str(), cost.setting.as_str());
        if let (EventCounter::CpuTime, Some(pairs)) = (cost.counter, pairs.get(&of_both)) {
            let pairs = pairs.clone();
            set_ratio(cost, &pairs);
        }
    }
}

fn set_ratio(cost: &mut CountingCost, pairs: &[Pair]) {
    let ratio = ratio_interval(pairs, Confidence::PERCENT_95).ok();
    cost.delivered_ratio = ratio.map(|ratio| ratio.estimate);
    cost.delivered_ratio_low = ratio.map(|ratio| ratio.low);
    cost.delivered_ratio_high = ratio.map(|ratio| ratio.high);
    cost.pairs = pairs.len() as u32;
}

/// The traffic that counters are tried under.
struct Load<'a> {
    lab: &'a mut Lab,
    workload: &'a NamedWorkload,
    setting: &'a NamedSetting,
    cancel: &'a AtomicBool,
}

impl Load<'_> {
    fn measure(&mut self, time: Duration) -> Result<Vec<CountingCost>, StudyError> {
        let begin = Instant::now();
        apply(self.lab, self.setting, None)?;
        let napis = self.lab.studied().napis()?;
        self.lab.studied().watch_polls(watched(&napis))?;
        self.delivered()?;
        let mut costs = Vec::new();
        if self.lab.exact_cpu_refused.is_none() {
            self.lab.studied().count(Counter::Cpu, true)?;
            let timed = self.timed(Counter::Cpu);
            self.lab.studied().count(Counter::Cpu, false)?;
            costs.push(self.cost(EventCounter::CpuTime, timed?));
        }
        // Without a NAPI there are no polls to count.
        if self.setting.evidence != Evidence::NoNapi {
            let timed = self.timed(Counter::Polls)?;
            let mut cost = self.cost(EventCounter::Polls, timed);
            let pairs = self.pairs(begin + time);
            self.lab.studied().count(Counter::Polls, true)?;
            set_ratio(&mut cost, &pairs?);
            costs.push(cost);
        }
        Ok(costs)
    }

    fn timed(&mut self, counter: Counter) -> Result<Timed, StudyError> {
        self.lab.studied().open_timing(counter)?;
        self.delivered()?;
        self.lab.studied().close_timing(counter)
    }

    /// Runs with and without the counter of polls until the time is over, in pairs whose order alternates.
    fn pairs(&mut self, deadline: Instant) -> Result<Vec<Pair>, StudyError> {
        let mut pairs = Vec::new();
        while Instant::now() < deadline {
            let (mut with, mut without) = (None, None);
            for counting in [pairs.len() % 2 == 0, pairs.len() % 2 != 0] {
                self.lab.studied().count(Counter::Polls, counting)?;
                let delivered = self.delivered()?;
                if counting {
                    with = Some(delivered);
                } else {
                    without = Some(delivered);
                }
            }
            pairs.push(Pair {
                setting: with,
                reference: without,
            });
        }
        Ok(pairs)
    }

    fn cost(&self, counter: EventCounter, timed: Timed) -> CountingCost {
        let runs = timed.runs;
        CountingCost {
            counter,
            workload: self.workload.name.clone(),
            setting: String::from(self.setting.name()),
            ns_per_event: runs.map(|runs| runs.ns_per_run),
            events_per_second: runs.map(|runs| runs.runs as f64 / timed.seconds),
            delivered_ratio: None,
            delivered_ratio_low: None,
            delivered_ratio_high: None,
            pairs: 0,
        }
    }

    /// What the receiver reads a second by its own clock, in bits of payload.
    fn delivered(&mut self) -> Result<f64, StudyError> {
        let mut running = Running::start(self.lab, self.workload, RUN)?;
        running.wait_for_sender(self.lab, self.cancel)?;
        Ok(running.drain(self.lab, QUIET)?.receiver.bits_per_second)
    }
}
