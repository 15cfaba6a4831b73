//! Checks of one group, by their status.

use nicpoll_model::{Check, CheckGroup, CheckStatus};

/// Makes checks of a group, about no interface.
#[derive(Clone, Copy)]
pub struct Checks(pub CheckGroup);

impl Checks {
    pub fn of(self, name: &str, status: CheckStatus, finding: impl Into<String>) -> Check {
        Check {
            group: self.0,
            name: String::from(name),
            interface: None,
            status,
            finding: finding.into(),
            remedy: None,
        }
    }

    pub fn good(self, name: &str, finding: impl Into<String>) -> Check {
        self.of(name, CheckStatus::Good, finding)
    }

    pub fn absent(self, name: &str, finding: impl Into<String>) -> Check {
        self.of(name, CheckStatus::Absent, finding)
    }

    pub fn unknown(self, name: &str, finding: impl Into<String>) -> Check {
        self.of(name, CheckStatus::Unknown, finding)
    }

    pub fn missing(
        self,
        name: &str,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        with_remedy(self.of(name, CheckStatus::Missing, finding), remedy)
    }
}

/// The same check with a remedy.
pub fn with_remedy(check: Check, remedy: impl Into<String>) -> Check {
    Check {
        remedy: Some(remedy.into()),
        ..check
    }
}
