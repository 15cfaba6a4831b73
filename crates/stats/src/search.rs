//! The highest load that a system holds, for several loss ratios in one pass: MLRsearch (draft-ietf-bmwg-mlrsearch).
//!
//! [`Search`] is told what each trial lost and says which to make next, until every goal has its bounds. A load is
//! classified by the draft's rule alone, from the trials at that load. Which load is tried next is this module's own:
//! of all places between two neighbouring loads, the one that contradicts the fewest seconds of trials; its two ends
//! are then tried until they are decided. Good trials above bad ones therefore cost a few trials, not the result.

pub mod race;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nicpoll_model::{GoalBounds, SearchGoal, SenderLimit};

/// Share of the asked load that a trial must offer: below it nothing follows for the load.
pub const OFFERED_SHARE: f64 = 0.99;

/// Trials in a row at a load that did not offer it, after which it counts as out of the sender's reach.
const VOIDS_MAX: usize = 3;

/// The no-drop rate as CSIT measures it: half of 21 trials of a second lose nothing.
pub const NDR: SearchGoal = SearchGoal {
    loss_ratio: 0.0,
    initial_trial_seconds: 1.0,
    final_trial_seconds: 1.0,
    duration_sum_seconds: 21.0,
    exceed_ratio: 0.5,
    width_ratio: 0.005,
};

/// The partial drop rate as CSIT measures it: half of 21 trials of a second lose at most 0.5 %.
pub const PDR: SearchGoal = SearchGoal {
    loss_ratio: 0.005,
    ..NDR
};

/// The throughput of RFC 2544: one trial of 60 s loses nothing, and no shorter one lost anything.
pub const RFC_2544: SearchGoal = SearchGoal {
    final_trial_seconds: 60.0,
    duration_sum_seconds: 60.0,
    exceed_ratio: 0.0,
    ..NDR
};

/// How a load is classified for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadClass {
    /// It is held.
    LowerBound,
    /// It is not held.
    UpperBound,
    /// More trials may make it either.
    Undecided,
}

/// A trial to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextTrial {
    /// The load, a second.
    pub load: u64,
    /// How long.
    pub seconds: f64,
}

/// What a finished trial at a load lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialLoss {
    /// How long it was.
    pub seconds: f64,
    /// Share of its packets that was lost.
    pub loss_ratio: f64,
}

/// Seconds of trials, by whether they were good and as long as the final ones.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    good_long: f64,
    bad_long: f64,
    good_short: f64,
    bad_short: f64,
}

impl Seconds {
    fn of(goal: &SearchGoal, trials: &[TrialLoss]) -> Seconds {
        let mut all = Seconds::default();
        for trial in trials {
            let is_long = trial.seconds >= goal.final_trial_seconds;
            let sum = match (trial.loss_ratio <= goal.loss_ratio, is_long) {
                (true, true) => &mut all.good_long,
                (false, true) => &mut all.bad_long,
                (true, false) => &mut all.good_short,
                (false, false) => &mut all.bad_short,
            };
            *sum += trial.seconds;
        }
        all
    }
}

/// Classifies a load by its trials. Short bad trials count as far as short good ones do not make up for them; seconds
/// that are missing to the goal's sum count as good, and then as bad: if both give the same, it is decided.
pub fn classify(goal: &SearchGoal, trials: &[TrialLoss]) -> LoadClass {
    let seconds = Seconds::of(goal, trials);
    let made_up = seconds.good_short * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let bad = seconds.bad_long + (seconds.bad_short - made_up).max(0.0);
    let whole = (seconds.good_long + bad).max(goal.duration_sum_seconds);
    let allowed = whole * goal.exceed_ratio;
    match (bad <= allowed, whole - seconds.good_long <= allowed) {
        (true, true) => LoadClass::LowerBound,
        (false, false) => LoadClass::UpperBound,
        _ => LoadClass::Undecided,
    }
}

