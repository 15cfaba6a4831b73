//! Warnings about a study's figures, whether it is decided, and whether it has measured enough.
//!
//! A warning names its subject, the figure and the limit, and what to do. A stop rule uses only the width of the
//! intervals: a study that stopped on a difference would find one where there is none.

use std::collections::BTreeMap;

use nicpoll_model::numbers::counted;
use nicpoll_model::{
    Comparison, Confounder, MetricKind, Plan, SettingFindings, Study, Trial, Verdict, Warning,
    WarningName,
};

use crate::design::{Design, NamedSetting, Versus};
use crate::judge::trial::{AROUND, CHANGED_BY_OTHERS};
use crate::plan::durations::blocks_needed;

/// Number of blocks below which a study is labelled with the effect that it can find.
const BLOCKS_FOR_SMALL_EFFECTS: u32 = 16;

/// Limit of foreign CPU time, as a share of a core.
const FOREIGN_MAX: f64 = 0.1;

/// The warnings of a study.
pub fn warnings_of(study: &Study, design: &Design) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |name, text: Option<String>| {
        warnings.extend(text.map(|text| warning(name, text)));
    };
    warn(WarningName::LimitCameFirst, fell_short(study));
    warn(WarningName::LimitCameFirst, blocks_missing(study));
    warn(WarningName::LimitCameFirst, ran_over(study));
    for versus in &design.contrasts {
        warn(WarningName::Confounder, confounded(study, versus));
    }
    warn(WarningName::ForeignWork, foreign_work(&study.findings));
    warn(WarningName::DependentBlocks, dependent(&study.comparisons));
    warn(WarningName::LargeEffectsOnly, large_effects(study));
    warn(WarningName::VoidTrials, disturbed(&study.trials));
    for workload in &study.plan.workloads {
        for setting in design.timed() {
            let text = ring_ceiling(setting, study, workload);
            warn(WarningName::RingCeiling, text);
        }
    }
    let text = unreadable_counter(&study.trials);
    warn(WarningName::CounterMissing, text);
    warnings
}

/// Returns the warnings before a study runs: settings that cannot be in force, and what the estimate leaves out.
pub(crate) fn warnings_of_plan(design: &Design) -> Vec<Warning> {
    let settings = design.polled_in_vain();
    let settings = settings.map(|setting| String::from(setting.name()));
    let in_vain = listed(settings, ", ").map(|settings| {
        let text = format!("there will be no poll under {settings}: {AROUND}");
        warning(WarningName::NeverInForce, text)
    });
    let commands = design.has_commands().then(|| {
        let text = "how long the commands before and after the traffic take is not known, and not in the estimate: with slow \
                    ones fewer blocks fit into the time";
        warning(WarningName::LimitCameFirst, text)
    });
    in_vain.into_iter().chain(commands).collect()
}

/// Makes a warning.
pub fn warning(name: WarningName, text: impl Into<String>) -> Warning {
    Warning {
        name,
        text: text.into(),
    }
}

/// Joins texts; `None` without any.
fn listed(texts: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(between))
}

/// Most confounders of a comparison that a warning names.
const CONFOUNDERS_NAMED: usize = 4;

/// Returns the warning about other differences between two settings.
fn confounded(study: &Study, versus: &Versus) -> Option<String> {
    let is_meant =
        |one: &&Confounder| one.setting == versus.setting && one.reference == versus.reference;
    let found: Vec<&Confounder> = study.confounders.iter().filter(is_meant).collect();
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| String::from("as it is"));
    let named = found.iter().take(CONFOUNDERS_NAMED).map(|one| {
        let along = match one.is_asked {
            true => "",
            false => " (nobody asked for it)",
        };
        let (value, reference) = (shown(&one.value), shown(&one.reference_value));
        format!("{} is {value} against {reference}{along}", one.name)
    });
    let named = listed(named, "; ")?;
    let more = match found.len().saturating_sub(CONFOUNDERS_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more, which --json lists"),
    };
    Some(format!(
        "{} and {} differ in more than how packets are received, and the verdict is on all of it: {named}{more}",
        versus.setting, versus.reference
    ))
}

