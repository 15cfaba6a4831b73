//! How busy a core was within the trials, from step to step, and how much of that it spent in interrupts.
//!
//! What must hold: a point is the mean over all trials of a setting that count. One trial's step is too short for the
//! kernel's clock tick to tell much of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use nicpoll_model::{CoreSeries, Study, TrialSeries, WorkloadFacts};

use super::scatter::{self, Series, looks};
use super::setting_names;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::{MISSING, figure, percent};
use crate::plot::{self, Axis, Look};
use crate::text::workload::core_name;

const CAPTION: &str = "The mean of the trials: a bold line is the share of time in which the core worked, a dashed one \
    what of it were interrupts. By the kernel's clock tick: work in step with the tick is misjudged.";

/// The use of a core under one setting.
struct Curves<'a> {
    name: &'a str,
    look: Look,
    steps: Vec<Step>,
}

/// The middle of a step, and the shares of its time.
#[derive(Clone, Copy)]
struct Step {
    at_seconds: f64,
    busy: f64,
    interrupts: f64,
}

/// A plot for each core of a workload's trials.
pub fn plots(study: &Study, facts: &WorkloadFacts) -> Vec<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let cores: BTreeSet<u32> = groups
        .iter()
        .flat_map(series_of)
        .flat_map(|series| &series.cores)
        .map(|core| core.core)
        .collect();
    let names = setting_names(study);
    let of_core = |core: u32| {
        let settings = groups.iter().zip(names.iter().zip(looks(&names)));
        let curves = settings.map(|(group, (name, look))| Curves {
            name,
            look,
            steps: steps(group, core),
        });
        let curves: Vec<Curves> = curves.filter(|one| !one.steps.is_empty()).collect();
        of_curves(&facts.workload, &core_name(study, core), &curves)
    };
    cores.into_iter().filter_map(of_core).collect()
}

fn series_of<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a TrialSeries> {
    group.results().filter_map(|trial| trial.series.as_ref())
}

/// The mean over the trials at each step that at least half of them have.
fn steps<'a>(group: &Group<'a>, core: u32) -> Vec<Step> {
    let of_core = |series: &'a TrialSeries| {
        let own = series.cores.iter().find(|own| own.core == core)?;
        Some((series, own))
    };
    let trials: Vec<(&TrialSeries, &CoreSeries)> = series_of(group).filter_map(of_core).collect();
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
        (2 * here.len() >= trials.len() && seconds > 0.0).then(|| Step {
            at_seconds: sum(1) / here.len() as f64,
            // A tick may count time of the step before.
            busy: (sum(2) / seconds).min(1.0),
            interrupts: (sum(3) / seconds).min(1.0),
        })
    };
    (0..longest.max().unwrap_or(0)).map_while(step).collect()
}

fn of_curves(workload: &str, core: &str, curves: &[Curves]) -> Option<Figure> {
    let steps = curves.iter().flat_map(|one| &one.steps);
    let last = steps.map(|step| step.at_seconds).reduce(f64::max)?;
    let frame = scatter::frame(Axis::up_to(last), Axis::up_to(100.0));
    let title = format!("{workload}: use of {core} within the trials");
    let axes = ("seconds since the traffic began", "% of the core's time");
    let mut svg = scatter::begin(&title, &frame, axes, curves.len());
    for one in curves {
        let line = |read: fn(&Step) -> f64| {
            let steps = one.steps.iter();
            frame.points(steps.map(|step| (step.at_seconds, 100.0 * read(step))))
        };
        curve(&mut svg, &line(|step| step.busy), one.look, 3.0, "");
        let dashes = " stroke-dasharray=\"5 4\"";
        curve(
            &mut svg,
            &line(|step| step.interrupts),
            one.look,
            1.5,
            dashes,
        );
    }
    let legend = curves.iter().map(|one| Series {
        name: one.name,
        look: one.look,
        points: Vec::new(),
    });
    scatter::end(&mut svg, &frame, &legend.collect::<Vec<_>>());
    Some(Figure {
        title: format!("Use of {core} within the trials"),
        caption: String::from(CAPTION),
        svg,
        head: head(curves),
        rows: rows(curves),
    })
}

fn curve(svg: &mut String, points: &str, look: Look, width: f64, dashes: &str) {
    let stroke = plot::stroke_of(look.colour, width);
    let _ = writeln!(svg, "<polyline points=\"{points}\" {stroke}{dashes}/>");
}

fn head(curves: &[Curves]) -> Vec<String> {
    let of = |one: &Curves| {
        [
            format!("{}: busy, %", one.name),
            format!("{}: interrupts, %", one.name),
        ]
    };
    scatter::over_seconds(curves.iter().flat_map(of))
}

/// A line for each step.
fn rows(curves: &[Curves]) -> Vec<Vec<String>> {
    let longest = curves.iter().map(|one| one.steps.len()).max().unwrap_or(0);
    let row = |index: usize| {
        let at = curves.iter().find_map(|one| one.steps.get(index));
        let at = at.map_or(String::from(MISSING), |step| figure(step.at_seconds));
        let cells = curves.iter().flat_map(|one| {
            let step = one.steps.get(index);
            let shares = [step.map(|it| it.busy), step.map(|it| it.interrupts)];
            shares.map(|share| share.map_or(String::from(MISSING), percent))
        });
        [at].into_iter().chain(cells).collect()
    };
    (0..longest).map(row).collect()
}
