//! What counting cost, for each workload and setting in which it was measured.
//!
//! What must hold: the sentence says what the interval allows. That no cost was seen is never said without
//! the greatest that may have been missed.

use nicpoll_model::{CountingCost, EventCounter, Study};

use super::page::{Ink, Page};
use crate::numbers::{aligned, counted, figure};

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
        for cost in costs {
            let lead = format!("{} under {}: ", cost.workload, cost.setting);
            let text = format!("{}; {}.", seen(cost), share_of_a_core(cost));
            page.item(&lead, Ink::Plain, &text);
        }
    }
}

/// What the rate with the counter over the rate without allows.
fn seen(cost: &CountingCost) -> String {
    let (Some(low), Some(high)) = (cost.delivered_ratio_low, cost.delivered_ratio_high) else {
        return String::from("what it cost was not measured");
    };
    let pairs = counted(cost.pairs, "pair");
    let loss = |ratio: f64| (1.0 - ratio) * 100.0;
    if high < 1.0 {
        let [least, most] = aligned([loss(high), loss(low)], &[]);
        format!("{least} to {most} % of the rate ({pairs})")
    } else if low < 1.0 {
        format!(
            "no cost seen, at most {} % of the rate ({pairs})",
            figure(loss(low))
        )
    } else {
        format!("no cost seen ({pairs})")
    }
}

/// The run time of the counter's own programs.
fn share_of_a_core(cost: &CountingCost) -> String {
    match (cost.ns_per_event, cost.events_per_second) {
        (Some(ns), Some(events)) => format!(
            "its programs took {} % of a core, {} ns at each of {} events/s",
            figure(ns * events / 1e9 * 100.0),
            figure(ns),
            figure(events)
        ),
        (Some(ns), None) => format!("its programs took {} ns an event", figure(ns)),
        (None, _) => String::from("its programs' time was not measured"),
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
        assert_eq!(
            says(0.86, 1.25),
            "no cost seen, at most 14.0 % of the rate (6 pairs)"
        );
        assert_eq!(says(0.84, 0.99), "1.0 to 16.0 % of the rate (6 pairs)");
        assert_eq!(says(1.01, 1.2), "no cost seen (6 pairs)");
    }
}
