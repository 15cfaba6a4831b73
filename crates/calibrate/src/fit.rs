//! The fit: finds costs that no source states from figures measured under interrupts, and writes them into host
//! files.
//!
//! A parameter is a factor on reference costs, the same for all numbers that it names: how much more work costs on a
//! published host. The fit uses only figures marked in a table; those of a run under polling cannot be marked
//! ([`crate::PublishedTable::parse`]). Costs that only polling has follow the factors of the rest. Tables and hardware facts
//! determine the fit to the last digit; earlier fitted values do not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use nicpoll_model::FileError;
use nicpoll_model::sim::{ErrorKind, FittedFactor, GroupFit};
use nicpoll_sim::{HostModel, SimError, workers};
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::scenario::{self, RunLength, SEED};
use crate::search::{SearchSpan, search};
use crate::table::{Mistake, PublishedFigure, PublishedRun, PublishedTable, read, require};

/// Factors are in thousandths.
pub(crate) const ONE: u64 = 1000;
/// Factors range from 1/50 to 500: clocks of published hosts differ by a few times, buses by more.
const FACTOR_MIN: u64 = 20;
const FACTOR_MAX: u64 = 500_000;
/// A rate's error of this part of the measured value weighs 1. Rates were counted, in repeated runs.
const RATE_UNIT: f64 = 0.02;
/// A share's error of this part of the measured value weighs 1. Shares were sampled.
const SHARE_UNIT: f64 = 0.05;
/// Processor shares below this weigh as if they were this: a point weighs 1, and the aim is five points.
const SHARE_MIN: f64 = 0.2;
/// Valid costs, in nanoseconds: at most 10 ms.
const COSTS: RangeInclusive<u64> = 1..=10_000_000;
/// Clocks of published hosts.
const MHZ: RangeInclusive<u64> = 1..=10_000;
const FIT_MS: RangeInclusive<u64> = 1..=1000;
const STARTS: RangeInclusive<u64> = 1..=1000;

/// The plan of the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitPlan {
    /// Clock of the processor with the reference costs.
    pub reference_mhz: u64,
    /// Reference costs that factors apply to, by number of a host file.
    pub costs: BTreeMap<String, u64>,
    /// Groups of parameters that are fitted together, in this order.
    #[serde(default, rename = "group")]
    pub groups: Vec<FitGroup>,
}

/// Parameters that are fitted together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitGroup {
    /// Its name in tables.
    pub name: String,
    /// Its parameters.
    #[serde(default, rename = "parameter")]
    pub parameters: Vec<Parameter>,
    /// Simulated length of its runs.
    pub milliseconds: u64,
}

/// A factor on some costs of some hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Their clocks, when costs scale with them; otherwise empty.
    #[serde(default)]
    pub clocks_mhz: Vec<u64>,
    /// The numbers of the host files that it sets.
    pub fields: Vec<String>,
    /// The host whose numbers the factor applies to, instead of the costs of the plan.
    pub like: Option<String>,
    /// The factor that the search begins with.
    pub start: u64,
}

