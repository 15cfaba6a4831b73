//! `nicpoll doctor`: the abilities of this machine, and what disturbs a measurement on it.
//!
//! A check that cannot be made says so and is not a failure. `kernel` checks privileges and kernel features,
//! `interfaces` each driver, `machine` the disturbances; `check` makes the lines.

mod check;
mod interfaces;
mod kernel;
mod machine;

use nicpoll_model::{DOCTOR_SCHEMA, Doctor, Origin};
use nicpoll_sys::privilege;

use crate::error::{InspectError, NamedStep};
use crate::host_facts::host_facts;

/// Makes every check.
///
/// # Errors
/// When the machine does not provide basic facts of every Linux.
pub fn doctor(origin: Origin) -> Result<Doctor, InspectError> {
    privilege::require_proc()?;
    let host = host_facts().doing("looking at the machine")?;
    let mut checks = kernel::privileges()?;
    checks.extend(kernel::checks());
    let found = interfaces::look()?;
    checks.extend(interfaces::checks(&found));
    checks.extend(machine::checks(&host, &found)?);
    Ok(Doctor {
        schema: String::from(DOCTOR_SCHEMA),
        origin,
        kernel: host.kernel,
        checks,
    })
}
