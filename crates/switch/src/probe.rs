//! What the running kernel can do, asked by feature and never by version.

use std::io;

use netlink_bindings::nlctrl;
use netlink_socket2::NetlinkSocket;
use thiserror::Error;

use crate::attributes::{attribute, attributes, uint_attribute};

/// `NETDEV_CMD_NAPI_GET` and `NETDEV_CMD_NAPI_SET`, include/uapi/linux/netdev.h.
const NETDEV_CMD_NAPI_GET: u32 = 11;
const NETDEV_CMD_NAPI_SET: u32 = 14;
/// `NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT`.
const NAPI_SUSPEND: u16 = 7;
/// `NETDEV_A_NAPI_THREADED`.
const NAPI_THREADED: u16 = 8;

/// `CTRL_ATTR_POLICY`, include/uapi/linux/genetlink.h: policies by index, each by attribute.
const CTRL_ATTR_POLICY: u16 = 8;
/// `NL_POLICY_TYPE_ATTR_MAX_VALUE_U`, include/uapi/linux/netlink.h.
const POLICY_MAX_VALUE_U: u16 = 5;
/// `NL_POLICY_TYPE_ATTR_TYPE`: 0 (`NL_ATTR_TYPE_INVALID`) is refused.
const POLICY_TYPE: u16 = 1;

/// What `napi-set` of the running kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Whether values of a single NAPI instance can be set at all.
    pub has_napi_set: bool,
    /// The highest mode of threads that a single instance can be given; null: none.
    pub threaded_max: Option<u32>,
    /// Whether `irq-suspend-timeout` can be set.
    pub has_suspend: bool,
}

impl Abilities {
    /// Asks the kernel, by the policy that it checks requests against (`CTRL_CMD_GETPOLICY`).
    pub fn probe() -> Abilities {
        if per_napi_settings().is_err() {
            return Abilities::default();
        }
        // A kernel that keeps its policies to itself (before 5.9) has no napi-set either.
        let lists = napi_set_policy().unwrap_or_default();
        Abilities {
            has_napi_set: true,
            ..Abilities::of_policy(&lists)
        }
    }

    /// The largest value of an attribute that a single instance can be given; `None`: none.
    pub(crate) fn napi_max(&self, attribute: u16) -> Option<u64> {
        match attribute {
            NAPI_THREADED => self.threaded_max.map(u64::from),
            NAPI_SUSPEND => self.has_suspend.then_some(u64::MAX),
            _ => self.has_napi_set.then_some(u64::MAX),
        }
    }

    /// Each list is the answer to one message of the dump.
    fn of_policy(lists: &[Vec<u8>]) -> Abilities {
        let mut abilities = Abilities::default();
        let policies = lists
            .iter()
            .filter_map(|list| attribute(list, CTRL_ATTR_POLICY));
        // Index of the policy, then number of the attribute, then what holds for it.
        for (kind, rules) in policies
            .flat_map(attributes)
            .flat_map(|(_, by_attribute)| attributes(by_attribute))
        {
            let number = |kind| uint_attribute(rules, kind);
            if number(POLICY_TYPE).is_none_or(|found| found == 0) {
                continue;
            }
            match kind {
                NAPI_SUSPEND => abilities.has_suspend = true,
                NAPI_THREADED => {
                    let max = number(POLICY_MAX_VALUE_U).unwrap_or(1);
                    abilities.threaded_max = u32::try_from(max).ok();
                }
                _ => {}
            }
        }
        abilities
    }
}

fn napi_set_policy() -> io::Result<Vec<Vec<u8>>> {
    let mut request = nlctrl::Request::new().op_getpolicy_dump();
    request
        .encode()
        .push_family_name_bytes(b"netdev")
        .push_op(NETDEV_CMD_NAPI_SET);
    let mut socket = NetlinkSocket::new();
    let mut reply = socket.request(&request)?;
    let mut lists = Vec::new();
    while let Some(part) = reply.recv() {
        lists.push(part?.get_buf().to_vec());
    }
    Ok(lists)
}

/// A kernel feature that is missing.
#[derive(Debug, Error)]
#[error("this kernel has no {feature} ({detail}); Linux {minimum} or later has it")]
#[non_exhaustive]
pub struct Unsupported {
    feature: &'static str,
    minimum: &'static str,
    detail: String,
}

/// Whether the NAPI instances of an interface can be listed. Without the list nobody can tell whose polls are whose.
pub fn napi_list() -> Result<(), Unsupported> {
    require(
        (NETDEV_CMD_NAPI_GET, "napi-get"),
        "list of NAPI instances",
        "6.8",
    )
}

/// Whether the deferral of a single NAPI instance can be set.
pub fn per_napi_settings() -> Result<(), Unsupported> {
    require(
        (NETDEV_CMD_NAPI_SET, "napi-set"),
        "per-NAPI settings",
        "6.13",
    )
}

/// Whether the kernel takes a request about NAPI instances, by its number and its name.
fn require(
    (command, name): (u32, &str),
    feature: &'static str,
    minimum: &'static str,
) -> Result<(), Unsupported> {
    let detail = match netdev_commands() {
        Ok(commands) if commands.contains(&command) => return Ok(()),
        Ok(_) => format!("the netdev netlink family does not know {name}"),
        Err(error) => format!("no netdev netlink family: {error}"),
    };
    Err(Unsupported {
        feature,
        minimum,
        detail,
    })
}

fn netdev_commands() -> io::Result<Vec<u32>> {
    let mut request = nlctrl::Request::new().op_getfamily_do();
    request.encode().push_family_name_bytes(b"netdev");
    let mut socket = NetlinkSocket::new();
    let mut reply = socket.request(&request)?;
    let family = reply.recv_one()?;
    let commands = family.get_ops().map_err(io::Error::other)?;
    commands
        .map(|command| command.get_id().map_err(io::Error::other))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::push_attribute;

    fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
        let mut list = Vec::new();
        push_attribute(&mut list, kind, inner);
        list
    }

    /// One message of the dump: what holds for one attribute of policy 0.
    fn rules(of: u16, threaded_max: Option<u64>) -> Vec<u8> {
        let mut rules = nested(POLICY_TYPE, &4u32.to_ne_bytes());
        if let Some(max) = threaded_max {
            push_attribute(&mut rules, POLICY_MAX_VALUE_U, &max.to_ne_bytes());
        }
        nested(CTRL_ATTR_POLICY, &nested(0, &nested(of, &rules)))
    }

    #[test]
    fn the_policy_says_what_can_be_set() {
        let lists = [rules(NAPI_THREADED, Some(2)), rules(NAPI_SUSPEND, None)];
        let abilities = Abilities::of_policy(&lists);
        assert_eq!(abilities.threaded_max, Some(2));
        assert!(abilities.has_suspend);
        assert_eq!(Abilities::of_policy(&[]), Abilities::default());
        let refused = nested(POLICY_TYPE, &0u32.to_ne_bytes());
        let refused = nested(
            CTRL_ATTR_POLICY,
            &nested(0, &nested(NAPI_THREADED, &refused)),
        );
        assert_eq!(Abilities::of_policy(&[refused]).threaded_max, None);
        for length in 0..lists[0].len() {
            let _ = Abilities::of_policy(&[lists[0][..length].to_vec()]);
        }
    }
}
