//! Whether rates are even over time: a sentence for each that is not, and a cell for a table.
//!
//! What must hold: the words are of what the study found. Nothing is tested here.

use nicpoll_model::{RateOverTime, SettingFindings, Study, Unevenness};

use crate::numbers::{MISSING, aligned, percent};

/// A rate that is changed by more than this factor is told as a factor.
const FACTOR_FROM: f64 = 2.0;

/// What a mean of the trials of a workload hides, setting by setting.
pub fn sentences(study: &Study, workload: &str) -> Vec<String> {
    let findings = study.findings.iter().filter(|it| it.workload == workload);
    findings
        .flat_map(|it| [within_trials(it), over_trials(it)])
        .flatten()
        .collect()
}

/// What is found within the trials, and what their mean hides of it.
fn within_trials(findings: &SettingFindings) -> Option<String> {
    let rate = findings.rate_within_trials?;
    let SettingFindings {
        workload, setting, ..
    } = findings;
    let what = match rate.found? {
        Unevenness::Step => {
            let after = rate.step_at_seconds.map_or(MISSING.into(), millis);
            let change = changed(rate)?;
            format!("changes once, after {after} s: it is {change} from there on")
        }
        Unevenness::Drift => {
            let change = changed(rate)?;
            format!("drifts: it is {change} in the last third than in the first")
        }
        Unevenness::Swings => {
            let size = percent(rate.size_ratio?);
            format!("goes up and down by {size} % either way, slowly as in a sawtooth")
        }
    };
    Some(format!(
        "Within the trials of {workload} under {setting} the rate {what} ({} trials tested together). A trial's figure \
         is the mean of all of it.",
        rate.trials
    ))
}

/// What is found from trial to trial.
fn over_trials(findings: &SettingFindings) -> Option<String> {
    let rate = findings.rate_over_trials?;
    let SettingFindings {
        workload, setting, ..
    } = findings;
    let what = match rate.found? {
        Unevenness::Step => {
            let block = rate
                .step_at_block
                .map_or(MISSING.into(), |it| it.to_string());
            let change = changed(rate)?;
            format!("changes once: it is {change} from block {block} on")
        }
        Unevenness::Drift => {
            let change = changed(rate)?;
            format!("drifts: it is {change} in the last third of the blocks than in the first")
        }
        Unevenness::Swings => {
            let size = percent(rate.size_ratio?);
            format!(
                "goes up and down by {size} % either way, and trials next to each other are alike"
            )
        }
    };
    Some(format!(
        "From trial to trial the rate of {workload} under {setting} {what}. Comparisons are made within blocks, which \
         leaves out what befalls all settings alike; the median of the trials has it in it."
    ))
}

/// What is found, in a few words for a table.
pub fn cell(rate: Option<RateOverTime>) -> String {
    let Some(rate) = rate else {
        return String::from(MISSING);
    };
    let size = rate.size_ratio.unwrap_or(1.0);
    let sign = if size < 1.0 { "-" } else { "+" };
    let change = percent((size - 1.0).abs());
    match rate.found {
        None => String::from("even"),
        Some(Unevenness::Step) => format!("step {sign}{change} %"),
        Some(Unevenness::Drift) => format!("drift {sign}{change} %"),
        Some(Unevenness::Swings) => format!("swings {} %", percent(size)),
    }
}

/// Seconds to the millisecond.
fn millis(seconds: f64) -> String {
    ((seconds * 1e3).round() / 1e3).to_string()
}

/// By how much a rate changed: `12 % lower`, `3.1 times as high`.
fn changed(rate: RateOverTime) -> Option<String> {
    let size = rate.size_ratio?;
    Some(match size {
        FACTOR_FROM.. => format!("{} times as high", aligned([size], &[])[0]),
        1.0.. => format!("{} % higher", percent(size - 1.0)),
        _ => format!("{} % lower", percent(1.0 - size)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(found: Unevenness, size: f64) -> RateOverTime {
        RateOverTime {
            trials: 16,
            tests: Default::default(),
            found: Some(found),
            size_ratio: Some(size),
            step_at_seconds: Some(0.06),
            step_at_block: Some(7),
        }
    }

    #[test]
    fn each_kind_has_its_words() {
        let text = include_str!("../../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(text).unwrap();
        let workload = study.findings[0].workload.clone();
        study.findings.truncate(1);
        let mut told = |within: Option<RateOverTime>, over: Option<RateOverTime>| {
            study.findings[0].rate_within_trials = within;
            study.findings[0].rate_over_trials = over;
            sentences(&study, &workload).join("\n")
        };
        let warm_up = told(Some(found(Unevenness::Step, 1.25)), None);
        assert!(
            warm_up
                .contains("changes once, after 0.06 s: it is 25 % higher from there on (16 trials"),
            "{warm_up}"
        );
        let drift = told(Some(found(Unevenness::Drift, 0.9)), None);
        assert!(drift.contains("10 % lower in the last third"), "{drift}");
        let swings = told(Some(found(Unevenness::Swings, 0.08)), None);
        assert!(swings.contains("by 8 % either way"), "{swings}");
        let slower = told(None, Some(found(Unevenness::Step, 0.7)));
        assert!(
            slower.contains("it is 30 % lower from block 7 on"),
            "{slower}"
        );
        let even = RateOverTime {
            found: None,
            ..found(Unevenness::Step, 1.0)
        };
        assert_eq!(told(Some(even), None), "");
        assert_eq!(cell(Some(even)), "even");
        assert_eq!(cell(Some(found(Unevenness::Drift, 0.9))), "drift -10 %");
        assert_eq!(
            changed(found(Unevenness::Step, 2.5)).unwrap(),
            "2.50 times as high"
        );
    }
}
