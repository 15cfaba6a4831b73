//! A study: every trial of a plan in its order, each once, and what follows from them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nicpoll_model::sim_fit_host::Simulated;
use nicpoll_model::{
    HostFacts, Origin, Plan, SCHEMA, SettingChanges, Study, Trial, Warning, WarningName,
};
use nicpoll_stats::order::Seed;

use crate::comparisons::compare_all;
use crate::confounders::{Seen, confounders};
use crate::cost;
use crate::design::{Design, NamedSetting, NamedWorkload};
use crate::error::StudyError;
use crate::facts;
use crate::keep::{Keeper, require_same_machine};
use crate::lab::Lab;
use crate::schedule::{Schedule, traffic_ends};
use crate::setting_findings::setting_findings;
use crate::stop;
use crate::sweep::sweeps;
use crate::trial::{TrialPlace, Trials};
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
    /// The knees that shares of a sweep are of are sought.
    SeekingKnee,
    /// How dear counting is will be measured.
    MeasuringCost,
    /// The timer is set right under each workload, before anything counts.
    Rehearsing,
    /// A trial begins.
    Begins {
        /// What it is.
        place: &'a TrialPlace,
        /// How long the study goes on from here.
        left: Duration,
    },
    /// A trial is done.
    Ends(&'a Trial),
}

/// Who runs the study and how it was asked for.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The program, its command line and its start.
    pub origin: Origin,
    /// When the command began: the study's time counts from here.
    pub begin: Instant,
    /// Seed of the order.
    pub seed: u64,
    /// What the simulator says of the same traffic, where that was asked for.
    pub simulated: Option<Simulated>,
}

impl Identity {
    /// Of a command that begins now.
    pub fn new(origin: Origin, seed: u64) -> Self {
        Identity {
            origin,
            begin: Instant::now(),
            seed,
            simulated: None,
        }
    }
}

/// What a study has come to when it begins or goes on.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// The document without its trials.
    pub head: Study,
    /// The trials that have ended.
    pub trials: Vec<Trial>,
    /// How long each of them took with all that belongs to it.
    pub taken: Vec<Duration>,
}

impl SoFar {
    /// A study that is about to begin on a lab.
    ///
    /// # Errors
    /// When a host does not say what it is.
    pub fn nothing(
        lab: &mut Lab,
        design: &Design,
        plan: Plan,
        identity: Identity,
    ) -> Result<Self, StudyError> {
        let host = lab.machine()?;
        let warnings = warnings_of_lab(lab, &host);
        let head = Study {
            schema: String::from(SCHEMA),
            nicpoll_version: identity.origin.nicpoll_version,
            argv: identity.origin.argv,
            started_at: identity.origin.started_at,
            elapsed_seconds: 0.0,
            seed: identity.seed,
            question: design.question.clone(),
            workloads: design.workloads.iter().map(NamedWorkload::facts).collect(),
            settings: design.settings.iter().map(NamedSetting::facts).collect(),
            plan,
            host,
            lab: lab.facts()?,
            setting_changes: Vec::new(),
            counting_costs: Vec::new(),
            findings: Vec::new(),
            trials: Vec::new(),
            dropped: Vec::new(),
            simulated: identity.simulated,
            confounders: confounders(design, &Seen::new()),
            comparisons: Vec::new(),
            sweeps: Vec::new(),
            warnings,
        };
        Ok(SoFar {
            head,
            trials: Vec::new(),
            taken: Vec::new(),
        })
    }

    /// Takes a lab that was built anew for what the study goes on with.
    ///
    /// # Errors
    /// When it is of another machine than the study began on.
    pub fn look_at(&mut self, lab: &mut Lab) -> Result<(), StudyError> {
        let host = lab.machine()?;
        require_same_machine(&self.head.host, &host)?;
        self.head.lab = lab.facts()?;
        for warning in warnings_of_lab(lab, &host) {
            if !self.head.warnings.contains(&warning) {
                self.head.warnings.push(warning);
            }
        }
        Ok(())
    }
}

/// What is known of figures before there are any.
fn warnings_of_lab(lab: &Lab, host: &HostFacts) -> Vec<Warning> {
    let mut warnings = facts::confounders(host);
    if lab.link.is_shared() {
        warnings.push(Warning {
            name: WarningName::Confounder,
            text: String::from(
                "the interfaces were there before the study: packets of others on them, and in their namespaces, are \
                 in its counters",
            ),
        });
    }
    let refused = lab.exact_cpu_refused.as_ref();
    warnings.extend(refused.map(|why| Warning {
        name: WarningName::CounterMissing,
        text: format!("CPU time is sampled at the clock tick: {why}"),
    }));
    warnings
}

