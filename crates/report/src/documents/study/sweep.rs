//! A sweep: offered against delivered at each rate, the greatest rate held, and CPU time at a fixed load.
//!
//! Both ways of comparing settings are shown next to each other. What was offered is what was sent; a sender that was
//! too slow is never shown as a limit of what receives.

use nicpoll_model::numbers::{MISSING, count, figure};
use nicpoll_model::{Sweep, SweepEnd, SweepPoint, SweptSetting, WorkUnit};

use crate::lists::joined;
use crate::page::{Align, Figure, Ink, Part, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Curves, Series, TOP, above_diagonal, values};
use crate::plots::svg::{LETTERS, looks, stroke};

/// Width of the names at the left.
const LABEL: usize = 22;

/// Writes one sweep.
pub fn write(part: &mut Part, sweep: &Sweep) {
    let (many, one) = match sweep.unit {
        WorkUnit::Transactions => ("requests", "transaction"),
        _ => ("packets", "packet"),
    };
    part.heading(format!(
        "{}: offered against delivered, {many} a second (medians)",
        sweep.sweep
    ));
    let all = || sweep.settings.iter().flat_map(|one| &one.points);
    let is_shown =
        |(_, read, is_optional): &&Column| !is_optional || all().any(|point| read(point).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_shown).collect();
    let points = sweep.settings.first().map_or(0, |one| one.points.len());
    let settings = (0..points).flat_map(|index| sweep.settings.iter().map(move |it| (index, it)));
    let rows = settings.filter_map(|(index, setting)| {
        let point = setting.points.get(index)?;
        let cells = columns.iter();
        let cells = cells.map(|it| it.1(point).unwrap_or(String::from(MISSING)));
        let held = setting.held_per_second;
        let ink = match held.is_some_and(|held| point.asked_per_second <= held) {
            true => Ink::Plain,
            false => Ink::Unsure,
        };
        let label = format!("{} {}", count(point.asked_per_second), setting.setting);
        Some(Row::new(label, cells, ink))
    });
    let heads = columns.iter().map(|it| it.0);
    part.table(Table::new("asked", heads, Align::Right).with(LABEL, rows));
    part.blank();
    let held = joined(sweep.settings.iter().map(held), "; ");
    let text = format!("Greatest rate held, with 99 % of it delivered: {held}.");
    part.say(text);
    part.say(at_fixed_load(sweep, one));
    if all().any(|point| point.spinner_ratio.is_some()) {
        part.say("p99: 99 of 100 took no longer from sending to the receiver's program. program: the share of the \
             receiver's core that another program got, in a run of its own.",
        );
    }
    part.figures(figures(sweep));
}

