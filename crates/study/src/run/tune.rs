//! The best setting of the studied interface under a workload.
//!
//! Candidates are raced in blocks; the winner is then compared with what was there by an ordinary study, in blocks of
//! its own: those of the race chose it, and flatter it. If it breaks a limit there, the comparison ends, and the next
//! best has one. A candidate is set as its command sets it: its timer is not tuned to a period.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nicpoll_lab::{INTERFACE, Lab, LabError, Refused};
use nicpoll_model::numbers::{counted, figure};
use nicpoll_model::tune::{
    KeptFigure, TUNE_SCHEMA, Tune, TuneCandidate, TuneDropped, TuneGoal, TuneLimit,
};
use nicpoll_model::{Measure, Metric, Plan, Study, StudyKind, Trial, Verdict, WorkUnit};
use nicpoll_stats::order::{Seed, shuffle};
use nicpoll_stats::search::race::{FINAL_BLOCKS_MIN, Race, RaceBudget, RaceRule, RaceTrial};
use nicpoll_store::{Ended, Store};
use nicpoll_switch::{Candidate, KnobValues, Request};

use crate::design::{Design, Evidence, NamedSetting, Versus, drop_order, measures};
use crate::judge::comparisons::value;
use crate::judge::trial::TrialPlace;
use crate::plan::{Lengths, MARGIN, outline, plan_of};
use crate::run::session::{Identity, Session, StudyError, StudyProgress, in_lab};
use crate::run::timer::apply;
use crate::run::trial::Trials;

/// Most candidates that are compared with the base, one after another.
pub const FINALS_MAX: usize = 3;

/// What to tune for.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    design: Design,
    lengths: Lengths,
    goal: TuneGoal,
    metric: Metric,
    limits: Vec<TuneLimit>,
    candidates: Vec<Candidate>,
}

/// What tuning reports while it goes on.
#[derive(Debug)]
pub enum TuneProgress<'a> {
    /// The race begins with this budget, which may be widened.
    Begins(RaceBudget),
    /// Whether this candidate can be set is tried.
    Trying(&'a str),
    /// A trial of the race begins.
    Trial {
        /// Its number, from 1.
        number: u32,
        /// Candidates left.
        left: usize,
        /// The candidate.
        candidate: &'a str,
    },
    /// The winner is compared.
    Final(StudyProgress<'a>),
}

impl TuneRequest {
    /// Tunes for the one workload of a design by trying these candidates. `base` names the setting that the candidates change and that the
    /// winner is compared with: the first one under which a NAPI polls, if it is not named.
    ///
    /// # Errors
    /// For more than one workload, a name that no setting has, and a workload that lacks the goal's figure.
    pub fn new(
        mut design: Design,
        lengths: Lengths,
        base: Option<&str>,
        goal: TuneGoal,
        mut limits: Vec<TuneLimit>,
        candidates: Vec<Candidate>,
    ) -> Result<Self, Refused> {
        let [workload] = &mut design.workloads[..] else {
            let names: Vec<&str> = design.workloads.iter().map(|it| &*it.name).collect();
            return Err(Refused(format!(
                "a setting is tuned for one workload: name one of {} with --workload",
                names.join(", ")
            )));
        };
        workload.options.spinner = false;
        let measures: &[Measure] = match goal {
            TuneGoal::Throughput => &[Measure::Rate],
            TuneGoal::Latency => &[Measure::RoundTrip, Measure::Delay],
            TuneGoal::Cpu => &[Measure::Cost],
        };
        let has = measures::metrics(&*workload);
        let Some(&metric) = measures::judged_by(measures, &has).first() else {
            return Err(Refused(format!(
                "the workload {} has no figure for --goal {goal}",
                workload.name
            )));
        };
        let is_paced = has.contains(&Metric::DeliveredRatio);
        let is_limited = limits.iter().any(|it| it.figure == KeptFigure::LossRatio);
        if is_paced && !is_limited && goal != TuneGoal::Throughput {
            limits.push(TuneLimit {
                figure: KeptFigure::LossRatio,
                at_most: 0.0,
            });
        }
        let is_base = |it: &NamedSetting| match base {
            Some(name) => it.name() == name,
            None => it.evidence != Evidence::NoNapi && it.engine.is_none(),
        };
        design.settings.retain(is_base);
        design.settings.truncate(1);
        design.factors.clear();
        design.contrasts.clear();
        design.drop_order.clear();
        if design.settings.is_empty() {
            let which = base.map_or(String::from("under which a NAPI polls"), |it| {
                format!("'{it}'")
            });
            return Err(Refused(format!(
                "the study has no setting {which} to begin with"
            )));
        }
        Ok(TuneRequest {
            design,
            lengths,
            goal,
            metric,
            limits,
            candidates,
        })
    }

    fn base(&self) -> &NamedSetting {
        &self.design.settings[0]
    }

    /// Returns the setting that a candidate makes of the base; `None` if that sets the same.
    fn setting(&self, candidate: &Candidate) -> Option<NamedSetting> {
        let mut own = self.base().clone();
        let request = own
            .setting
            .hosts
            .entry(String::from(self.design.topology.studied()));
        let request = request.or_insert_with(|| Request::of(INTERFACE, KnobValues::new()));
        let is_made = self.design.topology.kind.is_made();
        let is_same = candidate.values.iter().all(|(row, value)| {
            let had = request.set.get(row);
            had == Some(value) || (had.is_none() && is_made && value.number() == Some(0))
        });
        for (row, value) in candidate.values.iter() {
            request.set.insert(row, value.clone());
        }
        own.setting.name.clone_from(&candidate.name);
        own.setting.description.clone_from(&candidate.words);
        own.noun.clone_from(&candidate.name);
        own.evidence = as_set(own.evidence);
        (!is_same).then_some(own)
    }

    fn rule(&self, trials_max: usize) -> RaceRule {
        RaceRule {
            more_is_better: self.metric.facts().more_is_better,
            margin_ratio: MARGIN,
            limits: self.limits.iter().map(|it| it.at_most).collect(),
            trials_max,
        }
    }

    /// Returns how a setting alone stands by its trials among these.
    fn alone<'a>(&self, setting: &str, trials: impl IntoIterator<Item = &'a Trial>) -> Race {
        let mut race = Race::new(1, self.rule(usize::MAX));
        for trial in trials.into_iter().filter(|it| it.setting == setting) {
            race.add_block(vec![(0, self.result(trial))]);
        }
        race
    }

    fn result(&self, trial: &Trial) -> RaceTrial {
        let limits = self.limits.iter();
        RaceTrial {
            value: value(trial, self.metric).filter(|it| *it > 0.0 && it.is_finite()),
            limited: limits.map(|it| kept_figure(trial, it.figure)).collect(),
        }
    }
}