/// Returns the warning about other programs' work, where it was most.
pub(crate) fn foreign_work(findings: &[SettingFindings]) -> Option<String> {
    let taken = findings.iter().filter_map(|found| {
        let median = found.foreign_cpu?.median_ratio;
        (median > FOREIGN_MAX).then_some((median, found))
    });
    let (taken, found) = taken.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some(format!(
        "other programs took {:.0} % of a core ({} under {}): stop them, or take these figures for those \
         of a busy host",
        100.0 * taken,
        found.workload,
        found.setting
    ))
}

fn dependent(comparisons: &[Comparison]) -> Option<String> {
    let of = comparisons
        .iter()
        .filter(|one| one.primary && one.are_blocks_dependent)
        .map(|one| format!("{} against {}", one.workload, one.reference));
    let of = listed(of, ", ")?;
    Some(format!(
        "blocks are not independent ({of}): a setting seems to stay in one state for several blocks. Its interval is \
         as wide as the fewer independent blocks allow"
    ))
}

/// Returns the warning that there was no time for all blocks. A study with a stop rule has none.
fn blocks_missing(study: &Study) -> Option<String> {
    let plan = &study.plan;
    let run = study.blocks_most();
    // A setting that never has a figure is dropped, and its comparisons say so.
    let has_figures = |workload: &String| {
        study.settings.iter().all(|setting| {
            let own = study.trials.iter();
            let mut own =
                own.filter(|it| it.workload == *workload && it.setting == setting.setting);
            own.any(|it| it.validity.is_kept() && it.figures.is_some())
        })
    };
    if run >= plan.blocks
        || plan.stop_width_ratio.is_some()
        || !study.trials.is_empty() && !plan.workloads.iter().any(has_figures)
    {
        return None;
    }
    let needed = blocks_needed(plan);
    let takes = match run < needed {
        true => format!(", and a verdict takes {needed}"),
        false => String::new(),
    };
    Some(format!(
        "there was time for {run} of {} blocks{takes}: the machine is busy or slow, or the time too short. Stop other \
         programs, give the study longer, or ask for shorter trials or fewer workloads",
        plan.blocks
    ))
}

/// Returns the warning that the study took longer than promised.
fn ran_over(study: &Study) -> Option<String> {
    let (limit, taken) = (study.plan.limit_seconds, study.elapsed_seconds);
    (taken.round() > limit).then(|| {
        format!(
            "the study took {taken:.0} s in place of {limit:.0} s, to complete a round of its workloads: the machine is busy \
             or slow"
        )
    })
}

/// Returns the warning about the smallest effect that so few blocks find, for the comparison with the largest
/// scatter.
fn large_effects(study: &Study) -> Option<String> {
    let blocks = study.plan.blocks;
    if blocks >= BLOCKS_FOR_SMALL_EFFECTS {
        return None;
    }
    let primary = study.comparisons.iter().filter(|one| one.primary);
    let found = primary
        .filter(|one| one.verdict != Some(Verdict::Inconclusive))
        .filter_map(|one| Some((one.found_nine_in_ten_ratio?, one)))
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let what = match found {
        Some((ratio, one)) => {
            let size = match ratio {
                _ if one.kind == MetricKind::Points => format!("{:.1} points", 100.0 * ratio),
                ..1.01 => String::from("less than 1 %"),
                ..2.0 => format!("{:.0} %", 100.0 * (ratio - 1.0)),
                _ => format!("{ratio:.1}x"),
            };
            format!(
                "such a run finds a difference of {size} nine times in ten ({}), and smaller ones less often",
                one.workload
            )
        }
        None => String::from("the differences that it finds are unknown"),
    };
    let blocks = counted(blocks, "block");
    Some(format!("with {blocks} of each workload {what}"))
}

/// Returns the warning that trials were disturbed, with the most frequent reason and the remedy.
fn disturbed(trials: &[Trial]) -> Option<String> {
    let mut reasons = BTreeMap::<_, u32>::new();
    for reason in trials
        .iter()
        .filter_map(|trial| trial.validity.external.as_deref())
    {
        *reasons.entry(reason).or_default() += 1;
    }
    let disturbed: u32 = reasons.values().sum();
    let (reason, _) = reasons.into_iter().max_by_key(|(_, count)| *count)?;
    let remedy = match reason.starts_with(CHANGED_BY_OTHERS) {
        true => {
            ". If a program of this study does that, make it a command before the traffic (docs/studies.md); otherwise stop \
             what does it"
        }
        false => "",
    };
    Some(format!(
        "{disturbed} of {} trials were disturbed from outside, and their pairs do not count: {reason}{remedy}",
        trials.len()
    ))
}

