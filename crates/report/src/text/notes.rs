//! What to know before believing a figure: how to read it, what counting cost, what was thrown out,
//! and the study's warnings.

use nicpoll_model::{Conduct, CountingCost, CpuSource, EventCounter, Study, Trial, WarningName};

use super::page::{Ink, Page};
use crate::numbers::{aligned, counted, figure};

/// Width of the words that the legend explains.
const WORD: usize = 9;
/// Width of the longest name of a warning.
const WARNING: usize = 18;

pub fn write(page: &mut Page, study: &Study) {
    write_legend(page, study);
    for cost in &study.counting_costs {
        let (heading, text) = match cost.counter {
            EventCounter::Polls => ("What counting the polls cost", counting(cost)),
            EventCounter::CpuTime => (
                "What accounting for CPU time exactly cost",
                accounting(cost),
            ),
        };
        page.heading(heading);
        page.paragraph(Ink::Plain, &text);
    }
    write_voids(page, study);
    if !study.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &study.warnings {
            let lead = format!("{:<WARNING$}  ", warning_name(warning.name));
            page.item(&lead, Ink::Unsure, &warning.text);
        }
    }
}

fn write_legend(page: &mut Page, study: &Study) {
    let plan = &study.plan;
    let intervals = format!(
        "each primary one holds at {} %, so that all {} together hold at 95 % (Bonferroni). \
         \"Better\": all of it lies above 1; \"and it matters\": at {margin} or above; \"worse\" \
         likewise. Secondary ones hold at 95 % each and decide nothing.",
        figure(plan.confidence * 100.0),
        plan.family,
        margin = plan.margin
    );
    let mut legend = vec![
        (
            "-",
            "not measured, or without meaning under this traffic. It is never 0.",
        ),
        (
            "rates",
            "payload without headers. The receiver counts what is delivered, the sender what is \
             offered, and the side that asks times the round trips.",
        ),
        ("interval", &intervals),
        (
            "pt",
            "percentage points. 100 pt of CPU busy are one whole core.",
        ),
    ];
    let is_exact = |trial: &Trial| {
        let cpu = trial
            .figures
            .as_ref()
            .and_then(|figures| figures.cpu.as_ref());
        cpu.is_some_and(|cpu| cpu.source == CpuSource::Exact)
    };
    if study.trials.iter().any(is_exact) {
        legend.push((
            "exact",
            "CPU time by switch and interrupt events, in a short run of its own after each trial: no \
             rate above was measured meanwhile. No event shows steal; it lies within the other states.",
        ));
    }
    legend.extend([
        (
            "sampled",
            "by /proc/stat: the kernel looks at each CPU once a clock tick. Work in step with the tick \
             is misjudged, timer polling most of all.",
        ),
        (
            "round",
            "polls up to the first that finds less than its budget. Timer polling means one round \
             a period, however many polls it takes. The kernel starts gro_flush_timeout anew when \
             a round ends, so it is set shorter than the period.",
        ),
        (
            "residual",
            "what no counter explains: offered less delivered and every named loss.",
        ),
    ]);
    page.heading("How to read it");
    for (word, text) in legend {
        page.item(&format!("{word:<WORD$}  "), Ink::Plain, text);
    }
}

fn counting(cost: &CountingCost) -> String {
    let mut text = match (cost.ns_per_event, cost.events_per_second) {
        (Some(ns), Some(polls)) => format!(
            "Counting takes {} ns a poll; at {} polls/s ({} under {}) that is {} % of \
             one core.",
            figure(ns),
            figure(polls),
            cost.workload,
            cost.setting,
            figure(ns * polls / 1e9 * 100.0)
        ),
        (Some(ns), None) => format!("Counting takes {} ns a poll.", figure(ns)),
        (None, _) => String::from("The time that counting takes was not measured."),
    };
    let bounds = (cost.delivered_ratio_low, cost.delivered_ratio_high);
    if let Some(ratio) = slowed(cost.delivered_ratio, bounds, cost.pairs) {
        text.push_str(&format!(" With counting, {ratio}."));
    }
    text
}

fn accounting(cost: &CountingCost) -> String {
    let mut text = match (cost.ns_per_event, cost.events_per_second) {
        (Some(ns), Some(events)) => format!(
            "It takes {} ns an event; at {} events/s ({} under {}) that is {} % of one core, \
             beside what the kernel takes to call it.",
            figure(ns),
            figure(events),
            cost.workload,
            cost.setting,
            figure(ns * events / 1e9 * 100.0)
        ),
        (Some(ns), None) => format!("It takes {} ns an event.", figure(ns)),
        (None, _) => String::from("The time that it takes was not measured."),
    };
    let bounds = (cost.delivered_ratio_low, cost.delivered_ratio_high);
    if let Some(ratio) = slowed(cost.delivered_ratio, bounds, cost.pairs) {
        text.push_str(&format!(
            " With it, {ratio}: CPU time per packet is too high by about as much."
        ));
    }
    text
}

/// What was delivered with a counter, in words; `None` when that was not measured.
fn slowed(
    ratio: Option<f64>,
    (low, high): (Option<f64>, Option<f64>),
    pairs: u32,
) -> Option<String> {
    let (ratio, interval) = match (ratio?, low, high) {
        (ratio, Some(low), Some(high)) => {
            let [low, ratio, high] = aligned([low, ratio, high], &[1.0]);
            (ratio, format!("interval {low} to {high}"))
        }
        (ratio, ..) => {
            let [ratio] = aligned([ratio], &[]);
            (ratio, String::from("no interval"))
        }
    };
    Some(format!(
        "{ratio} times as much was delivered as without ({interval}, {})",
        counted(pairs, "pair")
    ))
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
        "Void trials: {void} of {}, part of no figure above",
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
        WarningName::CounterMissing => "counter_missing",
        WarningName::Confounder => "confounder",
    }
}
