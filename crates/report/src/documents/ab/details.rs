//! What each setting used in a live comparison, in total, by queue if known, and over time; and what was changed for
//! it.
//!
//! Figures are sums over all pairs that count. A figure that some block lacks is missing, not a sum of the others.
//! Pairs that were set aside are not drawn.

use std::collections::BTreeSet;

use nicpoll_model::CpuSource;
use nicpoll_model::ab::{AbBlock, AbCpu, AbPair, AbQueue, AbStamps, AbWindow, LiveAb};
use nicpoll_model::numbers::{self, MISSING, counted, duration_text, figure, figure_or_missing};

use super::plan::{once, turns};
use super::words::time;
use crate::documents::study::plots::caption;
use crate::lists::{capital, listed};
use crate::page::{Align, Figure, Ink, Part, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Marks, scatter, values};
use crate::plots::svg::looks;

/// Width of the labels.
const LABEL: usize = 34;

pub fn write(part: &mut Part, compared: &LiveAb) {
    let arms = arms(compared);
    if !arms[0].is_empty() {
        part.heading("What each setting used");
        write_used(part, compared, &arms);
        write_queues(part, &arms);
        write_stamps(part, &arms);
    }
    write_bracket(part, compared);
    part.heading("What was changed");
    write_changes(part, compared);
}

/// Returns the blocks of the reference and of the judged setting, of all pairs that count.
fn arms(compared: &LiveAb) -> [Vec<&AbBlock>; 2] {
    let counting = compared.pairs.iter();
    counting
        .filter(|pair| pair.set_aside_because.is_none())
        .map(|pair| (&pair.reference, &pair.judged))
        .unzip::<_, _, Vec<_>, Vec<_>>()
        .into()
}

/// Writes the quality of the cards' time stamps at which delays begin, if there are any.
fn write_stamps(part: &mut Part, arms: &[Vec<&AbBlock>; 2]) {
    let delays = arms.iter().flatten().flat_map(|block| &block.delays);
    let stamped: Vec<(u64, AbStamps)> = delays
        .filter_map(|delay| Some((delay.samples, delay.stamps?)))
        .collect();
    if stamped.is_empty() {
        return;
    }
    let errors = stamped.iter().map(|(_, it)| it.error_ns);
    let error_ns = errors.fold(0.0, f64::max);
    let left_out: u64 = stamped.iter().map(|(_, it)| it.left_out_packets).sum();
    let measured: u64 = stamped.iter().map(|(samples, _)| samples).sum();
    let text = format!(
        "Delays from the wire begin with the card's time stamps. Its clock was known to within {}. Of {} packets, {} \
         are left out: without a stamp, or with one that cannot be right.",
        duration_text(error_ns.ceil() as u64),
        numbers::count(measured + left_out),
        numbers::count(left_out)
    );
    part.paragraph(Ink::Faint, text);
}

fn seconds(blocks: &[&AbBlock]) -> f64 {
    blocks.iter().map(|block| block.window.seconds).sum()
}

/// Sums a count over all blocks.
fn total(blocks: &[&AbBlock], count: impl Fn(&AbBlock) -> Option<u64>) -> Option<f64> {
    let sum: Option<u64> = blocks.iter().map(|block| count(block)).sum();
    Some(sum? as f64)
}

fn a_second(blocks: &[&AbBlock], count: impl Fn(&AbBlock) -> Option<u64>) -> Option<f64> {
    Some(total(blocks, count)? / seconds(blocks))
}

fn cores(blocks: &[&AbBlock], time: impl Fn(&AbCpu) -> f64) -> Option<f64> {
    let times = blocks
        .iter()
        .map(|block| block.window.cpu.as_ref().map(&time));
    Some(times.sum::<Option<f64>>()? / seconds(blocks))
}

type CpuOf = fn(&AbCpu) -> f64;

