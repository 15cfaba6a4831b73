//! Published tables, the hosts that they tell of, and what is fitted.

use std::collections::BTreeMap;

use super::fit::{FitPlan, ONE, Parameter, fitted_figures};
use super::table::{Run, Table};
use crate::host::Host;

/// All that the fit and the comparison rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// The hosts by name.
    pub hosts: BTreeMap<String, Host>,
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
    pub fn check(&self) -> Result<(), String> {
        let known = || {
            let names: Vec<_> = self.hosts.keys().map(String::as_str).collect();
            names.join(", ")
        };
        let is_missing = |name: &&String| !self.hosts.contains_key(*name);
        for parameter in self.parameters() {
            if let Some(name) = parameter.hosts.iter().find(is_missing) {
                return Err(format!(
                    "parameter '{}' is of host '{name}'; there are {}",
                    parameter.name,
                    known()
                ));
            }
        }
        for (table, run) in self.runs() {
            let hosts = run.scenario.iter().flat_map(|scenario| &scenario.hosts);
            if let Some(name) = hosts.into_iter().find(is_missing) {
                return Err(format!(
                    "table {}, run '{}' is of host '{name}'; there are {}",
                    table.name,
                    run.name,
                    known()
                ));
            }
            let is_group =
                |name: &&String| self.plan.groups.iter().any(|group| group.name == **name);
            if let Some(name) = run.fit.iter().find(|name| !is_group(name)) {
                return Err(format!(
                    "table {}, run '{}' is fitted in group '{name}', which the fit does not have",
                    table.name, run.name
                ));
            }
        }
        self.check_freedom()
    }

    /// What is fitted must be known from more than it has numbers.
    fn check_freedom(&self) -> Result<(), String> {
        let (parameters, figures) = (self.parameters().count(), self.fitted_figures());
        if parameters < figures {
            return Ok(());
        }
        Err(format!(
            "{parameters} parameters would be fitted to {figures} figures; take parameters away or give \
             more figures"
        ))
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
    pub fn runs(&self) -> impl Iterator<Item = (&Table, &Run)> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.runs.iter().map(move |run| (table, run)))
    }

    /// The runs that a group is fitted to.
    pub(super) fn runs_of(&self, group: &str) -> impl Iterator<Item = &Run> {
        let runs = self.runs().map(|(_, run)| run);
        runs.filter(move |run| run.fit.as_deref() == Some(group))
    }

    /// Gives the hosts of a parameter the numbers of a factor, in thousandths.
    pub(super) fn apply(&mut self, parameter: &Parameter, factor: u64) {
        for (host, field, value) in parameter.targets(&self.plan, factor) {
            if let Some(host) = self.hosts.get_mut(host) {
                // The value is within the field's range.
                let _ = host.set(field, value);
            }
        }
    }

    /// Scales a number of a host by thousandths, within its range. Whether that changes it.
    pub(super) fn scale(&mut self, host: &str, field: &str, factor: u64) -> bool {
        let (Some(host), Some(known)) = (self.hosts.get_mut(host), Host::field(field)) else {
            return false;
        };
        let value = host.get(field).unwrap_or(0);
        let scaled = (value.saturating_mul(factor) / ONE).clamp(known.min, known.max);
        scaled != value && host.set(field, scaled).is_ok()
    }
}