/// Returns the warning that the offered rate exceeds the ring's slots a period.
fn ring_ceiling(setting: &NamedSetting, study: &Study, workload: &str) -> Option<String> {
    let (ring_slots, trials) = (study.lab.ring_slots?, &study.trials);
    let period_ns = setting.period_ns()? as f64;
    let name = setting.name();
    let ceiling_pps = f64::from(ring_slots) * 1e9 / period_ns;
    let offered_pps = trials
        .iter()
        .filter(|trial| trial.workload == workload && trial.setting == *name)
        .filter_map(|trial| trial.figures.as_ref()?.sender.packets_per_second)
        .fold(0.0, f64::max);
    let fits_us = f64::from(ring_slots) * 1e6 / offered_pps;
    (offered_pps > ceiling_pps).then(|| {
        format!(
            "{workload} under {name}: {ring_slots} ring slots a period of {:.0} us pass at most \
             {ceiling_pps:.0} packets/s, and {offered_pps:.0} were offered; a period of {fits_us:.0} us or \
             less would fit",
            period_ns / 1e3
        )
    })
}

fn unreadable_counter(trials: &[Trial]) -> Option<String> {
    trials
        .iter()
        .filter_map(|trial| trial.figures.as_ref())
        .flat_map(|figures| &figures.ledger.lines)
        .find(|line| line.packets.is_none())
        .map(|line| {
            let (side, counter) = (&line.side, &line.counter);
            format!(
                "the {side}'s counter '{counter}' could not be read: losses there stay in the residual"
            )
        })
}

/// Blocks before the stop rule's first check.
pub(crate) const BLOCKS_MIN: u32 = 3;

/// Returns whether every comparison with a verdict has an interval no wider than `width`, a share of its estimate.
pub(crate) fn are_narrow(comparisons: &[Comparison], width: f64) -> bool {
    let mut primary = comparisons.iter().filter(|one| one.primary).peekable();
    primary.peek().is_some() && primary.all(|one| width_of(one).is_some_and(|own| own <= width))
}

/// Returns the width of an interval as a share of its estimate, or in points; `None` if an end is open.
fn width_of(comparison: &Comparison) -> Option<f64> {
    let width = match comparison.kind {
        MetricKind::Ratio => {
            let (low, high) = comparison.ratio_low.zip(comparison.ratio_high)?;
            (high - low) / comparison.ratio?
        }
        MetricKind::Points => comparison.share_difference_high? - comparison.share_difference_low?,
    };
    width.is_finite().then_some(width)
}

/// Returns the warning that time ran out before intervals were narrow enough.
pub(crate) fn fell_short(study: &Study) -> Option<String> {
    let width = study.plan.stop_width_ratio?;
    let primary = study.comparisons.iter().filter(|one| one.primary);
    let wide: Vec<(&Comparison, Option<f64>)> = primary
        .map(|one| (one, width_of(one)))
        .filter(|(_, own)| own.is_none_or(|own| own > width))
        .collect();
    let widest = wide.iter().max_by(|(_, one), (_, other)| {
        let of = |width: &Option<f64>| width.unwrap_or(f64::INFINITY);
        of(one).total_cmp(&of(other))
    });
    let (comparison, own) = widest?;
    let own = own.map_or_else(
        || String::from("has no interval yet"),
        |own| format!("is {:.0} % wide", 100.0 * own),
    );
    Some(format!(
        "THE LIMIT CAME FIRST: intervals {:.1} % wide were asked for, and {} of {} {} not there: {} under {} against \
         {} {own}. Give the study longer (at_most), or ask for less",
        100.0 * width,
        wide.len(),
        study.comparisons.iter().filter(|one| one.primary).count(),
        if wide.len() == 1 { "is" } else { "are" },
        comparison.workload,
        comparison.setting,
        comparison.reference
    ))
}

/// Blocks that an interval needs. A study planned with fewer is inconclusive by design.
const BLOCKS_FOR_INTERVALS: u32 = 3;

