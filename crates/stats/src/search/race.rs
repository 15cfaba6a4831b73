//! A race of candidates for the best value, under limits that other figures must keep.
//!
//! [`Race`] says which candidates run in the next block and is told what each measured. After each block it drops the
//! candidates that break a limit or are worse than the best one that keeps all, by intervals: of logs within blocks, at
//! the family's confidence. The race ends when one is left, when all that are left are as good as the leader within the margin, or
//! when the trials are used up. A candidate is chosen only if the interval of each limited figure lies below its limit.
//!
//! Two blocks are too few to know a candidate's scatter by itself. Its variance is therefore moderated by that of all
//! candidates, as in G. K. Smyth, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression",
//! Statistical Applications in Genetics and Molecular Biology 3 (2004), with fixed degrees of freedom and their median:
//! one candidate that scatters widely says nothing of the others. What all candidates of a block have in common, the
//! median of their deviations, is taken out before.

use nicpoll_model::tune::{TuneCandidate, TuneDropped};

use crate::interval::{Confidence, Interval, student_quantile};
use crate::summary::{mean, median};

/// Degrees of freedom with which the scatter of all candidates counts for each.
const COMMON_DEGREES: usize = 8;

/// Trials without a figure after which a candidate is dropped.
const MISSING_MAX: usize = 2;

/// A race takes at most this share of the grid's trials, the final comparison included.
const GRID_SHARE: usize = 4;

/// Fewest blocks of the final comparison: with fewer, ranks give no interval.
pub const FINAL_BLOCKS_MIN: usize = 6;

/// A grid has at most so many times the blocks that were planned, however much trials scatter.
const SCATTER_MAX: usize = 4;

/// Squared sum of the normal quantiles of 95 % confidence, both sides, and of a power of 80 %.
const TOLD: f64 = (1.96 + 0.84) * (1.96 + 0.84);

/// What tuning takes: a quarter of the grid in which each candidate runs in each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaceBudget {
    /// Trials of the grid.
    pub grid_trials: usize,
    /// Most trials of the race.
    pub race_trials: usize,
    /// Blocks of the final comparison of two.
    pub final_blocks: usize,
}

impl RaceBudget {
    /// Returns the budget for so many candidates by a grid of so many blocks.
    pub fn of(candidates: usize, grid_blocks: usize) -> Self {
        let grid_trials = candidates * grid_blocks;
        // Ranks of twelve blocks bear one that was disturbed, those of eight do not.
        let final_blocks = (3 * grid_blocks / 4).max(FINAL_BLOCKS_MIN);
        let rest = (grid_trials / GRID_SHARE).saturating_sub(2 * final_blocks);
        RaceBudget {
            grid_trials,
            race_trials: rest.max(2 * candidates),
            final_blocks,
        }
    }

    /// Returns the blocks of another final comparison after so many trials: what is left of the quarter of the grid.
    /// `None` if that is too little.
    pub fn final_blocks_after(&self, trials: usize) -> Option<usize> {
        let left = (self.grid_trials / GRID_SHARE).saturating_sub(trials) / 2;
        (left >= FINAL_BLOCKS_MIN + 2).then(|| left.min(self.final_blocks))
    }
}

/// How a race is decided.
#[derive(Clone, Debug)]
pub struct RaceRule {
    /// Whether more of the value is better.
    pub more_is_better: bool,
    /// A ratio above 1: closer to the leader than this is as good.
    pub margin_ratio: f64,
    /// The most that each limited figure may be.
    pub limits: Vec<f64>,
    /// Trials after which the race ends.
    pub trials_max: usize,
}

/// What a candidate measured in a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RaceTrial {
    /// The value, above 0; `None` if it was not measured.
    pub value: Option<f64>,
    /// The limited figures, at least 0, in the order of the limits.
    pub limited: Vec<Option<f64>>,
}

/// A race.
#[derive(Clone, Debug)]
pub struct Race {
    rule: RaceRule,
    confidence: Confidence,
    /// The trials of each candidate, in the order of the blocks.
    trials: Vec<Vec<RaceTrial>>,
    dropped: Vec<Option<TuneDropped>>,
    /// The widest grid so far.
    grid_blocks: usize,
}

impl Race {
    /// Starts a race of this many candidates.
    pub fn new(candidates: usize, rule: RaceRule) -> Self {
        let family = u32::try_from(candidates).unwrap_or(u32::MAX);
        Race {
            rule,
            confidence: Confidence::for_family(family),
            trials: vec![Vec::new(); candidates],
            dropped: vec![None; candidates],
            grid_blocks: 0,
        }
    }

