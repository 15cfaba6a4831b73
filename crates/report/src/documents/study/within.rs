//! Plots of the steps within the trials, which a mean would hide.
//!
//! Every trial that counts is in them. The caption defines the marks for bursts of drops and storms.

use std::collections::BTreeSet;
use std::fmt::Write;

use nicpoll_model::numbers::{MISSING, count, figure, percent};
use nicpoll_model::{CoreSeries, Study, TrialSeries, WorkUnit, WorkloadFacts};
use nicpoll_stats::Summary;

use super::trials::StudyArm;
use super::workload::core_name;
use crate::page::Figure;
use crate::plots::axis::Axis;
use crate::plots::curves::{Curves, Marks, PlotFrame, TOP};
use crate::plots::svg::{self, CurveLook};

/// A step is a burst of drops if at least this share of its sent datagrams was dropped.
const BURST_RATIO: f64 = 0.01;
/// Height of the marks of one setting's events, which are above the curves.
const EVENTS: f64 = 10.0;
const SECONDS: &str = "seconds since the traffic began";

/// The series of the trials of a setting.
struct SettingSeries<'a> {
    name: &'a str,
    look: CurveLook,
    series: Vec<&'a TrialSeries>,
    unit: WorkUnit,
}

/// Returns the settings whose trials have series.
fn trials<'a>(facts: &WorkloadFacts, arms: &[StudyArm<'a>]) -> Vec<SettingSeries<'a>> {
    let trials = arms.iter().map(|arm| {
        let results = arm.group.results();
        SettingSeries {
            name: arm.name,
            look: arm.look,
            series: results.filter_map(|it| it.series.as_ref()).collect(),
            unit: facts.unit,
        }
    });
    trials.filter(|it| !it.series.is_empty()).collect()
}

impl SettingSeries<'_> {
    /// Returns the rates of each trial's steps, with the middle of each step.
    fn rates(&self) -> Vec<Vec<(f64, f64)>> {
        let (_, scale) = unit(self.unit);
        let of_trial = |series: &&TrialSeries| {
            let counts = series.received(self.unit).unwrap_or_default();
            let rates = series.rates(counts);
            rates.map(|(at, rate)| (at, rate / scale)).collect()
        };
        self.series.iter().map(of_trial).collect()
    }

    /// Returns the median over the trials at each step that at least half of them have.
    fn median(&self) -> Vec<(f64, f64)> {
        let all = self.rates();
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        let step = |index: usize| {
            let here = all.iter().filter_map(|one| one.get(index)).copied();
            let (at, rates): (Vec<f64>, Vec<f64>) = here.unzip();
            let is_enough = 2 * at.len() >= all.len();
            is_enough.then_some((Summary::of(&at)?.median, Summary::of(&rates)?.median))
        };
        (0..longest).map_while(step).collect()
    }

    /// Returns the drops of all trials in each step.
    fn dropped(&self) -> Vec<u64> {
        let all: Vec<Vec<u64>> = self.series.iter().map(|it| it.dropped()).collect();
        let steps = all.iter().map(Vec::len).max().unwrap_or(0);
        let sum = |step: usize| all.iter().filter_map(|one| one.get(step)).sum();
        (0..steps).map(sum).collect()
    }

    /// Returns the middles of the steps with a burst of drops.
    fn bursts(&self) -> Vec<f64> {
        let of_trial = |series: &&TrialSeries| {
            let dropped = series.dropped().into_iter().zip(&series.sent_frames);
            let much = |(dropped, sent): (u64, &u64)| {
                dropped > 0 && dropped as f64 >= BURST_RATIO * *sent as f64
            };
            middles(series, dropped.map(much).collect())
        };
        self.series.iter().flat_map(of_trial).collect()
    }

    /// Returns the middles of the steps with a storm.
    fn storms(&self) -> Vec<f64> {
        let of_trial = |series: &&TrialSeries| middles(series, series.storms());
        self.series.iter().flat_map(of_trial).collect()
    }
}

/// Returns the name of the counted unit, and the size of the axis's unit in it.
fn unit(unit: WorkUnit) -> (&'static str, f64) {
    match unit {
        WorkUnit::Bytes => ("received, Mbit/s of frames", 1e6 / 8.0),
        WorkUnit::Datagrams => ("delivered, packets a second", 1.0),
        WorkUnit::Transactions => ("requests a second", 1.0),
    }
}

/// Returns the middles of the steps of a trial for which `holds` is true.
fn middles(series: &TrialSeries, holds: Vec<bool>) -> Vec<f64> {
    let steps = series.rates(&series.sent_frames).zip(holds);
    let held = steps.filter(|(_, holds)| *holds);
    held.map(|((at, _), _)| at).collect()
}

