//! What a machine can do and what disturbs measurements on it: what `nicpoll doctor` prints.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Origin;

/// Name and version of the JSON that [`Doctor`] becomes.
pub const DOCTOR_SCHEMA: &str = "nicpoll.doctor/1";

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// It is there, or disturbs nothing.
    Good,
    /// It is not there, and nothing that nicpoll does here needs it.
    Absent,
    /// Something that nicpoll needs is missing.
    Missing,
    /// It disturbs measurements.
    Confounds,
    /// It could not be found out.
    Unknown,
}

impl CheckStatus {
    /// Whether the exit code has to say so.
    pub fn is_bad(self) -> bool {
        matches!(self, CheckStatus::Missing | CheckStatus::Confounds)
    }
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CheckStatus::Good => "ok",
            CheckStatus::Absent => "absent",
            CheckStatus::Missing => "missing",
            CheckStatus::Confounds => "disturbs",
            CheckStatus::Unknown => "unknown",
        })
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckGroup {
    /// What this process may do.
    Privilege,
    /// What the kernel can do.
    Kernel,
    /// What an interface's driver can do.
    Interface,
    /// What disturbs measurements.
    Measurement,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What it is about.
    pub group: CheckGroup,
    /// Its name. It stays the same from version to version.
    pub name: String,
    /// The interface, where it is about one.
    pub interface: Option<String>,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found.
    pub finding: String,
    /// What to do about it; null when there is nothing to do.
    pub remedy: Option<String>,
}

/// All checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// Who made it.
    #[serde(flatten)]
    pub origin: Origin,
    /// The kernel's name and release.
    pub kernel: String,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Doctor {
    /// Whether nothing is missing and nothing disturbs measurements.
    pub fn is_well(&self) -> bool {
        !self.checks.iter().any(|check| check.status.is_bad())
    }
}
