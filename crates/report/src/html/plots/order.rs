//! The rate of each trial against its place in the study: whether the machine changed meanwhile.

use nicpoll_model::{Study, WorkloadFacts};

use super::Reading;
use super::trials::capital;
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::figure;
use crate::plot::{self, Axis, Frame, LEFT, LETTERS, Look, RIGHT, mark, text};

/// Height of the area of the marks.
const AREA: f64 = 230.0;
/// A line of the legend.
const LINE: f64 = 24.0;

/// The rates in the order of time; `None` when no trial has one.
pub fn plot(study: &Study, facts: &WorkloadFacts, reading: &Reading) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let points: Vec<Vec<(f64, f64)>> = groups.iter().map(|group| points(group, reading)).collect();
    let all = || points.iter().flatten().map(|(_, value)| *value);
    all().next()?;
    let y = Axis::around(
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    let names: Vec<&str> = study
        .settings
        .iter()
        .map(|it| it.setting.as_str())
        .collect();
    let colours = plot::colours(&names);
    let (top, bottom) = (14.0, 14.0 + AREA);
    let frame = Frame {
        x: Axis::up_to(study.trials.len() as f64),
        y,
        top,
        bottom,
        letters: LETTERS,
    };
    let height = bottom + 62.0 + LINE * names.len() as f64;
    let title = format!(
        "{}: {} against the order of trials",
        facts.workload, reading.name
    );
    let mut svg = plot::drawing(height, &title);
    frame.grid(&mut svg, 22.0);
    plot::upright(&mut svg, (20, f64::midpoint(top, bottom)), &reading.name);
    let middle = f64::midpoint(LEFT, RIGHT);
    text(
        &mut svg,
        (middle, bottom + 46.0),
        "middle",
        LETTERS,
        "number of the trial in the study",
    );
    for (index, points) in points.iter().enumerate() {
        let look = Look {
            colour: colours[index],
            mark: index,
        };
        for (number, value) in points {
            mark(&mut svg, look, (frame.x(*number), frame.y(*value)));
        }
        let at = bottom + 68.0 + LINE * index as f64;
        mark(&mut svg, look, (LEFT + 6.0, at));
        text(
            &mut svg,
            (LEFT + 20.0, at + 6.0),
            "start",
            LETTERS,
            names[index],
        );
    }
    svg += plot::END;
    Some(Figure {
        title: format!("{} in the order of the trials", capital(&reading.name)),
        caption: String::from(
            "A drift or a step here is the machine's, not a setting's: blocks even it out.",
        ),
        svg,
        head: ["setting", "trial: value"].map(String::from).to_vec(),
        rows: names
            .iter()
            .zip(&points)
            .map(|(name, points)| row(name, points))
            .collect(),
    })
}

fn points(group: &Group, reading: &Reading) -> Vec<(f64, f64)> {
    let values = group.good.iter().filter_map(|trial| {
        let value = reading.of(trial.result()?)?;
        Some((f64::from(trial.sequence), value))
    });
    values.collect()
}

fn row(name: &str, points: &[(f64, f64)]) -> Vec<String> {
    let pairs: Vec<String> = points
        .iter()
        .map(|(number, value)| format!("{number}: {}", figure(*value)))
        .collect();
    vec![String::from(name), pairs.join("; ")]
}