/// Where CPU time went.
const CPU: [(&str, CpuOf); 7] = [
    ("user programs, cores", |cpu| cpu.user_seconds),
    ("kernel for programs, cores", |cpu| cpu.system_seconds),
    ("hard interrupts, cores", |cpu| cpu.irq_seconds),
    ("soft interrupts, cores", |cpu| cpu.softirq_seconds),
    ("  counting, at most (subtracted)", |it| it.counting_seconds),
    ("other threads (not counted)", |cpu| cpu.foreign_seconds),
    ("steal, cores", |cpu| cpu.steal_seconds),
];

type Count = fn(&AbBlock) -> Option<u64>;

/// Counters before and after the packets a poll.
const COUNTS: [(&str, Count); 3] = [
    ("interrupts/s", |block| block.interrupts),
    ("receive soft interrupts/s", |block| block.receive_softirqs),
    ("polls/s", |block| block.polls),
];
const MORE_COUNTS: [(&str, Count); 3] = [
    ("context switches/s", |block| block.context_switches),
    ("segments sent again/s", |it| it.retransmitted_segments),
    ("received packets/s", |it| Some(it.window.rx_packets)),
];

fn packets_a_poll(blocks: &[&AbBlock]) -> Option<f64> {
    let packets = total(blocks, |block| block.polled_packets)?;
    let a_poll = packets / total(blocks, |block| block.polls)?;
    Some(a_poll).filter(|it| it.is_finite())
}

fn write_used(part: &mut Part, compared: &LiveAb, arms: &[Vec<&AbBlock>; 2]) {
    let names = [&compared.reference.name, &compared.judged.name];
    let mut table = Table::new("", names, Align::Right);
    table.label = LABEL;
    let mut add = |label: &str, of: &dyn Fn(&[&AbBlock]) -> Option<f64>| {
        let values = arms.each_ref().map(|blocks| of(blocks));
        if values.iter().any(Option::is_some) {
            let row = Row::plain(label, values.map(figure_or_missing));
            table.rows.push(row);
        }
    };
    for (label, time) in CPU {
        add(label, &|blocks| cores(blocks, time));
    }
    for (label, count) in COUNTS {
        add(label, &|blocks| a_second(blocks, count));
    }
    add("packets a poll", &packets_a_poll);
    for (label, count) in MORE_COUNTS {
        add(label, &|blocks| a_second(blocks, count));
    }
    table.rows.extend(drops(arms));
    part.table(table);
}

/// Returns the places that lost packets under either setting, or a line that nothing was lost.
fn drops(arms: &[Vec<&AbBlock>; 2]) -> Vec<Row> {
    let blocks = arms.iter().flatten();
    let places: BTreeSet<_> = blocks.flat_map(|it| it.dropped_packets.0.keys()).collect();
    let lost = places.iter().map(|place| {
        let rate = |blocks: &Vec<_>| a_second(blocks, |block| block.dropped_packets.at(**place));
        (place, arms.each_ref().map(rate))
    });
    let lost: Vec<_> = lost.collect();
    let some = lost.iter();
    let some = some.filter(|(_, lost)| lost.iter().flatten().any(|rate| *rate > 0.0));
    let mut rows: Vec<Row> = some
        .map(|(place, lost)| {
            let cells = lost.map(figure_or_missing);
            Row::new(format!("lost/s: {place}"), cells, Ink::Unsure)
        })
        .collect();
    let is_known = lost.iter().flat_map(|(_, lost)| lost).any(Option::is_some);
    if rows.is_empty() {
        let none = if is_known { "0" } else { MISSING };
        rows.push(Row::plain("lost/s", [none; 2]));
    }
    rows
}

type QueueCount = fn(&AbQueue) -> Option<u64>;

const OF_QUEUE: [(&str, QueueCount); 3] = [
    ("packets/s", |queue| queue.rx_packets),
    ("interrupts/s", |queue| queue.interrupts),
    ("polls/s", |queue| queue.polls),
];

