//! Every trial of a workload as a dot: a strip for each setting.

use std::fmt::Write;

use nicpoll_model::{Study, WorkloadFacts};

use super::strips::{Strips, Ticks};
use super::{Reading, setting_names};
use crate::figures::{Group, middle};
use crate::html::figure::Figure;
use crate::numbers::{MISSING, figure, figure_or_missing};
use crate::plot::{self, Axis, Look, mark, short};

/// Height of a strip.
const STRIP: f64 = 34.0;
/// So many dots beside each other do not hide one another.
const LANES: u32 = 7;

/// The dots of a figure; `None` when no trial has it, or it is 0 in all.
pub fn plot(study: &Study, facts: &WorkloadFacts, reading: &Reading) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let ranges = groups.iter();
    let ranges = ranges.filter_map(|group| group.range(|figures| reading.of(figures)));
    let (least, most) = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    if most <= 0.0 {
        return None;
    }
    let axis = Axis::around(least, most);
    let names = setting_names(study);
    let colours = plot::colours(&names);
    let mut strips = Strips::new();
    let mut rows = Vec::new();
    for (index, (group, name)) in groups.iter().zip(&names).enumerate() {
        let median = group.median(|figures| reading.of(figures));
        let label = format!(
            "{name}: median {} of {} trials",
            figure_or_missing(median),
            group.good.len()
        );
        let y = strips.next(&label, STRIP);
        let look = Look {
            colour: colours[index],
            mark: index,
        };
        strip(strips.body(), group, reading, axis, look, y);
        rows.push(row(name, group, reading));
    }
    let ticks: Ticks = axis.ticks().map(|at| (axis.share(at), short(at))).collect();
    let title = capital(&reading.name);
    let svg = strips.end(
        &format!("{}: {title}, every trial by setting", facts.workload),
        &ticks,
        &reading.name,
    );
    Some(Figure {
        caption: caption(study, facts, axis),
        title: format!("{title}: every trial"),
        svg,
        head: ["setting", "median", "lowest", "highest", "by block"]
            .map(String::from)
            .to_vec(),
        rows,
    })
}

fn strip(svg: &mut String, group: &Group, reading: &Reading, axis: Axis, look: Look, y: f64) {
    for trial in &group.good {
        let Some(value) = trial.result().and_then(|figures| reading.of(figures)) else {
            continue;
        };
        // Blocks next to each other stand on different heights: dots of equal value stay apart.
        let lane = f64::from(trial.block * 3 % LANES) / f64::from(LANES - 1) - 0.5;
        let place = (Strips::x(axis.share(value)), y + lane * (STRIP - 8.0));
        mark(svg, look, place);
    }
    if let Some(median) = group.median(|figures| reading.of(figures)) {
        let x = Strips::x(axis.share(median));
        let (top, bottom) = (y - STRIP / 2.0, y + STRIP / 2.0);
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" \
             stroke=\"#222\" stroke-width=\"3\"/>"
        );
    }
}

fn row(name: &str, group: &Group, reading: &Reading) -> Vec<String> {
    let read = |figures: &nicpoll_model::TrialFigures| reading.of(figures);
    let range = group.range(read);
    let values = group.good.iter().map(|trial| {
        let value = trial.result().and_then(read);
        value.map_or(String::from(MISSING), figure)
    });
    let values: Vec<String> = values.collect();
    vec![
        String::from(name),
        figure_or_missing(group.median(read)),
        figure_or_missing(range.map(|(least, _)| least)),
        figure_or_missing(range.map(|(_, most)| most)),
        values.join(" "),
    ]
}

/// How to read the dots, and how many trials have none.
fn caption(study: &Study, facts: &WorkloadFacts, axis: Axis) -> String {
    let of_workload = study
        .trials
        .iter()
        .filter(|trial| trial.workload == facts.workload);
    let missing = of_workload.filter(|trial| trial.result().is_none()).count();
    let mut text = String::from("A mark is a trial, the line their median.");
    if !axis.is_from_zero() {
        text += super::CUT;
    }
    if missing > 0 {
        text += &format!(" Trials without a result, which are not drawn: {missing}.");
    }
    text
}

/// With a capital letter at its beginning.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The median of values in any order.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle(&values)
}