impl FitPlan {
    /// Reads the file of the fit.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its line.
    pub fn parse(text: &str) -> Result<FitPlan, FileError> {
        let plan: FitPlan = read(text)?;
        plan.check().map_err(|mistake| mistake.after(text, 0))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Mistake> {
        let wanted = "give a clock in MHz, 1 to 10000";
        require(MHZ.contains(&self.reference_mhz), "reference_mhz", wanted)?;
        for (name, ns) in &self.costs {
            let wanted = "give a whole number above 0, such as \"cpu.tick_ns\" = 2000";
            require(
                COSTS.contains(ns),
                name,
                format_args!("{name} is wrong; {wanted}"),
            )?;
        }
        for group in &self.groups {
            let wanted = "give how long its runs are simulated, 1 to 1000";
            require(FIT_MS.contains(&group.milliseconds), "milliseconds", wanted)?;
            for parameter in &group.parameters {
                self.check_parameter(parameter)?;
            }
        }
        Ok(())
    }

    fn check_parameter(&self, parameter: &Parameter) -> Result<(), Mistake> {
        let at = format_args!("\"{}\"", parameter.name);
        let Parameter { hosts, fields, .. } = parameter;
        let has_both = !hosts.is_empty() && !fields.is_empty();
        require(has_both, at, "a parameter needs hosts and fields")?;
        let like = "like names a host that the parameter itself changes; give another";
        let is_own = parameter
            .like
            .as_ref()
            .is_some_and(|like| hosts.contains(like));
        require(!is_own, at, like)?;
        let clocks = &parameter.clocks_mhz;
        let has_each = clocks.is_empty() || clocks.len() == hosts.len();
        let are_clocks = has_each && clocks.iter().all(|mhz| MHZ.contains(mhz));
        require(
            are_clocks,
            at,
            "give clocks in MHz, 1 to 10000, one for each host",
        )?;
        let start = "give the factor that the search begins with, a whole number from 1 to 1000";
        require(STARTS.contains(&parameter.start), at, start)?;
        for name in fields {
            let is_cost = HostModel::field(name).is_some() && self.costs.contains_key(name);
            let wanted = format_args!("{name} is no number of a host file with a line in [costs]");
            require(is_cost, at, wanted)?;
        }
        Ok(())
    }
}

impl Parameter {
    /// Returns the numbers that a factor gives: host, field, value.
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
                // A parameter without a cost was refused when the file was read.
                let cost = plan.costs.get(name).copied();
                let base = like.map_or(cost, |like| like.get(name)).unwrap_or(0);
                let (of, by) = clock.map_or((1, 1), |mhz| (plan.reference_mhz, *mhz));
                let parts = u128::from(base) * u128::from(factor) * u128::from(of) / u128::from(by);
                let value = (parts + u128::from(ONE) / 2) / u128::from(ONE);
                let value = u64::try_from(value).unwrap_or(u64::MAX);
                // An unknown name was refused when the file was read.
                let value = HostModel::field(name).map_or(value, |f| value.clamp(f.min, f.max));
                targets.push((host.as_str(), name.as_str(), value));
            }
        }
        targets
    }
}

/// Fits the parameters of a set of groups, one of [`Library::sets`].
///
/// # Errors
/// What is wrong with the files, or why a run to be fitted cannot be simulated.
pub fn fit(library: &Library, set: &[usize]) -> Result<Vec<GroupFit>, SimError> {
    library.check()?;
    let mut library = library.at_start();
    let mut fitted = Vec::new();
    for group in set {
        let group = fit_group(&library, &library.plan.groups[*group])?;
        library.take(&group)?;
        fitted.push(group);
    }
    Ok(fitted)
}

