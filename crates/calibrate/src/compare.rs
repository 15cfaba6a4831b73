//! Compares published figures with simulated ones: a row for each figure, its sensitivity, and the score of the
//! predictions.
//!
//! A figure that follows from others of its run, or that was an input, does not count in the score. Predictions are
//! compared with a guess that knows the measurements under interrupts and the line's speed, and nothing of polling.

use nicpoll_model::line::{Line, LinePacket};
use nicpoll_model::sim::{
    ErrorKind, ParameterSensitivity, PublishedRow, PublishedScore, RowKind, ScoreTally,
};
use nicpoll_sim::{HostModel, Pattern, SimError, TrafficModel};

use crate::fit::{Library, ONE};
use crate::quantity::{CpuState, FlowQuantity, Quantity, SimulatedRun};
use crate::scenario::{RunLength, SEED, simulated};
use crate::table::{Mode, PublishedFigure, PublishedRun, PublishedTable};

/// Changes of a parameter, in thousandths: a fifth more, a fifth less.
const CHANGES: [(u64, &str); 2] = [(ONE + 200, "+20 %"), (ONE - 200, "-20 %")];
/// Costs that only polling has, one for each mechanism; see the reference host's file.
const OF_POLLING: [&str; 3] = ["cpu.netisr_ns", "card.poll_ns", "card.status_ns"];

/// Phases of the ticks with which a run on a knife's edge is simulated in addition.
const PLACES: u64 = 12;

/// A parameter tried at other values: its name, and the numbers that it sets, as host and field.
struct TriedParameter {
    name: String,
    targets: Vec<(String, String)>,
}

impl PublishedFigure {
    /// Returns how its error in this run is expressed.
    fn error_kind(&self, run: &PublishedRun) -> ErrorKind {
        let is_scored = self.unscored.is_none() && run.unscored.is_none();
        let quantity = self.quantity().filter(|_| is_scored);
        quantity.map_or(ErrorKind::Unscored, Quantity::error_kind)
    }

    /// Returns the error of a value in basic units; `None` when it is not scored or nothing was measured.
    fn error(&self, kind: ErrorKind, value: f64) -> Option<f64> {
        let measured = self.measured_mean()? * self.unit.scale;
        match kind {
            ErrorKind::Relative => (measured > 0.0).then(|| value / measured - 1.0),
            ErrorKind::Points => Some(value - measured),
            ErrorKind::Unscored => None,
        }
    }
}

/// A simulation behind rows: of a run, or of a run with a change.
#[derive(Clone, Debug)]
pub struct SimulationJob<'a> {
    library: &'a Library,
    table: &'a PublishedTable,
    run: &'a PublishedRun,
    change: Option<RunChange>,
}

/// A change to the run's own simulation.
#[derive(Clone, Debug)]
enum RunChange {
    /// Other phases of the hosts' ticks, in a run of [`RunLength::COMPARISON`].
    Ticks {
        /// Seed of the phases.
        seed: u64,
    },
    /// Another value of a parameter.
    Parameter {
        /// Its name and the change, as rows show them.
        name: String,
        /// The hosts with that value.
        library: Library,
    },
}

/// The result of a [`SimulationJob`].
#[derive(Clone, Debug)]
pub struct SimulationResult {
    /// `None` when the run is not simulated.
    outcome: Option<SimulatedRun>,
    /// Its figures, in basic units.
    values: Vec<Option<f64>>,
}

