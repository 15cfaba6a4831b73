//! Published figures beside simulated ones.

use nicpoll_model::sim_published::{ErrorKind, PublishedRow, RowKind, Sensitivity};
use nicpoll_sim::{Host, PlanError};
use thiserror::Error;

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

/// A simulation that rows follow from: that of a run, or of a run with one parameter changed.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    library: &'a Library,
    table: &'a Table,
    run: &'a Run,
    change: Option<Change>,
}

/// A parameter at another value.
#[derive(Clone, Debug)]
struct Change {
    /// Its name and the change, as rows show them.
    name: String,
    /// The hosts with it.
    library: Library,
}

/// What a [`Job`] gave.
#[derive(Clone, Debug)]
pub struct Done {
    /// `None` when the run is not simulated.
    outcome: Option<Outcome>,
    /// Its figures, in basic units.
    values: Vec<Option<f64>>,
}

/// Why a run has no rows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("table {table}, {run}: {error}")]
pub struct CompareError {
    /// Its table.
    pub table: String,
    /// The run.
    pub run: String,
    /// Why its hosts cannot run it.
    pub error: PlanError,
}

impl<'a> Job<'a> {
    /// The simulations of a run: its own, then with `has_sensitivity` those with each parameter changed.
    pub fn of_run(
        library: &'a Library,
        table: &'a Table,
        run: &'a Run,
        has_sensitivity: bool,
    ) -> Vec<Job<'a>> {
        let job = |change| Job {
            library,
            table,
            run,
            change,
        };
        let mut jobs = vec![job(None)];
        let Some(scenario) = run.scenario.as_ref().filter(|_| has_sensitivity) else {
            return jobs;
        };
        for variable in variables(library, run, scenario) {
            for (factor, sign) in CHANGES {
                if let Some(library) = variable.scaled(library, factor) {
                    let name = format!("{} {sign}", variable.name);
                    jobs.push(job(Some(Change { name, library })));
                }
            }
        }
        jobs
    }

    /// Simulates it.
    ///
    /// # Errors
    /// Why its hosts cannot run it.
    pub fn simulate(&self) -> Result<Done, CompareError> {
        let Some(scenario) = &self.run.scenario else {
            return Ok(Done {
                outcome: None,
                values: self.run.figures.iter().map(not_run).collect(),
            });
        };
        let library = self.change.as_ref().map_or(self.library, |of| &of.library);
        let values = values(library, self.table, self.run, scenario);
        let (outcome, values) = values.map_err(|error| CompareError {
            table: self.table.name.clone(),
            run: self.run.name.clone(),
            error,
        })?;
        Ok(Done {
            outcome: Some(outcome),
            values,
        })
    }
}

/// The rows of jobs and what each gave. The changes of a run follow the run itself.
pub fn rows_of(jobs: &[Job<'_>], done: &[Done]) -> Vec<PublishedRow> {
    let mut rows: Vec<PublishedRow> = Vec::new();
    let mut before: &[Option<f64>] = &[];
    for (job, done) in jobs.iter().zip(done) {
        let Some(change) = &job.change else {
            let figures = job.run.figures.iter().zip(&done.values);
            let outcome = done.outcome.as_ref();
            rows.extend(figures.map(|(of, value)| row(job.table, job.run, of, *value, outcome)));
            before = &done.values;
            continue;
        };
        let first = rows.len() - before.len();
        for (row, values) in rows[first..]
            .iter_mut()
            .zip(before.iter().zip(&done.values))
        {
            note_change(row, &change.name, values);
        }
    }
    rows
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
