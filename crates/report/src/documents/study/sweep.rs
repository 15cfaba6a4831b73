//! A sweep: offered against delivered at each rate, the greatest rate held, and CPU time at a fixed load.
//!
//! Both ways of comparing settings are shown next to each other. What was offered is what was sent; a sender that was
//! too slow is never shown as a limit of what receives.

use nicpoll_model::numbers::{MISSING, count, figure};
use nicpoll_model::{Sweep, SweepEnd, SweepPoint, SweptSetting, WorkUnit};

use crate::page::{Align, Figure, Ink, Part, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Curves, Series, TOP, above_diagonal, joined, values};
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
    let mut table = Table::new("asked", columns.iter().map(|it| it.0), Align::Right);
    table.label = LABEL;
    let points = sweep.settings.first().map_or(0, |one| one.points.len());
    for index in 0..points {
        for setting in &sweep.settings {
            let Some(point) = setting.points.get(index) else {
                continue;
            };
            let cells = columns
                .iter()
                .map(|it| it.1(point).unwrap_or(String::from(MISSING)));
            let held = setting.held_per_second;
            let ink = match held.is_some_and(|held| point.asked_per_second <= held) {
                true => Ink::Plain,
                false => Ink::Unsure,
            };
            let label = format!("{} {}", count(point.asked_per_second), setting.setting);
            table.rows.push(Row::new(label, cells, ink));
        }
    }
    part.table(table);
    part.blank();
    let held: Vec<String> = sweep.settings.iter().map(held).collect();
    let held = held.join("; ");
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
    let times: Vec<String> = times.collect();
    format!(
        "CPU time a {one} at the same load, {} a second: {}.",
        count(rate),
        times.join("; ")
    )
}

/// A plot of a sweep: what it shows, how to read it, the name of its vertical axis, and the figure of a rate.
struct Plot {
    title: &'static str,
    caption: &'static str,
    axis: &'static str,
    read: fn(&SweepPoint) -> Option<f64>,
    /// Whether delays are shown, which differ by powers of ten.
    is_delay: bool,
}

const DELIVERED: &str = "delivered a second";

const PLOTS: [Plot; 5] = [
    Plot {
        title: "Offered against delivered",
        caption: "A mark is a rate, the median of its trials. On the dashed line everything that was sent arrived.",
        axis: DELIVERED,
        read: |point| point.delivered_per_second,
        is_delay: false,
    },
    Plot {
        title: "What a packet costs at each load",
        caption: "CPU time of both cores over what was delivered, the median of the trials.",
        axis: "CPU ns a packet",
        read: |point| point.busy_ns_per_packet,
        is_delay: false,
    },
    Plot {
        title: "How long half of the datagrams take at most",
        caption: "From the time that a datagram bears to the receiver's program, the median of the trials.",
        axis: "one-way delay p50, us",
        read: |point| Some(point.one_way_p50_ns? / 1e3),
        is_delay: true,
    },
    Plot {
        title: "How long 99 of 100 datagrams take at most",
        caption: "The same of the slow ones.",
        axis: "one-way delay p99, us",
        read: |point| Some(point.one_way_p99_ns? / 1e3),
        is_delay: true,
    },
    Plot {
        title: "What another program on the receiver's core gets at each load",
        caption: "The share of the receiver's core that a program gets which computes there, in runs of their own.",
        axis: "left to a program, %",
        read: |point| Some(100.0 * point.spinner_ratio?),
        is_delay: false,
    },
];

/// The plots that a sweep allows.
fn figures(sweep: &Sweep) -> impl Iterator<Item = Figure> {
    PLOTS.iter().filter_map(|plot| draw(sweep, plot))
}

/// A figure against what was offered; `None` when no rate has it.
fn draw(sweep: &Sweep, plot: &Plot) -> Option<Figure> {
    let unit = match sweep.unit {
        WorkUnit::Transactions => "transactions a second",
        WorkUnit::Datagrams | WorkUnit::Bytes => "packets a second",
    };
    let names = sweep.settings.iter().map(|one| one.setting.as_str());
    let looks = looks(&names.collect::<Vec<_>>());
    let series = sweep.settings.iter().zip(looks).map(|(setting, look)| {
        let points = setting.points.iter();
        let points = points.filter_map(|it| Some((it.offered_per_second?, (plot.read)(it)?)));
        Series::of(&setting.setting, look, points.collect())
    });
    let series: Vec<Series> = series.collect();
    let offered = series.iter().flat_map(|one| &one.points);
    let offered = offered.map(|(offered, _)| *offered).reduce(f64::max)?;
    let most = values(&series).reduce(f64::max)?;
    let title = format!("{}: {} against what was offered", sweep.sweep, plot.axis);
    let x_name = format!("offered, {unit}");
    let x = (Axis::up_to(offered), x_name.as_str());
    let svg = if plot.is_delay {
        let least = values(&series).fold(most, f64::min);
        joined(&title, x, (Axis::decades(least, most), plot.axis), &series)
    } else {
        let above = above_diagonal(LETTERS) - TOP;
        let y = (Axis::up_to(most), plot.axis);
        let mut curves = Curves::new(&title, x, y, above, series.len());
        if plot.axis == DELIVERED {
            curves.frame.diagonal(&mut curves.svg);
        }
        for one in &series {
            curves.curve(one.points.iter().copied(), &stroke(one.look.colour));
        }
        curves.end(&series)
    };
    let rows = series.iter().map(|one| one.row(figure));
    let head = ["setting", "offered: value"];
    Some(Figure::new(plot.title, plot.caption, svg, head, rows))
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
