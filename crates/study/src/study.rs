//! A study: every trial of a plan in its order, each once, and what follows from them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nicpoll_model::{Plan, SCHEMA, Study, Trial, Warning, WarningName};
use nicpoll_stats::order::Seed;

use crate::comparisons::compare_all;
use crate::cost;
use crate::design::{Design, NamedSetting, NamedWorkload};
use crate::error::StudyError;
use crate::facts;
use crate::lab::Lab;
use crate::schedule::{Schedule, traffic_ends};
use crate::setting_findings::setting_findings;
use crate::trial::{Place, Trials};
use crate::warnings::warnings_of;

/// Share of a study's time after which no more is rehearsed: the first trials then are set less well.
const REHEARSED_BY: f64 = 0.25;

/// A share of a study's time.
fn plan_share(plan: &Plan, share: f64) -> Duration {
    Duration::from_secs_f64(share * plan.limit_seconds)
}

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
        /// How long the study goes on from here.
        left: Duration,
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
    /// When the command began: the study's time counts from here.
    pub begin: Instant,
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
    let begin = identity.begin;
    let host = lab.machine()?;
    let lab_facts = lab.facts()?;
    lab.deadline = Some(begin + traffic_ends(&plan));
    progress(Progress::MeasuringCost);
    let mut costs = cost::measure(lab, design, &plan, begin, cancel)?;
    let exact_cpu_refused = lab.exact_cpu_refused.clone();
    let mut trials = Trials::new(lab, design, &plan, cancel)?;
    progress(Progress::Rehearsing);
    trials.rehearse(begin + plan_share(&plan, REHEARSED_BY))?;
    let mut run = Run {
        schedule: Schedule::new(&plan),
        trials,
        begin,
        cancel,
        done: Vec::new(),
    };
    run.blocks(design, &plan, &mut progress)?;
    let Run { done, schedule, .. } = run;
    let dropped = schedule.into_dropped();
    cost::add_pairs_of_trials(&mut costs, &done);
    let seed = Seed(identity.seed);
    let comparisons = compare_all(design, &plan, &done, &dropped, seed)?;
    let mut warnings = facts::confounders(&host);
    warnings.extend(exact_cpu_refused.map(|why| Warning {
        name: WarningName::CounterMissing,
        text: format!("CPU time is sampled at the clock tick: {why}"),
    }));
    let mut study = Study {
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
        findings: setting_findings(design, &done),
        trials: done,
        dropped,
        comparisons,
        warnings,
    };
    study.warnings.extend(warnings_of(&study, design));
    Ok(study)
}

/// A study on its way.
struct Run<'a> {
    trials: Trials<'a>,
    schedule: Schedule<'a>,
    begin: Instant,
    cancel: &'a AtomicBool,
    done: Vec<Trial>,
}

impl Run<'_> {
    fn blocks(
        &mut self,
        design: &Design,
        plan: &Plan,
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), StudyError> {
        let per_block = plan.workloads.len();
        // The plan lists the settings of a workload in a block one after another.
        for (index, group) in plan.order.chunks(design.settings.len()).enumerate() {
            let block = (index / per_block) as u32 + 1;
            self.schedule.fit(block - 1, self.begin.elapsed());
            let workload = &group[0].0;
            if self.schedule.may_start(workload, self.begin.elapsed()) {
                self.block(block, group, progress)?;
            }
        }
        Ok(())
    }

    /// A workload's trials of one block, those left out that no comparison needs any more. What the end of the
    /// study's time cuts off counts for nothing.
    fn block(
        &mut self,
        block: u32,
        group: &[(String, String)],
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), StudyError> {
        for (workload, setting) in group {
            if !self.schedule.is_needed(workload, setting) {
                continue;
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StudyError::Cancelled);
            }
            let place = Place {
                sequence: self.done.len() as u32 + 1,
                block,
                workload: workload.clone(),
                setting: setting.clone(),
            };
            let elapsed = self.begin.elapsed();
            progress(Progress::Begins {
                place: &place,
                left: self.schedule.forecast(block - 1, elapsed),
            });
            let trial = match self.trials.run(place) {
                Err(error) if error.is_out_of_time() => return Ok(()),
                trial => trial?,
            };
            progress(Progress::Ends(&trial));
            let taken = self.begin.elapsed() - elapsed;
            self.schedule.took(taken);
            self.done.push(trial);
        }
        Ok(())
    }
}
