//! The rate of each trial against its place in the study: whether the machine changed meanwhile.

use nicpoll_model::{Study, WorkloadFacts};

use super::scatter::{Series, looks, scatter};
use super::trials::capital;
use super::{Reading, setting_names};
use crate::figures::Group;
use crate::html::figure::Figure;
use crate::numbers::figure;
use crate::plot::Axis;

/// The rates in the order of time; `None` when no trial has one.
pub fn plot(study: &Study, facts: &WorkloadFacts, reading: &Reading) -> Option<Figure> {
    let groups = Group::of_workload(study, &facts.workload);
    let names = setting_names(study);
    let looks = looks(&names).into_iter();
    let series: Vec<Series> = groups
        .iter()
        .zip(names.iter().zip(looks))
        .map(|(group, (name, look))| Series {
            name,
            look,
            points: points(group, reading),
        })
        .collect();
    let all = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|(_, value)| *value)
    };
    let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let y = Axis::around(least, most);
    let svg = scatter(
        &format!(
            "{}: {} against the order of trials",
            facts.workload, reading.name
        ),
        (
            Axis::up_to(study.trials.len() as f64),
            "number of the trial in the study",
        ),
        (y, &reading.name),
        &series,
    );
    let mut caption =
        String::from("A drift or a step is the machine's, not a setting's: blocks even it out.");
    if !y.is_from_zero() {
        caption += super::CUT;
    }
    Some(Figure {
        title: format!("{} in the order of the trials", capital(&reading.name)),
        caption,
        svg,
        head: ["setting", "trial: value"].map(String::from).to_vec(),
        rows: series.iter().map(row).collect(),
    })
}

fn points(group: &Group, reading: &Reading) -> Vec<(f64, f64)> {
    let values = group.good.iter().filter_map(|trial| {
        let value = reading.of(trial.result()?)?;
        Some((f64::from(trial.sequence), value))
    });
    values.collect()
}

fn row(series: &Series) -> Vec<String> {
    let pairs = series.points.iter();
    let pairs: Vec<String> = pairs
        .map(|(number, value)| format!("{number}: {}", figure(*value)))
        .collect();
    vec![String::from(series.name), pairs.join("; ")]
}