/// A timer is taken as its command sets it.
fn as_set(evidence: Evidence) -> Evidence {
    match evidence {
        Evidence::Rounds { .. } => Evidence::Polls,
        other => other,
    }
}

/// Returns a limited figure of a trial; `None` if it was not measured.
fn kept_figure(trial: &Trial, figure: KeptFigure) -> Option<f64> {
    let figures = trial.result()?;
    let delay = |share| {
        let own = figures.round_trip_distribution.as_ref();
        let distribution = own.or(figures.one_way_delays.as_ref())?;
        Some(distribution.quantile_ns(share)? as f64)
    };
    match figure {
        KeptFigure::DelayP50Ns => delay(0.5),
        KeptFigure::DelayP99Ns => delay(0.99),
        // While the hypervisor has a processor, packets are lost under any setting.
        KeptFigure::LossRatio if trial.findings.steal_ratio > Some(0.0) => None,
        KeptFigure::LossRatio => trial.loss_ratio(),
        KeptFigure::BusyCores => Some(figures.cpu.as_ref()?.busy()),
    }
}

/// Tunes in namespaces of this machine, or between its interfaces or machines if the design names them. `guard` calls
/// [`nicpoll_switch::watch_over`].
///
/// # Errors
/// When the lab cannot be built, and as [`tune`].
pub fn tune_here(
    request: &TuneRequest,
    identity: Identity,
    stores: Vec<Store>,
    guard: Command,
    cancel: &AtomicBool,
    progress: impl FnMut(TuneProgress<'_>),
) -> Result<Ended<Tune, StudyError>, LabError> {
    let run = |lab: &mut Lab| tune(request, lab, identity, stores, cancel, progress);
    in_lab(&request.design.topology, false, guard, run)?
}

/// Tunes on a lab. Settings are restored before it returns. Each final comparison is stored in one of these stores,
/// while there are any; there are [`FINALS_MAX`] at most.
///
/// # Errors
/// When nothing can be measured.
pub fn tune(
    request: &TuneRequest,
    lab: &mut Lab,
    identity: Identity,
    stores: Vec<Store>,
    cancel: &AtomicBool,
    mut progress: impl FnMut(TuneProgress<'_>),
) -> Result<Ended<Tune, StudyError>, LabError> {
    let begin = identity.begin;
    let mut found = head(request, lab, &identity)?;
    let settings = possible(request, lab, &mut found, cancel, &mut progress)?;
    let design = Design {
        settings,
        ..request.design.clone()
    };
    let plan = outline(&design, &request.lengths).map_err(Refused::from)?;
    let all = design.settings.len();
    let budget = RaceBudget::of(all, plan.blocks as usize);
    progress(TuneProgress::Begins(budget));
    let mut running = Running {
        request,
        design: &design,
        plan: &plan,
        race: Race::new(all, request.rule(budget.race_trials)),
        budget,
        trials: Vec::new(),
    };
    let outcome = running.race(lab, Seed(identity.seed), cancel, &mut progress);
    running.tell(&mut found);
    found.is_finished = outcome.is_ok();
    let mut ended = match outcome {
        Err(_) if cancel.load(Ordering::Relaxed) => {
            found.because = String::from("the race was ended before it was decided");
            alone(found)
        }
        Err(error) => return Err(error),
        Ok(()) => running.finals(found, identity, stores, lab, cancel, &mut progress)?,
    };
    if let Ok(found) = &mut ended.outcome {
        found.elapsed_seconds = begin.elapsed().as_secs_f64();
    }
    Ok(ended)
}

/// Ends without a final comparison.
fn alone(found: Tune) -> Ended<Tune, StudyError> {
    Ended {
        outcome: Ok(found),
        place: None,
        unstored: None,
    }
}

/// Makes the document before the race.
fn head(request: &TuneRequest, lab: &mut Lab, identity: &Identity) -> Result<Tune, LabError> {
    let origin = identity.origin.clone();
    Ok(Tune {
        schema: String::from(TUNE_SCHEMA),
        nicpoll_version: origin.nicpoll_version,
        argv: origin.argv,
        started_at: origin.started_at,
        interface: format!("the {}'s interface", request.design.topology.studied()),
        host: lab.machine()?,
        traffic: request.design.workloads[0].description.clone(),
        goal: request.goal,
        metric: Some(request.metric),
        limits: request.limits.clone(),
        reference: String::from(request.base().name()),
        seed: identity.seed,
        ..Tune::default()
    })
}

/// Returns the base and every candidate that can be set here; the others are noted with the reason.
fn possible(
    request: &TuneRequest,
    lab: &mut Lab,
    found: &mut Tune,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(TuneProgress<'_>),
) -> Result<Vec<NamedSetting>, LabError> {
    let mut base = request.base().clone();
    base.evidence = as_set(base.evidence);
    let mut settings = vec![base];
    found.candidates.push(TuneCandidate {
        name: found.reference.clone(),
        ..TuneCandidate::default()
    });
    for candidate in &request.candidates {
        let Some(setting) = request.setting(candidate) else {
            continue;
        };
        if found.candidate(&candidate.name).is_some() {
            continue;
        }
        LabError::unless(cancel)?;
        progress(TuneProgress::Trying(setting.name()));
        let outcome = apply(lab, &setting, None);
        lab.restore()?;
        match outcome {
            Ok(()) => {
                settings.push(setting);
                found.add_candidate(&candidate.name, &candidate.words);
            }
            Err(error) if error.of_lost_host().is_some() => return Err(error),
            Err(error) => found.refuse_candidate(&candidate.name, error.with_causes()),
        }
    }
    Ok(settings)
}

/// The race while it runs.
struct Running<'a> {
    request: &'a TuneRequest,
    design: &'a Design,
    plan: &'a Plan,
    race: Race,
    budget: RaceBudget,
    trials: Vec<Trial>,
}

impl Running<'_> {
    fn race(
        &mut self,
        lab: &mut Lab,
        seed: Seed,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(TuneProgress<'_>),
    ) -> Result<(), LabError> {
        let mut random = seed.generator();
        let mut trials = Trials::new(lab, self.design, self.plan, cancel)?;
        let mut block = 0;
        while let Some(mut left) = self.race.next_block() {
            shuffle(&mut left, &mut random);
            block += 1;
            let mut measured = Vec::new();
            for &candidate in &left {
                LabError::unless(cancel)?;
                let number = self.trials.len() as u32 + 1;
                let setting = self.design.settings[candidate].name();
                progress(TuneProgress::Trial {
                    number,
                    left: left.len(),
                    candidate: setting,
                });
                let trial = trials.run(TrialPlace {
                    sequence: number,
                    block,
                    workload: self.design.workloads[0].name.clone(),
                    setting: String::from(setting),
                })?;
                measured.push((candidate, self.request.result(&trial)));
                self.trials.push(trial);
            }
            self.race.add_block(measured);
            self.budget = self.race.widen(self.plan.blocks as usize);
        }
        Ok(())
    }

    /// Compares the winner with the base; if it breaks a limit there, the next best, as long as all trials are at most a
    /// quarter of the grid's.
    fn finals(
        &mut self,
        mut found: Tune,
        identity: Identity,
        stores: Vec<Store>,
        lab: &mut Lab,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(TuneProgress<'_>),
    ) -> Result<Ended<Tune, StudyError>, LabError> {
        let Some(mut winner) = self.winner(&mut found) else {
            return Ok(alone(found));
        };
        let mut stores = stores.into_iter();
        let mut used = self.trials.len();
        let mut blocks = self.budget.final_blocks;
        let mut finals = 0;
        let ended = loop {
            finals += 1;
            let pair = [winner, 0].map(|it| &self.design.settings[it]);
            let planned = last(self.request, pair, blocks as u32, identity.seed)?;
            let study = self.compare(planned, &identity, stores.next(), lab, cancel, progress);
            used += study.outcome.as_ref().map_or(0, |it| it.trials.len());
            let (ended, is_kept) = settled(self.request, &mut found, study, cancel);
            let is_over = is_kept || ended.outcome.is_err() || !found.is_finished;
            let left = self
                .budget
                .final_blocks_after(used)
                .filter(|_| finals < FINALS_MAX);
            match (self.race.runner_up(winner), left) {
                (Some(next), Some(left)) if next > 0 && !is_over => (winner, blocks) = (next, left),
                _ => break ended,
            }
            let next = &mut found.candidates[winner];
            // It was worse than one that is out.
            next.dropped = None;
            found.winner = Some(next.name.clone());
        };
        Ok(Ended {
            outcome: ended.outcome.map(|()| found),
            place: ended.place,
            unstored: ended.unstored,
        })
    }

    /// Compares a candidate with the base in blocks of their own. It ends when the candidate breaks a limit.
    fn compare(
        &self,
        (design, plan): (Design, Plan),
        identity: &Identity,
        store: Option<Store>,
        lab: &mut Lab,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(TuneProgress<'_>),
    ) -> Ended<Study, StudyError> {
        // The time of the race is not the study's.
        let identity = Identity {
            begin: Instant::now(),
            ..identity.clone()
        };
        let (request, name) = (
            self.request.clone(),
            String::from(design.settings[0].name()),
        );
        let breaks = Some(TuneDropped::BreaksLimit);
        let is_broken = move |it: &[Trial]| request.alone(&name, it).dropped(0) == breaks;
        let store = store.map(|store| (store, StudyKind::Study));
        let session = Session::new(design, plan, identity, store).until(is_broken);
        session.run(lab, cancel, |it| progress(TuneProgress::Final(it)))
    }

    /// Returns the winner, if it is to be compared with the base; else says why not.
    fn winner(&self, found: &mut Tune) -> Option<usize> {
        let settings = &self.design.settings;
        let winner = self.race.choice();
        found.winner = winner.map(|it| String::from(settings[it].name()));
        let margin = figure(100.0 * (MARGIN - 1.0));
        let is_void = self
            .trials
            .iter()
            .all(|it| self.request.result(it).value.is_none());
        let void = self
            .trials
            .iter()
            .find_map(Trial::reason_void)
            .filter(|_| is_void);
        found.because = match winner {
            None if void.is_some() => {
                format!("no trial gave a figure: {}", void.unwrap_or_default())
            }
            None if self.request.limits.is_empty() => String::from("no candidate gave a figure"),
            None => format!(
                "no setting that was tried is shown to keep {}; lower the load, or allow more with --keep",
                found.limits_words()
            ),
            Some(0) => format!("it is the best that was tried, or as good within {margin} %"),
            Some(_) => String::new(),
        };
        winner.filter(|it| *it > 0)
    }

    /// Adds what the race found to the document.
    fn tell(&self, found: &mut Tune) {
        found.race_trials = self.trials.len() as u32;
        found.grid_trials = self.budget.grid_trials as u32;
        self.race.tell(&mut found.candidates);
        for own in &mut found.candidates {
            let trials = || self.trials.iter().filter(|it| it.setting == own.name);
            let typical = |figures: Vec<f64>| nicpoll_stats::mean(&figures);
            let delays = trials().filter_map(|it| kept_figure(it, KeptFigure::DelayP50Ns));
            let delays = delays.collect();
            own.cpu = typical(trials().filter_map(|it| cost(self.request, it)).collect());
            own.delay_p50_ns = typical(delays);
        }
    }
}

/// Returns the CPU time of a trial's work.
fn cost(request: &TuneRequest, trial: &Trial) -> Option<f64> {
    let unit = request.design.workloads[0].request.workload().unit();
    let metric = match unit {
        WorkUnit::Bytes => Metric::CpuNsPerByte,
        WorkUnit::Datagrams | WorkUnit::Transactions => Metric::CpuNsPerPacket,
    };
    value(trial, metric)
}

/// Plans the comparison of the winner with the base.
fn last(
    request: &TuneRequest,
    pair: [&NamedSetting; 2],
    blocks: u32,
    seed: u64,
) -> Result<(Design, Plan), Refused> {
    let contrast = Versus {
        measures: vec![request.metric.measure()],
        ..Versus::of(pair[0].name(), pair[1].name())
    };
    let workload = request.design.workloads[0].name.as_str();
    let contrasts = vec![contrast];
    let design = Design {
        question: format!("Is {} better than {} here?", pair[0].name(), pair[1].name()),
        drop_order: drop_order(&contrasts, std::iter::once(workload)),
        settings: pair.map(NamedSetting::clone).to_vec(),
        contrasts,
        ..request.design.clone()
    };
    let lengths = Lengths {
        blocks,
        limit: None,
        stop_width: None,
        ..request.lengths.clone()
    };
    let plan = plan_of(&design, &lengths, Seed(seed))?;
    Ok((design, plan))
}

/// Decides by the final comparison: the winner is chosen if it is better, or if it keeps the limits and the base does
/// not. Returns whether it keeps them, too.
fn settled(
    request: &TuneRequest,
    found: &mut Tune,
    study: Ended<Study, StudyError>,
    cancel: &AtomicBool,
) -> (Ended<(), StudyError>, bool) {
    let mut is_kept = false;
    let outcome = match study.outcome {
        Err(_) if cancel.load(Ordering::Relaxed) => {
            found.is_finished = false;
            found.because = String::from("the final comparison was ended");
            Ok(())
        }
        Err(error) => Err(error),
        Ok(study) => {
            is_kept = decide(request, found, &study);
            found.study = Some(study);
            Ok(())
        }
    };
    let ended = Ended {
        outcome,
        place: study.place,
        unstored: study.unstored,
    };
    (ended, is_kept)
}

/// Decides, and returns whether the winner keeps the limits.
fn decide(request: &TuneRequest, found: &mut Tune, study: &Study) -> bool {
    let winner = found.winner.clone().unwrap_or_default();
    let again = |setting: &str| request.alone(setting, &study.trials);
    let told = |it: &&Trial| request.result(it).limited.iter().all(Option::is_some);
    let of_winner = study.trials.iter().filter(|it| it.setting == winner);
    let is_told = of_winner.filter(told).count() >= FINAL_BLOCKS_MIN;
    let is_kept = request.limits.is_empty() || is_told && again(&winner).choice().is_some();
    for own in &mut found.candidates {
        // A setting without trials in the comparison has broken nothing in it.
        own.dropped = again(&own.name).dropped(0).or(own.dropped);
    }
    let mut compared = study.comparisons.iter();
    let compared = compared.find(|it| it.metric == request.metric);
    let verdict = compared.and_then(|it| it.verdict);
    let is_better = verdict.is_some_and(|it| it.without_weight() == Verdict::Better);
    let blocks = counted(compared.map_or(0, |it| it.blocks), "block");
    found.conclude(is_kept, is_better, &blocks);
    is_kept
}
