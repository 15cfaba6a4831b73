//! Runs a study from its start, or from where it stopped, to its end.
//!
//! A trial is stored before the next one begins, and so is the end of the study, however it ends. A study resumes
//! only with the same program version and, by default, on a machine with the same `conditions`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nicpoll_lab::{Lab, LabError, Topology, Veth, open_existing, still_runs, this_runner};
use nicpoll_model::sim::Simulated;
use nicpoll_model::{
    HostFacts, Origin, Plan, SCHEMA, SettingChanges, Study, StudyKind, Trial, Warning, WarningName,
};
use nicpoll_stats::InvalidMargin;
use nicpoll_stats::order::Seed;
use nicpoll_store::{Ended, Recording, Store, StoreError, StoredDocument};
use nicpoll_switch::Journal;
use thiserror::Error;

use crate::design::sweep::searches;
use crate::design::{Design, NamedSetting};
use crate::judge::comparisons::compare_all;
use crate::judge::conclude;
use crate::judge::confounders::{SeenValues, confounders, machine_confounders};
use crate::judge::trial::TrialPlace;
use crate::judge::warnings::{BLOCKS_MIN, are_narrow, warning};
use crate::plan::durations::{REHEARSED_BY, StudySchedule, traffic_ends};
use crate::run::conditions::{conditions, differences};
use crate::run::knee::resolved;
use crate::run::preparation::measure_counting;
use crate::run::trial::Trials;

/// Errors of running a study.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The study was begun elsewhere, or by another version.
    #[error(
        "the study cannot be resumed here: {0}. Its trials and new ones could not be compared; begin a new study"
    )]
    Elsewhere(String),
    /// The machine's conditions have changed.
    #[error(
        "since the study was begun {0}. Trials from before and after could not be compared: put it back, begin a new \
         study, or go on with --anyway"
    )]
    Changed(String),
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan's margin does not fit a metric.
    #[error(transparent)]
    Margin(#[from] InvalidMargin),
}

/// What a study reports while it runs.
#[derive(Clone, Debug)]
pub enum StudyProgress<'a> {
    /// The knees that shares of a sweep refer to are searched for.
    SeekingKnee,
    /// The cost of counting is measured.
    MeasuringCost,
    /// The timer is tuned under each workload, before anything counts.
    Rehearsing,
    /// A trial begins.
    Begins {
        /// Its description.
        place: &'a TrialPlace,
        /// Remaining time of the study.
        left: Duration,
    },
    /// A trial is done.
    Ends(&'a Trial),
}

impl fmt::Display for StudyProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyProgress::SeekingKnee => f.write_str("searching for the greatest rate held"),
            StudyProgress::MeasuringCost => f.write_str("measuring the cost of counting"),
            StudyProgress::Rehearsing => f.write_str("calibrating the timer"),
            StudyProgress::Begins { place, left } => write!(
                f,
                "{:.0} s left, trial {}, block {}: {} under {}",
                left.as_secs_f64(),
                place.sequence,
                place.block,
                place.workload,
                place.setting
            ),
            StudyProgress::Ends(trial) => write!(f, "trial {} has ended", trial.sequence),
        }
    }
}

/// The origin of a study's run.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The program, its command line and its start.
    pub origin: Origin,
    /// When the command began: the study's time counts from here.
    pub begin: Instant,
    /// Seed of the order.
    pub seed: u64,
    /// The simulator's prediction for the same traffic, if asked for.
    pub simulated: Option<Simulated>,
}

impl Identity {
    /// Identifies a command that begins now.
    pub fn new(origin: Origin, seed: u64) -> Self {
        Identity {
            origin,
            begin: Instant::now(),
            seed,
            simulated: None,
        }
    }
}

/// A study about to begin or to resume.
pub struct Session {
    design: Design,
    plan: Plan,
    identity: Identity,
    /// Where to store a new study, and its kind.
    store: Option<(Store, StudyKind)>,
    earlier: Option<Earlier>,
    is_enough: Option<IsEnough>,
}

