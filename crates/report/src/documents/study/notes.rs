//! Notes on the figures: the meaning of the words, the cost of counting, trials without a figure, and the study's
//! warnings.
//!
//! Every word of the tables that a network engineer may know otherwise is explained. If no cost was seen, the
//! greatest possible one is stated.

use nicpoll_model::numbers::{MISSING, aligned, figure};
use nicpoll_model::{
    CountingCost, CpuSource, EventCounter, IntervalMethod, Measure, Study, Trial, Warning,
};

use super::answer::measures;
use crate::fields::filled;
use crate::lists::{grouped, listed};
use crate::page::{Align, Ink, Part, Row, Table};

/// Width of the words that are explained.
const WORD: usize = 11;
/// Width of the names of warnings.
const WARNING: usize = 21;

/// Writes the parts.
pub fn write(part: &mut Part, study: &Study) {
    write_legend(part, study);
    write_costs(part, study);
    write_voids(part, study);
    write_warnings(part, &study.warnings);
}

/// Each warning with its name.
pub fn write_warnings(part: &mut Part, warnings: &[Warning]) {
    if warnings.is_empty() {
        return;
    }
    part.heading("Warnings");
    for warning in warnings {
        // The name in the JSON and its documentation.
        let name = filled("{name}", warning);
        part.item(format!("{name:<WARNING$}"), Ink::Unsure, &warning.text);
    }
}

/// Writes the words of the report. The definition of an interval depends on the study.
fn write_legend(part: &mut Part, study: &Study) {
    part.heading("How to read it");
    let is_exact = study.trials.iter().any(is_exact);
    let shown = measures(study);
    for line in include_str!("legend.txt").lines() {
        let (word, text) = line.split_once(": ").unwrap_or((line, ""));
        let measure = Measure::ALL.iter().find(|it| it.name() == word);
        if word == "exact" && !is_exact || measure.is_some_and(|it| !shown.contains(it)) {
            continue;
        }
        part.fact(word, WORD, text);
        if word == "rates" {
            part.fact("interval", WORD, intervals(study));
        }
    }
}

/// Returns how intervals were made, and when they have a verdict.
fn intervals(study: &Study) -> String {
    let plan = &study.plan;
    let mut judged = study.comparisons.iter().filter(|one| one.primary);
    let method = match judged.next().map(|one| one.method) {
        Some(IntervalMethod::HodgesLehmann) => {
            "for the typical ratio of a block, by signed ranks (Hodges-Lehmann). It holds whatever the \
             noise."
        }
        Some(IntervalMethod::PairedT) => {
            "for the mean ratio of a block, Student's: too few blocks were planned for ranks. It assumes \
             even noise, and spikes under one setting deceive it."
        }
        None => "nothing was compared.",
    };
    format!(
        "{method} Each of the {} that get a verdict holds at {} %, so that all of them together hold at \
         95 % (Bonferroni). \"Equivalent\": all of it lies between 1/{margin} and {margin}; \"better\": above \
         1; \"and it matters\": at {margin} or above; \"worse\" likewise. Blocks that depend on each other \
         widen it. The others hold at 95 % each and decide nothing.",
        plan.family_comparisons,
        figure(plan.confidence_ratio * 100.0),
        margin = plan.margin_ratio
    )
}

fn is_exact(trial: &Trial) -> bool {
    let figures = trial.figures.as_ref();
    let cpu = figures.and_then(|figures| figures.cpu.as_ref());
    cpu.is_some_and(|cpu| cpu.source == CpuSource::Exact)
}