fn fit_group(library: &Library, group: &FitGroup) -> Result<GroupFit, SimError> {
    let runs: Vec<&PublishedRun> = library.runs_of(&group.name).collect();
    let figures: usize = runs.iter().map(|run| fitted_figures(run)).sum();
    let spans: Vec<SearchSpan> = group
        .parameters
        .iter()
        .map(|parameter| SearchSpan {
            min: FACTOR_MIN,
            max: FACTOR_MAX,
            start: ONE * parameter.start,
        })
        .collect();
    let length = RunLength::of_fit(group.milliseconds);
    let mut tried = library.clone();
    let mut failure = None;
    let mut errors = |factors: &[u64]| {
        for (parameter, factor) in group.parameters.iter().zip(factors) {
            tried.apply(parameter, *factor);
        }
        let of_runs = workers::map(&runs, workers::count().min(runs.len()), |run| {
            misfits(&tried, run, length)
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
        return Err(SimError::from(format!("{}: {failure}", group.name)));
    }
    let names = group.parameters.iter().map(|parameter| &parameter.name);
    let factors = names.zip(&found.values).map(|(name, factor)| FittedFactor {
        name: name.clone(),
        thousandths: *factor,
    });
    Ok(GroupFit {
        name: group.name.clone(),
        factors: factors.collect(),
        figures: figures as u64,
        error_ratio: (squares / figures.max(1) as f64).sqrt(),
        simulations: found.calls * runs.len() as u64,
    })
}

pub(crate) fn fitted_figures(run: &PublishedRun) -> usize {
    run.figures.iter().filter(|figure| figure.is_fitted).count()
}

/// Returns the weighted errors of a run's fitted figures.
fn misfits(library: &Library, run: &PublishedRun, length: RunLength) -> Result<Vec<f64>, SimError> {
    let outcome = scenario::simulated(&library.hosts, run, length, SEED)?;
    let fitted = run.figures.iter().filter(|figure| figure.is_fitted);
    let misfits = fitted.map(|figure| {
        let quantity = figure.quantity();
        let simulated = quantity.and_then(|quantity| quantity.of(&outcome, None, run.seconds));
        misfit(figure, simulated.unwrap_or(0.0))
    });
    Ok(misfits.collect())
}

/// Returns the value that the search squares: a small error as it is, a large one by its root. The sum of squares
/// then grows linearly with a large error (`2 (sqrt(1 + e^2) - 1)`; Charbonnier et al., ICIP 1994). A figure that no
/// parameters explain then does not distort the others. Roots are exact to the last digit everywhere (IEEE 754).
fn softened(error: f64) -> f64 {
    (2.0 * ((1.0 + error * error).sqrt() - 1.0))
        .sqrt()
        .copysign(error)
}

/// Returns the weighted error of a simulated figure. Errors of shares are relative, too: a share over a rate is the
/// cost of a packet, which the fit looks for.
fn misfit(figure: &PublishedFigure, value: f64) -> f64 {
    let measured = figure.measured_mean().unwrap_or(0.0) * figure.unit.scale;
    let is_share = figure.quantity().map(Quantity::error_kind) == Some(ErrorKind::Points);
    if is_share {
        (value - measured) / measured.max(SHARE_MIN) / SHARE_UNIT
    } else {
        (value - measured) / measured.max(1.0) / RATE_UNIT
    }
}

/// The input of the fit and of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// The hosts by name.
    pub hosts: BTreeMap<String, HostModel>,
    /// The tables, in order.
    pub tables: Vec<PublishedTable>,
    /// The plan of the fit.
    pub plan: FitPlan,
}

impl Library {
    /// Checks that the files fit together.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self) -> Result<(), SimError> {
        for parameter in self.parameters() {
            let what = || format!("parameter '{}'", parameter.name);
            self.check_hosts(&parameter.hosts, what)?;
            self.check_hosts(parameter.like.as_slice(), what)?;
        }
        for (table, run) in self.runs() {
            if run.workload.is_some() {
                self.check_hosts(&run.hosts, || {
                    format!("table {}, run '{}'", table.name, run.name)
                })?;
            }
            let has_group = |name: &str| self.plan.groups.iter().any(|group| group.name == name);
            if let Some(name) = run.fit.as_deref().filter(|name| !has_group(name)) {
                return Err(SimError::from(format!(
                    "table {}, run '{}' is fitted in group '{name}', which the fit does not have",
                    table.name, run.name
                )));
            }
        }
        self.plan
            .groups
            .iter()
            .try_for_each(|group| self.check_group(group))
    }

    /// Checks that a group has more fitted figures than parameters.
    fn check_group(&self, group: &FitGroup) -> Result<(), SimError> {
        let figures: usize = self.runs_of(&group.name).map(fitted_figures).sum();
        let parameters = group.parameters.len();
        if parameters < figures {
            return Ok(());
        }
        Err(SimError::from(format!(
            "{}: {parameters} parameters would be fitted to {figures} figures; remove parameters or give more \
             figures",
            group.name
        )))
    }

    /// Checks that the text of a host's file marks as fitted exactly the numbers that the fit gives.
    ///
    /// # Errors
    /// A number that is marked and not fitted, or fitted and not marked.
    pub fn check_marks(&self, host: &str, text: &str) -> Result<(), SimError> {
        let marked = fitted_fields(text);
        let of_host = self
            .parameters()
            .filter(|of| of.hosts.iter().any(|name| name == host));
        let fitted: Vec<&String> = of_host.flat_map(|of| &of.fields).collect();
        if let Some(field) = marked.iter().find(|field| !fitted.contains(field)) {
            return Err(SimError::from(format!(
                "{field} is marked as fitted, and no parameter gives it"
            )));
        }
        match fitted.into_iter().find(|field| !marked.contains(field)) {
            None => Ok(()),
            Some(field) => Err(SimError::from(format!(
                "{field} is fitted; end its line with '# fitted'"
            ))),
        }
    }

    fn check_hosts(&self, hosts: &[String], what: impl Fn() -> String) -> Result<(), SimError> {
        let is_missing = |name: &&String| !self.hosts.contains_key(*name);
        let Some(host) = hosts.iter().find(is_missing) else {
            return Ok(());
        };
        let known: Vec<_> = self.hosts.keys().map(String::as_str).collect();
        Err(SimError::from(format!(
            "{} names host '{host}'; there are {}",
            what(),
            known.join(", ")
        )))
    }

    /// Returns the groups, by their places in the plan, as sets that can be fitted separately: no group's runs are on a
    /// host that a group of another set changes.
    pub fn sets(&self) -> Vec<Vec<usize>> {
        let changed: BTreeSet<&String> = self.parameters().flat_map(|it| &it.hosts).collect();
        let mut sets: Vec<(Vec<usize>, BTreeSet<&String>)> = Vec::new();
        for (place, group) in self.plan.groups.iter().enumerate() {
            let own = group.parameters.iter();
            let own = own.flat_map(|it| it.hosts.iter().chain(&it.like));
            let all = own.chain(self.runs_of(&group.name).flat_map(|run| &run.hosts));
            let hosts: BTreeSet<&String> = all.filter(|it| changed.contains(it)).collect();
            let shares = |it: &(Vec<usize>, BTreeSet<&String>)| !it.1.is_disjoint(&hosts);
            let (joined, rest): (Vec<_>, Vec<_>) = sets.into_iter().partition(shares);
            let mut set = (Vec::new(), hosts.clone());
            for (groups, hosts) in joined {
                set.0.extend(groups);
                set.1.extend(hosts);
            }
            set.0.push(place);
            sets = rest;
            sets.push(set);
        }
        let mut sets: Vec<Vec<usize>> = sets.into_iter().map(|(groups, _)| groups).collect();
        sets.iter_mut().for_each(|it| it.sort_unstable());
        sets.sort_unstable();
        sets
    }

    /// Returns the library before a fit: with the factors that the searches begin with.
    pub fn at_start(&self) -> Library {
        let mut library = self.clone();
        for parameter in self.parameters() {
            library.apply(parameter, ONE * parameter.start);
        }
        library
    }

    /// Returns the library with the numbers of a whole fit.
    ///
    /// # Errors
    /// When the fit is of another plan.
    pub fn fitted<'a>(
        &self,
        groups: impl IntoIterator<Item = &'a GroupFit>,
    ) -> Result<Library, SimError> {
        let mut library = self.at_start();
        let mut taken = 0;
        for group in groups {
            library.take(group)?;
            taken += 1;
        }
        match taken == self.plan.groups.len() {
            true => Ok(library),
            false => Err(SimError::from(format!(
                "{taken} groups are fitted, and fit.toml has {}",
                self.plan.groups.len()
            ))),
        }
    }

    /// Sets the numbers of a fitted group.
    fn take(&mut self, fitted: &GroupFit) -> Result<(), SimError> {
        let groups = self.plan.groups.iter();
        let group = groups.clone().find(|it| it.name == fitted.name).cloned();
        let parameters = group.map(|it| it.parameters).unwrap_or_default();
        let names = parameters.iter().map(|it| &it.name);
        if parameters.is_empty() || !names.eq(fitted.factors.iter().map(|it| &it.name)) {
            let wrong = format!(
                "fit.toml has no group '{}' with these parameters",
                fitted.name
            );
            return Err(SimError::from(wrong));
        }
        for (parameter, factor) in parameters.iter().zip(&fitted.factors) {
            self.apply(parameter, factor.thousandths);
        }
        Ok(())
    }

    /// Returns every parameter, group by group.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.plan.groups.iter().flat_map(|group| &group.parameters)
    }

    /// Returns the number of figures that the fit uses.
    pub fn fitted_figures(&self) -> usize {
        self.runs().map(|(_, run)| fitted_figures(run)).sum()
    }

    /// Returns every run with its table.
    pub fn runs(&self) -> impl Iterator<Item = (&PublishedTable, &PublishedRun)> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.runs.iter().map(move |run| (table, run)))
    }

    /// Returns the runs that a group is fitted to.
    pub(crate) fn runs_of(&self, group: &str) -> impl Iterator<Item = &PublishedRun> {
        let runs = self.runs().map(|(_, run)| run);
        runs.filter(move |run| run.fit.as_deref() == Some(group))
    }

    /// Sets the numbers of a parameter for a factor, in thousandths.
    pub(crate) fn apply(&mut self, parameter: &Parameter, factor: u64) {
        for (host, field, value) in parameter.targets(&self.plan, &self.hosts.clone(), factor) {
            if let Some(host) = self.hosts.get_mut(host) {
                // The value is within the field's range.
                let _ = host.set(field, value);
            }
        }
    }

    /// Scales a number of a host by thousandths, within its range. Returns whether that changes it.
    pub(crate) fn scale(&mut self, host: &str, field: &str, factor: u64) -> bool {
        let (Some(host), Some(known)) = (self.hosts.get_mut(host), HostModel::field(field)) else {
            return false;
        };
        let value = host.get(field).unwrap_or(0);
        let scaled = (value.saturating_mul(factor) / ONE).clamp(known.min, known.max);
        scaled != value && host.set(field, scaled).is_ok()
    }
}

