//! What each setting used in a live comparison, queue by queue where it is known, and what was changed for it.
//!
//! What must hold: figures are sums over all pairs that count. One that some block lacks is missing, and not a sum of
//! the others.

use std::collections::{BTreeMap, BTreeSet};

use nicpoll_model::ab::{AbBlock, AbCpu, AbQueue, AbStamps, AbWindow, LiveAb};

use super::super::page::{Align, Ink, Page, Row};
use crate::ab_plan::{once, turns};
use crate::numbers::{self, MISSING, counted, duration_text, figure_or_missing};

/// Width of the labels.
const LABEL: usize = 34;

pub fn write(page: &mut Page, compared: &LiveAb) {
    let arms = arms(compared);
    if !arms[0].is_empty() {
        page.heading("What each setting used");
        write_used(page, compared, &arms);
        write_queues(page, &arms);
        write_stamps(page, &arms);
    }
    write_bracket(page, compared);
    page.heading("What was changed");
    write_changes(page, compared);
}

/// The blocks of the reference and of the judged setting, of all pairs that count.
fn arms(compared: &LiveAb) -> [Vec<&AbBlock>; 2] {
    let counting = compared.pairs.iter();
    counting
        .filter(|pair| pair.set_aside_because.is_none())
        .map(|pair| (&pair.reference, &pair.judged))
        .unzip::<_, _, Vec<_>, Vec<_>>()
        .into()
}

/// How good the time stamps of cards were that delays begin with, where there are such.
fn write_stamps(page: &mut Page, arms: &[Vec<&AbBlock>; 2]) {
    let delays = arms.iter().flatten().flat_map(|block| &block.delays);
    let stamped: Vec<(u64, AbStamps)> = delays
        .filter_map(|delay| Some((delay.samples, delay.stamps?)))
        .collect();
    if stamped.is_empty() {
        return;
    }
    let error_ns = stamped
        .iter()
        .map(|(_, it)| it.error_ns)
        .fold(0.0, f64::max);
    let left_out: u64 = stamped.iter().map(|(_, it)| it.left_out_packets).sum();
    let measured: u64 = stamped.iter().map(|(samples, _)| samples).sum();
    let text = format!(
        "Delays from the wire begin with the card's time stamps. Its clock was known to within {}. Of {} packets, {} \
         are left out: without a stamp, or with one that cannot be right.",
        duration_text(error_ns.ceil() as u64),
        numbers::count(measured + left_out),
        numbers::count(left_out)
    );
    page.paragraph(Ink::Faint, &text);
}

fn seconds(blocks: &[&AbBlock]) -> f64 {
    blocks.iter().map(|block| block.window.seconds).sum()
}

/// A count over all blocks.
fn total(blocks: &[&AbBlock], count: impl Fn(&AbBlock) -> Option<u64>) -> Option<f64> {
    let sum: Option<u64> = blocks.iter().map(|block| count(block)).sum();
    Some(sum? as f64)
}

fn a_second(blocks: &[&AbBlock], count: impl Fn(&AbBlock) -> Option<u64>) -> Option<f64> {
    Some(total(blocks, count)? / seconds(blocks))
}

fn cores(blocks: &[&AbBlock], time: impl Fn(&AbCpu) -> f64) -> Option<f64> {
    let times: Option<f64> = blocks
        .iter()
        .map(|block| block.window.cpu.as_ref().map(&time))
        .sum();
    Some(times? / seconds(blocks))
}

type Figure = fn(&[&AbBlock]) -> Option<f64>;

const USED: [(&str, Figure); 14] = [
    ("user programs, cores", |it| {
        cores(it, |cpu| cpu.user_seconds)
    }),
    ("kernel for programs, cores", |it| {
        cores(it, |cpu| cpu.system_seconds)
    }),
    ("hard interrupts, cores", |it| {
        cores(it, |cpu| cpu.irq_seconds)
    }),
    ("soft interrupts, cores", |it| {
        cores(it, |cpu| cpu.softirq_seconds)
    }),
    ("  counting, at most (subtracted)", |it| {
        cores(it, |cpu| cpu.counting_seconds)
    }),
    ("other threads (not counted)", |it| {
        cores(it, |cpu| cpu.foreign_seconds)
    }),
    ("steal, cores", |it| cores(it, |cpu| cpu.steal_seconds)),
    ("interrupts/s", |it| a_second(it, |block| block.interrupts)),
    ("receive soft interrupts/s", |it| {
        a_second(it, |block| block.receive_softirqs)
    }),
    ("polls/s", |it| a_second(it, |block| block.polls)),
    ("packets a poll", |it| {
        let packets = total(it, |block| block.polled_packets)?;
        Some(packets / total(it, |block| block.polls)?).filter(|it| it.is_finite())
    }),
    ("context switches/s", |it| {
        a_second(it, |block| block.context_switches)
    }),
    ("segments sent again/s", |it| {
        a_second(it, |block| block.retransmitted_segments)
    }),
    ("received packets/s", |it| {
        a_second(it, |block| Some(block.window.rx_packets))
    }),
];