fn write_costs(part: &mut Part, study: &Study) {
    for (counter, heading, text) in [
        (
            EventCounter::Polls,
            "What counting the polls cost",
            "The polls are counted while rates are measured.",
        ),
        (
            EventCounter::CpuTime,
            "What accounting for CPU time exactly cost",
            "No rate is measured meanwhile. Where the account slows the traffic, CPU time per packet is \
             too high by about as much.",
        ),
    ] {
        let of_counter = study.counting_costs.iter();
        let costs: Vec<_> = of_counter.filter(|cost| cost.counter == counter).collect();
        if costs.is_empty() {
            continue;
        }
        part.heading(heading);
        part.say(text);
        let heads = ["slows the rate by", "keeps a core busy for"];
        let rows = costs.iter().map(|cost| {
            let label = filled("{workload} under {setting}", cost);
            Row::plain(label, [seen(cost), share_of_a_core(cost)])
        });
        part.table(Table::new("", heads, Align::Left).with(0, rows));
    }
}

/// Returns the possible cost of a counter, from the ratio of the rates with and without it.
fn seen(cost: &CountingCost) -> String {
    let (Some(low), Some(high)) = (cost.delivered_ratio_low, cost.delivered_ratio_high) else {
        return String::from(MISSING);
    };
    let loss = |ratio: f64| (1.0 - ratio) * 100.0;
    if high < 1.0 {
        let [least, most] = aligned([loss(high), loss(low)], &[]);
        format!("{least} to {most} %")
    } else if low < 1.0 {
        format!("none seen, at most {} %", figure(loss(low)))
    } else {
        String::from("none seen")
    }
}

/// Returns the run time of the counter's own programs.
fn share_of_a_core(cost: &CountingCost) -> String {
    match (cost.ns_per_event, cost.events_per_second) {
        (Some(ns), Some(events)) => {
            let percents = figure(ns * events / 1e9 * 100.0);
            format!("{percents} %, {} events/s", figure(events))
        }
        _ => String::from(MISSING),
    }
}

fn write_voids(part: &mut Part, study: &Study) {
    let voids = study.trials.iter();
    let voids = voids.filter_map(|trial| Some((words(trial.reason_void()?), trial)));
    let reasons = grouped(voids);
    let void: usize = reasons.iter().map(|(_, trials)| trials.len()).sum();
    if void == 0 {
        return;
    }
    let all = study.trials.len();
    part.heading(format!("Trials without a figure: {void} of {all}"));
    for (_, trials) in &reasons {
        let lead = format!("{:>3} x  ", trials.len());
        let reason = trials[0].reason_void().unwrap_or_default();
        let differing = trials
            .iter()
            .any(|trial| trial.reason_void() != Some(reason));
        let such_as = if differing { "such as: " } else { "" };
        let text = format!("{such_as}{reason}: {}", named(trials));
        part.item(lead, Ink::Plain, text);
    }
}

/// Returns a reason without its figures, in which trials of one reason differ.
fn words(reason: &str) -> String {
    let is_figure = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ',');
    reason.replace(is_figure, "")
}

/// Returns the workload and setting of trials, their number, and the position of the first in the JSON.
fn named(trials: &[&Trial]) -> String {
    let trials = trials.iter();
    let places = grouped(trials.map(|it| ((&it.workload, &it.setting), it.sequence)));
    let places = places.iter().map(|((workload, setting), numbers)| {
        let (first, count) = (numbers[0], numbers.len());
        match count {
            1 => format!("{workload} {setting} (trial {first})"),
            _ => format!("{workload} {setting} ({count}, the first is trial {first})"),
        }
    });
    listed(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(low: f64, high: f64) -> String {
        seen(&CountingCost {
            counter: EventCounter::Polls,
            workload: String::from("udp64"),
            setting: String::from("interrupt"),
            ns_per_event: None,
            events_per_second: None,
            delivered_ratio: Some(low.midpoint(high)),
            delivered_ratio_low: Some(low),
            delivered_ratio_high: Some(high),
            pairs: 6,
        })
    }

    #[test]
    fn no_cost_seen_says_how_much_may_have_been_missed() {
        assert_eq!(says(0.86, 1.25), "none seen, at most 14.0 %");
        assert_eq!(says(0.84, 0.99), "1.0 to 16.0 %");
        assert_eq!(says(1.01, 1.2), "none seen");
    }
}