/// Runs what is left of a plan of a design on a lab. The study's time counts from `begin`; of one that goes on, it
/// counts on from its last trial.
///
/// # Errors
/// [`StudyError::Cancelled`] when `cancel` became true; anything that kept a trial from being carried out or kept.
/// Settings are put back before it returns.
pub fn run_study(
    lab: &mut Lab,
    design: &Design,
    so_far: SoFar,
    begin: Instant,
    keeper: &mut dyn Keeper,
    cancel: &AtomicBool,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Study, StudyError> {
    let SoFar {
        mut head,
        trials: done,
        taken,
    } = so_far;
    let plan = head.plan.clone();
    let is_resumed = !done.is_empty();
    if !is_resumed {
        lab.deadline = Some(begin + traffic_ends(&plan));
        progress(Progress::MeasuringCost);
        head.counting_costs = cost::measure(lab, design, &plan, begin, cancel)?;
        keeper.head(&head)?;
    }
    let mut trials = Trials::new(lab, design, &plan, cancel)?;
    progress(Progress::Rehearsing);
    let now = Instant::now();
    let rehearsed_from = if is_resumed { now } else { begin };
    trials.rehearse(rehearsed_from + plan_share(&plan, REHEARSED_BY))?;
    let begin = if is_resumed {
        let before = Duration::try_from_secs_f64(head.elapsed_seconds).unwrap_or_default();
        Instant::now().checked_sub(before).unwrap_or(now)
    } else {
        begin
    };
    trials.end_by(begin + traffic_ends(&plan));
    let names = done.iter().map(|trial| trial.workload.as_str());
    let before: Vec<(&str, Duration)> = names.zip(taken).collect();
    let mut run = Run {
        design,
        schedule: Schedule::new(&plan).after(head.dropped.clone(), before.into_iter()),
        trials,
        begin,
        cancel,
        head,
        done,
        keeper,
    };
    run.blocks(design, &plan, &mut progress)?;
    let Run {
        mut head,
        done,
        schedule,
        ..
    } = run;
    head.dropped = schedule.dropped().to_vec();
    head.elapsed_seconds = begin.elapsed().as_secs_f64();
    head.trials = done;
    conclude(design, head)
}

/// What follows from the trials that a study has.
///
/// # Errors
/// When the plan's margin does not fit a metric.
pub(crate) fn conclude(design: &Design, mut study: Study) -> Result<Study, StudyError> {
    cost::add_pairs_of_trials(&mut study.counting_costs, &study.trials);
    study.comparisons = compare_all(
        design,
        &study.plan,
        &study.trials,
        &study.dropped,
        Seed(study.seed),
    )?;
    study.sweeps = sweeps(design, &study.trials);
    let seed = Seed(study.seed);
    study.findings = setting_findings(design, &study.trials, study.plan.margin, seed);
    study.warnings.extend(warnings_of(&study, design));
    Ok(study)
}

/// A study on its way.
struct Run<'a> {
    design: &'a Design,
    trials: Trials<'a>,
    schedule: Schedule<'a>,
    begin: Instant,
    cancel: &'a AtomicBool,
    /// The document without its trials.
    head: Study,
    done: Vec<Trial>,
    keeper: &'a mut dyn Keeper,
}

impl Run<'_> {
    fn blocks(
        &mut self,
        design: &Design,
        plan: &Plan,
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), StudyError> {
        let groups = remaining(plan, design.settings.len(), &self.done);
        let mut looked_after = 0;
        for Group {
            block,
            trials,
            is_begun,
        } in groups
        {
            let workload = &trials[0].0;
            if block > looked_after && block > stop::BLOCKS_MIN {
                looked_after = block;
                if self.is_enough(plan)? {
                    return Ok(());
                }
            }
            // A block that has begun is not given up half-way.
            if !is_begun {
                self.schedule.fit(block - 1, self.begin.elapsed());
                if !self.schedule.may_start(workload, self.begin.elapsed()) {
                    continue;
                }
            }
            self.block(block, trials, progress)?;
        }
        Ok(())
    }

    /// Lists what settings changed, and what differs between them, as far as they have been in force by now.
    fn learn_settings(&mut self) {
        for changes in &self.trials.changes {
            // A study that goes on has it from its first part.
            let known = self.head.setting_changes.iter();
            let of = |one: &SettingChanges| (one.setting.clone(), one.host.clone());
            if known.map(of).all(|known| known != of(changes)) {
                self.head.setting_changes.push(changes.clone());
            }
        }
        for found in confounders(self.design, &self.trials.seen) {
            if !self.head.confounders.contains(&found) {
                self.head.confounders.push(found);
            }
        }
    }

    /// Whether a study with a stop rule has measured enough.
    fn is_enough(&self, plan: &Plan) -> Result<bool, StudyError> {
        let Some(width) = stop::asked(plan) else {
            return Ok(false);
        };
        let dropped = self.schedule.dropped();
        let seed = Seed(self.head.seed);
        let comparisons = compare_all(self.design, plan, &self.done, dropped, seed)?;
        Ok(stop::are_narrow(&comparisons, width))
    }

    /// A workload's trials of one block, those left out that no comparison needs any more, and those that are
    /// done. What the end of the study's time cuts off counts for nothing.
    fn block(
        &mut self,
        block: u32,
        group: &[(String, String)],
        progress: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), StudyError> {
        for (workload, setting) in group {
            if !self.schedule.is_needed(workload, setting)
                || is_done(&self.done, block, workload, setting)
            {
                continue;
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StudyError::Cancelled);
            }
            let place = TrialPlace {
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
            self.schedule.took(workload, taken);
            self.head.elapsed_seconds = (elapsed + taken).as_secs_f64();
            self.head.dropped = self.schedule.dropped().to_vec();
            self.learn_settings();
            self.keeper.trial(&self.head, &trial, taken)?;
            self.done.push(trial);
        }
        Ok(())
    }
}