/// Plots the receiver's rates of a workload's trials; `None` if they have no series.
pub fn rates(facts: &WorkloadFacts, arms: &[StudyArm]) -> Option<Figure> {
    let trials = trials(facts, arms);
    let points = || trials.iter().flat_map(SettingSeries::rates).flatten();
    let last = points().map(|(at, _)| at).reduce(f64::max)?;
    let most = points().map(|(_, rate)| rate).reduce(f64::max)?;
    let step = trials.first()?.series.first()?.step_seconds;
    let (name, _) = unit(facts.unit);
    let title = format!("{}: the receiver's rate within the trials", facts.workload);
    let (x, y) = ((Axis::up_to(last), SECONDS), (Axis::up_to(most), name));
    let above = EVENTS * trials.len() as f64;
    let mut curves = Curves::new(&title, x, y, above, trials.len());
    for (index, one) in trials.iter().enumerate() {
        let y = TOP + EVENTS * index as f64;
        events(&mut curves.svg, &curves.frame, one, y);
    }
    for one in &trials {
        curves.svg.push_str("<g opacity=\"0.35\">\n");
        let stroke = svg::stroke_of(one.look.colour, 1.0);
        for points in one.rates() {
            curves.curve(points, &stroke);
        }
        curves.svg.push_str("</g>\n");
    }
    let medians: Vec<_> = trials.iter().map(SettingSeries::median).collect();
    for (one, median) in trials.iter().zip(&medians) {
        let stroke = svg::stroke_of(one.look.colour, 3.5);
        curves.curve(median.iter().copied(), &stroke);
    }
    let columns = trials.iter().zip(&medians).flat_map(|(one, median)| {
        let rates = median.iter().map(|(_, rate)| figure(*rate)).collect();
        let dropped = one.dropped().into_iter().map(count).collect();
        [
            (format!("{}: {name}", one.name), rates),
            (format!("{}: dropped, all trials", one.name), dropped),
        ]
    });
    let times = medians.iter();
    let times = times.map(|median| median.iter().map(|(at, _)| *at));
    let (head, rows) = over_time(times, columns.collect());
    let caption = rates_caption(&trials, step);
    let svg = curves.end(&legend(&trials));
    let title = "The rate within the trials";
    Some(Figure::new(title, caption, svg, head, rows))
}

fn legend<'a>(trials: &[SettingSeries<'a>]) -> Vec<Marks<'a>> {
    let trials = trials.iter();
    trials
        .map(|it| Marks::of(it.name, it.look, Vec::new()))
        .collect()
}

/// Makes a table over the steps of several settings; times are those of the first setting that has the step.
/// `columns` have names and cells.
fn over_time(
    settings: impl Iterator<Item = impl Iterator<Item = f64>>,
    columns: Vec<(String, Vec<String>)>,
) -> (Vec<String>, Vec<Vec<String>>) {
    let mut times = Vec::new();
    for own in settings {
        let known = times.len();
        times.extend(own.skip(known));
    }
    let rows = times.into_iter().enumerate().map(|(index, at)| {
        let cells = columns.iter().map(|(_, cells)| {
            let cell = cells.get(index).cloned();
            cell.unwrap_or(String::from(MISSING))
        });
        [figure(at)].into_iter().chain(cells).collect()
    });
    let rows = rows.collect();
    let names = columns.into_iter().map(|(name, _)| name);
    let head = [String::from("seconds")].into_iter().chain(names);
    (head.collect(), rows)
}

fn rates_caption(trials: &[SettingSeries], step: f64) -> String {
    let has =
        |events: fn(&SettingSeries) -> Vec<f64>| trials.iter().any(|one| !events(one).is_empty());
    let is_read = |series: &&TrialSeries| series.cut_short_softirqs.is_some();
    let was_read = trials.iter().flat_map(|one| &one.series).any(is_read);
    let bursts = match has(|one| one.bursts()) {
        true => {
            " A short line above the curves is a burst of drops: a step in which 1 % or more of what was sent was \
             dropped."
        }
        false => " No step dropped 1 % of what was sent.",
    };
    let storms = match (has(|one| one.storms()), was_read) {
        (true, _) => {
            " A cross is a storm: packets came faster than the kernel took them, so that it broke off receiving with \
             packets left, 25 times a second or more."
        }
        (false, true) => " No step was a storm of packets that the kernel could not keep up with.",
        (false, false) => "",
    };
    format!(
        "Each faint line is a trial, the bold one the median of its setting, in steps of {} ms, by counters of the \
         receiver's kernel.{bursts}{storms} Settings do not change within a trial.",
        (1e6 * step).round() / 1e3
    )
}

