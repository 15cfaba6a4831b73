//! What this machine can do, and what disturbs a measurement on it: the checks of `nicpoll doctor`.
//!
//! What must hold: a check that cannot be made says so and is no failure.

mod interfaces;
mod kernel;
mod machine;
mod measurement;
mod privileges;

use nicpoll_model::{Check, CheckGroup, CheckStatus, DOCTOR_SCHEMA, Doctor, Origin};
use nicpoll_sys::privilege;

use crate::InspectError;
use crate::error::Doing;
use crate::host_facts::host_facts;

/// Makes every check.
///
/// # Errors
/// When the machine does not tell what every Linux tells.
pub fn doctor(origin: Origin) -> Result<Doctor, InspectError> {
    privilege::require_proc()?;
    let host = host_facts().doing("looking at the machine")?;
    let mut checks = privileges::checks()?;
    checks.extend(kernel::checks());
    let found = interfaces::look()?;
    checks.extend(interfaces::checks(&found));
    let machine = machine::look(&host, &found)?;
    checks.extend(measurement::checks(&machine));
    Ok(Doctor {
        schema: String::from(DOCTOR_SCHEMA),
        origin,
        kernel: host.kernel,
        checks,
    })
}

/// A check without a remedy and about no interface.
fn check(
    group: CheckGroup,
    name: impl Into<String>,
    status: CheckStatus,
    finding: impl Into<String>,
) -> Check {
    Check {
        group,
        name: name.into(),
        interface: None,
        status,
        finding: finding.into(),
        remedy: None,
    }
}

/// The same with what to do about it.
fn with_remedy(check: Check, remedy: impl Into<String>) -> Check {
    Check {
        remedy: Some(remedy.into()),
        ..check
    }
}
