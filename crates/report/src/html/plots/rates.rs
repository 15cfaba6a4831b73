//! The receiver's rate within the trials, from step to step: what a mean would hide.
//!
//! What must hold: every trial that counts is drawn. What is marked as a burst of drops or as a storm is said in the
//! caption.

use std::fmt::Write;

use nicpoll_model::{Study, TrialSeries, WorkUnit, WorkloadFacts};

use super::scatter::{self, Series, TOP, looks};
use super::setting_names;
use super::trials::median;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::{MISSING, count, figure};
use crate::plot::{self, Axis, Frame, Look};

/// A step is a burst of drops when at least this share of what was sent in it was dropped.
const BURST_RATIO: f64 = 0.01;
/// Height of the marks of one setting's events, which stand above the curves.
const EVENTS: f64 = 10.0;

/// The rates of one setting.
struct Curves<'a> {
    name: &'a str,
    look: Look,
    trials: Vec<&'a TrialSeries>,
    unit: Unit,
}

/// What is counted, and what one of the axis's unit is.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    counted: WorkUnit,
    scale: f64,
}

impl Unit {
    fn of(counted: WorkUnit) -> Self {
        let (name, scale) = match counted {
            WorkUnit::Bytes => ("received, Mbit/s of frames", 1e6 / 8.0),
            WorkUnit::Datagrams => ("delivered, packets a second", 1.0),
            WorkUnit::Transactions => ("requests a second", 1.0),
        };
        Unit {
            name,
            counted,
            scale,
        }
    }

    /// The rate of each step of a trial, with the middle of the step.
    fn rates(self, series: &TrialSeries) -> Vec<(f64, f64)> {
        let counts = series.received(self.counted).unwrap_or_default();
        let rates = series.rates(counts);
        rates.map(|(at, rate)| (at, rate / self.scale)).collect()
    }
}

impl Curves<'_> {
    fn rates(&self) -> Vec<Vec<(f64, f64)>> {
        let trials = self.trials.iter();
        trials.map(|series| self.unit.rates(series)).collect()
    }

    /// The median over the trials at each step that at least half of them have.
    fn median(&self) -> Vec<(f64, f64)> {
        let all = self.rates();
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        let step = |index: usize| {
            let here: Vec<(f64, f64)> = all
                .iter()
                .filter_map(|one| one.get(index))
                .copied()
                .collect();
            let is_enough = 2 * here.len() >= all.len();
            let (at, rates) = here.into_iter().unzip();
            is_enough.then_some((median(at)?, median(rates)?))
        };
        (0..longest).map_while(step).collect()
    }

    /// What all trials dropped in each step.
    fn dropped(&self) -> Vec<u64> {
        let mut sums = Vec::new();
        for series in &self.trials {
            for (index, dropped) in series.dropped().into_iter().enumerate() {
                match sums.get_mut(index) {
                    Some(sum) => *sum += dropped,
                    None => sums.push(dropped),
                }
            }
        }
        sums
    }

    /// The middles of the steps in which a trial dropped much.
    fn bursts(&self) -> Vec<f64> {
        let of_trial = |series: &&TrialSeries| {
            let dropped = series.dropped().into_iter().zip(&series.sent_frames);
            let much = |(dropped, sent): (u64, &u64)| {
                dropped > 0 && dropped as f64 >= BURST_RATIO * *sent as f64
            };
            middles(series, dropped.map(much).collect())
        };
        self.trials.iter().flat_map(of_trial).collect()
    }

    /// The middles of the steps in which a trial met a storm.
    fn storms(&self) -> Vec<f64> {
        let of_trial = |series: &&TrialSeries| middles(series, series.storms());
        self.trials.iter().flat_map(of_trial).collect()
    }
}

/// The middles of those steps of a trial for which something holds.
fn middles(series: &TrialSeries, holds: Vec<bool>) -> Vec<f64> {
    let steps = series.rates(&series.sent_frames).zip(holds);
    let held = steps.filter(|(_, holds)| *holds);
    held.map(|((at, _), _)| at).collect()
}

/// The rates of a workload's trials; `None` when they have no series.
pub fn plot(study: &Study, facts: &WorkloadFacts) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let names = setting_names(study);
    let unit = Unit::of(facts.unit);
    let curves: Vec<Curves> = groups
        .iter()
        .zip(names.iter().zip(looks(&names)))
        .map(|(group, (name, look))| Curves {
            name,
            look,
            trials: group
                .good
                .iter()
                .filter_map(|trial| trial.result()?.series.as_ref())
                .collect(),
            unit,
        })
        .filter(|curves| !curves.trials.is_empty())
        .collect();
    let points = || curves.iter().flat_map(Curves::rates).flatten();
    let last = points().map(|(at, _)| at).reduce(f64::max)?;
    let most = points().map(|(_, rate)| rate).reduce(f64::max)?;
    let step = curves.first()?.trials.first()?.step_seconds;
    Some(Figure {
        title: String::from("The rate within the trials"),
        caption: caption(&curves, step),
        svg: drawn(
            facts,
            &curves,
            scatter::frame(Axis::up_to(last), Axis::up_to(most)),
        ),
        head: head(&curves),
        rows: rows(&curves),
    })
}

