//! Findings on the trials of each setting: steal, foreign CPU time, rhythm, load, retries, failures, the worst
//! trials, and whether the rate changes over time.
//!
//! Findings decide nothing. A setting can cause its own findings, so differences between settings are shown. Of
//! studies whose rates are even and independent, at most one in twenty has a finding on evenness; changes smaller
//! than the margin are not reported.

use nicpoll_model::{
    Metric, MetricSpread, RateOverTime, SeriesTests, SettingFindings, Shares, Trial, TrialSeries,
    Unevenness, WorkUnit,
};
use nicpoll_stats::order::Seed;
use nicpoll_stats::{Series, Summary};

use crate::design::Design;
use crate::design::NamedWorkload;
use crate::design::measures::{judged_by_kind, rate};
use crate::judge::comparisons::value;

/// Tests of evenness for each workload and setting: within trials, and from trial to trial.
const EVENNESS_ANSWERS: usize = 2;

/// Returns the findings of each workload under each setting, in the order of the report. Changes of a rate over time
/// below `margin` are not reported; permutations are drawn from `seed`.
pub fn setting_findings(
    design: &Design,
    trials: &[Trial],
    margin: f64,
    seed: Seed,
) -> Vec<SettingFindings> {
    let groups = design.workloads.len() * design.settings.len();
    let rule = FindingThresholds {
        family: (groups * EVENNESS_ANSWERS) as u32,
        margin,
        seed,
    };
    let mut found = Vec::new();
    for workload in &design.workloads {
        for setting in &design.settings {
            let alike = trials
                .iter()
                .filter(|trial| trial.workload == workload.name && trial.setting == setting.name());
            let alike: Vec<&Trial> = alike.collect();
            if !alike.is_empty() {
                found.push(of_trials(workload, setting.name(), &alike, &rule));
            }
        }
    }
    found
}

fn of_trials(
    workload: &NamedWorkload,
    setting: &str,
    trials: &[&Trial],
    rule: &FindingThresholds,
) -> SettingFindings {
    let unit = workload.request.workload().unit();
    let metric = rate(unit);
    let judged = judged_by_kind(workload).into_iter();
    let count =
        |is: &dyn Fn(&Trial) -> bool| trials.iter().filter(|trial| is(trial)).count() as u32;
    let kept = |trial: &Trial| trial.validity.is_kept();
    let values = |metric: Metric| -> Vec<f64> {
        let values = trials.iter().filter_map(|trial| value(trial, metric));
        values.collect()
    };
    let spread = |metric: Metric| spread(metric, &values(metric));
    let judged = judged.filter_map(spread).collect();
    let values = values(metric);
    let summary = Summary::of(&values);
    let below_half = summary.map(|summary| {
        let below = values.iter().filter(|value| **value < summary.median / 2.0);
        below.count() as f64 / values.len() as f64
    });
    let findings = || trials.iter().map(|trial| &trial.findings);
    let foreign = findings().filter(|it| !it.foreign_cpu.is_empty());
    let foreign = foreign.map(|it| it.foreign_cpu.iter().map(|core| core.busy_ratio).sum());
    let loads: Vec<f64> = findings().filter_map(|it| it.load_average_1min).collect();
    SettingFindings {
        workload: workload.name.clone(),
        setting: String::from(setting),
        trials: trials.len() as u32,
        external_trials: count(&|trial| !kept(trial)),
        failed_trials: count(&|trial| kept(trial) && trial.validity.failure.is_some()),
        unproven_trials: count(&|trial| kept(trial) && trial.validity.unproven.is_some()),
        ledger_void_trials: count(&|trial| kept(trial) && trial.validity.ledger_void.is_some()),
        loss_trials: count(&|trial| trial.loss_ratio().is_some_and(|lost| lost > 0.0)),
        proof_retries: trials
            .iter()
            .map(|trial| trial.proof_attempts.saturating_sub(1))
            .sum(),
        steal: shares(findings().filter_map(|it| it.steal_ratio)),
        foreign_cpu: shares(foreign),
        rhythm_deviation: shares(
            findings().filter_map(|it| it.rhythm_deviation_ratio.map(f64::abs)),
        ),
        load_average_1min: median(&loads),
        metric,
        median_per_second: summary.map(|it| it.median),
        worst_decile_per_second: summary.map(|it| it.p10),
        below_half_median_ratio: below_half,
        judged,
        rate_within_trials: within_trials(trials, unit, rule),
        rate_over_trials: over_trials(trials, metric, rule),
    }
}