/// Writes a line for each queue: each figure under the reference, then under the judged setting.
fn write_queues(part: &mut Part, arms: &[Vec<&AbBlock>; 2]) {
    let queues = || arms.iter().flatten().flat_map(|block| &block.queues);
    let names = queues().map(|queue| (queue.interface.as_str(), queue.queue));
    let names: BTreeSet<(&str, u32)> = names.collect();
    if names.is_empty() {
        return;
    }
    part.blank();
    let heads = OF_QUEUE.map(|(head, _)| head);
    let mut table = Table::new("queue", heads, Align::Right);
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
        let cells = OF_QUEUE.map(|(_, count)| both(of(&count)));
        table.rows.push(Row::plain(&name, cells));
        // The driver's counters of a queue, under either setting.
        let own = queues().filter(|it| it.interface == interface && it.queue == number);
        let names: BTreeSet<&String> = own.flat_map(|queue| queue.counters.keys()).collect();
        let counted = names.into_iter();
        let counted = counted
            .map(|counter| (counter, of(&|queue| queue.counters.get(counter).copied())))
            .filter(|(_, rates)| rates.iter().flatten().any(|rate| *rate > 0.0))
            .map(|(counter, rates)| format!("{counter} {}", both(rates)));
        let counted = listed(counted);
        if !counted.is_empty() {
            counters.push(format!("{name}, as its driver counts a second: {counted}."));
        }
    }
    part.table(table);
    for counted in counters {
        part.say(counted);
    }
}

/// Returns the figures of the reference and of the judged setting.
fn both(rates: [Option<f64>; 2]) -> String {
    rates.map(figure_or_missing).join(" : ")
}

type CurveLook = fn(&AbWindow) -> Option<f64>;

const OF_LOOK: [(&str, CurveLook); 4] = [
    ("packets/s", |it| Some(it.packets_per_second())),
    ("Mbit/s of frames", |it| {
        Some(it.bytes() as f64 * 8.0 / it.seconds / 1e6)
    }),
    ("cores", AbWindow::busy_cores),
    ("CPU s per GB", |it| {
        let ns = it.busy_cores()? * it.seconds / it.bytes() as f64 * 1e9;
        Some(ns).filter(|ns| ns.is_finite())
    }),
];

/// Writes the traffic with and without the changes that both settings need: at the start, then at the end.
fn write_bracket(part: &mut Part, compared: &LiveAb) {
    if compared.prerequisites.is_empty() {
        return;
    }
    part.heading("What it costs to have what both settings need");
    let Some(bracket) = &compared.prerequisites_cost else {
        let none = "It is not known: the run ended early. It is in no figure above.";
        return part.warn(none);
    };
    let heads = ["without", "with it"];
    let rows = OF_LOOK.map(|(label, of)| {
        let looks = [&bracket.without, &bracket.with];
        Row::plain(label, looks.map(|looks| both(looks.each_ref().map(of))))
    });
    let label = "at the beginning : at the end";
    part.table(Table::new(label, heads, Align::Right).with(LABEL, rows));
    let what = "Under the setting that was there, so this is in no figure above. Two looks at each have no interval: \
                where the two differ as much as with and without, nothing follows.";
    part.paragraph(Ink::Faint, what);
}