fn caption(curves: &[Curves], step: f64) -> String {
    let mut caption = format!(
        "Each faint line is a trial, the bold one the median of its setting, in steps of {} ms, by counters of the \
         receiver's kernel.",
        (1e6 * step).round() / 1e3
    );
    let has = |events: fn(&Curves) -> Vec<f64>| curves.iter().any(|one| !events(one).is_empty());
    caption += match has(|one| one.bursts()) {
        true => {
            " A short line above the curves is a burst of drops: a step in which 1 % or more of what was sent was \
                 dropped."
        }
        false => " No step dropped 1 % of what was sent.",
    };
    let is_read = |series: &&TrialSeries| series.cut_short_softirqs.is_some();
    let was_read = curves.iter().flat_map(|one| &one.trials).any(is_read);
    caption += match (has(|one| one.storms()), was_read) {
        (true, _) => {
            " A cross is a storm: packets came faster than the kernel took them, so that it broke off receiving with \
                 packets left, 25 times a second or more."
        }
        (false, true) => " No step was a storm of packets that the kernel could not keep up with.",
        (false, false) => "",
    };
    caption += " Settings do not change within a trial.";
    caption
}

fn drawn(facts: &WorkloadFacts, curves: &[Curves], frame: Frame) -> String {
    let room = EVENTS * curves.len() as f64;
    let frame = Frame {
        top: TOP + room,
        ..frame
    };
    let title = format!("{}: the receiver's rate within the trials", facts.workload);
    let unit = curves.first().map_or("", |one| one.unit.name);
    let axes = ("seconds since the traffic began", unit);
    let mut svg = scatter::begin(&title, &frame, axes, curves.len());
    for (index, one) in curves.iter().enumerate() {
        let y = TOP + EVENTS * index as f64;
        events(&mut svg, &frame, one, y);
    }
    for one in curves {
        svg.push_str("<g opacity=\"0.35\">\n");
        for points in one.rates() {
            line(&mut svg, &frame, &points, one.look.colour, 1.0);
        }
        svg.push_str("</g>\n");
    }
    for one in curves {
        line(&mut svg, &frame, &one.median(), one.look.colour, 3.5);
    }
    let legend: Vec<Series> = curves
        .iter()
        .map(|one| Series {
            name: one.name,
            look: one.look,
            points: Vec::new(),
        })
        .collect();
    scatter::end(&mut svg, &frame, &legend);
    svg
}

/// The marks of a setting's events around a height.
fn events(svg: &mut String, frame: &Frame, curves: &Curves, y: f64) {
    let stroke = plot::stroke(curves.look.colour);
    for at in curves.bursts() {
        let x = frame.x(at);
        let (top, bottom) = (y - 4.0, y + 3.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" {stroke}/>"
        );
    }
    for at in curves.storms() {
        let (x, y) = (frame.x(at) - 4.0, y - 4.5);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}l8 8m0 -8l-8 8\" {stroke}><title>storm</title></path>"
        );
    }
}

fn line(svg: &mut String, frame: &Frame, points: &[(f64, f64)], colour: usize, width: f64) {
    let points = frame.points(points.iter().copied());
    let stroke = plot::stroke_of(colour, width);
    let _ = writeln!(svg, "<polyline points=\"{points}\" {stroke}/>");
}

fn head(curves: &[Curves]) -> Vec<String> {
    let of = |one: &Curves| {
        [
            format!("{}: {}", one.name, one.unit.name),
            format!("{}: dropped, all trials", one.name),
        ]
    };
    scatter::over_seconds(curves.iter().flat_map(of))
}

/// A line for each step.
fn rows(curves: &[Curves]) -> Vec<Vec<String>> {
    let medians: Vec<_> = curves
        .iter()
        .map(|one| (one.median(), one.dropped()))
        .collect();
    let steps = medians.iter().map(|(median, _)| median.len()).max();
    let row = |index: usize| {
        let at = medians.iter().find_map(|(median, _)| median.get(index));
        let cells = medians.iter().flat_map(|(median, dropped)| {
            let rate = median.get(index).map(|(_, rate)| figure(*rate));
            let dropped = dropped.get(index).map(|packets| count(*packets));
            [rate, dropped].map(|cell| cell.unwrap_or(String::from(MISSING)))
        });
        let at = at.map_or(String::from(MISSING), |(at, _)| figure(*at));
        [at].into_iter().chain(cells).collect()
    };
    (0..steps.unwrap_or(0)).map(row).collect()
}
