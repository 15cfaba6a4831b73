//! Short runs before the first trial: what counting costs, and the knee that a sweep's shares refer to.
//!
//! A counter that slows what it counts must say so. The delivered rate with and without the poll counter is compared in
//! pairs of short runs, under each workload and setting. CPU accounting never runs while rates are measured: its pairs are
//! the two runs of each trial. A knee only scales what is asked for; trials decide what each setting sustains.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_lab::{Counter, Doing, HostRequest, Lab, LabError, Running, Timed};
use nicpoll_model::{CountingCost, EventCounter, Plan, WorkUnit};
use nicpoll_stats::Pair;
use nicpoll_traffic::workload::Books;

use crate::design::sweep::{HELD_SHARE, RATE_MAX};
use crate::design::{Design, Evidence, NamedSetting, NamedWorkload};
use crate::judge::comparisons::set_ratio;
use crate::judge::sweep::rates_of;
use crate::plan::durations::{SHARE, TIME_MAX};
use crate::run::timer::apply;

/// Traffic of one run.
const RUN: Duration = Duration::from_millis(100);

/// Time for stragglers of a run.
const QUIET: Duration = Duration::from_millis(5);

/// Measures the cost of both counters under each workload and setting. The lab has no settings in force, before and
/// after. Takes a tenth of the study's time, which counts from `begin`.
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
            let (workload, setting) = (&workload.name, setting.name());
            let place = || format!("measuring costs: {workload} under {setting}");
            match outcome {
                // The trials will tell of what befalls this traffic.
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
        self.lab.watch_polls()?;
        self.delivered()?;
        let mut costs = Vec::new();
        if self.lab.exact_cpu_refused.is_none() {
            self.lab.count(Counter::Cpu, true)?;
            let timed = self.timed(Counter::Cpu);
            self.lab.count(Counter::Cpu, false)?;
            costs.push(self.cost(EventCounter::CpuTime, timed?));
        }
        // Without a NAPI there are no polls to count.
        if self.setting.evidence != Evidence::NoNapi {
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
        self.lab
            .studied()
            .tell(HostRequest::OpenTiming { counter })?;
        self.delivered()?;
        self.lab.studied().ask(HostRequest::CloseTiming { counter })
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

    /// Payload that the receiver reads, in bits a second of its own clock.
    fn delivered(&mut self) -> Result<f64, LabError> {
        let books = Running::to_end(self.lab, self.workload, RUN, QUIET, self.cancel)?;
        Ok(books.receiver.bits_per_second)
    }
}

/// Traffic of one run: at the lowest rate it still sends some hundred datagrams.
const KNEE_RUN: Duration = Duration::from_millis(200);

/// The first rate that is tried, a second of each sender.
const FIRST_RATE: u64 = 1000;

/// Relative resolution of the knee.
const RESOLUTION: f64 = 0.05;

/// Share of the requested rate that a short run must offer: a sender that was delayed catches up only in a longer
/// trial.
const OFFERED_SHARE: f64 = 0.9;

/// Replaces shares of the knee by rates, after searching for the knee on the lab.
///
/// # Errors
/// When no rate is held, or the traffic cannot be made.
pub(crate) fn resolved(
    lab: &mut Lab,
    mut design: Design,
    cancel: &AtomicBool,
) -> Result<Design, LabError> {
    let mut known: Option<(String, u64)> = None;
    for index in 0..design.workloads.len() {
        let workload = &design.workloads[index];
        let Some((load, share)) = workload.load.as_ref().and_then(|load| {
            let is_open = load.asked_per_second.is_none();
            Some((load, load.knee_ratio.filter(|_| is_open)?))
        }) else {
            continue;
        };
        let knee = match &known {
            Some((sweep, knee)) if *sweep == load.sweep => *knee,
            _ => {
                let outcome = seek(lab, &design, workload, cancel);
                lab.restore()?;
                let knee = outcome.doing(|| format!("seeking the knee of {}", load.sweep))?;
                known = Some((load.sweep.clone(), knee));
                knee
            }
        };
        let workload = &mut design.workloads[index];
        let per_second = ((knee as f64 * share) as u64).clamp(1, RATE_MAX);
        let asked = workload.send_at(per_second, lab.link.paths() as u64);
        if let (Some(load), Some(asked)) = (&mut workload.load, asked) {
            load.asked_per_second = Some(asked);
            workload.description += &format!(", {asked} a second");
        }
    }
    Ok(design)
}

/// The highest rate of each sender that is sustained under the reference of the first comparison: doubled until it is
/// not, then bisected.
fn seek(
    lab: &mut Lab,
    design: &Design,
    workload: &NamedWorkload,
    cancel: &AtomicBool,
) -> Result<u64, LabError> {
    let reference = design.contrasts.first().map(|versus| &*versus.reference);
    let reference = reference.and_then(|name| design.setting(name));
    let reference = reference
        .ok_or_else(|| LabError::Unexpected(String::from("the study compares nothing")))?;
    apply(lab, reference, None)?;
    let mut holds = |rate: u64| -> Result<bool, LabError> {
        // What disturbs one run for a moment is not the system's limit.
        Ok(is_held(lab, workload, rate, cancel)? || is_held(lab, workload, rate, cancel)?)
    };
    let (mut held, mut lost) = (0, FIRST_RATE);
    while lost < RATE_MAX && holds(lost)? {
        (held, lost) = (lost, 2 * lost);
    }
    while lost - held > 1 && (lost - held) as f64 > RESOLUTION * lost as f64 {
        let between = held.midpoint(lost);
        match holds(between)? {
            true => held = between,
            false => lost = between,
        }
        // Nothing is held by the time this is so low.
        if lost < FIRST_RATE / 50 {
            break;
        }
    }
    match held {
        0 => Err(LabError::Unexpected(format!(
            "not even {lost} a second are held under {}: there is no knee to take shares of; give rates a second",
            reference.name()
        ))),
        held => Ok(held),
    }
}

fn is_held(
    lab: &mut Lab,
    workload: &NamedWorkload,
    rate: u64,
    cancel: &AtomicBool,
) -> Result<bool, LabError> {
    let mut rated = workload.clone();
    // Only what has a rate is swept.
    let asked = rated.send_at(rate, lab.link.paths() as u64).unwrap_or(rate);
    let books = Running::to_end(lab, &rated, KNEE_RUN, QUIET, cancel)?;
    Ok(holds(&books, asked, rated.request.workload().unit()))
}

fn holds(books: &Books, asked: u64, unit: WorkUnit) -> bool {
    let rates = rates_of(unit, books.sender, books.receiver, books.round_trip);
    rates.is_some_and(|rates| {
        let offered = match unit {
            WorkUnit::Transactions => rates.delivered,
            _ => rates.offered,
        };
        offered >= OFFERED_SHARE * asked as f64 && rates.ratio >= HELD_SHARE
    })
}
