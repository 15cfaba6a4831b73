//! The highest load that each setting holds under each workload.
//!
//! A setting stays in force for all trials of its search; a trial is one run of traffic at a load. Refused sends count
//! as lost: the sender's own interface or queue, or the receiver's ring behind a veth, had no room for them. Past the
//! bounds, a few loads show what is delivered of too much.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nicpoll_lab::{HostFailure, Lab, LabError, RATE_MAX, Refused, WorkloadRequest};
use nicpoll_model::line::{Line, LinePacket};
use nicpoll_model::{
    ControlKind, GoalBounds, LoadSearch, LoadTrial, Origin, Plan, STUDY_SEARCH_SCHEMA, SearchGoal,
    SenderLimit, StudySearch, WorkUnit,
};
use nicpoll_stats::search::{NextTrial, OFFERED_SHARE, Search};
use nicpoll_switch::did_you_mean;

use crate::design::{Design, NamedSetting, NamedWorkload};
use crate::plan::{Lengths, outline};
use crate::run::session::in_lab;
use crate::run::trial::{HeldRun, HeldSetting, Subject, Trials};

/// The lowest load that is tried, a second of each sender.
const LOAD_MIN: u64 = 20;

/// A sender on a line is asked for at most this many times the line.
const LINES_MAX: f64 = 2.0;

/// Loads past the bounds, as multiples of the highest upper bound.
const PAST: [f64; 4] = [1.1, 1.25, 1.5, 2.0];

/// Length of a trial past the bounds.
const PAST_SECONDS: f64 = 1.0;

/// How much later than the sender the receiver may end, besides a period and a share of the trial: a reader that is
/// scheduled late. What it reads after that was in a queue that grew, and no longer trial would hold it.
const LATE: Duration = Duration::from_millis(2);

const LATE_SHARE: f64 = 0.001;

/// Trials in a row that are disturbed or fail, after which a search ends.
const FAILURES_MAX: usize = 3;

/// What to search for.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    design: Design,
    plan: Plan,
    goals: Vec<SearchGoal>,
}

impl SearchRequest {
    /// Searches under these settings of a design; all if none is named.
    ///
    /// # Errors
    /// For a name that no setting has, and for a workload that cannot be sent at any rate.
    pub fn new(
        mut design: Design,
        lengths: &Lengths,
        settings: &[String],
        goals: Vec<SearchGoal>,
    ) -> Result<Self, Refused> {
        if let Some(name) = settings.iter().find(|name| design.setting(name).is_none()) {
            let known: Vec<&str> = design.settings.iter().map(NamedSetting::name).collect();
            return Err(Refused(format!(
                "there is no setting '{name}'; known are {}{}",
                known.join(", "),
                did_you_mean(name, known.iter().copied())
            )));
        }
        let is_asked = |it: &NamedSetting| settings.iter().any(|name| name == it.name());
        design
            .settings
            .retain(|it| settings.is_empty() || is_asked(it));
        design.workloads = searchable(design.workloads)?;
        design.sent_at_hosts()?;
        Ok(SearchRequest {
            plan: outline(&design, lengths)?,
            design,
            goals,
        })
    }
}

/// Returns the workloads that can be sent at any rate, each sweep's once.
fn searchable(workloads: Vec<NamedWorkload>) -> Result<Vec<NamedWorkload>, Refused> {
    let can_be = |it: &NamedWorkload| {
        let at_one = it.request.clone().at_rate(1);
        let rate = at_one.and_then(|request| request.asked_per_second());
        rate == Some(1) && it.request.workload().unit() == WorkUnit::Datagrams
    };
    let mut kept: Vec<NamedWorkload> = Vec::new();
    for mut workload in workloads.into_iter().filter(can_be) {
        if let Some(load) = workload.load.take() {
            workload.name = load.sweep;
        }
        workload.options.spinner = false;
        if kept.iter().all(|it| it.name != workload.name) {
            kept.push(workload);
        }
    }
    match kept.is_empty() {
        false => Ok(kept),
        true => Err(Refused(String::from(
            "no workload of the study can be sent at any rate; udp and mix can be searched",
        ))),
    }
}

/// What a search reports while it runs.
#[derive(Clone, Copy, Debug)]
pub struct SearchProgress<'a> {
    /// The workload.
    pub workload: &'a str,
    /// The setting.
    pub setting: &'a str,
    /// Trials so far.
    pub trials: usize,
    /// The load of the next one, of all senders.
    pub per_second: u64,
}