fn write_changes(part: &mut Part, compared: &LiveAb) {
    let turns = turns(compared).into_iter().map(|it| ("To and fro", it));
    let once = once(compared).into_iter();
    let once = once.map(|it| ("Once, under both settings", it));
    for (when, (place, writes)) in turns.chain(once) {
        part.say(format!("{when}, {place}: {}.", listed(writes)));
    }
    for unseen in compared.not_alternated.iter().chain(&compared.unseen) {
        part.warn(format!("{}: {}.", unseen.what, unseen.why));
    }
    for restored in &compared.restored {
        let (ink, how) = match restored.is_as_before {
            true => (Ink::Plain, "is as it was before"),
            false => (
                Ink::Bad,
                "is NOT as it was before (nicpoll restore tries again)",
            ),
        };
        let notes = restored.notes.iter();
        let notes: String = notes.map(|note| format!(" {note}.")).collect();
        part.paragraph(ink, format!("{} {how}.{notes}", restored.interface));
    }
    let answer = &compared.answer;
    let is_sampled = answer
        .cpu
        .is_some_and(|cpu| cpu.source == CpuSource::TickSampled);
    let below = match is_sampled {
        true => {
            "with a block in which other programs had all that was sampled: it counts as 0 cores."
        }
        false => {
            "with a block in which counting probably costs more than all that was counted: it counts as 0 cores."
        }
    };
    for (pairs, what) in [
        (
            answer.set_aside_pairs,
            "set aside for an event from outside.",
        ),
        (answer.cpu.map_or(0, |cpu| cpu.pairs_below_counting), below),
    ] {
        if pairs > 0 {
            part.warn(format!("{} {what}", counted(pairs, "pair")));
        }
    }
    let plan = &compared.plan;
    let left_out = time(plan.left_out_seconds * 1e9);
    let settling = plan.settling_seconds.map(|seconds| time(seconds * 1e9));
    let settling = settling.map_or(String::new(), |time| {
        format!(" After a change, polls took {time} to settle.")
    });
    let seed = plan.seed;
    let text = format!(
        "The first {left_out} of each block are left out.{settling} Order and lengths follow from --seed {seed}."
    );
    part.paragraph(Ink::Faint, text);
}

/// A figure of a block: its name, and a function that reads it.
type BlockFigure = (&'static str, fn(&AbBlock) -> Option<f64>);

const READINGS: [BlockFigure; 5] = [
    ("busy cores", |block| block.window.busy_cores()),
    ("packets a second, both ways", |block| {
        Some(block.window.packets_per_second())
    }),
    ("context switches a second, whole machine", |block| {
        Some(block.context_switches? as f64 / block.window.seconds)
    }),
    ("interrupts a second, of the interface", |block| {
        Some(block.interrupts? as f64 / block.window.seconds)
    }),
    ("polls a second, of the interface", |block| {
        Some(block.polls? as f64 / block.window.seconds)
    }),
];

/// Returns the plots for which a comparison has figures.
pub fn figures(compared: &LiveAb) -> impl Iterator<Item = Figure> {
    let readings = READINGS.iter();
    readings.filter_map(|reading| over_time(compared, *reading))
}

/// Plots a figure of each block over the time of the run; `None` if no block has it, or it is 0 in all.
fn over_time(compared: &LiveAb, (name, read): BlockFigure) -> Option<Figure> {
    let names = [&*compared.reference.name, &*compared.judged.name];
    let blocks: [fn(&AbPair) -> &AbBlock; 2] = [|pair| &pair.reference, |pair| &pair.judged];
    let counting = || {
        let pairs = compared.pairs.iter();
        pairs.filter(|pair| pair.set_aside_because.is_none())
    };
    let arms = names.iter().zip(looks(&names)).zip(blocks);
    let series = arms.map(|((name, look), block)| {
        let blocks = counting().map(block);
        let points = blocks.filter_map(|block| Some((block.start_seconds, read(block)?)));
        Marks::of(name, look, points.collect())
    });
    let series: Vec<Marks> = series.collect();
    let y = Axis::around_all(values(&series))?;
    values(&series).find(|value| *value > 0.0)?;
    let times = series.iter().flat_map(|one| &one.points);
    let end = times.map(|(time, _)| *time).fold(0.0, f64::max);
    let svg = scatter(
        &format!("{name} in each block, over time"),
        (Axis::up_to(end), "seconds since the first block"),
        (y, name.split(',').next().unwrap_or(name)),
        &series,
    );
    let rows = counting().map(|pair| {
        let cells = blocks.map(|block| figure_or_missing(read(block(pair))));
        let time = figure(pair.reference.start_seconds.min(pair.judged.start_seconds));
        [time].into_iter().chain(cells).collect()
    });
    let mut caption = caption("A mark is a block.", &y);
    let aside = compared.pairs.len() - counting().count();
    if aside > 0 {
        caption += &format!(" Pairs that were set aside, which are not drawn: {aside}.");
    }
    let head = ["pair from, s", names[0], names[1]];
    Some(Figure::new(capital(name), caption, svg, head, rows))
}
