//! What to know before believing a figure: how to read it, what counting cost, what was thrown out,
//! and the study's warnings.

use nicpoll_model::{Conduct, Study, Trial, WarningName};

use super::page::{Ink, Page};
use super::{costs, legend};

/// Width of the longest name of a warning.
const WARNING: usize = 19;

pub fn write(page: &mut Page, study: &Study) {
    legend::write(page, study);
    costs::write(page, study);
    write_voids(page, study);
    if !study.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &study.warnings {
            let lead = format!("{:<WARNING$}  ", warning_name(warning.name));
            page.item(&lead, Ink::Unsure, &warning.text);
        }
    }
}

fn write_voids(page: &mut Page, study: &Study) {
    let mut reasons: Vec<(&str, Vec<&Trial>)> = Vec::new();
    for trial in &study.trials {
        let Some(reason) = reason_of(trial) else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| alike(known, reason)) {
            Some((_, trials)) => trials.push(trial),
            None => reasons.push((reason, vec![trial])),
        }
    }
    let void: usize = reasons.iter().map(|(_, trials)| trials.len()).sum();
    if void == 0 {
        return;
    }
    page.heading(&format!(
        "Trials without a figure: {void} of {}, disturbed from outside or failed",
        study.trials.len()
    ));
    for (reason, trials) in &reasons {
        let lead = format!("{:>3} x  ", trials.len());
        let differing = trials.iter().any(|trial| reason_of(trial) != Some(*reason));
        let such_as = if differing { "such as: " } else { "" };
        page.item(
            &lead,
            Ink::Plain,
            &format!("{such_as}{reason}: {}", named(trials)),
        );
    }
}

/// Why a trial has no part in the figures.
fn reason_of(trial: &Trial) -> Option<&str> {
    let Conduct {
        external, failure, ..
    } = &trial.conduct;
    external.as_deref().or(failure.as_deref())
}

/// Whether two reasons are one, their figures aside.
fn alike(one: &str, other: &str) -> bool {
    let words = |reason: &str| -> String {
        reason
            .chars()
            .filter(|c| !c.is_ascii_digit() && !matches!(c, '+' | '-' | '.' | ','))
            .collect()
    };
    words(one) == words(other)
}

/// Where the trials belong, how many there are and where to find the first in the JSON.
fn named(trials: &[&Trial]) -> String {
    let mut places: Vec<(&str, &str, u32, u32)> = Vec::new();
    for trial in trials {
        let of_trial = (trial.workload.as_str(), trial.setting.as_str());
        match places
            .iter_mut()
            .find(|place| (place.0, place.1) == of_trial)
        {
            Some((.., count)) => *count += 1,
            None => places.push((of_trial.0, of_trial.1, trial.sequence, 1)),
        }
    }
    let names: Vec<String> = places
        .iter()
        .map(|(workload, setting, first, count)| match count {
            1 => format!("{workload} {setting} (trial {first})"),
            _ => format!("{workload} {setting} ({count}, the first is trial {first})"),
        })
        .collect();
    names.join(", ")
}

/// The name that the JSON and its documentation use.
fn warning_name(name: WarningName) -> &'static str {
    match name {
        WarningName::RingCeiling => "ring_ceiling",
        WarningName::VoidTrials => "void_trials",
        WarningName::LargeEffectsOnly => "large_effects_only",
        WarningName::Interrupted => "interrupted",
        WarningName::CounterMissing => "counter_missing",
        WarningName::Confounder => "confounder",
        WarningName::LimitCameFirst => "limit_came_first",
        WarningName::ComparisonsDropped => "comparisons_dropped",
        WarningName::DependentBlocks => "dependent_blocks",
        WarningName::ForeignWork => "foreign_work",
    }
}
