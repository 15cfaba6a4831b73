//! The fit: costs that no source states, from figures that were measured under interrupts.
//!
//! A parameter is a factor on reference costs, the same factor on all that it names: how much more a thing costs
//! on a published host. Only the figures that a table marks are used, which no run under
//! polling may do ([`crate::Table::parse`]); what polling alone uses follows the factors of the rest.
//!
//! What must hold: files of tables and hardware facts decide the fit to the last digit. What was fitted before
//! plays no part.

use std::collections::BTreeMap;

use nicpoll_model::FileError;
use nicpoll_model::sim_published::ErrorKind;
use nicpoll_sim::{HostModel, SimError, workers};
use thiserror::Error;

use crate::library::{Library, LibraryError};
use crate::quantity::Quantity;
use crate::scenario::{self, Length, SEED};
use crate::search::{SearchSpan, search};
use crate::table::{Figure, PublishedRun};
use crate::text::{Section, Text};

/// Factors are counted in thousandths.
pub(crate) const ONE: u64 = 1000;
/// A factor from a fiftieth to five hundred: clocks of published hosts differ by a few times, buses by more.
const FACTOR_MIN: u64 = 20;
const FACTOR_MAX: u64 = 500_000;
/// An error of a rate by this part of what was measured weighs as 1. Rates were counted, and counted again.
const RATE_UNIT: f64 = 0.02;
/// An error of a share by this part weighs as 1. Shares were sampled.
const SHARE_UNIT: f64 = 0.05;
/// Shares of the processor that are less than this weigh as if they were this, a point as 1: what is aimed at is
/// five points.
const SHARE_MIN: f64 = 0.2;
/// A cost of more than ten milliseconds is none.
const COST_MAX: f64 = 1e7;
/// A clock of a published host.
const MHZ_MAX: f64 = 10_000.0;

/// What is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPlan {
    /// The clock of the processor that the reference costs are of.
    pub reference_mhz: u64,
    /// What the factors are on: numbers of a host file.
    pub costs: Vec<(String, u64)>,
    /// Groups of parameters that are fitted together, in this order.
    pub groups: Vec<Group>,
}

/// Parameters that are fitted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What tables call it.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// How long its runs are simulated.
    pub length: Length,
}

/// A factor on some costs of some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is called.
    pub name: String,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Their clocks, when their costs are in proportion to them; otherwise empty.
    pub clocks_mhz: Vec<u64>,
    /// Numbers of the host files.
    pub fields: Vec<String>,
    /// The host whose numbers the factor is on, when it is not on the costs of the plan.
    pub like: Option<String>,
    /// Where the search begins, in thousandths.
    pub start: u64,
}

/// What came out for a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFit {
    /// Name of the group.
    pub name: String,
    /// Names of its parameters and their factors, in thousandths.
    pub factors: Vec<(String, u64)>,
    /// Figures that it was fitted to.
    pub figures: usize,
    /// The mean square of their errors, in units of 2 % of a rate or 5 % of a share.
    pub mean_square: f64,
    /// Simulations that it took.
    pub simulations: u64,
}

/// A fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The groups, in the order in which they were fitted.
    pub groups: Vec<GroupFit>,
    /// The library with the fitted numbers.
    pub library: Library,
}

impl Fit {
    /// What came out, as text: each group with its error and its factors.
    pub fn told(&self) -> String {
        let library = &self.library;
        let mut text = format!(
            "{} parameters, fitted to {} figures under interrupts. Factors are on the costs of fit.toml.\n",
            library.parameters().count(),
            library.fitted_figures()
        );
        for group in &self.groups {
            let plural = if group.factors.len() == 1 { "" } else { "s" };
            text.push_str(&format!(
                "\n{}: {} parameter{plural}, {} figures; root mean square error {:.2} (1 is 2 % of a rate or 5 % of a \
                 share); {} simulations\n",
                group.name,
                group.factors.len(),
                group.figures,
                group.mean_square.sqrt(),
                group.simulations
            ));
            for (name, thousandths) in &group.factors {
                let factor = *thousandths as f64 / 1e3;
                text.push_str(&format!("  {name:<12} x {factor:.3}\n"));
            }
        }
        text.push('\n');
        text
    }
}

/// Why nothing was fitted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FitError {
    /// The files do not go together.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A run that is to be fitted cannot be simulated.
    #[error("{group}: {error}")]
    Run {
        /// The group that it is fitted in.
        group: String,
        /// Why.
        error: SimError,
    },
}