/// The beginning of a remark on a fitted number.
const MARK: &str = "# fitted";
/// The column of remarks, if the number leaves room.
const REMARK_COLUMN: usize = 29;

/// Returns the text of a host file with the numbers of `host` in the lines marked as fitted.
///
/// # Errors
/// A line that is marked and gives no number of a host.
pub fn with_fitted(text: &str, host: &HostModel) -> Result<String, FileError> {
    let mut written = String::with_capacity(text.len());
    for (index, (line, field)) in lines_and_fields(text).enumerate() {
        let Some((field, (_, remark))) = field.zip(line.split_once(MARK)) else {
            written.push_str(line);
            continue;
        };
        let value = host.get(&field).ok_or_else(|| FileError {
            line: index + 1,
            message: format!(
                "this line is marked '{MARK}' but gives no number of a host; write NAME = NUMBER {MARK}"
            ),
        })?;
        let name = field.rsplit('.').next().unwrap_or_default();
        let number = format!("{name} = {value}");
        written.push_str(&format!("{number:<REMARK_COLUMN$}{MARK}{remark}"));
    }
    Ok(written)
}

/// Returns the numbers that a host file marks as fitted, such as `cpu.tick_ns`.
pub fn fitted_fields(text: &str) -> Vec<String> {
    lines_and_fields(text)
        .filter_map(|(_, field)| field)
        .collect()
}

