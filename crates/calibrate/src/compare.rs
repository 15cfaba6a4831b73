//! Published figures beside simulated ones.

use nicpoll_model::sim_published::{ErrorKind, PublishedRow, RowKind, Sensitivity};
use nicpoll_sim::{Host, PlanError};

use crate::fit::ONE;
use crate::library::Library;
use crate::outcome::Outcome;
use crate::quantity::Quantity;
use crate::scenario::{Length, simulated};
use crate::table::{Figure, Mode, Run, Scenario, Table};

/// A fifth more, a fifth less, in thousandths.
const CHANGES: [(u64, &str); 2] = [(ONE + 200, "+20 %"), (ONE - 200, "-20 %")];
/// What polling uses and nothing else; one value a mechanism, see the reference host's file.
const OF_POLLING: [&str; 3] = ["cpu.netisr_ns", "card.poll_ns", "card.status_ns"];

/// A parameter that is tried at other values: its name, and numbers of hosts.
struct Variable {
    name: String,
    targets: Vec<(String, String)>,
}

impl Figure {
    /// The error of a simulated value, in basic units; `None` when it is not scored or nothing was measured.
    pub(crate) fn error(&self, value: f64) -> Option<f64> {
        let measured = self.measured_mean()? * self.unit.scale;
        match self.quantity?.error_kind() {
            ErrorKind::Relative => (measured > 0.0).then(|| value / measured - 1.0),
            ErrorKind::Points => Some(value - measured),
            ErrorKind::Unscored => None,
        }
    }
}

/// The rows of a run.
///
/// # Errors
/// Why its hosts cannot run it.
pub fn rows_of(
    library: &Library,
    table: &Table,
    run: &Run,
    has_sensitivity: bool,
) -> Result<Vec<PublishedRow>, PlanError> {
    let Some(scenario) = &run.scenario else {
        let figures = run.figures.iter();
        return Ok(figures
            .map(|figure| row(table, run, figure, not_run(figure), None))
            .collect());
    };
    let (outcome, values) = values(library, table, run, scenario)?;
    let figures = run.figures.iter().zip(&values);
    let mut rows: Vec<PublishedRow> = figures
        .map(|(figure, value)| row(table, run, figure, *value, Some(&outcome)))
        .collect();
    if has_sensitivity {
        for variable in variables(library, run, scenario) {
            for (factor, sign) in CHANGES {
                let Some(changed) = variable.scaled(library, factor) else {
                    continue;
                };
                let (_, after) = self::values(&changed, table, run, scenario)?;
                let name = format!("{} {sign}", variable.name);
                for (row, change) in rows.iter_mut().zip(values.iter().zip(&after)) {
                    note_change(row, &name, change);
                }
            }
        }
    }
    Ok(rows)
}

/// What a run's figures come to in a simulation, in basic units.
fn values(
    library: &Library,
    table: &Table,
    run: &Run,
    scenario: &Scenario,
) -> Result<(Outcome, Vec<Option<f64>>), PlanError> {
    let simulate =
        |scenario: &Scenario| simulated(library, scenario, Length::of_comparison(scenario));
    let compared = table
        .runs
        .iter()
        .find(|other| Some(&other.name) == run.baseline.as_ref());
    let baseline = compared.and_then(|other| other.scenario.as_ref());
    let baseline = baseline.map(simulate).transpose()?;
    let outcome = simulate(scenario)?;
    let values = run.figures.iter().map(|figure| {
        figure
            .quantity
            .and_then(|quantity| quantity.of(&outcome, baseline.as_ref(), scenario.seconds))
    });
    let values = values.collect();
    Ok((outcome, values))
}

impl Variable {
    /// The library with the variable scaled by thousandths; `None` when that changes nothing.
    fn scaled(&self, library: &Library, factor: u64) -> Option<Library> {
        let mut changed = library.clone();
        let mut is_changed = false;
        for (host, field) in &self.targets {
            is_changed |= changed.scale(host, field, factor);
        }
        is_changed.then_some(changed)
    }
}

/// Keeps the greatest change of a row, from a value before to one after.
fn note_change(row: &mut PublishedRow, name: &str, change: (&Option<f64>, &Option<f64>)) {
    let (Some(before), Some(after)) = change else {
        return;
    };
    let change = match row.error_kind {
        ErrorKind::Points => after - before,
        _ if *before > 0.0 => after / before - 1.0,
        _ => return,
    };
    let most = row
        .sensitivity
        .as_ref()
        .map_or(0.0, |most| most.change.abs());
    if change.abs() > most {
        row.sensitivity = Some(Sensitivity {
            parameter: String::from(name),
            change,
        });
    }
}

/// A figure that needs no run: a knob that nothing has touched.
fn not_run(figure: &Figure) -> Option<f64> {
    match figure.quantity? {
        Quantity::Knob(value) => Some(f64::from(value)),
        _ => None,
    }
}

fn row(
    table: &Table,
    run: &Run,
    figure: &Figure,
    value: Option<f64>,
    outcome: Option<&Outcome>,
) -> PublishedRow {
    let error_kind = figure
        .quantity
        .map_or(ErrorKind::Unscored, Quantity::error_kind);
    let kind = if figure.is_fitted {
        RowKind::Fitted
    } else {
        RowKind::Predicted
    };
    let error = value.and_then(|value| figure.error(value));
    let aim = error_kind.aim(kind);
    PublishedRow {
        table: table.name.clone(),
        row: run.name.clone(),
        discipline: String::from(run.mode.name()),
        quantity: figure.name.clone(),
        unit: String::from(figure.unit.name),
        measured: figure.measured_mean(),
        measured_runs: figure.measured.clone(),
        simulated: value.map(|value| value / figure.unit.scale),
        error,
        error_kind,
        kind,
        is_within_aim: error.zip(aim).map(|(error, aim)| error.abs() <= aim),
        sensitivity: None,
        bottleneck: outcome.map(|outcome| outcome.bottleneck.clone()),
        missing: figure.missing.clone().or_else(|| run.missing.clone()),
    }
}

/// What a run's figures depend on: the fitted parameters of its hosts, what only polling uses, and every cost of
/// hosts to which nothing is fitted.
fn variables(library: &Library, run: &Run, scenario: &Scenario) -> Vec<Variable> {
    let mut hosts = scenario.hosts.clone();
    hosts.sort();
    hosts.dedup();
    let mut variables = Vec::new();
    for group in &library.plan.groups {
        for parameter in &group.parameters {
            let of_run = parameter.hosts.iter().filter(|host| hosts.contains(host));
            let targets: Vec<_> = of_run
                .flat_map(|host| {
                    let fields = parameter.fields.iter();
                    fields.map(|field| (host.clone(), field.clone()))
                })
                .collect();
            if !targets.is_empty() {
                let name = format!("{}: {}", group.name, parameter.name);
                variables.push(Variable { name, targets });
            }
        }
    }
    if variables.is_empty() {
        let costs = Host::FIELDS.iter().map(|field| field.name);
        variables.extend(
            costs
                .filter(|name| name.ends_with("_ns"))
                .map(|name| of_all(&hosts, name)),
        );
    } else if run.mode == Mode::Polling {
        variables.extend(OF_POLLING.iter().map(|name| of_all(&hosts, name)));
    }
    variables
}

fn of_all(hosts: &[String], field: &str) -> Variable {
    let targets = hosts.iter().map(|host| (host.clone(), String::from(field)));
    Variable {
        name: String::from(field),
        targets: targets.collect(),
    }
}
