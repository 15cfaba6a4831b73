//! A sweep: offered against delivered at each rate, the greatest rate held, and CPU time at half and at full load.
//!
//! Both ways of comparing settings are shown side by side. Offered means sent: a sender that was too slow is never
//! shown as the receiver's limit.

use nicpoll_model::numbers::{MISSING, count, figure, figure_or_missing};
use nicpoll_model::{Knee, Metric, Study, Sweep, SweepEnd, SweepPoint, SweptSetting, WorkUnit};

use super::answer::word;
use super::comparisons::value;
use super::trials::SettingPair;
use crate::lists::{joined, listed};
use crate::page::{Align, Figure, Ink, Part, Row, Table};
use crate::plots::axis::Axis;
use crate::plots::curves::{Curves, Marks, TOP, above_diagonal, values};
use crate::plots::svg::{LETTERS, looks, stroke};

/// Width of the names at the left.
const LABEL: usize = 22;

/// Width of the pairs in the table of CPU time.
const PAIR: usize = 26;

/// Writes one sweep.
pub fn write(part: &mut Part, study: &Study, sweep: &Sweep) {
    let (many, one) = match sweep.unit {
        WorkUnit::Transactions => ("requests", "transaction"),
        _ => ("packets", "packet"),
    };
    part.heading(format!(
        "{}: offered against delivered, {many} a second (medians)",
        sweep.sweep
    ));
    let all = || sweep.settings.iter().flat_map(|one| &one.points);
    let is_shown = |(_, read, is_optional): &&SweepColumn| {
        !is_optional || all().any(|point| read(point).is_some())
    };
    let columns: Vec<&SweepColumn> = COLUMNS.iter().filter(is_shown).collect();
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
    let knee = study.knees.iter().find(|knee| knee.sweep == sweep.sweep);
    if let Some(knee) = knee {
        part.say(shown(knee, many));
    }
    part.heading(format!(
        "{}: CPU time a {one} at half and at full load",
        sweep.sweep
    ));
    part.table(costs(study, sweep));
    if all().any(|point| point.spinner_ratio.is_some()) {
        part.say("p99: 99 of 100 took no longer from sending to the receiver's program. program: the share of the \
             receiver's core that another program got, in a run of its own.",
        );
    }
    part.figures(figures(sweep));
}