impl<'a> SimulationJob<'a> {
    /// Returns the simulations of a run: its own, those with other tick phases if it sits on a knife's edge, and with
    /// `has_sensitivity` those with each parameter changed.
    pub fn of_run(
        library: &'a Library,
        table: &'a PublishedTable,
        run: &'a PublishedRun,
        has_sensitivity: bool,
    ) -> Vec<SimulationJob<'a>> {
        let job = |change| SimulationJob {
            library,
            table,
            run,
            change,
        };
        let mut jobs = vec![job(None)];
        if run.knife_edge.is_some() {
            let seeds = SEED..SEED + PLACES;
            jobs.extend(seeds.map(|seed| job(Some(RunChange::Ticks { seed }))));
        }
        if !has_sensitivity || run.workload.is_none() {
            return jobs;
        }
        for variable in variables(library, run) {
            for (factor, sign) in CHANGES {
                if let Some(library) = variable.scaled(library, factor) {
                    let name = format!("{} {sign}", variable.name);
                    jobs.push(job(Some(RunChange::Parameter { name, library })));
                }
            }
        }
        jobs
    }

    /// Runs the simulation.
    ///
    /// # Errors
    /// Why its hosts cannot run it.
    pub fn simulate(&self) -> Result<SimulationResult, SimError> {
        if self.run.workload.is_none() {
            return Ok(SimulationResult {
                outcome: None,
                values: self.run.figures.iter().map(not_run).collect(),
            });
        }
        let own = RunLength::of_comparison(self.run);
        let (library, length, seed) = match &self.change {
            None => (self.library, own, SEED),
            Some(RunChange::Ticks { seed }) => (self.library, RunLength::COMPARISON, *seed),
            Some(RunChange::Parameter { library, .. }) => (library, own, SEED),
        };
        let simulate = |run: &PublishedRun| simulated(&library.hosts, run, length, seed);
        let values = values(simulate, self.table, self.run);
        let (outcome, values) = values
            .map_err(|error| format!("table {}, {}: {error}", self.table.name, self.run.name))?;
        Ok(SimulationResult {
            outcome: Some(outcome),
            values,
        })
    }
}

/// Returns the rows of jobs and their results. A run's own job must precede those with its changes.
pub fn rows_of(jobs: &[SimulationJob<'_>], done: &[SimulationResult]) -> Vec<PublishedRow> {
    let mut rows: Vec<PublishedRow> = Vec::new();
    let mut before: &[Option<f64>] = &[];
    for (job, done) in jobs.iter().zip(done) {
        let Some(change) = &job.change else {
            let figures = job.run.figures.iter().zip(&done.values);
            let outcome = done.outcome.as_ref();
            rows.extend(figures.map(|(of, value)| row(job, of, *value, outcome)));
            before = &done.values;
            continue;
        };
        let first = rows.len() - before.len();
        let figures = job.run.figures.iter().zip(before.iter().zip(&done.values));
        for (row, (figure, values)) in rows[first..].iter_mut().zip(figures) {
            match change {
                RunChange::Ticks { .. } => {
                    note_place(row, values.1.map(|of| of / figure.unit.scale))
                }
                RunChange::Parameter { name, .. } => note_change(row, name, values),
            }
        }
    }
    rows
}

/// Returns a run's figures in a simulation, in basic units.
fn values(
    simulate: impl Fn(&PublishedRun) -> Result<SimulatedRun, SimError>,
    table: &PublishedTable,
    run: &PublishedRun,
) -> Result<(SimulatedRun, Vec<Option<f64>>), SimError> {
    let compared = table
        .runs
        .iter()
        .find(|other| Some(&other.name) == run.baseline.as_ref());
    let baseline = compared.filter(|other| other.workload.is_some());
    let baseline = baseline.map(&simulate).transpose()?;
    let outcome = simulate(run)?;
    let values = run.figures.iter().map(|figure| {
        let quantity = figure.quantity()?;
        quantity.of(&outcome, baseline.as_ref(), run.seconds)
    });
    let values = values.collect();
    Ok((outcome, values))
}

impl TriedParameter {
    /// Returns the library with the variable scaled by thousandths; `None` when that changes nothing.
    fn scaled(&self, library: &Library, factor: u64) -> Option<Library> {
        let mut changed = library.clone();
        let mut is_changed = false;
        for (host, field) in &self.targets {
            is_changed |= changed.scale(host, field, factor);
        }
        is_changed.then_some(changed)
    }
}

/// Widens a row's range by its value at another tick phase.
fn note_place(row: &mut PublishedRow, value: Option<f64>) {
    if let (Some(own), Some(value)) = (row.simulated, value) {
        let [least, most] = row.simulated_range.unwrap_or([own, own]);
        row.simulated_range = Some([least.min(value), most.max(value)]);
    }
}

/// Keeps the greatest change of a row, from the value before to the value after.
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
        row.sensitivity = Some(ParameterSensitivity {
            parameter: String::from(name),
            change,
        });
    }
}