/// Draws the marks of a setting's events around a height.
fn events(svg: &mut String, frame: &PlotFrame, trials: &SettingSeries, y: f64) {
    let stroke = svg::stroke(trials.look.colour);
    for at in trials.bursts() {
        let x = frame.x(at);
        svg::straight(svg, "", (x, y - 4.0), (x, y + 3.0), &stroke);
    }
    for at in trials.storms() {
        let (x, y) = (frame.x(at) - 4.0, y - 4.5);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}l8 8m0 -8l-8 8\" {stroke}><title>storm</title></path>"
        );
    }
}

/// The middle of a step, and the shares of its time that were busy and in interrupts.
type CoreShares = [f64; 3];

/// Plots each core's busy share within the trials, and the part in interrupts. A point is the mean over all trials of
/// a setting: a single step is too short for the kernel's clock tick.
pub fn core_use(study: &Study, facts: &WorkloadFacts, arms: &[StudyArm]) -> Vec<Figure> {
    let trials = trials(facts, arms);
    let cores = trials.iter().flat_map(|one| &one.series);
    let cores = cores.flat_map(|series| series.cores.iter().map(|core| core.core));
    let cores: BTreeSet<u32> = cores.collect();
    let figures = cores.into_iter().filter_map(|core| {
        let steps = trials.iter().map(|one| steps(&one.series, core));
        let curves = trials.iter().zip(steps);
        let curves: Vec<_> = curves.filter(|(_, steps)| !steps.is_empty()).collect();
        of_core(&facts.workload, &core_name(study, core), &curves)
    });
    figures.collect()
}

/// Returns the mean over the trials at each step that at least half of them have.
fn steps(trials: &[&TrialSeries], core: u32) -> Vec<CoreShares> {
    let of_core = trials.iter().filter_map(|series| {
        let own = series.cores.iter().find(|own| own.core == core)?;
        Some((*series, own))
    });
    let trials: Vec<(&TrialSeries, &CoreSeries)> = of_core.collect();
    let longest = trials.iter().map(|(series, _)| series.end_seconds.len());
    let step = |index: usize| {
        let here = trials.iter().filter_map(|(series, core)| {
            let length = series.lengths().nth(index)?;
            let middle = series.end_seconds.get(index)? - length / 2.0;
            let busy = core.busy_seconds.get(index)?;
            Some([length, middle, *busy, *core.interrupt_seconds.get(index)?])
        });
        let here: Vec<[f64; 4]> = here.collect();
        let sum = |part: usize| here.iter().map(|figures| figures[part]).sum::<f64>();
        let seconds = sum(0);
        // A tick may count time of the previous step.
        let share = |part: usize| (sum(part) / seconds).min(1.0);
        let is_known = 2 * here.len() >= trials.len() && seconds > 0.0;
        is_known.then(|| [sum(1) / here.len() as f64, share(2), share(3)])
    };
    (0..longest.max().unwrap_or(0)).map_while(step).collect()
}

/// The shares of a step: name, line width and dashes.
const SHARES: [(&str, f64, &str); 2] = [
    ("busy", 3.0, ""),
    ("interrupts", 1.5, " stroke-dasharray=\"5 4\""),
];

fn of_core(
    workload: &str,
    core: &str,
    curves: &[(&SettingSeries, Vec<CoreShares>)],
) -> Option<Figure> {
    let steps = curves.iter().flat_map(|(_, steps)| steps);
    let last = steps.map(|[at, ..]| *at).reduce(f64::max)?;
    let title = format!("{workload}: use of {core} within the trials");
    let x = (Axis::up_to(last), SECONDS);
    let y = (Axis::up_to(100.0), "% of the core's time");
    let mut drawn = Curves::new(&title, x, y, 0.0, curves.len());
    let mut columns = Vec::new();
    for (one, steps) in curves {
        for (share, (name, width, dashes)) in (1..).zip(SHARES) {
            let stroke = svg::stroke_of(one.look.colour, width) + dashes;
            drawn.curve(steps.iter().map(|it| (it[0], 100.0 * it[share])), &stroke);
            let cells = steps.iter().map(|it| percent(it[share]));
            columns.push((format!("{}: {name}, %", one.name), cells.collect()));
        }
    }
    let legend = curves.iter();
    let legend = legend.map(|(one, _)| Marks::of(one.name, one.look, Vec::new()));
    let times = curves.iter();
    let times = times.map(|(_, steps)| steps.iter().map(|[at, ..]| *at));
    let (head, rows) = over_time(times, columns);
    let title = format!("Use of {core} within the trials");
    let caption = "The mean of the trials: a bold line is the share of time in which the core worked, a dashed one what of \
                   it were interrupts. By the kernel's clock tick: work in step with the tick is misjudged.";
    let svg = drawn.end(&legend.collect::<Vec<_>>());
    Some(Figure::new(title, caption, svg, head, rows))
}
