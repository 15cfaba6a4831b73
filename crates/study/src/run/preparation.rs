//! Short runs before the first trial that measure the cost of counting.
//!
//! Pairs of short runs compare the delivered rate with and without the poll counter, under each workload and setting.
//! CPU accounting never runs while rates are measured: its pairs are the two runs of each trial.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_lab::{Counter, Doing, HostRequest, Lab, LabError, Running, Timed, WorkloadRequest};
use nicpoll_model::{CountingCost, EventCounter, Plan};
use nicpoll_stats::Pair;

use crate::design::{Design, Evidence, NamedSetting, NamedWorkload};
use crate::judge::comparisons::set_ratio;
use crate::plan::durations::{SHARE, TIME_MAX};
use crate::run::timer::{apply, begin_commands};

/// Traffic of one run.
const RUN: Duration = Duration::from_millis(100);

/// Time for stragglers of a run.
const QUIET: Duration = Duration::from_millis(5);

/// Measures the cost of both counters under each workload and setting. No setting is in force before and after. Takes
/// a tenth of the study's time, which counts from `begin`.
pub fn measure_counting(
    lab: &mut Lab,
    design: &Design,
    plan: &Plan,
    begin: Instant,
    cancel: &AtomicBool,
) -> Result<Vec<CountingCost>, LabError> {
    let places = (design.workloads.len() * design.settings.len()) as u32;
    let time = Duration::from_secs_f64(SHARE * plan.limit_seconds).min(TIME_MAX) / places.max(1);
    let mut costs = Vec::new();
    // A user's program takes at least a second, longer than these runs.
    let workloads = design.workloads.iter();
    for workload in workloads.filter(|one| !matches!(one.request, WorkloadRequest::Command(_))) {
        for setting in &design.settings {
            // On a very busy machine the trials come first.
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
            let (workload, setting) = (&workload.name, setting.name());
            let place = || format!("measuring costs: {workload} under {setting}");
            match outcome {
                // The trials will report this failure.
                Err(error) if error.of_traffic().is_some() || error.is_out_of_time() => {}
                outcome => costs.extend(outcome.doing(place)?),
            }
        }
    }
    Ok(costs)
}

/// The workload and setting of a measurement.
struct Load<'a> {
    lab: &'a mut Lab,
    workload: &'a NamedWorkload,
    setting: &'a NamedSetting,
    cancel: &'a AtomicBool,
}

impl Load<'_> {
    fn measure(&mut self, time: Duration) -> Result<Vec<CountingCost>, LabError> {
        let begin = Instant::now();
        apply(self.lab, self.setting, None)?;
        begin_commands(self.lab, self.workload, self.setting, self.cancel)?;
        self.lab.watch_polls()?;
        self.delivered()?;
        let mut costs = Vec::new();
        if self.lab.refused.exact_cpu.is_none() {
            self.lab.count(Counter::Cpu, true)?;
            let timed = self.timed(Counter::Cpu);
            self.lab.count(Counter::Cpu, false)?;
            costs.push(self.cost(EventCounter::CpuTime, timed?));
        }
        // Without a NAPI there are no polls to count.
        if self.setting.evidence != Evidence::NoNapi && self.lab.refused.polls.is_none() {
            let timed = self.timed(Counter::Polls)?;
            let mut cost = self.cost(EventCounter::Polls, timed);
            let pairs = self.pairs(begin + time);
            self.lab.count(Counter::Polls, true)?;
            set_ratio(&mut cost, &pairs?);
            costs.push(cost);
        }
        Ok(costs)
    }

    fn timed(&mut self, counter: Counter) -> Result<Timed, LabError> {
        self.lab.studied().tell(HostRequest::OpenTiming(counter))?;
        self.delivered()?;
        self.lab.studied().ask(HostRequest::CloseTiming(counter))
    }

    /// Runs with and without the poll counter, in pairs of alternating order, until the deadline.
    fn pairs(&mut self, deadline: Instant) -> Result<Vec<Pair>, LabError> {
        let mut pairs = Vec::new();
        while Instant::now() < deadline {
            let mut delivered = [None, None];
            let is_first = pairs.len() % 2 == 0;
            for counting in [is_first, !is_first] {
                self.lab.count(Counter::Polls, counting)?;
                delivered[usize::from(counting)] = Some(self.delivered()?);
            }
            let [reference, setting] = delivered;
            pairs.push(Pair { setting, reference });
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

    /// Returns the receiver's payload rate, bits a second by its own clock.
    fn delivered(&mut self) -> Result<f64, LabError> {
        let books = Running::to_end(self.lab, self.workload, RUN, QUIET, self.cancel)?;
        Ok(books.receiver.bits_per_second)
    }
}