/// Returns the loss that counts at a lower bound: that of the long trial at the quantile of the exceed ratio, where
/// seconds that are missing to the goal's sum lost everything.
fn quantile_loss(goal: &SearchGoal, trials: &[TrialLoss]) -> f64 {
    let long = trials
        .iter()
        .filter(|it| it.seconds >= goal.final_trial_seconds);
    let mut long: Vec<&TrialLoss> = long.collect();
    long.sort_by(|one, other| one.loss_ratio.total_cmp(&other.loss_ratio));
    let sum: f64 = long.iter().map(|trial| trial.seconds).sum();
    let needed = sum.max(goal.duration_sum_seconds) * (1.0 - goal.exceed_ratio);
    let mut reached = 0.0;
    let at = long.iter().find(|trial| {
        reached += trial.seconds;
        reached >= needed
    });
    at.map_or(1.0, |trial| trial.loss_ratio)
}

/// Trials at a load.
#[derive(Clone, Debug, Default)]
struct Tried {
    trials: Vec<TrialLoss>,
    /// The offered rates of trials that did not offer the load, since the last that did.
    voids: Vec<f64>,
}

/// The bounds of a goal, as indices of loads.
#[derive(Clone, Copy)]
struct Bounds {
    lower: Option<usize>,
    upper: Option<usize>,
}

/// A load between the bounds, with the seconds of its good and bad trials.
struct Evidence {
    load: usize,
    good: f64,
    bad: f64,
}

/// A search, in the middle of it.
#[derive(Clone, Debug)]
pub struct Search {
    goals: Vec<SearchGoal>,
    /// The loads that may be tried, ascending: neighbours are one width of the finest goal apart, or 1.
    loads: Vec<u64>,
    /// The highest that the sender offers, as far as known; `None` if it offers none.
    top: Option<usize>,
    tried: BTreeMap<usize, Tried>,
    limit: Option<SenderLimit>,
    /// How often the limit was found, further down each time.
    limits: usize,
}

impl Search {
    /// Begins a search for these goals in a range of loads.
    pub fn new(goals: Vec<SearchGoal>, range: RangeInclusive<u64>) -> Self {
        let widths = goals.iter().map(|goal| goal.width_ratio);
        let width = widths.fold(1.0, f64::min);
        let mut loads = vec![*range.end()];
        let mut load = *range.end();
        while load > *range.start() {
            let next = (load as f64 * (1.0 - width)).ceil() as u64;
            load = next.min(load - 1).max(*range.start());
            loads.push(load);
        }
        loads.reverse();
        Search {
            top: Some(loads.len() - 1),
            goals,
            loads,
            tried: BTreeMap::new(),
            limit: None,
            limits: 0,
        }
    }

    /// Returns the next trial; `None` when every goal has its bounds, or nothing can be offered.
    pub fn next_trial(&self) -> Option<NextTrial> {
        let top = self.top?;
        let mut goals = self.goals.iter();
        goals.find_map(|goal| self.nominated(goal, top))
    }

    /// Adds the result of a trial that offered this rate. Returns whether it counts: one that did not offer its load
    /// says nothing about it.
    pub fn add(&mut self, trial: NextTrial, offered: f64, loss_ratio: f64) -> bool {
        let at = self.floor(trial.load as f64);
        let tried = self.tried.entry(at).or_default();
        if offered >= OFFERED_SHARE * trial.load as f64 {
            tried.voids.clear();
            tried.trials.push(TrialLoss {
                seconds: trial.seconds,
                loss_ratio,
            });
            return true;
        }
        tried.voids.push(offered);
        if tried.voids.len() >= VOIDS_MAX {
            let most = tried.voids.iter().copied().fold(0.0, f64::max);
            self.limit = Some(SenderLimit {
                asked_per_second: trial.load,
                offered_per_second: most,
            });
            let below = at.checked_sub(stride(self.limits));
            self.top = below.map(|below| below.min(self.floor(most)));
            self.limits += 1;
        }
        false
    }

    /// Returns the load above which nothing could be offered; `None` if everything asked for was.
    pub fn limit(&self) -> Option<SenderLimit> {
        self.limit
    }

