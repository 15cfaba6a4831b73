//! What each interface's driver can do.

use std::collections::BTreeMap;

use nicpoll_model::{Check, CheckGroup, CheckStatus};
use nicpoll_switch::knob::KnobRow;
use nicpoll_switch::{
    Control, Journal, LinkFacts, Needs, Order, POLLING_PERIOD_NS, Part, SetError, Switch, Target,
    Values, XdpAbilities, preview,
};
use nicpoll_sys::ethtool::{self, Driver};

use super::{check, with_remedy};
use crate::InspectError;
use crate::error::Doing;

/// An interface, as far as it can be read.
pub struct Found {
    pub link: LinkFacts,
    /// How many receive NAPI instances have an id.
    pub napis: Option<usize>,
    pub moderation: Option<Vec<(&'static KnobRow, u32)>>,
    /// Offload features in force.
    pub features: Option<BTreeMap<String, bool>>,
    pub xdp: Option<XdpAbilities>,
    pub driver: Option<Driver>,
    pub polling: Polling,
}

/// Whether 'nicpoll set IF polling' would do it.
pub enum Polling {
    /// It would.
    Works,
    /// It would not: why, and what to do about it.
    Refused { reason: String, remedy: String },
    /// Nobody may ask, or it cannot be read.
    Unknown(String),
}

/// Reads every interface of the namespace but the loopback.
pub fn look() -> Result<Vec<Found>, InspectError> {
    let mut control = Control::new();
    let mut switch = Switch::new(Journal::of_this_machine());
    let entered = switch.enter(None);
    let links = control.inventory().doing("looking for interfaces")?;
    let links = links.into_iter().filter(|link| !link.is_loopback);
    Ok(links
        .map(|link| Found {
            napis: control.napis(link.ifindex).ok().map(|napis| napis.len()),
            moderation: control.moderation(link.ifindex).ok(),
            features: control
                .features(link.ifindex)
                .ok()
                .map(|features| features.active),
            xdp: control.xdp_abilities(link.ifindex).ok(),
            driver: ethtool::driver(&link.name).ok(),
            polling: match (&entered, control.interface(&link.name)) {
                (Ok(netns_inode), Ok(interface)) => {
                    let netns_inode = *netns_inode;
                    let target = Target {
                        netns_inode,
                        interface,
                    };
                    polling(&mut switch, target)
                }
                (Err(error), _) => Polling::Unknown(format!("only root may ask: {error}")),
                (_, Err(error)) => Polling::Unknown(error.to_string()),
            },
            link,
        })
        .collect())
}

/// Asks without changing anything.
fn polling(switch: &mut Switch, target: Target) -> Polling {
    let orders = [Order {
        target,
        part: Part::Whole,
        values: Values::polling(POLLING_PERIOD_NS),
    }];
    let asked = switch
        .survey(&orders)
        .and_then(|facts| preview(&orders, &facts, Needs::Refuse));
    match asked {
        Ok(_) => Polling::Works,
        Err(SetError::Refused(refusal)) => Polling::Refused {
            reason: refusal.reason,
            remedy: refusal.remedy,
        },
        Err(error) => Polling::Unknown(error.to_string()),
    }
}

pub fn checks(found: &[Found]) -> Vec<Check> {
    let of = |one: &Found| {
        let checks = if one.link.is_up {
            vec![
                of_driver(one),
                of_polling(one),
                of_napi(one),
                of_moderation(one),
                of_offloads(one),
                of_xdp(one),
            ]
        } else {
            vec![line(
                "link",
                CheckStatus::Unknown,
                "down: what it can do shows when it is up",
            )]
        };
        let name = one.link.name.clone();
        checks.into_iter().map(move |check| Check {
            interface: Some(name.clone()),
            ..check
        })
    };
    found.iter().flat_map(of).collect()
}

fn line(name: &str, status: CheckStatus, finding: impl Into<String>) -> Check {
    check(CheckGroup::Interface, name, status, finding)
}

fn of_driver(found: &Found) -> Check {
    let name = "driver";
    match &found.driver {
        None => line(name, CheckStatus::Unknown, "it does not tell its name"),
        Some(driver) => match &driver.bus_address {
            Some(address) => {
                let finding = format!("{}, at {address}", driver.name);
                line(name, CheckStatus::Good, finding)
            }
            None => line(name, CheckStatus::Good, driver.name.clone()),
        },
    }
}

fn of_polling(found: &Found) -> Check {
    let name = "polling";
    match &found.polling {
        Polling::Works => {
            let finding = format!("'nicpoll set {} polling' can switch it on", found.link.name);
            line(name, CheckStatus::Good, finding)
        }
        Polling::Refused { reason, remedy } => {
            let finding = format!(
                "'nicpoll set {} polling' refuses: {reason}",
                found.link.name
            );
            with_remedy(line(name, CheckStatus::Absent, finding), remedy.as_str())
        }
        Polling::Unknown(why) => line(name, CheckStatus::Unknown, why.as_str()),
    }
}

fn of_napi(found: &Found) -> Check {
    let name = "NAPI ids";
    match found.napis {
        None => line(
            name,
            CheckStatus::Unknown,
            "this kernel does not list NAPI instances",
        ),
        Some(0) if found.link.kind.as_deref() == Some("veth") => with_remedy(
            line(
                name,
                CheckStatus::Absent,
                "none: packets go through a CPU's backlog",
            ),
            format!(
                "ethtool -K {} gro on, and tso off at the other end",
                found.link.name
            ),
        ),
        Some(0) => line(
            name,
            CheckStatus::Absent,
            "none: this driver cannot be polled by a timer",
        ),
        Some(count) => line(name, CheckStatus::Good, format!("{count} to receive")),
    }
}

fn of_moderation(found: &Found) -> Check {
    let name = "moderation";
    let has = found
        .moderation
        .as_ref()
        .filter(|values| !values.is_empty());
    match has {
        Some(values) => {
            let names: Vec<&str> = values.iter().map(|(row, _)| row.name).collect();
            line(name, CheckStatus::Good, names.join(", "))
        }
        None => line(
            name,
            CheckStatus::Absent,
            "the driver has no interrupt moderation",
        ),
    }
}

fn of_offloads(found: &Found) -> Check {
    let name = "offloads";
    let Some(features) = &found.features else {
        return line(name, CheckStatus::Unknown, "its features cannot be read");
    };
    let state = |feature: &str| match features.get(feature) {
        Some(true) => "on",
        Some(false) => "off",
        None => "none",
    };
    let finding = format!(
        "GRO {}, TSO {}, UDP segmentation {}",
        state("rx-gro"),
        state("tx-tcp-segmentation"),
        state("tx-udp-segmentation")
    );
    line(name, CheckStatus::Good, finding)
}

fn of_xdp(found: &Found) -> Check {
    let name = "XDP";
    match found.xdp {
        None => line(name, CheckStatus::Unknown, "this kernel does not tell"),
        Some(XdpAbilities {
            has_zero_copy: true,
            ..
        }) => line(
            name,
            CheckStatus::Good,
            "in the driver, AF_XDP without copying",
        ),
        Some(XdpAbilities {
            is_native: true, ..
        }) => line(name, CheckStatus::Good, "in the driver, AF_XDP by copying"),
        Some(_) => line(
            name,
            CheckStatus::Absent,
            "not in the driver: generic XDP only, which is slow",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, is_up: bool) -> Found {
        Found {
            link: LinkFacts {
                ifindex: 2,
                name: String::from("em0"),
                kind: Some(String::from(kind)),
                is_up,
                is_loopback: false,
                rx_queues: None,
                tx_queues: None,
                rx_packets: None,
            },
            napis: Some(0),
            moderation: None,
            features: None,
            xdp: None,
            driver: None,
            polling: Polling::Refused {
                reason: String::from("GRO is off"),
                remedy: String::from("switch it on"),
            },
        }
    }

    #[test]
    fn a_veth_without_napi_is_told_how_to_get_one() {
        let checks = checks(&[found("veth", true)]);
        assert_eq!(checks.len(), 6);
        assert!(
            checks
                .iter()
                .all(|check| check.interface.as_deref() == Some("em0"))
        );
        let polling = "'nicpoll set em0 polling' refuses: GRO is off";
        assert_eq!(checks[1].finding, polling);
        assert_eq!(checks[1].remedy.as_deref(), Some("switch it on"));
        assert!(checks[2].remedy.as_deref().unwrap().contains("gro on"));
        assert!(checks.iter().all(|check| !check.status.is_bad()));
    }

    #[test]
    fn what_is_down_is_not_judged() {
        let checks = checks(&[found("", false)]);
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].status, CheckStatus::Unknown);
    }
}
