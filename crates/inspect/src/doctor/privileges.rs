//! What this process may do.

use nicpoll_model::{Check, CheckGroup, CheckStatus};
use nicpoll_sys::privilege::{self, Capability};

use super::{check, with_remedy};
use crate::InspectError;
use crate::error::Doing;

pub fn checks() -> Result<Vec<Check>, InspectError> {
    let capabilities = privilege::capabilities().doing("asking for capabilities")?;
    let is_initial = privilege::in_initial_user_namespace().doing("reading /proc/self/uid_map")?;
    let mut checks: Vec<Check> = capabilities.iter().map(of_capability).collect();
    checks.push(of_user_namespace(is_initial));
    Ok(checks)
}

fn of_capability(capability: &Capability) -> Check {
    let group = CheckGroup::Privilege;
    if capability.is_held {
        return check(
            group,
            capability.name,
            CheckStatus::Good,
            capability.purpose,
        );
    }
    let finding = format!("not held; needed for {}", capability.purpose);
    with_remedy(
        check(group, capability.name, CheckStatus::Missing, finding),
        "run it as root, or grant it to the service or container",
    )
}

fn of_user_namespace(is_initial: bool) -> Check {
    let (group, name) = (CheckGroup::Privilege, "user namespace");
    if is_initial {
        return check(
            group,
            name,
            CheckStatus::Good,
            "the initial one: polling knobs can be set",
        );
    }
    with_remedy(
        check(
            group,
            name,
            CheckStatus::Missing,
            "a mapped one: the kernel refuses the polling knobs even to its root",
        ),
        "run it on the host, or in a container without a user namespace",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_held_has_a_remedy() {
        let mut capability = Capability {
            name: "CAP_BPF",
            purpose: "counting",
            is_held: true,
        };
        assert_eq!(of_capability(&capability).status, CheckStatus::Good);
        capability.is_held = false;
        let missing = of_capability(&capability);
        assert_eq!(missing.status, CheckStatus::Missing);
        assert!(missing.remedy.is_some());
        assert!(!of_user_namespace(true).status.is_bad());
        assert!(of_user_namespace(false).status.is_bad());
    }
}
