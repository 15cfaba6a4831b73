//! A study: every trial of a plan in its order, each once, and what follows from them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nicpoll_model::{
    Comparison, Metric, Plan, SCHEMA, Study, Trial, TrialCpu, Warning, WarningName,
};
use nicpoll_stats::order::Seed;
use nicpoll_stats::{Confidence, Contrast, Pair, compare};

use crate::cost;
use crate::design::{Design, NamedSetting, NamedWorkload, Versus};
use crate::error::StudyError;
use crate::facts;
use crate::lab::Lab;
use crate::plan::{MARGIN, family_confidence, metrics};
use crate::trial::{Place, Trials};

/// Blocks from which on small effects can be seen too.
const BLOCKS_FOR_SMALL_EFFECTS: u32 = 6;

/// What a study tells while it runs.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// How dear counting is will be measured.
    MeasuringCost,
    /// The timer is set right under each workload, before anything counts.
    Rehearsing,
    /// A trial begins.
    Begins {
        /// What it is.
        place: &'a Place,
    },
    /// A trial is done.
    Ends(&'a Trial),
}

/// Who runs the study and how it was asked for.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Version of nicpoll.
    pub version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Seed of the order.
    pub seed: u64,
}

/// Runs a plan of a design on a lab.
///
/// # Errors
/// [`StudyError::Cancelled`] when `cancel` became true; anything that kept a trial from being carried out.
/// Settings are put back before it returns.
pub fn run_study(
    lab: &mut Lab,
    design: &Design,
    plan: Plan,
    identity: Identity,
    cancel: &AtomicBool,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Study, StudyError> {
    let begin = Instant::now();
    let host = lab.machine()?;
    let lab_facts = lab.facts()?;
    progress(Progress::MeasuringCost);
    let costs = cost::measure(lab, design, plan.quick, cancel)?;
    let exact_cpu_refused = lab.exact_cpu_refused.clone();
    let ring_slots = lab.link.ring_slots();
    let mut trials = Trials::new(lab, design, &plan, cancel)?;
    progress(Progress::Rehearsing);
    trials.rehearse()?;
    let done = run_blocks(&mut trials, design, &plan, cancel, &mut progress)?;
    let seed = Seed(identity.seed);
    let comparisons = compare_all(design, &done, seed)?;
    let mut warnings = facts::confounders(&host);
    warnings.extend(warnings_of(design, &plan, ring_slots, &done));
    warnings.extend(exact_cpu_refused.map(|why| Warning {
        name: WarningName::CounterMissing,
        text: format!("CPU time is sampled at the clock tick: {why}"),
    }));
    Ok(Study {
        schema: String::from(SCHEMA),
        nicpoll_version: identity.version,
        argv: identity.argv,
        started_at: identity.started_at,
        elapsed_seconds: begin.elapsed().as_secs_f64(),
        seed: identity.seed,
        workloads: design.workloads.iter().map(NamedWorkload::facts).collect(),
        settings: design.settings.iter().map(NamedSetting::facts).collect(),
        plan,
        host,
        lab: lab_facts,
        counting_costs: costs,
        trials: done,
        dropped: Vec::new(),
        comparisons,
        warnings,
    })
}

fn run_blocks(
    trials: &mut Trials<'_>,
    design: &Design,
    plan: &Plan,
    cancel: &AtomicBool,
    progress: &mut impl FnMut(Progress<'_>),
) -> Result<Vec<Trial>, StudyError> {
    let mut done: Vec<Trial> = Vec::new();
    let per_block = plan.workloads.len();
    // The plan lists the settings of a workload in a block one after another.
    for (index, group) in plan.order.chunks(design.settings.len()).enumerate() {
        let block = (index / per_block) as u32 + 1;
        for (workload, setting) in group {
            if cancel.load(Ordering::Relaxed) {
                return Err(StudyError::Cancelled);
            }
            let place = Place {
                sequence: done.len() as u32 + 1,
                block,
                workload: workload.clone(),
                setting: setting.clone(),
            };
            progress(Progress::Begins { place: &place });
            let trial = trials.run(place)?;
            progress(Progress::Ends(&trial));
            done.push(trial);
        }
    }
    Ok(done)
}

fn compare_all(
    design: &Design,
    trials: &[Trial],
    seed: Seed,
) -> Result<Vec<Comparison>, StudyError> {
    let family = design.workloads.len() * design.contrasts.len();
    let family = family_confidence(family as u32);
    let mut comparisons = Vec::new();
    for workload in &design.workloads {
        let (unit, workload) = (workload.request.workload().unit(), &workload.name);
        for Versus { setting, reference } in &design.contrasts {
            for (index, &metric) in metrics(unit).iter().enumerate() {
                let primary = index == 0;
                let pairs = pairs(trials, workload, metric, setting, reference);
                comparisons.push(compare(&Contrast {
                    workload,
                    metric,
                    setting,
                    reference,
                    pairs: &pairs,
                    primary_margin: primary.then_some(MARGIN),
                    confidence: if primary {
                        family
                    } else {
                        Confidence::PERCENT_95
                    },
                    seed,
                })?);
            }
        }
    }
    Ok(comparisons)
}

/// One pair of each block in which both trials count.
fn pairs(
    trials: &[Trial],
    workload: &str,
    metric: Metric,
    setting: &str,
    reference: &str,
) -> Vec<Pair> {
    let find = |block: u32, wanted: &str| {
        let of_place = |trial: &&Trial| {
            trial.workload == workload && trial.setting == wanted && trial.block == block
        };
        trials.iter().find(of_place)
    };
    let blocks = trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    (1..=blocks)
        .filter_map(|block| {
            Some(Pair {
                setting: value(find(block, setting)?, metric),
                reference: value(find(block, reference)?, metric),
            })
        })
        .collect()
}

fn value(trial: &Trial, metric: Metric) -> Option<f64> {
    let figures = trial.result()?;
    let trips = figures.round_trip;
    let cpu = figures.cpu.as_ref();
    match metric {
        Metric::DeliveredBitsPerSecond => Some(figures.delivered_bits_per_second),
        Metric::TransactionsPerSecond => trips.map(|trips| trips.transactions_per_second),
        Metric::RoundTripP50Ns => trips.map(|trips| trips.p50_ns as f64),
        Metric::RoundTripP99Ns => trips.map(|trips| trips.p99_ns as f64),
        Metric::RoundTripP999Ns => trips.map(|trips| trips.p999_ns as f64),
        Metric::LossRatio => trial.loss_ratio(),
        Metric::JitterSeconds => figures.jitter_seconds,
        Metric::CpuBusy => cpu.map(TrialCpu::busy),
        Metric::CpuNsPerPacket => cpu?.busy_ns_per_packet,
        Metric::CpuNsPerByte => cpu?.busy_ns_per_byte,
        Metric::ContextSwitchesPerSecond => Some(figures.context_switches_per_second),
    }
}

fn warnings_of(design: &Design, plan: &Plan, ring_slots: u32, trials: &[Trial]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |name, text| warnings.push(Warning { name, text });
    if plan.blocks < BLOCKS_FOR_SMALL_EFFECTS {
        warn(
            WarningName::LargeEffectsOnly,
            format!(
                "with {} block{} a workload, large effects show at the most; ask for --repeats \
                 {BLOCKS_FOR_SMALL_EFFECTS} or more",
                plan.blocks,
                if plan.blocks == 1 { "" } else { "s" }
            ),
        );
    }
    let void = trials
        .iter()
        .filter(|trial| !trial.conduct.is_kept())
        .count();
    if void > 0 {
        warn(
            WarningName::VoidTrials,
            format!(
                "{void} of {} trials were disturbed from outside; their pairs count for nothing",
                trials.len()
            ),
        );
    }
    for workload in &plan.workloads {
        for setting in design.timed() {
            if let Some(text) = ring_ceiling(setting, ring_slots, trials, workload) {
                warn(WarningName::RingCeiling, text);
            }
        }
    }
    if let Some(line) = unreadable_counter(trials) {
        warn(
            WarningName::CounterMissing,
            format!("{line} could not be read: losses there stay in the residual"),
        );
    }
    warnings
}

/// A ring that is emptied once a period passes at most its slots a period.
fn ring_ceiling(
    setting: &NamedSetting,
    ring_slots: u32,
    trials: &[Trial],
    workload: &str,
) -> Option<String> {
    let period_ns = setting.period_ns()? as f64;
    let name = setting.name();
    let ceiling_pps = f64::from(ring_slots) * 1e9 / period_ns;
    let offered_pps = trials
        .iter()
        .filter(|trial| trial.workload == workload && trial.setting == *name)
        .filter_map(|trial| trial.figures.as_ref()?.sender.packets_per_second)
        .fold(0.0, f64::max);
    let fits_us = f64::from(ring_slots) * 1e6 / offered_pps;
    (offered_pps > ceiling_pps).then(|| {
        format!(
            "{workload} under {name}: {ring_slots} ring slots a period of {:.0} us pass at most \
             {ceiling_pps:.0} packets/s, and {offered_pps:.0} were offered; a period of {fits_us:.0} us or \
             less would fit",
            period_ns / 1e3
        )
    })
}

fn unreadable_counter(trials: &[Trial]) -> Option<String> {
    trials
        .iter()
        .filter_map(|trial| trial.figures.as_ref())
        .flat_map(|figures| &figures.ledger.lines)
        .find(|line| line.packets.is_none())
        .map(|line| format!("the {}'s counter '{}'", line.side, line.counter))
}