impl FitPlan {
    /// Reads the file of the fit.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its line.
    pub fn parse(text: &str) -> Result<FitPlan, FileError> {
        let text = Text(text);
        let document = text.parse()?;
        let document = Section::of(text, &document);
        document.refuse_unknown("the file", &["reference_mhz", "costs", "group"])?;
        let mhz = "give a clock in MHz, 1 to 10000";
        let costs = "give [costs] with lines such as \"cpu.tick_ns\" = 2000, whole numbers above 0";
        let mut plan = FitPlan {
            reference_mhz: document.number("reference_mhz", 1.0, MHZ_MAX, mhz)? as u64,
            costs: document.costs("costs", COST_MAX, costs)?,
            groups: Vec::new(),
        };
        for section in document.sections("group", "groups are given as [[group]]")? {
            section.refuse_unknown("a group", &["name", "milliseconds", "parameter"])?;
            let name = section.string("name", "give the name that tables use")?;
            let given =
                section.sections("parameter", "parameters are given as [[group.parameter]]")?;
            let parameters = given.iter().map(|given| parameter(given, &plan.costs));
            let parameters: Result<Vec<_>, _> = parameters.collect();
            let milliseconds = section.number(
                "milliseconds",
                1.0,
                1000.0,
                "give how long its runs are simulated, 1 to 1000",
            )?;
            plan.groups.push(Group {
                name,
                parameters: parameters?,
                length: Length::of_fit(milliseconds as u64),
            });
        }
        Ok(plan)
    }
}

fn parameter(section: &Section<'_>, costs: &[(String, u64)]) -> Result<Parameter, FileError> {
    section.refuse_unknown(
        "a parameter",
        &["name", "hosts", "clocks_mhz", "fields", "like", "start"],
    )?;
    let mhz = "give clocks in MHz, 1 to 10000, one for each host";
    let start = "give the factor that the search begins with, a whole number from 1 to 1000";
    let parameter = Parameter {
        name: section.string("name", "give a name")?,
        hosts: section.strings("hosts", "give names of hosts")?,
        clocks_mhz: section
            .numbers("clocks_mhz", MHZ_MAX, mhz)?
            .into_iter()
            .map(|mhz| mhz as u64)
            .collect(),
        fields: section.strings("fields", "give numbers of host files, such as cpu.tick_ns")?,
        like: section.optional_string("like", "give the name of a host that was fitted before")?,
        start: ONE * section.number("start", 1.0, 1000.0, start)? as u64,
    };
    if parameter.hosts.is_empty() || parameter.fields.is_empty() {
        let message = String::from("a parameter needs hosts and fields");
        return Err(section.error(message));
    }
    if parameter
        .like
        .as_ref()
        .is_some_and(|like| parameter.hosts.contains(like))
    {
        let message =
            String::from("like names a host that the parameter itself changes; give another");
        return Err(section.error_at("like", message));
    }
    let clocks = &parameter.clocks_mhz;
    if !clocks.is_empty() && (clocks.len() != parameter.hosts.len() || clocks.contains(&0)) {
        return Err(section.error_at("clocks_mhz", String::from(mhz)));
    }
    if let Some(name) = parameter.fields.iter().find(|name| {
        HostModel::field(name).is_none() || costs.iter().all(|(cost, _)| cost != *name)
    }) {
        let message = format!("{name} is no number of a host file with a line in [costs]");
        return Err(section.error_at("fields", message));
    }
    Ok(parameter)
}

impl Parameter {
    /// The numbers that a factor gives: host, field, value.
    pub(crate) fn targets(
        &self,
        plan: &FitPlan,
        hosts: &BTreeMap<String, HostModel>,
        factor: u64,
    ) -> Vec<(&str, &str, u64)> {
        let like = self.like.as_ref().and_then(|name| hosts.get(name));
        let mut targets = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let clock = self.clocks_mhz.get(index);
            for name in &self.fields {
                let mut costs = plan.costs.iter();
                // A parameter without a cost was refused when the file was read.
                let cost = costs.find(|(cost, _)| cost == name).map(|(_, ns)| *ns);
                let base = like.map_or(cost, |like| like.get(name)).unwrap_or(0);
                let (of, by) = clock.map_or((1, 1), |mhz| (plan.reference_mhz, *mhz));
                let parts = u128::from(base) * u128::from(factor) * u128::from(of) / u128::from(by);
                let value = (parts + u128::from(ONE) / 2) / u128::from(ONE);
                let value = u64::try_from(value).unwrap_or(u64::MAX);
                // A name that is none was refused when the file was read.
                let value = HostModel::field(name).map_or(value, |f| value.clamp(f.min, f.max));
                targets.push((host.as_str(), name.as_str(), value));
            }
        }
        targets
    }
}