/// Returns the median and the worst tenth: the lowest if more is better, else the highest.
fn spread(metric: Metric, values: &[f64]) -> Option<MetricSpread> {
    let summary = Summary::of(values)?;
    Some(MetricSpread {
        metric,
        median: summary.median,
        worst_decile: match metric.more_is_better() {
            true => summary.p10,
            false => summary.p90,
        },
    })
}

fn shares(values: impl Iterator<Item = f64>) -> Option<Shares> {
    let summary = Summary::of(&values.collect::<Vec<_>>())?;
    Some(Shares {
        median_ratio: summary.median,
        max_ratio: summary.max,
    })
}

/// Most tested steps of a trial; more are merged with their neighbours.
const STEPS_MAX: usize = 40;

/// Share of the median that replaces a rate of 0, which has no ratio.
const NOTHING: f64 = 0.01;

/// Window of the moving average before the swing of a rate is measured.
const SMOOTHED: usize = 3;

/// Thresholds of a finding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FindingThresholds {
    /// Tests in the study that share the level.
    pub family: u32,
    /// The ratio from which a change matters.
    pub margin: f64,
    /// Seed of permutations.
    pub seed: Seed,
}

/// The rates of a trial's steps, and the end of each.
struct Steps {
    rates: Vec<f64>,
    end_seconds: Vec<f64>,
}

/// Tests whether the receiver's rate is even within trials with a result. `None` if that is impossible.
pub(crate) fn within_trials(
    trials: &[&Trial],
    unit: WorkUnit,
    rule: &FindingThresholds,
) -> Option<RateOverTime> {
    let series = trials.iter().filter_map(|it| it.result()?.series.as_ref());
    let steps: Vec<Steps> = series.filter_map(|it| steps(it, unit)).collect();
    let rates: Vec<&[f64]> = steps.iter().map(|it| it.rates.as_slice()).collect();
    let mut found = judged(&rates, rates.len(), rule)?;
    found.step_at_seconds = first_after(&found).and_then(|first| {
        let ends = steps.iter();
        let ends = ends.filter_map(|it| it.end_seconds.get(first.checked_sub(1)?).copied());
        median(&ends.collect::<Vec<f64>>())
    });
    Some(found)
}

/// Tests whether the rate is even from trial to trial. `None` if that is impossible.
pub(crate) fn over_trials(
    trials: &[&Trial],
    metric: Metric,
    rule: &FindingThresholds,
) -> Option<RateOverTime> {
    let rate = |trial: &&Trial| Some((trial.block, trial.result().and(value(trial, metric))?));
    let (blocks, rates): (Vec<u32>, Vec<f64>) = trials.iter().filter_map(rate).unzip();
    let mut found = judged(&[&rates], rates.len(), rule)?;
    found.step_at_block = first_after(&found).and_then(|first| blocks.get(first).copied());
    Some(found)
}

/// Test results for the document.
pub(crate) fn series_tests(series: &Series) -> SeriesTests {
    SeriesTests {
        drift_p: series.drift_p,
        step_at: series.change.map(|change| change.at as u32 + 1),
        step_p: series.change.map(|change| change.p),
        dependence_p: series.dependence_p,
        is_uneven: series.is_uneven(),
    }
}

/// Returns the index of the first value after a found step.
fn first_after(found: &RateOverTime) -> Option<usize> {
    let is_step = found.found == Some(Unevenness::Step);
    let at = found.tests.step_at.filter(|_| is_step)?;
    Some(at as usize - 1)
}

