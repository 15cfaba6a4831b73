//! What the trials met under each setting: steal, other programs' work, rhythm, load, retries, failures,
//! and how bad the worst trials were.
//!
//! What must hold: nothing here decides which trials count. What differs between settings must be seen
//! beside the figures, since a setting can be the cause of what befalls it.

use nicpoll_model::{SettingFindings, Shares, Trial, WorkUnit};
use nicpoll_stats::Summary;
use nicpoll_stats::order::Seed;

use crate::comparisons::{metrics, value};
use crate::design::Design;
use crate::evenness::{Rule, over_trials, within_trials};

/// Answers on how even a rate is, for each workload and setting: within trials, and from trial to trial.
const EVENNESS_ANSWERS: usize = 2;

/// What each workload's trials met under each setting, in the order of the report. A rate that changes over time by
/// less than `margin` is not told of; random orders are drawn from `seed`.
pub fn setting_findings(
    design: &Design,
    trials: &[Trial],
    margin: f64,
    seed: Seed,
) -> Vec<SettingFindings> {
    let groups = design.workloads.len() * design.settings.len();
    let rule = Rule {
        family: (groups * EVENNESS_ANSWERS) as u32,
        margin,
        seed,
    };
    let mut found = Vec::new();
    for workload in &design.workloads {
        let unit = workload.request.workload().unit();
        for setting in &design.settings {
            let alike = trials
                .iter()
                .filter(|trial| trial.workload == workload.name && trial.setting == setting.name());
            let alike: Vec<&Trial> = alike.collect();
            if !alike.is_empty() {
                found.push(of_trials(
                    &workload.name,
                    setting.name(),
                    unit,
                    &alike,
                    &rule,
                ));
            }
        }
    }
    found
}

fn of_trials(
    workload: &str,
    setting: &str,
    unit: WorkUnit,
    trials: &[&Trial],
    rule: &Rule,
) -> SettingFindings {
    let metric = metrics(unit)[0];
    let count =
        |is: &dyn Fn(&Trial) -> bool| trials.iter().filter(|trial| is(trial)).count() as u32;
    let kept = |trial: &Trial| trial.conduct.is_kept();
    let values: Vec<f64> = trials
        .iter()
        .filter_map(|trial| value(trial, metric))
        .collect();
    let summary = Summary::of(&values);
    let below_half = summary.map(|summary| {
        let below = values.iter().filter(|value| **value < summary.median / 2.0);
        below.count() as f64 / values.len() as f64
    });
    let findings = || trials.iter().map(|trial| &trial.findings);
    SettingFindings {
        workload: String::from(workload),
        setting: String::from(setting),
        trials: trials.len() as u32,
        external_trials: count(&|trial| !kept(trial)),
        failed_trials: count(&|trial| kept(trial) && trial.conduct.failure.is_some()),
        unproven_trials: count(&|trial| kept(trial) && trial.conduct.unproven.is_some()),
        ledger_void_trials: count(&|trial| kept(trial) && trial.conduct.ledger_void.is_some()),
        loss_trials: count(&|trial| trial.loss_ratio().is_some_and(|lost| lost > 0.0)),
        proof_retries: trials
            .iter()
            .map(|trial| trial.proof_attempts.saturating_sub(1))
            .sum(),
        steal: shares(findings().filter_map(|it| it.steal_ratio)),
        foreign_cpu: shares(
            findings()
                .filter(|it| !it.foreign_cpu.is_empty())
                .map(|it| {
                    let cores = it.foreign_cpu.iter();
                    cores.map(|core| core.busy_ratio).sum()
                }),
        ),
        rhythm_deviation: shares(
            findings().filter_map(|it| it.rhythm_deviation_ratio.map(f64::abs)),
        ),
        load_average_1min: Summary::of(
            &findings()
                .filter_map(|it| it.load_average_1min)
                .collect::<Vec<_>>(),
        )
        .map(|loads| loads.median),
        metric,
        median_per_second: summary.map(|it| it.median),
        // The primary metrics are rates, of which less is worse.
        worst_decile_per_second: summary.map(|it| it.p10),
        below_half_median_ratio: below_half,
        rate_within_trials: within_trials(trials, unit, rule),
        rate_over_trials: over_trials(trials, metric, rule),
    }
}

fn shares(values: impl Iterator<Item = f64>) -> Option<Shares> {
    let summary = Summary::of(&values.collect::<Vec<_>>())?;
    Some(Shares {
        median_ratio: summary.median,
        max_ratio: summary.max,
    })
}