/// Returns a figure that needs no run: a knob's initial value.
fn not_run(figure: &PublishedFigure) -> Option<f64> {
    match figure.quantity()? {
        Quantity::Knob(value) => Some(f64::from(value)),
        _ => None,
    }
}

fn row(
    job: &SimulationJob<'_>,
    figure: &PublishedFigure,
    value: Option<f64>,
    outcome: Option<&SimulatedRun>,
) -> PublishedRow {
    let run = job.run;
    let error_kind = figure.error_kind(run);
    let kind = match (figure.is_fitted, &figure.used) {
        (true, _) => RowKind::Fitted,
        (false, Some(_)) => RowKind::Used,
        (false, None) => RowKind::Predicted,
    };
    let error_of = |value: Option<f64>| value.and_then(|value| figure.error(error_kind, value));
    let is_within = |error: Option<f64>| {
        let aim = error_kind.aim(kind);
        error.zip(aim).map(|(error, aim)| error.abs() <= aim)
    };
    let error = error_of(value);
    let guessed = guess(job.library, job.table, run, figure);
    let of_figure = [&figure.used, &figure.unscored, &figure.missing];
    let of_run = [&run.unscored, &run.knife_edge, &run.missing];
    // A figure's own `missing` replaces the remarks on its run.
    let of_run = of_run.iter().filter(|_| figure.missing.is_none());
    let said = of_figure.iter().chain(of_run);
    let missing: Vec<_> = said.filter_map(|said| said.as_deref()).collect();
    let is_small = error_kind == ErrorKind::Points && is_within(error_of(Some(0.0))) == Some(true);
    PublishedRow {
        table: job.table.name.clone(),
        row: run.name.clone(),
        discipline: String::from(run.mode.name()),
        quantity: figure.name.clone(),
        unit: String::from(figure.unit.name),
        measured: figure.measured_mean(),
        measured_runs: figure.measured.clone(),
        simulated: value.map(|value| value / figure.unit.scale),
        simulated_range: None,
        guessed: guessed.map(|value| value / figure.unit.scale),
        error,
        error_kind,
        kind,
        is_within_aim: is_within(error),
        is_guess_within_aim: is_within(error_of(guessed)),
        is_restated: is_restated(run, figure),
        is_small,
        sensitivity: None,
        bottleneck: outcome.map(|outcome| outcome.bottleneck.clone()),
        missing: (!missing.is_empty()).then(|| missing.join(" ")),
    }
}