/// Returns whether a comparison of a study was decided. A setting compared with itself passes if no difference is
/// proven. Without a trial that counts nothing is decided.
pub fn is_decided(study: &Study) -> bool {
    let verdicts = study.comparisons.iter().filter_map(|one| one.verdict);
    let has_result = study.trials.iter().any(|trial| trial.result().is_some());
    has_result && decides(&study.plan, is_null(study), verdicts)
}

/// Returns whether a study compares a setting with itself.
fn is_null(study: &Study) -> bool {
    matches!(&study.settings[..], [one, other] if one.is_same_as(other))
}

fn decides(plan: &Plan, is_null: bool, mut verdicts: impl Iterator<Item = Verdict>) -> bool {
    let is_answer =
        |word: Verdict| word.is_decided() || (is_null && word == Verdict::NoDifferenceProven);
    plan.blocks < BLOCKS_FOR_INTERVALS || verdicts.any(is_answer)
}

#[cfg(test)]
mod stop_tests {
    use super::*;

    fn comparison(ends: Option<[f64; 2]>) -> Comparison {
        let ends = ends.map_or([None, None], |ends| ends.map(Some));
        let none = serde_json::json!({"low": null, "high": null});
        let comparison = serde_json::json!({
            "workload": "rr", "metric": "transactions_per_second", "kind": "ratio", "primary": true,
            "setting": "on", "reference": "off", "blocks": 9, "missing_blocks": 0,
            "method": "hodges_lehmann", "ratio": 2.0, "ratio_low": ends[0], "ratio_high": ends[1],
            "share_difference": null, "share_difference_low": null, "share_difference_high": null,
            "confidence_ratio": 0.95, "verdict": null, "difference_p": null, "holm_p": null,
            "paired_t": none, "trimmed_t": none, "lag_one_p": null, "are_blocks_dependent": false,
            "found_nine_in_ten_ratio": null, "blocks_to_find_margin": null, "none_seen_of": null,
            "sensitivity": null,
        });
        serde_json::from_value(comparison).unwrap()
    }

    #[test]
    fn only_the_width_decides_and_never_where_an_interval_lies() {
        // 4 % of the estimate, wherever it is.
        for ends in [[1.98, 2.06], [0.5, 0.58], [0.96, 1.04]] {
            assert!(are_narrow(&[comparison(Some(ends))], 0.05));
            assert!(!are_narrow(&[comparison(Some(ends))], 0.03));
        }
        let narrow = comparison(Some([1.99, 2.01]));
        // A wide interval, or a missing one, keeps the study going.
        assert!(!are_narrow(
            &[narrow.clone(), comparison(Some([1.0, 2.0]))],
            0.05
        ));
        assert!(!are_narrow(&[narrow.clone(), comparison(None)], 0.05));
        assert!(!are_narrow(&[], 0.05));
        let secondary = Comparison {
            primary: false,
            ..comparison(None)
        };
        assert!(are_narrow(&[narrow, secondary], 0.05));
    }
}

#[cfg(test)]
mod decided_tests {
    use super::*;
    use crate::design::demo::DemoOptions;
    use crate::design::demo::plan;
    use Verdict::*;
    use nicpoll_stats::order::Seed;

    fn passes(blocks: u32, is_null: bool, words: &[Verdict]) -> bool {
        let options = DemoOptions {
            blocks: Some(blocks),
            ..DemoOptions::default()
        };
        let (_, plan) = plan(&options, Seed(1)).unwrap();
        decides(&plan, is_null, words.iter().copied())
    }

    #[test]
    fn a_study_that_decides_nothing_is_undecided() {
        for word in [NoDifferenceProven, DependsOnWhatCounts, Inconclusive] {
            assert!(!passes(10, false, &[word, word]), "{word}");
            assert!(passes(10, false, &[word, Equivalent]), "{word}");
        }
        // All comparisons were given up.
        assert!(!passes(10, false, &[]));
        // So few blocks have no intervals, as planned.
        assert!(passes(1, false, &[Inconclusive]));
    }

    #[test]
    fn a_setting_that_is_not_told_from_itself_is_no_failure() {
        assert!(passes(10, true, &[NoDifferenceProven]));
        assert!(!passes(10, true, &[DependsOnWhatCounts]));
        assert!(!passes(10, true, &[Inconclusive]));
    }
}