    /// Widens the budget by the scatter seen so far, and returns it. A grid has the blocks in which two candidates that
    /// differ by the margin are told apart, those `planned` at least and four times as many at most.
    pub fn widen(&mut self, planned: usize) -> RaceBudget {
        let scatter = median(&variances(&self.residuals()));
        let margin = self.rule.margin_ratio.ln();
        let told = scatter.map_or(0.0, |it| 2.0 * it * TOLD / (margin * margin));
        let blocks = (told.ceil() as usize).clamp(planned, SCATTER_MAX * planned);
        self.grid_blocks = self.grid_blocks.max(blocks);
        let budget = RaceBudget::of(self.trials.len(), self.grid_blocks);
        self.rule.trials_max = budget.race_trials;
        budget
    }

    /// Returns the candidates of the next block; `None` when the race is over.
    pub fn next_block(&self) -> Option<Vec<usize>> {
        let left = self.left();
        let used: usize = self.trials.iter().map(Vec::len).sum();
        let is_over = left.is_empty()
            || used + left.len() > self.rule.trials_max
            || (used > 0 && self.is_decided(&left));
        (!is_over).then_some(left)
    }

    /// Adds what each candidate of a block measured, and drops those that are out.
    pub fn add_block(&mut self, block: Vec<(usize, RaceTrial)>) {
        for (candidate, trial) in block {
            self.trials[candidate].push(trial);
        }
        for candidate in self.left() {
            self.dropped[candidate] = self.broken(candidate);
        }
        // Who may still break a limit drops nobody.
        let Some(leader) = self.choice() else {
            return;
        };
        for candidate in self.left() {
            let worse = self.difference(candidate, leader);
            if worse.is_some_and(|it| it.high < 0.0) {
                self.dropped[candidate] = Some(TuneDropped::Worse);
            }
        }
    }

    /// Drops a candidate for a reason of the caller's.
    pub fn drop_out(&mut self, candidate: usize, why: TuneDropped) {
        self.dropped[candidate] = Some(why);
    }

    /// Takes out a candidate that broke a limit after the race, and returns the best of the others that keep all limits,
    /// those that it had beaten included, by the blocks that each has in common with it.
    pub fn runner_up(&mut self, broke: usize) -> Option<usize> {
        self.drop_out(broke, TuneDropped::BreaksLimit);
        let is_out = |it: &usize| !matches!(self.dropped[*it], None | Some(TuneDropped::Worse));
        let kept = (0..self.trials.len()).filter(|it| !is_out(it) && self.is_kept(*it));
        let gains = kept.filter_map(|it| Some((it, self.difference(it, broke)?.estimate)));
        let best = gains.max_by(|one, other| one.1.total_cmp(&other.1));
        best.map(|(candidate, _)| candidate)
    }

    /// Adds to each candidate's row how it stands, with its ratio to the first one.
    pub fn tell(&self, rows: &mut [TuneCandidate]) {
        for (candidate, row) in rows.iter_mut().enumerate() {
            let logs = self.logs(candidate);
            let limits = 0..self.rule.limits.len();
            row.value = mean(&logs).map(f64::exp);
            row.blocks = u32::try_from(logs.len()).unwrap_or(u32::MAX);
            row.dropped = self.dropped[candidate];
            row.limited = limits.map(|it| self.limited(candidate, it)).collect();
            let ratio = (candidate > 0).then(|| self.ratio(candidate, 0)).flatten();
            row.ratio = ratio.map(|it| [it.estimate, it.low, it.high]);
        }
    }

    /// Returns why a candidate was dropped; `None` while it is in the race.
    pub fn dropped(&self, candidate: usize) -> Option<TuneDropped> {
        self.dropped[candidate]
    }

    /// Returns the best candidate of those left that are shown to keep every limit.
    pub fn choice(&self) -> Option<usize> {
        let mut kept = self.left();
        kept.retain(|candidate| self.is_kept(*candidate));
        self.leader(&kept)
    }

    /// Returns how a candidate compares with another one, as a ratio of their values.
    fn ratio(&self, candidate: usize, other: usize) -> Option<Interval> {
        let oriented = self.difference(candidate, other)?;
        match self.rule.more_is_better {
            true => oriented.exponentiated(),
            false => oriented.negated().exponentiated(),
        }
    }

    fn left(&self) -> Vec<usize> {
        let all = self.dropped.iter().enumerate();
        all.filter_map(|(candidate, dropped)| dropped.is_none().then_some(candidate))
            .collect()
    }