/// Searches in namespaces of this machine, or between its interfaces if the design names them. `guard` calls
/// [`nicpoll_switch::watch_over`].
///
/// # Errors
/// When the lab cannot be built, and as [`search`].
pub fn search_here(
    request: &SearchRequest,
    origin: Origin,
    guard: Command,
    cancel: &AtomicBool,
    progress: impl FnMut(SearchProgress<'_>),
) -> Result<StudySearch, LabError> {
    let run = |lab: &mut Lab| search(request, lab, origin, cancel, progress);
    in_lab(&request.design.topology, false, guard, run)?
}

/// Searches on a lab. Settings are restored before it returns. When `cancel` becomes true or a host fails, it returns
/// what was found so far.
///
/// # Errors
/// When a host does not describe itself.
pub fn search(
    request: &SearchRequest,
    lab: &mut Lab,
    origin: Origin,
    cancel: &AtomicBool,
    mut progress: impl FnMut(SearchProgress<'_>),
) -> Result<StudySearch, LabError> {
    let begin = Instant::now();
    let SearchRequest {
        design,
        plan,
        goals,
    } = request;
    let mut found = StudySearch {
        schema: String::from(STUDY_SEARCH_SCHEMA),
        nicpoll_version: origin.nicpoll_version,
        argv: origin.argv,
        started_at: origin.started_at,
        goals: goals.clone(),
        workloads: design.workload_facts(),
        settings: design.settings.iter().map(NamedSetting::facts).collect(),
        host: lab.machine()?,
        lab: lab.facts()?,
        searches: Vec::new(),
        is_finished: false,
        elapsed_seconds: 0.0,
    };
    let line = lab.link.line.ok();
    let mut trials = Trials::new(lab, design, plan, cancel)?;
    let both = design.workloads.iter();
    let mut both = both.flat_map(|workload| design.settings.iter().map(move |it| (workload, it)));
    found.is_finished = both.all(|(workload, setting)| {
        let mut one = OneSearch::new(request, workload, setting, line);
        let outcome = one.run(&mut trials, &mut progress);
        let outcome = outcome.and(trials.restore());
        // A workload's own failure leaves the others.
        let goes_on = outcome
            .as_ref()
            .err()
            .is_none_or(|it| it.of_traffic().is_some());
        let failure = outcome
            .err()
            .filter(|it| !matches!(it, LabError::Cancelled));
        one.found.failure = failure
            .map(|it| HostFailure::of(it).to_string())
            .or(one.found.failure);
        found.searches.push(one.end());
        goes_on && !cancel.load(Ordering::Relaxed)
    });
    found.elapsed_seconds = begin.elapsed().as_secs_f64();
    Ok(found)
}

/// The search under one workload and setting.
struct OneSearch<'a> {
    setting: &'a NamedSetting,
    /// The workload, at the rate of the last trial.
    rated: NamedWorkload,
    /// Senders at once: loads of the search are of each.
    ways: u64,
    search: Search,
    found: LoadSearch,
    begin: Instant,
}

impl<'a> OneSearch<'a> {
    fn new(
        request: &SearchRequest,
        workload: &NamedWorkload,
        setting: &'a NamedSetting,
        line: Option<Line>,
    ) -> Self {
        let links = u64::from(request.design.topology.links());
        let ways = links * workload.options.ways();
        let full = line.and_then(|line| full_line(line, workload));
        let most = full.map_or(RATE_MAX, |full| (LINES_MAX * full) as u64);
        let range = LOAD_MIN..=most.clamp(LOAD_MIN, RATE_MAX);
        OneSearch {
            setting,
            rated: workload.clone(),
            ways,
            search: Search::new(request.goals.clone(), range),
            found: LoadSearch {
                workload: workload.name.clone(),
                setting: String::from(setting.name()),
                line_per_second: full.map(|full| full * ways as f64),
                ..LoadSearch::default()
            },
            begin: Instant::now(),
        }
    }

    fn run(
        &mut self,
        trials: &mut Trials<'_>,
        progress: &mut dyn FnMut(SearchProgress<'_>),
    ) -> Result<(), LabError> {
        let mut held = trials.hold(self.subject())?;
        let mut failed = 0;
        while let Some(next) = self.search.next_trial() {
            let trial = self.trial(trials, &mut held, next, progress)?;
            let figures = trial.offered_per_second.zip(trial.not_held_ratio());
            if let Some((offered, not_held)) = figures {
                self.search.add(next, offered / self.ways as f64, not_held);
            }
            failed = if figures.is_some() { 0 } else { failed + 1 };
            if failed == FAILURES_MAX {
                self.found.failure.clone_from(&trial.void);
                return Ok(());
            }
            self.found.trials.push(trial);
        }
        let bounds = self.search.bounds();
        let Some(upper) = bounds.iter().filter_map(|it| it.upper_per_second).max() else {
            return Ok(());
        };
        for times in PAST {
            let load = (times * upper as f64) as u64;
            let next = NextTrial {
                load,
                seconds: PAST_SECONDS,
            };
            let trial = self.trial(trials, &mut held, next, progress)?;
            self.found.curve.push(trial);
        }
        Ok(())
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            workload: &self.rated,
            setting: self.setting,
        }
    }

    fn trial(
        &mut self,
        trials: &mut Trials<'_>,
        held: &mut HeldSetting,
        next: NextTrial,
        progress: &mut dyn FnMut(SearchProgress<'_>),
    ) -> Result<LoadTrial, LabError> {
        self.rated.send_at(next.load, 1);
        let trial = LoadTrial {
            asked_per_second: next.load * self.ways,
            seconds: next.seconds,
            ..LoadTrial::default()
        };
        progress(SearchProgress {
            workload: &self.found.workload,
            setting: &self.found.setting,
            trials: self.found.trials.len(),
            per_second: trial.asked_per_second,
        });
        let period = Duration::from_nanos(self.setting.period_ns().unwrap_or(0));
        match trials.run_held(self.subject(), held, next.seconds) {
            Ok(run) => Ok(judged(trial, run, period)),
            Err(error) => match error.of_traffic() {
                Some(why) => Ok(void(trial, why)),
                None => Err(error),
            },
        }
    }

    /// Returns the document, in loads of all senders.
    fn end(self) -> LoadSearch {
        let ways = self.ways as f64;
        let all = |load: u64| load * self.ways;
        let bounds = self.search.bounds().into_iter().map(|one| GoalBounds {
            lower_per_second: one.lower_per_second.map(all),
            upper_per_second: one.upper_per_second.map(all),
            conditional_throughput_per_second: one
                .conditional_throughput_per_second
                .map(|rate| rate * ways),
            ..one
        });
        LoadSearch {
            bounds: bounds.collect(),
            sender_limit: self.search.limit().map(|limit| SenderLimit {
                asked_per_second: all(limit.asked_per_second),
                offered_per_second: limit.offered_per_second * ways,
            }),
            elapsed_seconds: self.begin.elapsed().as_secs_f64(),
            ..self.found
        }
    }
}

fn void(trial: LoadTrial, why: &str) -> LoadTrial {
    LoadTrial {
        void: Some(String::from(why)),
        ..trial
    }
}

/// Returns the datagrams a second of a full line, one way.
fn full_line(line: Line, workload: &NamedWorkload) -> Option<f64> {
    let lengths = match &workload.request {
        WorkloadRequest::Mix(mix) => mix.payload_bytes.clone(),
        WorkloadRequest::Udp(udp) => vec![udp.payload_bytes],
        _ => return None,
    };
    let share = |payload_bytes: &u16| {
        let packet = LinePacket::Udp {
            ip: workload.options.ip,
            payload_bytes: (*payload_bytes).into(),
        };
        line.share_of_packets(packet, 1.0)
    };
    let shares: f64 = lengths.iter().map(share).sum::<Option<f64>>()?;
    Some(lengths.len() as f64 / shares)
}

/// Judges a run by both ends' counts. A disturbed one has no figures.
fn judged(trial: LoadTrial, run: HeldRun, period: Duration) -> LoadTrial {
    let (sender, receiver) = (run.books.sender, run.books.receiver);
    if let Some(why) = run.disturbed {
        return void(trial, &why);
    }
    let Some((sent, received)) = sender.packets.zip(receiver.packets) else {
        return void(trial, "an end did not count datagrams");
    };
    let control = run.books.control.iter();
    let refused = control.filter(|it| it.kind == ControlKind::Refused);
    let tried = sent + refused.filter_map(|it| it.sent_packets).sum::<u64>();
    if tried == 0 {
        return void(trial, "nothing was sent");
    }
    let offered = tried as f64 / sender.seconds.max(trial.seconds);
    let allowed = LATE.as_secs_f64() + LATE_SHARE * sender.seconds + period.as_secs_f64();
    let late = (receiver.seconds - sender.seconds - allowed).max(0.0);
    let late = late * receiver.packets_per_second.unwrap_or(0.0);
    let is_short = offered < OFFERED_SHARE * trial.asked_per_second as f64;
    LoadTrial {
        offered_per_second: Some(offered),
        delivered_per_second: receiver.packets_per_second,
        loss_ratio: Some(tried.saturating_sub(received) as f64 / tried as f64),
        late_ratio: Some(late / tried as f64),
        void: is_short.then(|| String::from("less than 99 % of the load was offered")),
        unproven: run.unproven,
        ..trial
    }
}
