//! The outcome of a check.

use nicpoll_model::{Check, CheckGroup, CheckStatus};

/// The finding of a check, and its remedy.
#[derive(Debug)]
pub struct Outcome {
    pub status: CheckStatus,
    pub finding: String,
    pub remedy: Option<String>,
}

impl Outcome {
    /// Adds a remedy.
    pub fn with(self, remedy: impl Into<String>) -> Self {
        Outcome {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

fn outcome(status: CheckStatus, finding: impl Into<String>) -> Outcome {
    Outcome {
        status,
        finding: finding.into(),
        remedy: None,
    }
}

pub fn good(finding: impl Into<String>) -> Outcome {
    outcome(CheckStatus::Good, finding)
}

pub fn absent(finding: impl Into<String>) -> Outcome {
    outcome(CheckStatus::Absent, finding)
}

pub fn unknown(finding: impl Into<String>) -> Outcome {
    outcome(CheckStatus::Unknown, finding)
}

pub fn missing(finding: impl Into<String>, remedy: impl Into<String>) -> Outcome {
    outcome(CheckStatus::Missing, finding).with(remedy)
}

pub fn disturbs(finding: impl Into<String>, remedy: impl Into<String>) -> Outcome {
    outcome(CheckStatus::Confounds, finding).with(remedy)
}

/// Makes the checks of a group from their names and outcomes.
pub fn group(
    group: CheckGroup,
    interface: Option<&str>,
    outcomes: impl IntoIterator<Item = (&'static str, Outcome)>,
) -> Vec<Check> {
    let check = |(name, outcome): (&str, Outcome)| Check {
        group,
        name: String::from(name),
        interface: interface.map(String::from),
        status: outcome.status,
        finding: outcome.finding,
        remedy: outcome.remedy,
    };
    outcomes.into_iter().map(check).collect()
}