fn write_used(page: &mut Page, compared: &LiveAb, arms: &[Vec<&AbBlock>; 2]) {
    let names = [&compared.reference.name, &compared.judged.name].map(String::clone);
    let mut rows = vec![Row::new("", names.to_vec(), Ink::Strong)];
    for (label, of) in USED {
        let values = arms.each_ref().map(|blocks| of(blocks));
        if values.iter().any(Option::is_some) {
            let cells = values.map(figure_or_missing).to_vec();
            rows.push(Row::new(label, cells, Ink::Plain));
        }
    }
    rows.extend(drops(arms));
    page.table(&rows, LABEL, Align::Right);
}

/// The places that lost packets under either setting, or that nothing was lost.
fn drops(arms: &[Vec<&AbBlock>; 2]) -> Vec<Row> {
    let places: BTreeMap<_, _> = arms
        .iter()
        .flatten()
        .flat_map(|block| block.dropped_packets.0.keys())
        .map(|place| {
            let lost = arms
                .each_ref()
                .map(|blocks| a_second(blocks, |block| block.dropped_packets.at(*place)));
            (*place, lost)
        })
        .collect();
    let mut rows: Vec<Row> = places
        .iter()
        .filter(|(_, lost)| lost.iter().flatten().any(|rate| *rate > 0.0))
        .map(|(place, lost)| {
            let cells = lost.map(figure_or_missing).to_vec();
            Row::new(format!("lost/s: {place}"), cells, Ink::Unsure)
        })
        .collect();
    let is_known = places.values().flatten().any(Option::is_some);
    if rows.is_empty() {
        let none = if is_known { "0" } else { MISSING };
        let cells = [none; 2].map(String::from).to_vec();
        rows.push(Row::new("lost/s", cells, Ink::Plain));
    }
    rows
}

type QueueCount = fn(&AbQueue) -> Option<u64>;

const OF_QUEUE: [(&str, QueueCount); 3] = [
    ("packets/s", |queue| queue.rx_packets),
    ("interrupts/s", |queue| queue.interrupts),
    ("polls/s", |queue| queue.polls),
];

/// A line for each queue: each figure under the reference, then under the judged setting.
fn write_queues(page: &mut Page, arms: &[Vec<&AbBlock>; 2]) {
    let mut names: Vec<(&str, u32)> = arms
        .iter()
        .flatten()
        .flat_map(|block| &block.queues)
        .map(|queue| (queue.interface.as_str(), queue.queue))
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return;
    }
    page.blank();
    let heads = OF_QUEUE.map(|(head, _)| String::from(head)).to_vec();
    let mut rows = vec![Row::new("queue", heads, Ink::Strong)];
    let mut counters = Vec::new();
    for (interface, number) in names {
        let name = format!("{interface} rx{number}");
        let of = |count: &dyn Fn(&AbQueue) -> Option<u64>| {
            let rate = |blocks: &Vec<&AbBlock>| {
                a_second(blocks, |block| {
                    let mut queues = block.queues.iter();
                    count(queues.find(|it| it.interface == interface && it.queue == number)?)
                })
            };
            arms.each_ref().map(rate)
        };
        let cells = OF_QUEUE.map(|(_, count)| both(of(&count))).to_vec();
        rows.push(Row::new(name.clone(), cells, Ink::Plain));
        let counted: Vec<String> = counter_names(arms, interface, number)
            .into_iter()
            .map(|counter| (counter, of(&|queue| queue.counters.get(counter).copied())))
            .filter(|(_, rates)| rates.iter().flatten().any(|rate| *rate > 0.0))
            .map(|(counter, rates)| format!("{counter} {}", both(rates)))
            .collect();
        if !counted.is_empty() {
            counters.push(format!(
                "{name}, as its driver counts a second: {}.",
                counted.join(", ")
            ));
        }
    }
    page.table(&rows, 0, Align::Right);
    for counted in counters {
        page.paragraph(Ink::Plain, &counted);
    }
}