/// Returns each line with its end, and the name of its number if it is marked as fitted.
fn lines_and_fields(text: &str) -> impl Iterator<Item = (&str, Option<String>)> {
    let mut section = "";
    text.split_inclusive('\n').map(move |line| {
        if let Some(name) = line.trim().strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let number = line.split_once(MARK).map(|(number, _)| number);
        let name = number.map(|number| number.split('=').next().unwrap_or_default().trim());
        (line, name.map(|name| format!("{section}.{name}")))
    })
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

    #[test]
    fn only_marked_lines_change() {
        let text = "# fits\nname = \"x\"\n[cpu]\nhz = 1000 # stated\ntick_ns = 5  # fitted: work\n\
                    [card]\npoll_ns=7 # fitted";
        let mut host = HostModel::default();
        host.set("cpu.tick_ns", 1234).unwrap();
        host.set("card.poll_ns", 8).unwrap();
        let written = with_fitted(text, &host).unwrap();
        let expected = "# fits\nname = \"x\"\n[cpu]\nhz = 1000 # stated\n\
                        tick_ns = 1234               # fitted: work\n\
                        [card]\npoll_ns = 8                  # fitted";
        assert_eq!(written, expected);
        assert_eq!(fitted_fields(text), ["cpu.tick_ns", "card.poll_ns"]);
        assert_eq!(with_fitted(&written, &host).as_ref(), Ok(&written));
    }

    #[test]
    fn a_mark_without_a_number_is_refused() {
        let error = with_fitted("[cpu]\n\nherz = 5 # fitted\n", &HostModel::default()).unwrap_err();
        assert_eq!(error.line, 3);
    }
}