    /// Returns the bounds of each goal, as far as they are known.
    pub fn bounds(&self) -> Vec<GoalBounds> {
        let bounds_of = |goal: &SearchGoal| {
            let bounds = self.bounds_of(goal);
            let load = |at: usize| self.loads[at];
            let throughput = |at: usize| {
                let trials = &self.tried.get(&at)?.trials;
                Some(load(at) as f64 * (1.0 - quantile_loss(goal, trials)))
            };
            GoalBounds {
                loss_ratio: goal.loss_ratio,
                lower_per_second: bounds.lower.map(load),
                upper_per_second: bounds.upper.map(load),
                conditional_throughput_per_second: bounds.lower.and_then(throughput),
                is_finished: self.top.is_some_and(|top| self.is_met(goal, bounds, top)),
            }
        };
        self.goals.iter().map(bounds_of).collect()
    }

    /// The upper bound is the lowest load that is one, the lower bound the highest below it.
    fn bounds_of(&self, goal: &SearchGoal) -> Bounds {
        let mut bounds = Bounds {
            lower: None,
            upper: None,
        };
        for (at, tried) in &self.tried {
            match classify(goal, &tried.trials) {
                LoadClass::LowerBound => bounds.lower = Some(*at),
                LoadClass::UpperBound => {
                    bounds.upper = Some(*at);
                    break;
                }
                LoadClass::Undecided => {}
            }
        }
        bounds
    }

    fn is_met(&self, goal: &SearchGoal, bounds: Bounds, top: usize) -> bool {
        match (bounds.lower, bounds.upper) {
            (Some(lower), _) if lower >= top => true,
            (Some(lower), Some(upper)) => self.is_narrow(goal, lower, upper),
            (None, Some(upper)) => upper == 0,
            (_, None) => false,
        }
    }

    fn is_narrow(&self, goal: &SearchGoal, lower: usize, upper: usize) -> bool {
        let (from, to) = (self.loads[lower], self.loads[upper]);
        upper - lower <= 1 || (to - from) as f64 <= goal.width_ratio * to as f64
    }

    /// The greatest load up to a rate, or the lowest of all.
    fn floor(&self, rate: f64) -> usize {
        let above = self.loads.partition_point(|load| *load as f64 <= rate);
        above.saturating_sub(1)
    }

    /// Returns the trial that brings a goal on; `None` when it has its bounds.
    fn nominated(&self, goal: &SearchGoal, top: usize) -> Option<NextTrial> {
        let bounds = self.bounds_of(goal);
        if self.is_met(goal, bounds, top) {
            return None;
        }
        // Short trials may flatter: a queue takes what is too much for a while.
        let is_long_only = self.flatters(goal);
        let evidence = self.evidence(goal, bounds, top, is_long_only);
        let probe = match is_long_only {
            true => goal.final_trial_seconds,
            false => goal.initial_trial_seconds,
        };
        let (at, seconds) = match likeliest(bounds, &evidence) {
            // The upper end first: a limit that was thought too low shows there.
            (Some(lower), Some(upper)) if self.is_narrow(goal, lower, upper) => {
                let is_open = bounds.upper != Some(upper);
                (
                    if is_open { upper } else { lower },
                    goal.final_trial_seconds,
                )
            }
            (Some(lower), Some(upper)) => (self.between(goal, lower, upper, is_long_only), probe),
            (Some(lower), None) if lower >= top => (top, goal.final_trial_seconds),
            (_, None) => (top, probe),
            (None, Some(0)) => (0, goal.final_trial_seconds),
            (None, Some(upper)) => (self.below(goal, upper, is_long_only), probe),
        };
        // Above the top nothing is offered: the top itself is decided then.
        let seconds = if at > top {
            goal.final_trial_seconds
        } else {
            seconds
        };
        Some(NextTrial {
            load: self.loads[at.min(top)],
            seconds,
        })
    }