/// The figure of the reference and that of the judged setting.
fn both(rates: [Option<f64>; 2]) -> String {
    rates.map(figure_or_missing).join(" : ")
}

/// What the driver counts for a queue, under either setting.
fn counter_names<'a>(
    arms: &'a [Vec<&AbBlock>; 2],
    interface: &str,
    number: u32,
) -> BTreeSet<&'a str> {
    let queues = arms.iter().flatten().flat_map(|block| &block.queues);
    let own = queues.filter(|it| it.interface == interface && it.queue == number);
    own.flat_map(|queue| queue.counters.keys().map(String::as_str))
        .collect()
}

type Look = fn(&AbWindow) -> Option<f64>;

const OF_LOOK: [(&str, Look); 4] = [
    ("packets/s", |it| Some(it.packets_per_second())),
    ("Mbit/s of frames", |it| {
        Some(it.bytes() as f64 * 8.0 / it.seconds / 1e6)
    }),
    ("cores", AbWindow::busy_cores),
    ("CPU ns a byte", |it| {
        let ns = it.busy_cores()? * it.seconds / it.bytes() as f64 * 1e9;
        Some(ns).filter(|ns| ns.is_finite())
    }),
];

/// What both settings need, against doing without: the look at the beginning, then the one at the end.
fn write_bracket(page: &mut Page, compared: &LiveAb) {
    if compared.prerequisites.is_empty() {
        return;
    }
    page.heading("What it costs to have what both settings need");
    let Some(bracket) = &compared.prerequisites_cost else {
        let none = "It is not known: the run ended early. It is in no figure above.";
        return page.paragraph(Ink::Unsure, none);
    };
    let heads = ["without", "with it"].map(String::from).to_vec();
    let mut rows = vec![Row::new(
        "at the beginning : at the end",
        heads,
        Ink::Strong,
    )];
    for (label, of) in OF_LOOK {
        let both = |looks: &[AbWindow; 2]| looks.each_ref().map(|it| figure_or_missing(of(it)));
        let cells = [&bracket.without, &bracket.with].map(|looks| both(looks).join(" : "));
        rows.push(Row::new(label, cells.to_vec(), Ink::Plain));
    }
    page.table(&rows, LABEL, Align::Right);
    let what = "Under the setting that was there, so this is in no figure above. Two looks at each have no interval: \
                where the two differ as much as with and without, nothing follows.";
    page.paragraph(Ink::Faint, what);
}

fn write_changes(page: &mut Page, compared: &LiveAb) {
    for (place, turns) in turns(compared) {
        let text = format!("To and fro, {place}: {}.", turns.join(", "));
        page.paragraph(Ink::Plain, &text);
    }
    for (place, writes) in once(compared) {
        let text = format!("Once, under both settings, {place}: {}.", writes.join(", "));
        page.paragraph(Ink::Plain, &text);
    }
    for unseen in compared.not_alternated.iter().chain(&compared.unseen) {
        page.paragraph(Ink::Unsure, &format!("{}: {}.", unseen.what, unseen.why));
    }
    for restored in &compared.restored {
        let (ink, how) = match restored.is_as_before {
            true => (Ink::Plain, "is as it was before"),
            false => (
                Ink::Bad,
                "is NOT as it was before (nicpoll restore tries again)",
            ),
        };
        let notes: String = restored
            .notes
            .iter()
            .map(|note| format!(" {note}."))
            .collect();
        page.paragraph(ink, &format!("{} {how}.{notes}", restored.interface));
    }
    let aside = compared.answer.set_aside_pairs;
    if aside > 0 {
        let text = format!(
            "{} set aside for an event from outside.",
            counted(aside, "pair")
        );
        page.paragraph(Ink::Unsure, &text);
    }
    let below = compared
        .answer
        .cpu
        .map_or(0, |cpu| cpu.pairs_below_counting);
    if below > 0 {
        let text = format!(
            "{} with a block of which counting is reckoned to cost more than all that was counted: it counts as 0 cores.",
            counted(below, "pair")
        );
        page.paragraph(Ink::Unsure, &text);
    }
    let plan = &compared.plan;
    let time = |seconds: f64| duration_text((seconds * 1e9).round() as u64);
    let settling = plan.settling_seconds.map_or_else(String::new, |seconds| {
        format!(" After a change, polls took {} to settle.", time(seconds))
    });
    page.paragraph(
        Ink::Faint,
        &format!(
            "The first {} of each block are left out.{settling} Order and lengths follow from --seed {}.",
            time(plan.left_out_seconds),
            plan.seed
        ),
    );
}