    /// Returns the best of these by the blocks in which they have values.
    fn leader(&self, of: &[usize]) -> Option<usize> {
        let values = of
            .iter()
            .filter_map(|it| Some((*it, mean(&self.logs(*it))?)));
        let better = |one: &(usize, f64), other: &(usize, f64)| {
            let order = one.1.total_cmp(&other.1);
            match self.rule.more_is_better {
                true => order,
                false => order.reverse(),
            }
        };
        values.max_by(better).map(|(candidate, _)| candidate)
    }

    /// Whether more blocks would change nothing: one is left, or all are as good as the leader and keep the limits.
    fn is_decided(&self, left: &[usize]) -> bool {
        let Some(leader) = self.leader(left) else {
            return false;
        };
        let margin = self.rule.margin_ratio.ln();
        let is_as_good = |it: &&usize| {
            let difference = self.difference(**it, leader);
            **it == leader || difference.is_some_and(|it| it.low >= -margin)
        };
        let is_known = |it: &&usize| self.rule.limits.is_empty() || self.is_kept(**it);
        left.len() == 1 && is_known(&&leader)
            || left.iter().filter(is_known).filter(is_as_good).count() == left.len()
    }

    /// Returns why a candidate is out by its own figures.
    fn broken(&self, candidate: usize) -> Option<TuneDropped> {
        let trials = &self.trials[candidate];
        let missing = trials.iter().filter(|it| it.value.is_none()).count();
        if missing >= MISSING_MAX {
            return Some(TuneDropped::NoFigure);
        }
        let mut limits = self.rule.limits.iter().enumerate();
        let is_over = limits.any(|(limit, most)| {
            let low = self.limited(candidate, limit).map(|[_, low, _]| low);
            low.is_some_and(|low| low > *most)
        });
        is_over.then_some(TuneDropped::BreaksLimit)
    }

    fn is_kept(&self, candidate: usize) -> bool {
        let mut limits = self.rule.limits.iter().enumerate();
        limits.all(|(limit, most)| {
            let high = self.limited(candidate, limit).map(|[.., high]| high);
            high.is_some_and(|high| high <= *most)
        })
    }

    /// Returns a limited figure with the ends of its interval: of logs, unless one was 0. With a limit of 0, one that
    /// was ever above 0 is above it, and one that never was is 0.
    fn limited(&self, candidate: usize, limit: usize) -> Option<[f64; 3]> {
        let figures = |trials: &Vec<RaceTrial>| {
            let figures = trials.iter().map(|it| it.limited.get(limit).copied());
            figures.flatten().flatten().collect::<Vec<f64>>()
        };
        let all: Vec<Vec<f64>> = self.trials.iter().map(figures).collect();
        let plain = mean(&all[candidate])?;
        if self.rule.limits[limit] == 0.0 {
            let least = if plain > 0.0 { f64::MIN_POSITIVE } else { 0.0 };
            return Some([plain, least, plain]);
        }
        let has_logs = all.iter().flatten().all(|it| *it > 0.0);
        let scaled = |it: &f64| if has_logs { it.ln() } else { *it };
        let back = |it: f64| if has_logs { it.exp() } else { it };
        let rows = all.iter().map(|row| row.iter().map(scaled).collect());
        let rows: Vec<Vec<f64>> = rows.collect();
        let deviations = rows.iter().map(|row| {
            let middle = mean(row).unwrap_or_default();
            row.iter().map(|it| it - middle).collect()
        });
        let deviations: Vec<Vec<f64>> = deviations.collect();
        let estimate = mean(&rows[candidate])?;
        let Some((variance, degrees)) = moderated(&deviations, candidate) else {
            return Some([back(estimate), 0.0, f64::INFINITY]);
        };
        let error = (variance / rows[candidate].len() as f64).sqrt();
        let half = student_quantile(degrees, self.confidence) * error;
        Some([estimate, estimate - half, estimate + half].map(back))
    }

    fn logs(&self, candidate: usize) -> Vec<f64> {
        let values = self.trials[candidate].iter().filter_map(|it| it.value);
        values.map(f64::ln).collect()
    }

