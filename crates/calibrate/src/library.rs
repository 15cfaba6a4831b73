//! Published tables, the hosts that they name, and what is fitted.

use std::collections::BTreeMap;

use nicpoll_sim::HostModel;
use thiserror::Error;

use crate::fit::{FitPlan, Group, ONE, Parameter, fitted_figures};
use crate::host_file::fitted_fields;
use crate::table::{PublishedRun, Table};

/// Why tables, hosts and the plan of the fit do not go together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// Something names a host that is not there.
    #[error("{what} names host '{host}'; there are {known}")]
    NoHost {
        /// What names it.
        what: String,
        /// The name.
        host: String,
        /// The hosts that are there.
        known: String,
    },
    /// A run is to be fitted in a group that the plan does not have.
    #[error("table {table}, run '{run}' is fitted in group '{group}', which the fit does not have")]
    NoGroup {
        /// The run's table.
        table: String,
        /// The run.
        run: String,
        /// The group.
        group: String,
    },
    /// A group would not be determined.
    #[error(
        "{group}: {parameters} parameters would be fitted to {figures} figures; take parameters away or give \
         more figures"
    )]
    TooFewFigures {
        /// The group.
        group: String,
        /// Numbers that are fitted.
        parameters: usize,
        /// What they are fitted to.
        figures: usize,
    },
}

/// Why a host file's marks are wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MarkError {
    /// Nothing gives a number that is marked.
    #[error("{0} is marked as fitted, and no parameter gives it")]
    NotFitted(String),
    /// The fit gives a number without a mark.
    #[error("{0} is fitted; end its line with '# fitted'")]
    NotMarked(String),
}

/// All that the fit and the comparison rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// The hosts by name.
    pub hosts: BTreeMap<String, HostModel>,
    /// The tables, in order.
    pub tables: Vec<Table>,
    /// What is fitted.
    pub plan: FitPlan,
}

impl Library {
    /// Whether the files go together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), LibraryError> {
        for parameter in self.parameters() {
            let what = || format!("parameter '{}'", parameter.name);
            self.check_hosts(&parameter.hosts, what)?;
            self.check_hosts(parameter.like.as_slice(), what)?;
        }
        for (table, run) in self.runs() {
            if let Some(scenario) = &run.scenario {
                self.check_hosts(&scenario.hosts, || {
                    format!("table {}, run '{}'", table.name, run.name)
                })?;
            }
            let has_group = |name: &str| self.plan.groups.iter().any(|group| group.name == name);
            if let Some(name) = run.fit.as_deref().filter(|name| !has_group(name)) {
                return Err(LibraryError::NoGroup {
                    table: table.name.clone(),
                    run: run.name.clone(),
                    group: String::from(name),
                });
            }
        }
        self.plan
            .groups
            .iter()
            .try_for_each(|group| self.check_group(group))
    }

    /// What is fitted must be known from more figures than it has numbers, in each group by itself.
    fn check_group(&self, group: &Group) -> Result<(), LibraryError> {
        let figures: usize = self.runs_of(&group.name).map(fitted_figures).sum();
        let parameters = group.parameters.len();
        if parameters < figures {
            return Ok(());
        }
        Err(LibraryError::TooFewFigures {
            group: group.name.clone(),
            parameters,
            figures,
        })
    }

    /// Whether the text of a host's file marks as fitted what the fit gives, and nothing else.
    ///
    /// # Errors
    /// The number that is marked and not fitted, or fitted and not marked.
    pub fn check_marks(&self, host: &str, text: &str) -> Result<(), MarkError> {
        let marked = fitted_fields(text);
        let of_host = self
            .parameters()
            .filter(|of| of.hosts.iter().any(|name| name == host));
        let fitted: Vec<&String> = of_host.flat_map(|of| &of.fields).collect();
        if let Some(field) = marked.iter().find(|field| !fitted.contains(field)) {
            return Err(MarkError::NotFitted(field.clone()));
        }
        let missing = fitted.into_iter().find(|field| !marked.contains(field));
        missing.map_or(Ok(()), |field| Err(MarkError::NotMarked(field.clone())))
    }

    fn check_hosts(&self, hosts: &[String], what: impl Fn() -> String) -> Result<(), LibraryError> {
        let is_missing = |name: &&String| !self.hosts.contains_key(*name);
        let Some(host) = hosts.iter().find(is_missing) else {
            return Ok(());
        };
        let known: Vec<_> = self.hosts.keys().map(String::as_str).collect();
        Err(LibraryError::NoHost {
            what: what(),
            host: host.clone(),
            known: known.join(", "),
        })
    }

    /// Every parameter, group by group.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.plan.groups.iter().flat_map(|group| &group.parameters)
    }

    /// Figures that the fit uses.
    pub fn fitted_figures(&self) -> usize {
        self.runs().map(|(_, run)| fitted_figures(run)).sum()
    }

    /// Every run with its table.
    pub fn runs(&self) -> impl Iterator<Item = (&Table, &PublishedRun)> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.runs.iter().map(move |run| (table, run)))
    }

    /// The runs that a group is fitted to.
    pub(crate) fn runs_of(&self, group: &str) -> impl Iterator<Item = &PublishedRun> {
        let runs = self.runs().map(|(_, run)| run);
        runs.filter(move |run| run.fit.as_deref() == Some(group))
    }

    /// Gives the hosts of a parameter the numbers of a factor, in thousandths.
    pub(crate) fn apply(&mut self, parameter: &Parameter, factor: u64) {
        for (host, field, value) in parameter.targets(&self.plan, &self.hosts.clone(), factor) {
            if let Some(host) = self.hosts.get_mut(host) {
                // The value is within the field's range.
                let _ = host.set(field, value);
            }
        }
    }

    /// Scales a number of a host by thousandths, within its range. Whether that changes it.
    pub(crate) fn scale(&mut self, host: &str, field: &str, factor: u64) -> bool {
        let (Some(host), Some(known)) = (self.hosts.get_mut(host), HostModel::field(field)) else {
            return false;
        };
        let value = host.get(field).unwrap_or(0);
        let scaled = (value.saturating_mul(factor) / ONE).clamp(known.min, known.max);
        scaled != value && host.set(field, scaled).is_ok()
    }
}