/// A workload's trials of one block, as the plan lists them one after another.
struct Group<'a> {
    block: u32,
    trials: &'a [(String, String)],
    /// Whether some of them are done already.
    is_begun: bool,
}

/// The groups of a plan from the last one on of which something is done. What lies before was done, or left out.
fn remaining<'a>(plan: &'a Plan, settings: usize, done: &[Trial]) -> Vec<Group<'a>> {
    let per_block = plan.workloads.len();
    let groups = plan.order.chunks(settings).enumerate();
    let groups = groups.map(|(index, trials)| {
        let block = (index / per_block) as u32 + 1;
        let is_begun = trials
            .iter()
            .any(|(workload, setting)| is_done(done, block, workload, setting));
        Group {
            block,
            trials,
            is_begun,
        }
    });
    let mut groups: Vec<Group<'_>> = groups.collect();
    let from = groups.iter().rposition(|group| group.is_begun);
    groups.split_off(from.unwrap_or(0))
}

fn is_done(done: &[Trial], block: u32, workload: &str, setting: &str) -> bool {
    done.iter()
        .any(|trial| trial.block == block && trial.workload == workload && trial.setting == setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DemoOptions, plan};

    /// A trial that has ended, as far as it matters here.
    fn ended(block: u32, workload: &str, setting: &str) -> Trial {
        let trial = serde_json::json!({
            "sequence": 1, "block": block, "workload": workload, "setting": setting,
            "proof_attempts": 1,
            "findings": {"foreign_cpu": []},
            "warmup": {"seconds": 0.0, "delivered_bytes": 0},
            "placement": {"sender_cpu": 0, "receiver_cpu": 1, "poll_cpus": []},
        });
        serde_json::from_value(trial).unwrap()
    }

    #[test]
    fn wherever_a_study_was_ended_what_is_left_is_run_once_in_the_order_of_the_plan() {
        let options = DemoOptions {
            blocks: Some(3),
            ..DemoOptions::default()
        };
        let (design, plan) = plan(&options, Seed(5)).unwrap();
        let settings = design.settings.len();
        let all: Vec<(u32, &str, &str)> = remaining(&plan, settings, &[])
            .into_iter()
            .flat_map(|group| {
                let trials = group.trials.iter();
                trials.map(move |(workload, setting)| {
                    (group.block, workload.as_str(), setting.as_str())
                })
            })
            .collect();
        assert_eq!(all.len(), plan.order.len());
        for ended_after in 0..=all.len() {
            let done: Vec<Trial> = all[..ended_after]
                .iter()
                .map(|(block, workload, setting)| ended(*block, workload, setting))
                .collect();
            let mut left = Vec::new();
            for group in remaining(&plan, settings, &done) {
                let trials = group.trials.iter();
                let missing = trials
                    .filter(|(workload, setting)| !is_done(&done, group.block, workload, setting));
                left.extend(
                    missing.map(|(workload, setting)| {
                        (group.block, workload.as_str(), setting.as_str())
                    }),
                );
            }
            assert_eq!(left, all[ended_after..], "after {ended_after}");
        }
    }

    #[test]
    fn a_block_that_was_left_out_stays_so() {
        let (design, plan) = plan(&DemoOptions::default(), Seed(5)).unwrap();
        let settings = design.settings.len();
        // The second group was done and the first was not.
        let (workload, setting) = &plan.order[settings];
        let groups = remaining(&plan, settings, &[ended(1, workload, setting)]);
        assert_eq!(groups.len(), plan.order.len() / settings - 1);
        assert!(groups[0].is_begun && !groups[1].is_begun);
    }
}