/// Returns what a run's figures depend on: the fitted parameters of its hosts, with the costs that only polling has,
/// or every cost of hosts without fitted parameters.
fn variables(library: &Library, run: &PublishedRun) -> Vec<TriedParameter> {
    let mut hosts = run.hosts.clone();
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
                variables.push(TriedParameter { name, targets });
            }
        }
    }
    if variables.is_empty() {
        let costs = HostModel::FIELDS.iter().map(|field| field.name);
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

fn of_all(hosts: &[String], field: &str) -> TriedParameter {
    let targets = hosts.iter().map(|host| (host.clone(), String::from(field)));
    TriedParameter {
        name: String::from(field),
        targets: targets.collect(),
    }
}

/// Counts the predictions, and those within their aim.
pub fn score_of(rows: &[PublishedRow]) -> PublishedScore {
    let scored =
        |row: &&PublishedRow| row.kind == RowKind::Predicted && row.is_within_aim.is_some();
    let own = |row: &&PublishedRow| scored(row) && !row.is_restated;
    let polled = |row: &&PublishedRow| own(row) && row.discipline == Mode::Polling.name();
    let count =
        |is_meant: &dyn Fn(&&PublishedRow) -> bool| rows.iter().filter(is_meant).count() as u64;
    let tally = |is_meant: &dyn Fn(&&PublishedRow) -> bool| ScoreTally {
        rows: count(is_meant),
        simulated: count(&|row| is_meant(row) && row.is_within_aim == Some(true)),
        guessed: count(&|row| is_meant(row) && row.is_guess_within_aim == Some(true)),
    };
    PublishedScore {
        predicted_rows: count(&scored),
        restating_rows: count(&|row| scored(row) && row.is_restated),
        small_rows: count(&|row| own(row) && row.is_small),
        polled: tally(&polled),
        polled_rates: tally(&|row| polled(row) && row.error_kind == ErrorKind::Relative),
        polled_large: tally(&|row| polled(row) && !row.is_small),
    }
}

/// Whether the figure follows from other figures of the run, or from its input.
pub(crate) fn is_restated(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let measured = || {
        run.figures
            .iter()
            .filter(|other| !other.measured.is_empty())
    };
    let has = |wanted: Quantity| measured().any(|other| other.quantity() == Some(wanted));
    let says = |wanted: Option<TrafficOfFigure>| measured().any(|other| said(other) == wanted);
    match figure.quantity() {
        // The shares of a host add up to 1.
        Some(Quantity::Cpu(end, CpuState::Idle)) => {
            let others = [CpuState::User, CpuState::System, CpuState::Interrupt];
            others
                .into_iter()
                .all(|state| has(Quantity::Cpu(end, state)))
        }
        Some(Quantity::Flow(FlowQuantity::SendErrors, way)) => {
            let calls = Quantity::Flow(FlowQuantity::Calls, way);
            has(calls) && says(Some((false, way as u8)))
        }
        Some(Quantity::Flow(FlowQuantity::Loss, way)) => {
            says(Some((false, way as u8))) && says(Some((true, way as u8)))
        }
        _ => said(figure).is_some() && (is_put_in(run, figure) || !is_first(run, figure)),
    }
}

/// Whether a figure is of delivered rather than sent traffic, and in which direction.
type TrafficOfFigure = (bool, u8);

/// Returns what a figure says, whatever its unit.
fn said(figure: &PublishedFigure) -> Option<TrafficOfFigure> {
    use FlowQuantity as Q;
    let Some(Quantity::Flow(flow, way)) = figure.quantity() else {
        return None;
    };
    match flow {
        Q::SentPackets | Q::SentRate | Q::SentPayload | Q::SentFrames => Some((false, way as u8)),
        Q::DeliveredRate | Q::DeliveredPayload => Some((true, way as u8)),
        _ => None,
    }
}

/// Whether the figure is the input of an ideal sender, which sends what it is told to.
fn is_put_in(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let rate = run.workload.as_ref().and_then(|workload| workload.rate_pps);
    let rate = rate.map(|rate| rate as f64);
    run.hosts.len() == 1 && rate.is_some() && rate == figure.measured_mean()
}

/// Whether it represents the figures of its run that say the same: a fitted one, or else the first measured one.
fn is_first(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let alike = || {
        run.figures
            .iter()
            .filter(|other| said(other) == said(figure))
    };
    let fitted = alike().find(|other| other.is_fitted);
    let first = fitted.or_else(|| alike().find(|other| !other.measured.is_empty()));
    first.is_some_and(|first| std::ptr::eq(first, figure))
}

/// Guesses a polled run's figure without any knowledge of polling, in basic units.
pub(crate) fn guess(
    library: &Library,
    table: &PublishedTable,
    run: &PublishedRun,
    figure: &PublishedFigure,
) -> Option<f64> {
    let workload = run.workload.as_ref();
    let workload = workload.filter(|_| run.mode == Mode::Polling)?;
    let is_other = |other: &&PublishedRun| {
        let is_alike = other.hosts == run.hosts && other.workload == run.workload;
        other.mode == Mode::Interrupt && is_alike
    };
    let interrupts = table.runs.iter().find(is_other);
    let same = interrupts
        .into_iter()
        .flat_map(|other| &other.figures)
        .find(|other| other.quantity() == figure.quantity());
    let measured = same.and_then(|same| Some(same.measured_mean()? * same.unit.scale));
    measured.or_else(|| {
        let line = full_line(library, &run.hosts, workload)?;
        figure.quantity()?.of(&line, None, run.seconds)
    })
}

/// Returns the outcome of a full line without loss; `None` for TCP, whose segments are unknown.
fn full_line(library: &Library, hosts: &[String], workload: &TrafficModel) -> Option<SimulatedRun> {
    if matches!(workload.pattern, Pattern::IperfTcp(_)) {
        return None;
    }
    let hosts = hosts.iter().filter_map(|name| library.hosts.get(name));
    let line = Line::new(hosts.map(|host| host.link.bits_per_second).min()?)?;
    let cost = line.cost(LinePacket::Udp {
        ip: workload.ip,
        payload_bytes: workload.payload_bytes,
    });
    let cost = cost.ok()?;
    let rate = line.packets_per_second(&cost) as f64;
    let both = [rate, rate * 8.0 * f64::from(workload.payload_bytes)];
    let mut flow = FlowQuantity::rates(both, both, Some(0.0));
    flow.insert(FlowQuantity::Calls, rate);
    Some(SimulatedRun {
        flows: vec![flow],
        hosts: Vec::new(),
        seconds: 1.0,
        bottleneck: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"table = "Z"
title = "a table"

[[run]]
name = "polled"
discipline = "freebsd-polling"
hosts = ["a", "b"]
workload = "netblast:payload=64"
seconds = 10
figures = [
    { quantity = "calls", unit = "calls", measured = [90000] },
    { quantity = "send_errors", unit = "calls", measured = [10000] },
    { quantity = "sent_packets", unit = "packets", measured = [80000] },
    { quantity = "sent_rate", unit = "packets/s", measured = [8000] },
    { quantity = "delivered_rate", unit = "packets/s", measured = [7000] },
    { quantity = "loss", unit = "%", measured = [12.5] },
    { quantity = "receiver.user", unit = "%", measured = [10] },
    { quantity = "receiver.system", unit = "%", measured = [20] },
    { quantity = "receiver.interrupt", unit = "%", measured = [30] },
    { quantity = "receiver.idle", unit = "%", measured = [40] },
    { quantity = "sender.idle", unit = "%", measured = [5] },
]
"#;

    #[test]
    fn what_another_figure_says_counts_for_nothing() {
        let table = PublishedTable::parse(TABLE).unwrap();
        let run = &table.runs[0];
        let restated = run.figures.iter().filter(|figure| is_restated(run, figure));
        let names: Vec<_> = restated.map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["send_errors", "sent_rate", "loss", "receiver.idle"]);
    }

    #[test]
    fn a_fitted_figure_is_what_the_others_restate() {
        let text = TABLE.replace("freebsd-polling", "freebsd-interrupt");
        let text = text.replace("seconds = 10", "seconds = 10\nfit = \"all\"");
        let text = text.replace("[8000] }", "[8000], fit = true }");
        let table = PublishedTable::parse(&text).unwrap();
        let run = &table.runs[0];
        let restated = |name: &str| {
            let mut figures = run.figures.iter();
            is_restated(run, figures.find(|figure| figure.name == name).unwrap())
        };
        assert!(restated("sent_packets") && !restated("sent_rate"));
    }

    #[test]
    fn an_ideal_sender_gives_its_own_rate_back() {
        let text = TABLE.replace("[\"a\", \"b\"]", "[\"a\"]");
        let text = text.replace("netblast:payload=64", "constant:rate=7k");
        let table = PublishedTable::parse(&text).unwrap();
        let run = &table.runs[0];
        assert!(is_restated(run, &run.figures[4]));
    }
}