/// Says of the trials so far whether more of them would change nothing.
type IsEnough = Box<dyn Fn(&[Trial]) -> bool>;

/// The earlier part of a resumed study.
struct Earlier {
    /// Whether it resumes even if the machine has changed.
    anyway: bool,
    /// The document without its trials.
    head: Study,
    done: Vec<Trial>,
    /// Total duration of each of them.
    taken: Vec<Duration>,
    recording: Recording,
}

impl Session {
    /// Makes a new study, with its store and kind.
    pub fn new(
        design: Design,
        plan: Plan,
        identity: Identity,
        store: Option<(Store, StudyKind)>,
    ) -> Self {
        Session {
            design,
            plan,
            identity,
            store,
            earlier: None,
            is_enough: None,
        }
    }

    /// Ends the study after the first block for whose trials, with those before, this is true.
    pub(crate) fn until(mut self, is_enough: impl Fn(&[Trial]) -> bool + 'static) -> Self {
        self.is_enough = Some(Box::new(is_enough));
        self
    }

    /// Resumes a study where it ended, with `anyway` even if the machine's conditions have changed. Of `identity`
    /// only the program's version and the time are used.
    ///
    /// # Errors
    /// When there is none that could resume, or another version began it.
    pub fn resumed(
        store: Store,
        kept: StoredDocument<Study>,
        identity: Identity,
        anyway: bool,
    ) -> Result<Self, StudyError> {
        let (then, now) = (
            &kept.document.nicpoll_version,
            &identity.origin.nicpoll_version,
        );
        if then != now {
            return Err(StudyError::Elsewhere(format!(
                "it was begun by nicpoll {then}, and this is {now}"
            )));
        }
        let design = design_of(&kept)?;
        let runner = this_runner().map_err(LabError::from)?;
        let recording = store.resume(&kept, &runner, still_runs)?;
        let mut head = kept.document;
        let done = std::mem::take(&mut head.trials);
        let resumed_at = &identity.origin.started_at;
        head.warnings
            .extend(interrupted(&done, design.settings.len(), resumed_at));
        Ok(Session {
            design,
            plan: head.plan.clone(),
            identity,
            store: None,
            earlier: Some(Earlier {
                anyway,
                head,
                done,
                taken: kept.taken,
                recording,
            }),
            is_enough: None,
        })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs it to its end on its hosts' machines, or in namespaces of this one, which stay under names if `is_kept`.
    /// `guard` calls [`nicpoll_switch::watch_over`].
    ///
    /// # Errors
    /// When the lab cannot be built.
    pub fn run_here(
        mut self,
        is_kept: bool,
        guard: Command,
        cancel: &AtomicBool,
        progress: impl FnMut(StudyProgress<'_>),
    ) -> Result<Ended<Study, StudyError>, LabError> {
        let topology = self.design.topology.clone();
        let run = |lab: &mut Lab| {
            if lab.is_apart() {
                // The time to reach the hosts is not the study's.
                self.identity.begin = Instant::now();
            }
            self.run(lab, cancel, progress)
        };
        in_lab(&topology, is_kept, guard, run)
    }

    /// Runs it to its end on a lab. Settings are restored before it returns.
    pub fn run(
        self,
        lab: &mut Lab,
        cancel: &AtomicBool,
        mut progress: impl FnMut(StudyProgress<'_>),
    ) -> Ended<Study, StudyError> {
        let mut recording = None;
        let outcome = self.carry_out(lab, &mut recording, cancel, &mut progress);
        Ended::of(outcome, recording)
    }

    /// Returns the design, the document without its trials, the finished trials and their durations. From here on
    /// `recording` stores the study.
    fn open(
        mut self,
        lab: &mut Lab,
        recording: &mut Option<Recording>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(StudyProgress<'_>),
    ) -> Result<(Design, Study, Vec<Trial>, Vec<Duration>), StudyError> {
        if let Some(mut earlier) = self.earlier {
            *recording = Some(earlier.recording);
            look_at(lab, &mut earlier.head, earlier.anyway)?;
            return Ok((self.design, earlier.head, earlier.done, earlier.taken));
        }
        let mut knees = Vec::new();
        if searches(&self.design) > 0 {
            progress(StudyProgress::SeekingKnee);
            (self.design, knees) = resolved(lab, self.design, &self.plan, cancel)?;
        }
        let mut head = head_of(lab, &self.design, self.plan, self.identity)?;
        head.knees = knees;
        let store = self.store.map(|store| record(store, &self.design, &head));
        *recording = store.transpose()?;
        Ok((self.design, head, Vec::new(), Vec::new()))
    }

    fn carry_out(
        mut self,
        lab: &mut Lab,
        recording: &mut Option<Recording>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(StudyProgress<'_>),
    ) -> Result<Study, StudyError> {
        let (begin, plan) = (self.identity.begin, self.plan.clone());
        let is_enough = self.is_enough.take();
        let (design, mut head, done, taken) = self.open(lab, recording, cancel, progress)?;
        let is_resumed = !done.is_empty();
        if !is_resumed {
            lab.deadline = Some(begin + traffic_ends(&plan));
            progress(StudyProgress::MeasuringCost);
            head.counting_costs = measure_counting(lab, &design, &plan, begin, cancel)?;
            if let Some(recording) = recording {
                recording.head(&head)?;
            }
        }
        let mut trials = Trials::new(lab, &design, &plan, cancel)?;
        progress(StudyProgress::Rehearsing);
        let now = Instant::now();
        let rehearsed_from = if is_resumed { now } else { begin };
        let share = Duration::from_secs_f64(REHEARSED_BY * plan.limit_seconds);
        trials.rehearse(rehearsed_from + share)?;
        // The time of a resumed study continues from its last trial.
        let begin = if is_resumed {
            let before = Duration::try_from_secs_f64(head.elapsed_seconds).unwrap_or_default();
            Instant::now().checked_sub(before).unwrap_or(now)
        } else {
            begin
        };
        trials.end_by(begin + traffic_ends(&plan));
        let names = done.iter().map(|trial| trial.workload.as_str());
        let schedule = StudySchedule::new(&plan).after(names.zip(taken));
        let mut run = StudyRun {
            design: &design,
            plan: &plan,
            schedule,
            trials,
            begin,
            cancel,
            head,
            done,
            recording,
            progress,
            is_enough,
        };
        run.blocks()?;
        let mut study = run.head;
        study.elapsed_seconds = run.begin.elapsed().as_secs_f64();
        study.trials = run.done;
        Ok(conclude(&design, study)?)
    }
}

/// Builds the lab of a topology for the time of `run`: on the machines that it names, or in namespaces of this one, which
/// stay under names if `is_kept`.
pub(crate) fn in_lab<T>(
    topology: &Topology,
    is_kept: bool,
    guard: Command,
    run: impl FnOnce(&mut Lab) -> T,
) -> Result<T, LabError> {
    if let Some(hosts) = &topology.hosts {
        return Ok(run(&mut Lab::apart(hosts)?));
    }
    // Dropping this value removes the namespaces.
    let made;
    let link = match topology.existing() {
        Some(interfaces) => Arc::new(open_existing(&interfaces)?),
        None => {
            made = Veth::of(topology)?;
            made.link()
        }
    };
    let (_guard, mut lab) = Lab::guarded(link.clone(), &Journal::of_this_machine(), guard)?;
    if is_kept {
        lab.kept_as = link.keep()?;
    }
    Ok(run(&mut lab))
}

fn record(
    (store, kind): (Store, StudyKind),
    design: &Design,
    head: &Study,
) -> Result<Recording, StudyError> {
    let planned = head.plan.order.len() as u32;
    let design = serde_json::to_string(design).map_err(io::Error::from);
    let design = design.map_err(LabError::from)?;
    let runner = this_runner().map_err(LabError::from)?;
    Ok(store.begin(kind, head, planned, &design, &runner)?)
}

/// Makes the document of a study about to begin on a lab.
fn head_of(
    lab: &mut Lab,
    design: &Design,
    plan: Plan,
    identity: Identity,
) -> Result<Study, LabError> {
    let host = lab.machine()?;
    let mut warnings = warnings_of_lab(lab, &host);
    if lab.link.is_shared && design.has_commands() {
        let text = "if nicpoll is killed (SIGKILL), what commands before the traffic changed at these interfaces stays: only \
                    its own writes are put back then";
        warnings.push(warning(WarningName::Confounder, text));
    }
    Ok(Study {
        schema: String::from(SCHEMA),
        nicpoll_version: identity.origin.nicpoll_version,
        argv: identity.origin.argv,
        started_at: identity.origin.started_at,
        seed: identity.seed,
        question: design.question.clone(),
        workloads: design.workload_facts(),
        settings: design.settings.iter().map(NamedSetting::facts).collect(),
        plan,
        host,
        lab: lab.facts()?,
        simulated: identity.simulated,
        confounders: confounders(design, &SeenValues::new()),
        warnings,
        ..Study::default()
    })
}

/// Describes the new lab of a resumed study. Changed conditions of the machine are an error, unless it resumes
/// `anyway`.
fn look_at(lab: &mut Lab, head: &mut Study, anyway: bool) -> Result<(), StudyError> {
    let host = lab.machine()?;
    let changed = differences(conditions(&head.host), conditions(&host));
    let changed = changed.map(|(what, was, is)| format!("{what} was {was} and is {is}"));
    let changed: Vec<String> = changed.collect();
    if !changed.is_empty() {
        let changed = changed.join("; ");
        if !anyway {
            return Err(StudyError::Changed(changed));
        }
        let text = format!(
            "the study was resumed although {changed}: trials from before and after may differ by it"
        );
        head.warnings.push(warning(WarningName::Confounder, text));
    }
    head.lab = lab.facts()?;
    for warning in warnings_of_lab(lab, &host) {
        if !head.warnings.contains(&warning) {
            head.warnings.push(warning);
        }
    }
    Ok(())
}

/// Returns the warnings that are known before the first figure.
fn warnings_of_lab(lab: &Lab, host: &HostFacts) -> Vec<Warning> {
    let mut warnings = machine_confounders(host, !lab.is_apart());
    if lab.link.is_shared {
        let text = "the interfaces were there before the study: packets of others on them, and in their namespaces, \
                    are in its counters";
        warnings.push(warning(WarningName::Confounder, text));
    }
    if lab.has_plain_sender() {
        let text = "the sender has no nicpoll: nothing is set there, and its counters and CPU time are unknown";
        warnings.push(warning(WarningName::CounterMissing, text));
    }
    let polls = lab.refused.polls.iter().map(|why| {
        format!(
            "settings are read back, but not proven by polls, and no timer is adjusted until its period is the one asked \
             for: {why}"
        )
    });
    let exact_cpu = lab.refused.exact_cpu.iter().map(|why| {
        format!(
            "CPU time is sampled by the clock tick, with what other programs took: its intervals are wider, and do not \
             show errors in step with the tick: {why}"
        )
    });
    let texts = polls.chain(exact_cpu);
    warnings.extend(texts.map(|text| warning(WarningName::CounterMissing, text)));
    warnings
}

/// A study while its trials run.
struct StudyRun<'a> {
    design: &'a Design,
    plan: &'a Plan,
    trials: Trials<'a>,
    schedule: StudySchedule<'a>,
    begin: Instant,
    cancel: &'a AtomicBool,
    /// The document without its trials.
    head: Study,
    done: Vec<Trial>,
    recording: &'a mut Option<Recording>,
    progress: &'a mut dyn FnMut(StudyProgress<'_>),
    is_enough: Option<IsEnough>,
}

impl StudyRun<'_> {
    fn blocks(&mut self) -> Result<(), StudyError> {
        // A begun round is completed.
        let mut round = self.done.last().map_or(0, |trial| trial.block);
        for group in remaining(self.plan, self.design.settings.len(), &self.done) {
            if group.block > round {
                round = group.block;
                if round > BLOCKS_MIN && self.is_narrow()? {
                    return Ok(());
                }
                for (workload, setting) in failing(&self.done) {
                    self.schedule.give_up(workload, setting);
                }
                if !self.schedule.may_start(round - 1, self.begin.elapsed()) {
                    return Ok(());
                }
            }
            let is_out_of_time = !self.block(&group)?;
            if is_out_of_time || self.is_enough.as_ref().is_some_and(|it| it(&self.done)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether a study with a stop rule has measured enough.
    fn is_narrow(&self) -> Result<bool, StudyError> {
        let Some(width) = self.plan.stop_width_ratio else {
            return Ok(false);
        };
        let seed = Seed(self.head.seed);
        let comparisons = compare_all(self.design, self.plan, &self.done, seed)?;
        Ok(are_narrow(&comparisons, width))
    }

    /// Runs a workload's trials of one block, except finished ones and those that no comparison needs any more.
    /// Returns false if the study's time ends in a trial, which then does not count.
    fn block(&mut self, group: &BlockTrials<'_>) -> Result<bool, StudyError> {
        for (workload, setting) in group.trials {
            if !self.schedule.is_needed(workload, setting)
                || is_done(&self.done, group.block, workload, setting)
            {
                continue;
            }
            LabError::unless(self.cancel)?;
            let place = TrialPlace {
                sequence: self.done.len() as u32 + 1,
                block: group.block,
                workload: workload.clone(),
                setting: setting.clone(),
            };
            let elapsed = self.begin.elapsed();
            (self.progress)(StudyProgress::Begins {
                place: &place,
                left: self.schedule.forecast(group.block - 1, elapsed),
            });
            let trial = match self.trials.run(place) {
                Err(error) if error.is_out_of_time() => return Ok(false),
                trial => trial?,
            };
            (self.progress)(StudyProgress::Ends(&trial));
            let lost = std::mem::take(&mut self.trials.lost_time);
            self.begin += lost;
            let taken = self.begin.elapsed().saturating_sub(elapsed);
            if lost.is_zero() {
                self.schedule.took(workload, taken);
            }
            self.head.elapsed_seconds = (elapsed + taken).as_secs_f64();
            self.learn_settings();
            if let Some(recording) = self.recording {
                recording.trial(&self.head, &trial, taken)?;
            }
            self.done.push(trial);
        }
        Ok(true)
    }

    /// Lists the changes of settings that have been in force, and other differences between them.
    fn learn_settings(&mut self) {
        for changes in &self.trials.changes {
            // A resumed study has it from its first part.
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
        for left in self.trials.left() {
            let left = warning(WarningName::Confounder, left.clone());
            if !self.head.warnings.contains(&left) {
                self.head.warnings.push(left);
            }
        }
    }
}

/// Trials without a figure after which a setting is dropped under a workload.
const FAILED_ALIKE: usize = 2;

/// Returns the workloads and settings whose first trials all ended without traffic, or were disturbed, for the same
/// reason: more of them would only take time.
fn failing(done: &[Trial]) -> BTreeSet<(&str, &str)> {
    let mut reasons = BTreeMap::<_, Vec<Option<&str>>>::new();
    for trial in done {
        let failure = trial.validity.failure.as_deref();
        let failure = failure.filter(|_| trial.figures.is_none());
        let reason = trial.validity.external.as_deref().or(failure);
        let of_both = (trial.workload.as_str(), trial.setting.as_str());
        reasons.entry(of_both).or_default().push(reason);
    }
    let is_failing = |reasons: &Vec<Option<&str>>| {
        let first = reasons.get(..FAILED_ALIKE).unwrap_or_default();
        first
            .first()
            .is_some_and(|one| one.is_some() && first.iter().all(|it| it == one))
    };
    let failing = reasons
        .into_iter()
        .filter(|(_, reasons)| is_failing(reasons));
    failing.map(|(of_both, _)| of_both).collect()
}

/// A workload's trials of one block, which follow one another in the plan.
struct BlockTrials<'a> {
    block: u32,
    trials: &'a [(String, String)],
}

/// Returns the groups of a plan from the last begun one on. Earlier ones were finished or left out.
fn remaining<'a>(plan: &'a Plan, settings: usize, done: &[Trial]) -> Vec<BlockTrials<'a>> {
    let per_block = plan.workloads.len();
    let groups = plan.order.chunks(settings).enumerate();
    let groups = groups.map(|(index, trials)| {
        let block = (index / per_block) as u32 + 1;
        BlockTrials { block, trials }
    });
    let mut groups: Vec<BlockTrials<'_>> = groups.collect();
    let is_begun = |group: &BlockTrials<'_>| {
        let mut trials = group.trials.iter();
        trials.any(|(workload, setting)| is_done(done, group.block, workload, setting))
    };
    let from = groups.iter().rposition(is_begun);
    groups.split_off(from.unwrap_or(0))
}

fn is_done(done: &[Trial], block: u32, workload: &str, setting: &str) -> bool {
    done.iter()
        .any(|trial| trial.block == block && trial.workload == workload && trial.setting == setting)
}

/// Returns the design with which a study began.
pub fn design_of(kept: &StoredDocument<Study>) -> Result<Design, StudyError> {
    let design = serde_json::from_str(&kept.design);
    design.map_err(|why| StudyError::Store(StoreError::Document(kept.entry.id, why)))
}

/// Returns the warning about a resumed study.
fn interrupted(trials: &[Trial], settings: usize, resumed_at: &str) -> Option<Warning> {
    let last = trials.last()?;
    let of_block = trials
        .iter()
        .filter(|trial| (trial.block, &trial.workload) == (last.block, &last.workload));
    let split = if of_block.count() < settings {
        format!(
            "; the trials of block {} under {} are of both stretches of time",
            last.block, last.workload
        )
    } else {
        String::new()
    };
    let text = format!(
        "the study was ended after trial {} and resumed at {resumed_at}{split}",
        last.sequence
    );
    Some(warning(WarningName::Interrupted, text))
}

#[cfg(test)]
mod study_tests {
    use super::*;
    use crate::design::demo::DemoOptions;
    use crate::design::demo::plan;

    /// Makes an ended trial.
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
    fn a_setting_whose_first_trials_have_no_figure_for_one_reason_is_given_up() {
        let with = |reasons: [(&str, &str); 2]| {
            let trials = reasons.map(|(kind, reason)| {
                let mut trial = ended(1, "rr", "fq");
                let place = match kind {
                    "external" => &mut trial.validity.external,
                    _ => &mut trial.validity.failure,
                };
                *place = Some(String::from(reason));
                trial
            });
            failing(&trials).contains(&("rr", "fq"))
        };
        assert!(with([("failure", "not found"), ("failure", "not found")]));
        assert!(with([
            ("external", "changed em0"),
            ("external", "changed em0")
        ]));
        assert!(!with([
            ("external", "changed em0"),
            ("external", "changed em1")
        ]));
        assert!(!with([
            ("failure", "not found"),
            ("external", "changed em0")
        ]));
    }

    #[test]
    fn a_block_that_was_left_out_stays_so() {
        let (design, plan) = plan(&DemoOptions::default(), Seed(5)).unwrap();
        let settings = design.settings.len();
        // The second group was done and the first was not.
        let (workload, setting) = &plan.order[settings];
        let groups = remaining(&plan, settings, &[ended(1, workload, setting)]);
        assert_eq!(groups.len(), plan.order.len() / settings - 1);
    }
}