/// A column of the table: its name, a function that reads it, and whether it is left out if no rate has the figure.
type SweepColumn = (&'static str, fn(&SweepPoint) -> Option<String>, bool);

const COLUMNS: [SweepColumn; 6] = [
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

/// Returns the greatest rate that a setting holds, and what limits it.
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

/// Returns the knee, which is 100 % of a sweep, and the trials that confirmed it.
fn shown(knee: &Knee, many: &str) -> String {
    let rate = count(knee.asked_per_second);
    let shown = knee.shown.iter().map(|it| {
        let point = &it.point;
        let [delivered, offered] = [point.delivered_per_second, point.offered_per_second];
        let [delivered, offered] = [delivered, offered].map(figure_or_missing);
        format!("{delivered} of {offered} under {}", it.setting)
    });
    let shown = listed(shown);
    format!(
        "100 % is {rate} {many} a second, the greatest rate that trials before the first block showed every setting \
         to hold: {shown}."
    )
}

/// Returns the table of CPU time of each pair of settings at half and at full load. A load that a setting does not
/// deliver is marked.
fn costs(study: &Study, sweep: &Sweep) -> Table {
    let (half, full) = (sweep.fixed_load_per_second, sweep.full_load_per_second);
    let near = match full == half {
        true => Err("full load: no rate of the sweep is nearer to it"),
        false => full.ok_or("full load: not told apart by this version"),
    };
    let loads = [
        (
            "half load",
            half.ok_or("half load: no rate of the sweep is that or less"),
        ),
        ("full load", near),
    ];
    let rows = loads.into_iter().flat_map(|(load, rate)| {
        let title = rate.map_or_else(String::from, |rate| {
            format!("{load}: {} a second", count(rate))
        });
        let pairs = SettingPair::of(study).into_iter();
        let pairs = pairs.filter(|pair| pair.effect.is_none());
        let costs = pairs.filter_map(move |pair| cost(study, sweep, rate.ok()?, pair));
        std::iter::once(Row::group(title, Ink::Plain)).chain(costs)
    });
    let head = ["CPU each, us", "ratio [interval]", ""];
    Table::new("", head, Align::Left).with(PAIR, rows)
}

fn cost(study: &Study, sweep: &Sweep, rate: u64, pair: SettingPair) -> Option<Row> {
    let [judged, reference] = [pair.setting, pair.reference].map(|name| {
        let mut settings = sweep.settings.iter();
        let mut points = settings.find(|it| it.setting == name)?.points.iter();
        points.find(|point| point.asked_per_second == rate)
    });
    let both = [judged?, reference?];
    let compared = pair.all(study, &both[0].workload);
    let compared = compared.filter(|it| it.metric == Metric::CpuNsPerPacket);
    let compared = compared.last();
    let times = both.map(|point| point.busy_ns_per_packet.and_then(us));
    let times = times.map(|us| us.unwrap_or(String::from(MISSING)));
    let ratio = compared.map_or(String::from(MISSING), |it| value(study, it));
    let verdict = compared.and_then(|it| it.verdict);
    let word = || String::from(verdict.map_or("", |_| word(verdict)));
    let note = both.into_iter().find_map(not_held).unwrap_or_else(word);
    let label = format!("  {} against {}", pair.setting, pair.reference);
    Some(Row::plain(label, [times.join(" / "), ratio, note]))
}

/// Returns how much of a rate was offered, or delivered, if it is not held.
fn not_held(point: &SweepPoint) -> Option<String> {
    Some(match point.ends()? {
        SweepEnd::Loss => format!("{} arrived", percent(point.delivered_ratio?, 1)?),
        SweepEnd::Sender => {
            let offered = point.offered_per_second? / point.asked_per_second as f64;
            format!("{} offered", percent(offered, 1)?)
        }
        _ => String::from("no result"),
    })
}

/// A plot of a sweep: title, caption, name of the vertical axis, the figure of a rate, and whether it shows delays,
/// which differ by powers of ten.
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

/// Returns the plots for which a sweep has figures.
fn figures(sweep: &Sweep) -> impl Iterator<Item = Figure> {
    PLOTS.iter().filter_map(|plot| draw(sweep, plot))
}

/// Plots a figure over the offered load; `None` if no rate has it.
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
        Marks::of(&setting.setting, look, points.collect())
    });
    let series: Vec<Marks> = series.collect();
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

    /// Renders a study with a sweep of 20,000 and 40,000 a second, of which interrupts deliver 80 %, each as one line
    /// of text.
    fn flat(change: impl Fn(&mut Study, &mut Sweep)) -> (Vec<String>, String) {
        let sweep = include_str!("../../../tests/golden/sweep.json");
        let mut sweep: Sweep = serde_json::from_str(sweep).unwrap();
        let study = include_str!("../../../tests/golden/demo.json");
        let mut study: Study = serde_json::from_str(study).unwrap();
        study.plan.contrasts.truncate(1);
        let cost = study.comparisons.first_mut().unwrap();
        (cost.metric, cost.verdict) = (Metric::CpuNsPerPacket, None);
        (cost.ratio_low, cost.ratio, cost.ratio_high) = (Some(0.7), Some(0.75), Some(0.8));
        (cost.setting, cost.reference) = study.plan.contrasts[0].clone();
        cost.workload = String::from("udp64@20000");
        change(&mut study, &mut sweep);
        let page = Page::of("", |part| write(part, &study, &sweep));
        let text = render_text(&page, &TextOptions::wide(80));
        let lines: Vec<String> = text.lines().map(String::from).collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        (lines, text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn both_ways_of_comparing_stand_below_the_table() {
        let (lines, flat) = flat(|_, _| {});
        assert!(lines[2].contains("20,000 interrupt"), "{flat}");
        assert!(lines[4].contains("40,000 interrupt") && lines[4].contains("80.0 %"));
        for words in [
            "interrupt 20,000 (more is lost above it); polling at least 40,000 (the sender did not reach",
            "half load: 20,000 a second polling against interrupt 3.10 / 3.10 0.75x [0.70, 0.80] full load: not",
        ] {
            assert!(flat.contains(words), "{words}: {flat}");
        }
        assert!(!flat.contains("100 % is"));
    }

    #[test]
    fn cpu_time_has_a_line_at_every_load_and_its_verdict_where_both_deliver_it() {
        use nicpoll_model::Verdict;
        let (_, judged) = flat(|study, sweep| {
            sweep.full_load_per_second = Some(40_000);
            for one in &mut study.comparisons {
                one.verdict = Some(Verdict::WorseAndItMatters);
            }
        });
        assert!(
            judged.contains("0.75x [0.70, 0.80] loses full load"),
            "{judged}"
        );
        // Loads that are not delivered, or have no rate, are named.
        let (_, full) = flat(|_, sweep| {
            (sweep.fixed_load_per_second, sweep.full_load_per_second) = (None, Some(40_000));
        });
        for words in [
            "half load: no rate of the sweep is that or less full load: 40,000 a second polling",
            "polling against interrupt 3.10 / 3.10 - 80.0 % arrived",
        ] {
            assert!(full.contains(words), "{words}: {full}");
        }
    }

    #[test]
    fn the_trials_that_showed_the_knee_stand_below_what_is_held() {
        let (_, flat) = flat(|study, sweep| {
            let shown = sweep
                .settings
                .iter()
                .map(|setting| nicpoll_model::KneePoint {
                    setting: setting.setting.clone(),
                    point: setting.points[0].clone(),
                });
            study.knees = vec![Knee {
                sweep: sweep.sweep.clone(),
                asked_per_second: 20_000,
                shown: shown.collect(),
            }];
        });
        let words = "100 % is 20,000 packets a second, the greatest rate that trials before the first block showed \
                     every setting to hold: 20,000 of 20,000 under interrupt, 20,000 of 20,000 under polling.";
        assert!(flat.contains(words), "{flat}");
    }
}