    /// Returns whether a load that is not held had more good than bad seconds in short trials.
    fn flatters(&self, goal: &SearchGoal) -> bool {
        self.tried.values().any(|tried| {
            let seconds = Seconds::of(goal, &tried.trials);
            seconds.good_short > seconds.bad_short
                && classify(goal, &tried.trials) == LoadClass::UpperBound
        })
    }

    /// Returns what trials say about the loads between the bounds.
    fn evidence(
        &self,
        goal: &SearchGoal,
        bounds: Bounds,
        top: usize,
        is_long_only: bool,
    ) -> Vec<Evidence> {
        let from = bounds.lower.map_or(0, |lower| lower + 1);
        let to = bounds.upper.unwrap_or(usize::MAX).min(top + 1).max(from);
        let each = self.tried.range(from..to).map(|(load, tried)| {
            let seconds = Seconds::of(goal, &tried.trials);
            let short = if is_long_only { 0.0 } else { 1.0 };
            Evidence {
                load: *load,
                good: seconds.good_long + short * seconds.good_short,
                bad: seconds.bad_long + short * seconds.bad_short,
            }
        });
        each.filter(|it| it.good + it.bad > 0.0).collect()
    }

    /// Returns the load that a goal allows by what was delivered of one that is too much. Traffic that overloads a
    /// system may deliver far less than the system holds.
    fn would_hold(&self, goal: &SearchGoal, upper: usize, is_long_only: bool) -> usize {
        let trials = self.tried.get(&upper).map_or(&[][..], |it| &it.trials);
        let counts = |it: &&TrialLoss| !is_long_only || it.seconds >= goal.final_trial_seconds;
        let kept = trials.iter().filter(counts).map(|it| 1.0 - it.loss_ratio);
        let (sum, count) = kept.fold((0.0, 0.0), |(sum, count), one| (sum + one, count + 1.0));
        let delivered = self.loads[upper] as f64 * sum / f64::max(count, 1.0);
        self.floor(delivered / (1.0 - goal.loss_ratio))
    }

    /// Returns a load below the lowest that is known to be too much: further below with each that was.
    fn below(&self, goal: &SearchGoal, upper: usize, is_long_only: bool) -> usize {
        let step = stride(self.tried.range(upper..).count());
        let would_hold = self.would_hold(goal, upper, is_long_only);
        would_hold.min(upper.saturating_sub(step))
    }

    /// Returns a load between one that seems to be held and one that seems not to be.
    fn between(&self, goal: &SearchGoal, lower: usize, upper: usize, is_long_only: bool) -> usize {
        let middle = lower.midpoint(upper);
        let would_hold = self.would_hold(goal, upper, is_long_only);
        if would_hold > lower {
            return would_hold.min(upper - 1);
        }
        let step = stride(self.tried.range(would_hold..=lower).count());
        middle.min(lower + step)
    }
}

/// Returns how far the next step goes after this many in one direction.
fn stride(steps: usize) -> usize {
    1 << steps.saturating_sub(1).min(16)
}

/// Returns the neighbouring loads between which the fewest seconds of trials contradict the limit: good ones above it,
/// and bad ones below. Among equals it is where there is most room between two loads; an open end comes last.
fn likeliest(bounds: Bounds, evidence: &[Evidence]) -> (Option<usize>, Option<usize>) {
    let mut against: f64 = evidence.iter().map(|it| it.good).sum();
    let mut best = (f64::INFINITY, 0, (bounds.lower, bounds.upper));
    for at in 0..=evidence.len() {
        let lower = at.checked_sub(1).map(|below| &evidence[below]);
        if let Some(lower) = lower {
            against += lower.bad - lower.good;
        }
        let ends = (
            lower.map(|it| it.load).or(bounds.lower),
            evidence.get(at).map(|it| it.load).or(bounds.upper),
        );
        let room = ends.0.zip(ends.1).map_or(0, |(lower, upper)| upper - lower);
        if (against, best.1) < (best.0, room) || at == 0 {
            best = (against, room, ends);
        }
    }
    best.2
}