/// A column of the table: its name, how it is read, and whether it is left out where no rate has its figure.
type Column = (&'static str, fn(&SweepPoint) -> Option<String>, bool);

const COLUMNS: [Column; 6] = [
    ("offered", |it| it.offered_per_second.map(figure), false),
    ("delivered", |it| it.delivered_per_second.map(figure), false),
    ("arrived", |it| percent(it.delivered_ratio?, 1), false),
    ("CPU each, us", |it| us(it.busy_ns_per_packet?), false),
    ("p99, us", |it| us(it.one_way_p99_ns?), true),
    ("program", |it| percent(it.spinner_ratio?, 0), true),
];

fn us(ns: f64) -> Option<String> {
    Some(figure(ns / 1e3))
}

fn percent(share: f64, decimals: usize) -> Option<String> {
    Some(format!("{:.decimals$} %", 100.0 * share))
}

/// The greatest rate that a setting holds, and why no more.
fn held(setting: &SweptSetting) -> String {
    let name = &setting.setting;
    let why = match setting.ended_by {
        SweepEnd::Loss => "more is lost above it",
        SweepEnd::Sender => "the sender did not reach the next rate",
        SweepEnd::Sweep => "no higher rate was asked for",
        SweepEnd::NoResult => "the next rate gave no result",
    };
    match (setting.held_per_second, setting.ended_by) {
        (Some(rate), SweepEnd::Loss) => format!("{name} {} ({why})", count(rate)),
        (Some(rate), _) => format!("{name} at least {} ({why})", count(rate)),
        (None, SweepEnd::Loss) => format!("{name} none (more is lost at the lowest rate)"),
        (None, _) => format!("{name} not known ({why})"),
    }
}

fn at_fixed_load(sweep: &Sweep, one: &str) -> String {
    let Some(rate) = sweep.fixed_load_per_second else {
        return String::from(
            "CPU time at a fixed load is not compared: no rate of the sweep is half of what every setting holds, or \
             less.",
        );
    };
    let times = sweep.settings.iter().map(|setting| {
        let time = setting.fixed_load_busy_ns_per_packet;
        let time = time.map(|ns| format!("{} us", figure(ns / 1e3)));
        let time = time.unwrap_or(String::from("not measured"));
        format!("{} {time}", setting.setting)
    });
    let (rate, times) = (count(rate), joined(times, "; "));
    format!("CPU time a {one} at the same load, {rate} a second: {times}.")
}

/// A plot of a sweep: what it shows, how to read it, the name of its vertical axis, the figure of a rate, and whether
/// delays are shown, which differ by powers of ten.
struct Plot(
    &'static str,
    &'static str,
    &'static str,
    fn(&SweepPoint) -> Option<f64>,
    bool,
);

const DELIVERED: &str = "delivered a second";

const PLOTS: [Plot; 5] = [
    Plot(
        "Offered against delivered",
        "A mark is a rate, the median of its trials. On the dashed line everything that was sent arrived.",
        DELIVERED,
        |point| point.delivered_per_second,
        false,
    ),
    Plot(
        "What a packet costs at each load",
        "CPU time of both cores over what was delivered, the median of the trials.",
        "CPU ns a packet",
        |point| point.busy_ns_per_packet,
        false,
    ),
    Plot(
        "How long half of the datagrams take at most",
        "From the time that a datagram bears to the receiver's program, the median of the trials.",
        "one-way delay p50, us",
        |point| Some(point.one_way_p50_ns? / 1e3),
        true,
    ),
    Plot(
        "How long 99 of 100 datagrams take at most",
        "The same of the slow ones.",
        "one-way delay p99, us",
        |point| Some(point.one_way_p99_ns? / 1e3),
        true,
    ),
    Plot(
        "What another program on the receiver's core gets at each load",
        "The share of the receiver's core that a program gets which computes there, in runs of their own.",
        "left to a program, %",
        |point| Some(100.0 * point.spinner_ratio?),
        false,
    ),
];

/// The plots that a sweep allows.
fn figures(sweep: &Sweep) -> impl Iterator<Item = Figure> {
    PLOTS.iter().filter_map(|plot| draw(sweep, plot))
}

/// A figure against what was offered; `None` when no rate has it.
fn draw(sweep: &Sweep, Plot(title, caption, axis, read, is_delay): &Plot) -> Option<Figure> {
    let heading = *title;
    let unit = match sweep.unit {
        WorkUnit::Transactions => "transactions a second",
        WorkUnit::Datagrams | WorkUnit::Bytes => "packets a second",
    };
    let names = sweep.settings.iter().map(|one| one.setting.as_str());
    let looks = looks(&names.collect::<Vec<_>>());
    let series = sweep.settings.iter().zip(looks).map(|(setting, look)| {
        let points = setting.points.iter();
        let points = points.filter_map(|it| Some((it.offered_per_second?, read(it)?)));
        Series::of(&setting.setting, look, points.collect())
    });
    let series: Vec<Series> = series.collect();
    let offered = series.iter().flat_map(|one| &one.points);
    let offered = offered.map(|(offered, _)| *offered).reduce(f64::max)?;
    let most = values(&series).reduce(f64::max)?;
    let title = format!("{}: {} against what was offered", sweep.sweep, axis);
    let x_name = format!("offered, {unit}");
    let x = (Axis::up_to(offered), x_name.as_str());
    let least = values(&series).fold(most, f64::min);
    let (y, above) = match is_delay {
        true => (Axis::decades(least, most), 0.0),
        false => (Axis::up_to(most), above_diagonal(LETTERS) - TOP),
    };
    let mut curves = Curves::new(&title, x, (y, axis), above, series.len());
    if *axis == DELIVERED {
        curves.frame.diagonal(&mut curves.svg);
    }
    for one in &series {
        curves.curve(one.points.iter().copied(), &stroke(one.look.colour));
    }
    let svg = curves.end(&series);
    let rows = series.iter().map(|one| one.row(figure));
    let head = ["setting", "offered: value"];
    Some(Figure::new(heading, *caption, svg, head, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use crate::text::{TextOptions, render_text};

    #[test]
    fn both_ways_of_comparing_stand_below_the_table() {
        let sweep = include_str!("../../../tests/golden/sweep.json");
        let sweep: Sweep = serde_json::from_str(sweep).unwrap();
        let page = Page::of("", |part| write(part, &sweep));
        let options = TextOptions::wide(80);
        let text = render_text(&page, &options);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(lines[2].contains("20,000 interrupt"), "{text}");
        assert!(lines[4].contains("40,000 interrupt") && lines[4].contains("80.0 %"));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "interrupt 20,000 (more is lost above it); polling at least 40,000 (the sender did not reach",
            "CPU time a packet at the same load, 20,000 a second: interrupt 3.10 us; polling 3.10 us.",
        ] {
            assert!(flat.contains(words), "{words}: {text}");
        }
    }
}