/// Fits all parameters.
///
/// # Errors
/// What is wrong with the files, or why a run that is to be fitted cannot be simulated.
pub fn fit(library: &Library) -> Result<Fit, FitError> {
    library.check()?;
    let mut library = library.clone();
    let plan = library.plan.clone();
    for group in &plan.groups {
        for parameter in &group.parameters {
            library.apply(parameter, parameter.start);
        }
    }
    let mut groups = Vec::new();
    for group in &plan.groups {
        let (fitted, factors) = fit_group(&library, group)?;
        for (parameter, factor) in group.parameters.iter().zip(&factors) {
            library.apply(parameter, *factor);
        }
        groups.push(fitted);
    }
    Ok(Fit { groups, library })
}

fn fit_group(library: &Library, group: &Group) -> Result<(GroupFit, Vec<u64>), FitError> {
    let runs: Vec<&PublishedRun> = library.runs_of(&group.name).collect();
    let figures: usize = runs.iter().map(|run| fitted_figures(run)).sum();
    let spans: Vec<SearchSpan> = group
        .parameters
        .iter()
        .map(|parameter| SearchSpan {
            min: FACTOR_MIN,
            max: FACTOR_MAX,
            start: parameter.start,
        })
        .collect();
    let mut tried = library.clone();
    let mut failure = None;
    let mut errors = |factors: &[u64]| {
        for (parameter, factor) in group.parameters.iter().zip(factors) {
            tried.apply(parameter, *factor);
        }
        let of_runs = workers::map(&runs, workers::count().min(runs.len()), |run| {
            misfits(&tried, run, group.length)
        });
        let of_runs: Result<Vec<Vec<f64>>, SimError> = of_runs.into_iter().collect();
        of_runs
            .map(|errors| errors.concat())
            .unwrap_or_else(|error| {
                failure.get_or_insert(error);
                Vec::new()
            })
    };
    let found = search(&spans, |factors| {
        errors(factors).into_iter().map(softened).collect()
    });
    let squares: f64 = errors(&found.values)
        .iter()
        .map(|error| error * error)
        .sum();
    if let Some(failure) = failure {
        return Err(FitError::Run {
            group: group.name.clone(),
            error: failure,
        });
    }
    let names = group.parameters.iter().map(|parameter| &parameter.name);
    let fitted = GroupFit {
        name: group.name.clone(),
        factors: names.cloned().zip(found.values.iter().copied()).collect(),
        figures,
        mean_square: squares / figures.max(1) as f64,
        simulations: found.calls * runs.len() as u64,
    };
    Ok((fitted, found.values))
}

pub(crate) fn fitted_figures(run: &PublishedRun) -> usize {
    run.figures.iter().filter(|figure| figure.is_fitted).count()
}

/// The errors of a run's fitted figures, in units.
fn misfits(library: &Library, run: &PublishedRun, length: Length) -> Result<Vec<f64>, SimError> {
    let Some(scenario) = &run.scenario else {
        return Ok(Vec::new());
    };
    let outcome = scenario::simulated(library, scenario, length, SEED)?;
    let fitted = run.figures.iter().filter(|figure| figure.is_fitted);
    let misfits = fitted.map(|figure| {
        let simulated = figure
            .quantity
            .and_then(|quantity| quantity.of(&outcome, None, scenario.seconds));
        misfit(figure, simulated.unwrap_or(0.0))
    });
    Ok(misfits.collect())
}

/// What the search takes the square of: small errors as they are, great ones by the root, so that the sum of squares
/// grows by the error itself (`2 (sqrt(1 + e^2) - 1)`; Charbonnier et al., ICIP 1994). A figure that no value of any
/// parameter explains then does not pull those that one does. Roots are exact to the last digit everywhere (IEEE 754).
fn softened(error: f64) -> f64 {
    (2.0 * ((1.0 + error * error).sqrt() - 1.0))
        .sqrt()
        .copysign(error)
}

/// How far a simulated figure is off, in units. Shares are told in parts of the measured too: a share over a rate is
/// the cost of a packet, and the cost is what is looked for.
fn misfit(figure: &Figure, value: f64) -> f64 {
    let measured = figure.measured_mean().unwrap_or(0.0) * figure.unit.scale;
    let is_share = figure.quantity.map(Quantity::error_kind) == Some(ErrorKind::Points);
    if is_share {
        (value - measured) / measured.max(SHARE_MIN) / SHARE_UNIT
    } else {
        (value - measured) / measured.max(1.0) / RATE_UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_errors_count_by_their_squares_and_great_ones_by_themselves() {
        let counted = |error: f64| softened(error).powi(2);
        assert!((counted(0.01) / 0.01_f64.powi(2) - 1.0).abs() < 0.001);
        assert!((counted(-100.0) / 200.0 - 1.0).abs() < 0.02);
        assert!(softened(-3.0) < 0.0 && softened(3.0) > 0.0);
    }
}