/// Returns the rates of whole steps, at most [`STEPS_MAX`]; `None` if the workload's unit was not counted.
fn steps(series: &TrialSeries, unit: WorkUnit) -> Option<Steps> {
    let counts = series.received(unit)?;
    let whole = counts.len().saturating_sub(1);
    let together = whole.div_ceil(STEPS_MAX).max(1);
    let lengths: Vec<f64> = series.lengths().take(whole).collect();
    let rate = |(counts, lengths): (&[u64], &[f64])| {
        counts.iter().sum::<u64>() as f64 / lengths.iter().sum::<f64>().max(1e-9)
    };
    let counts = counts[..whole].chunks(together);
    let ends = series.end_seconds[..whole].chunks(together);
    Some(Steps {
        rates: counts.zip(lengths.chunks(together)).map(rate).collect(),
        end_seconds: ends.filter_map(|ends| ends.last().copied()).collect(),
    })
}

/// Tests the rates of runs that repeat each other, made of this many trials.
fn judged(runs: &[&[f64]], trials: usize, rule: &FindingThresholds) -> Option<RateOverTime> {
    let tested = Series::of_repeats(runs, rule.family, rule.seed);
    tested.change?;
    let profile = profile(runs);
    let step = |at: usize| ratio(profile.get(..at)?, profile.get(at..)?);
    let third = profile.len() / 3;
    let drift = || ratio(&profile[..third], &profile[profile.len() - third..]);
    let sizes = [
        (Unevenness::Step, tested.step().and_then(step)),
        (Unevenness::Drift, tested.drifts().then(drift).flatten()),
        (
            Unevenness::Swings,
            tested.depends().then(|| swings(runs)).flatten(),
        ),
    ];
    let great = sizes.into_iter().find_map(|(what, size)| {
        let size = size.filter(|size| is_great(what, *size, rule.margin))?;
        Some((what, size))
    });
    Some(RateOverTime {
        trials: trials as u32,
        tests: series_tests(&tested),
        found: great.map(|(what, _)| what),
        size_ratio: great.map(|(_, size)| size),
        step_at_seconds: None,
        step_at_block: None,
    })
}

fn is_great(what: Unevenness, size: f64, margin: f64) -> bool {
    match what {
        Unevenness::Step | Unevenness::Drift => size >= margin || size <= margin.recip(),
        Unevenness::Swings => size >= margin - 1.0,
    }
}

/// Returns the median rate at each index that at least half of the runs have, each run in units of its own median.
fn profile(runs: &[&[f64]]) -> Vec<f64> {
    let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let at = |index: usize| {
        let here = runs.iter().filter_map(|run| {
            let middle = median(run).filter(|middle| *middle > 0.0)?;
            Some(run.get(index)? / middle)
        });
        let here: Vec<f64> = here.collect();
        median(&here).filter(|_| 2 * here.len() >= runs.len())
    };
    (0..longest).map_while(at).collect()
}

/// Returns the ratio of the medians of later and earlier rates; `None` without either.
fn ratio(early: &[f64], late: &[f64]) -> Option<f64> {
    Some(median(late)?.max(NOTHING) / median(early)?.max(NOTHING))
}

/// Returns half the range between the 10th and 90th percentile of a run's smoothed rates, relative to the median; the
/// median over runs.
fn swings(runs: &[&[f64]]) -> Option<f64> {
    let of_run = |run: &&[f64]| {
        let smoothed = run.windows(SMOOTHED);
        let smoothed = smoothed.map(|few| few.iter().sum::<f64>() / few.len() as f64);
        let summary = Summary::of(&smoothed.collect::<Vec<f64>>())?;
        let half = (summary.p90 - summary.p10) / 2.0;
        (summary.median > 0.0).then(|| half / summary.median)
    };
    median(&runs.iter().filter_map(of_run).collect::<Vec<f64>>())
}

fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests;