    /// Returns the difference of logs of two candidates' values, above 0 if the first is better. `None` with fewer
    /// than two blocks.
    fn difference(&self, candidate: usize, other: usize) -> Option<Interval> {
        let both = self.trials[candidate].iter().zip(&self.trials[other]);
        let sign = if self.rule.more_is_better { 1.0 } else { -1.0 };
        let differences: Vec<f64> = both
            .filter_map(|(one, other)| Some(sign * (one.value?.ln() - other.value?.ln())))
            .collect();
        let estimate = mean(&differences)?;
        let residuals = self.residuals();
        let (one, degrees) = moderated(&residuals, candidate)?;
        let (other, others) = moderated(&residuals, other)?;
        let error = ((one + other) / differences.len() as f64).sqrt();
        let half = student_quantile(degrees.min(others), self.confidence) * error;
        let blocks = differences.len();
        (blocks > 1).then(|| Interval::around(estimate, half, self.confidence, blocks))
    }

    /// Returns what candidates and blocks do not explain of the logs, for each candidate.
    fn residuals(&self) -> Vec<Vec<f64>> {
        let own = |trials: &Vec<RaceTrial>| {
            let logs = trials.iter().map(|it| it.value.map(f64::ln));
            let logs: Vec<Option<f64>> = logs.collect();
            let middle = mean(&logs.iter().flatten().copied().collect::<Vec<_>>());
            let deviation = |log: Option<f64>| Some(log? - middle?);
            logs.into_iter().map(deviation).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<Option<f64>>> = self.trials.iter().map(own).collect();
        let common = |block: usize| {
            let all = rows.iter().filter_map(|row| *row.get(block)?);
            median(&all.collect::<Vec<_>>()).unwrap_or_default()
        };
        let rest = |row: &Vec<Option<f64>>| {
            let each = row.iter().enumerate();
            each.filter_map(|(block, it)| Some((*it)? - common(block)))
                .collect()
        };
        rows.iter().map(rest).collect()
    }
}

/// Returns the variance of deviations from 0; `None` of fewer than two.
fn variance(row: &[f64]) -> Option<f64> {
    let squares: f64 = row.iter().map(|it| it * it).sum();
    (row.len() > 1).then(|| squares / (row.len() - 1) as f64)
}

fn variances(rows: &[Vec<f64>]) -> Vec<f64> {
    rows.iter().filter_map(|row| variance(row)).collect()
}

/// Returns the variance of one row's deviations from 0, moderated by that of all, with its degrees of freedom. `None` if
/// no row has two.
fn moderated(rows: &[Vec<f64>], at: usize) -> Option<(f64, usize)> {
    let common = median(&variances(rows))?;
    let own = variance(&rows[at]).map_or((0.0, 0), |it| (it, rows[at].len() - 1));
    let degrees = COMMON_DEGREES + own.1;
    let sum = COMMON_DEGREES as f64 * common + own.1 as f64 * own.0;
    Some((sum / degrees as f64, degrees))
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;
    use crate::order::Seed;

    const RULE: RaceRule = RaceRule {
        more_is_better: false,
        margin_ratio: 1.05,
        limits: Vec::new(),
        trials_max: 60,
    };

    /// Runs a race of true values, with a common drift of blocks and a scatter of 3 % within them.
    fn run(truth: &[f64], rule: RaceRule, seed: u64, limited: &[f64]) -> (Race, usize) {
        let mut random = Seed(seed).generator();
        let mut noise = |scale: f64| {
            let sum: f64 = (0..12)
                .map(|_| random.next_u64() as f64 / u64::MAX as f64)
                .sum();
            (scale * (sum - 6.0)).exp()
        };
        let mut race = Race::new(truth.len(), rule);
        let mut trials = 0;
        while let Some(block) = race.next_block() {
            trials += block.len();
            let drift = noise(0.1);
            let measured = block.into_iter().map(|it| {
                let limited = limited.get(it).map(|own| Some(own * noise(0.03)));
                let value = Some(truth[it] * drift * noise(0.03));
                (
                    it,
                    RaceTrial {
                        value,
                        limited: limited.into_iter().collect(),
                    },
                )
            });
            race.add_block(measured.collect());
        }
        (race, trials)
    }

    #[test]
    fn the_choice_is_within_the_margin_of_the_best_in_nine_of_ten_races() {
        let mut good = 0;
        for seed in 0..200 {
            let mut random = Seed(1000 + seed).generator();
            let truth = (0..16).map(|_| 1.0 + random.next_u64() as f64 / u64::MAX as f64);
            let truth: Vec<f64> = truth.collect();
            let (race, trials) = run(&truth, RULE, seed, &[]);
            assert!(trials <= 60);
            let best = truth.iter().copied().fold(f64::INFINITY, f64::min);
            good += usize::from(truth[race.choice().unwrap()] <= 1.05 * best);
        }
        assert!(good >= 180, "{good} of 200");
    }

    #[test]
    fn the_more_trials_scatter_the_more_of_them_are_allowed() {
        let scattered = |scatter: f64| {
            let mut race = Race::new(8, RULE);
            let mut random = Seed(5).generator();
            for _ in 0..8 {
                let trial = |at| {
                    let off = random.next_u64() as f64 / u64::MAX as f64 - 0.5;
                    // Even over an interval so wide that its deviation is the scatter.
                    let value = Some((scatter * 12.0_f64.sqrt() * off).exp());
                    let limited = Vec::new();
                    (at, RaceTrial { value, limited })
                };
                race.add_block((0..8).map(trial).collect());
            }
            race.widen(16)
        };
        let planned = RaceBudget {
            grid_trials: 128,
            race_trials: 16,
            final_blocks: 12,
        };
        assert_eq!(scattered(0.02), planned);
        let again = |trials| RaceBudget::of(16, 16).final_blocks_after(trials);
        assert_eq!(
            [39, 40, 48, 49].map(again),
            [Some(12), Some(12), Some(8), None]
        );
        // 5 % at a scatter of 7 %: 32 blocks.
        let some = scattered(0.07).grid_trials;
        assert!((8 * 20..8 * 48).contains(&some), "{some}");
        assert_eq!(scattered(0.5), RaceBudget::of(8, 64));
        assert_eq!(RaceBudget::of(8, 64).race_trials, 32);
    }

    #[test]
    fn the_best_is_seldom_dropped_and_bad_ones_soon_are() {
        let mut lost = 0;
        for seed in 0..200 {
            let (race, _) = run(&[1.0, 1.06, 1.5, 2.0, 2.5, 3.0], RULE, seed, &[]);
            let mut rows = vec![TuneCandidate::default(); 6];
            race.tell(&mut rows);
            lost += usize::from(rows[0].dropped.is_some());
            for bad in &rows[3..] {
                assert_eq!((bad.dropped, bad.blocks), (Some(TuneDropped::Worse), 2));
            }
        }
        assert!(lost <= 10, "{lost}");
    }

    #[test]
    fn a_limit_counts_by_its_bound() {
        let rule = RaceRule {
            limits: vec![1.0],
            ..RULE
        };
        // The cheapest breaks the limit, the next is so close to it that nothing is shown.
        let (race, _) = run(
            &[1.0, 1.1, 1.3, 1.4],
            rule.clone(),
            3,
            &[2.0, 0.999, 0.7, 0.5],
        );
        assert_eq!(race.dropped(0), Some(TuneDropped::BreaksLimit));
        assert_eq!(race.choice(), Some(2));
        let (race, _) = run(&[1.0, 1.1], rule, 3, &[2.0, 3.0]);
        assert_eq!(race.choice(), None);
    }

    #[test]
    fn one_lost_packet_breaks_a_limit_of_none() {
        let rule = RaceRule {
            limits: vec![0.0],
            ..RULE
        };
        let mut race = Race::new(2, rule);
        let with = |value, loss| RaceTrial {
            value: Some(value),
            limited: vec![Some(loss)],
        };
        race.add_block(vec![(0, with(1.0, 1e-6)), (1, with(2.0, 0.0))]);
        assert_eq!(race.dropped(0), Some(TuneDropped::BreaksLimit));
        assert_eq!(race.choice(), Some(1));
    }

    #[test]
    fn one_that_breaks_a_limit_later_leaves_the_place_to_the_next_best() {
        let rule = RaceRule {
            limits: vec![1.0],
            ..RULE
        };
        let limited = [0.5, 0.5, 2.0, 0.5];
        let (mut race, _) = run(&[1.5, 1.0, 1.1, 1.2], rule, 3, &limited);
        assert_eq!(race.choice(), Some(1));
        assert_eq!(race.dropped(3), Some(TuneDropped::Worse));
        assert_eq!(race.runner_up(1), Some(3));
        assert_eq!(race.runner_up(3), Some(0));
        assert_eq!(race.runner_up(0), None);
    }

    #[test]
    fn a_candidate_without_figures_is_dropped() {
        let mut race = Race::new(2, RULE);
        for _ in 0..2 {
            let value = RaceTrial {
                value: Some(1.0),
                limited: Vec::new(),
            };
            race.add_block(vec![(0, RaceTrial::default()), (1, value)]);
        }
        assert_eq!(race.dropped(0), Some(TuneDropped::NoFigure));
        assert_eq!((race.next_block(), race.choice()), (None, Some(1)));
    }
}
