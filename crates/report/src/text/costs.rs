//! What counting cost, for each workload and setting in which it was measured.
//!
//! What must hold: the sentence says what the interval allows. That no cost was seen is never said without
//! the greatest that may have been missed.

use nicpoll_model::{CountingCost, EventCounter, Study};

use super::page::{Align, Ink, Page, Row};
use crate::numbers::{MISSING, aligned, figure};

pub fn write(page: &mut Page, study: &Study) {
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
        page.heading(heading);
        page.paragraph(Ink::Plain, text);
        let heads = ["of the rate", "of a core, by its programs"].map(String::from);
        let mut rows = vec![Row::new("", heads.to_vec(), Ink::Strong)];
        rows.extend(costs.iter().map(|cost| {
            let label = format!("{} under {}", cost.workload, cost.setting);
            Row::new(label, vec![seen(cost), share_of_a_core(cost)], Ink::Plain)
        }));
        page.table(&rows, 0, Align::Left);
    }
}

/// What the rate with the counter over the rate without allows.
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

/// The run time of the counter's own programs.
fn share_of_a_core(cost: &CountingCost) -> String {
    match (cost.ns_per_event, cost.events_per_second) {
        (Some(ns), Some(events)) => {
            let percents = figure(ns * events / 1e9 * 100.0);
            format!("{percents} %, {} events/s", figure(events))
        }
        _ => String::from(MISSING),
    }
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
