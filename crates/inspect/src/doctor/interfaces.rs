//! Checks of each interface's driver.

use std::collections::BTreeMap;

use nicpoll_model::{Check, CheckGroup};
use nicpoll_switch::knob::KnobRow;
use nicpoll_switch::{
    Control, Interface, InterfacePart, Journal, KnobValues, LinkInfo, Needs, Order,
    POLLING_PERIOD_NS, Switch, SwitchError, Target, XdpAbilities, preview,
};
use nicpoll_sys::ethtool::{self, Driver};

use super::check::{Outcome, absent, good, group, unknown};
use crate::error::InspectError;

/// An interface with its readable facts.
pub struct ExaminedInterface {
    pub link: LinkInfo,
    /// Number of receive NAPI instances with an id.
    pub napis: Option<usize>,
    pub moderation: Option<Vec<(&'static KnobRow, u32)>>,
    /// Offload features in force.
    pub features: Option<BTreeMap<String, bool>>,
    pub xdp: Option<XdpAbilities>,
    pub driver: Option<Driver>,
    pub polling: PollingAbility,
}

/// Whether 'nicpoll set IF polling' would work.
pub enum PollingAbility {
    /// It would work.
    Works,
    /// It would not work.
    Refused { reason: String, remedy: String },
    /// This process may not ask, or the state cannot be read.
    Unknown(String),
}

/// Reads every interface of the namespace except the loopback.
pub fn look() -> Result<Vec<ExaminedInterface>, InspectError> {
    let mut control = Control::new();
    let mut switch = Switch::new(Journal::of_this_machine());
    let entered = switch.enter(None);
    let links = control.links()?;
    let links = links.into_iter().filter(|link| !link.is_loopback);
    let read = |link: LinkInfo| {
        let Interface { ifindex, name, .. } = &link.interface;
        let features = control.features(*ifindex).ok();
        ExaminedInterface {
            napis: control.napis(*ifindex).ok().map(|napis| napis.len()),
            moderation: control.moderation(*ifindex).ok(),
            features: features.map(|features| features.active),
            xdp: control.xdp_abilities(*ifindex).ok(),
            driver: ethtool::driver(name).ok(),
            polling: match &entered {
                Ok(netns_inode) => polling(
                    &mut switch,
                    Target::new(*netns_inode, link.interface.clone()),
                ),
                Err(error) => PollingAbility::Unknown(format!("asking takes root: {error}")),
            },
            link,
        }
    };
    Ok(links.map(read).collect())
}

/// Checks without changing anything.
fn polling(switch: &mut Switch, target: Target) -> PollingAbility {
    let orders = [Order {
        target,
        part: InterfacePart::Whole,
        values: KnobValues::polling(POLLING_PERIOD_NS),
    }];
    let asked = switch
        .survey(&orders)
        .and_then(|facts| preview(&facts, Needs::Refuse));
    match asked {
        Ok(_) => PollingAbility::Works,
        Err(SwitchError::Refused(refusal)) => PollingAbility::Refused {
            reason: refusal.reason,
            remedy: refusal.remedy,
        },
        Err(error) => PollingAbility::Unknown(error.to_string()),
    }
}

type InterfaceLook = fn(&ExaminedInterface) -> Outcome;

/// Checks of an interface that is up.
const CHECKS: [(&str, InterfaceLook); 6] = [
    ("driver", of_driver),
    ("polling", of_polling),
    ("NAPI ids", of_napi),
    ("moderation", of_moderation),
    ("offloads", of_offloads),
    ("XDP", of_xdp),
];

pub fn checks(found: &[ExaminedInterface]) -> Vec<Check> {
    let of = |one: &ExaminedInterface| {
        let outcomes = match one.link.is_up {
            true => CHECKS.map(|(name, look)| (name, look(one))).into(),
            false => vec![("link", unknown("down: what it can do shows when it is up"))],
        };
        group(
            CheckGroup::Interface,
            Some(&one.link.interface.name),
            outcomes,
        )
    };
    found.iter().flat_map(of).collect()
}

fn of_driver(found: &ExaminedInterface) -> Outcome {
    let Some(driver) = &found.driver else {
        return unknown("the driver does not report its name");
    };
    match &driver.bus_address {
        Some(address) => good(format!("{}, at {address}", driver.name)),
        None => good(driver.name.clone()),
    }
}

fn of_polling(found: &ExaminedInterface) -> Outcome {
    let command = format!("'nicpoll set {} polling'", found.link.interface.name);
    match &found.polling {
        PollingAbility::Works => good(format!("{command} can switch it on")),
        PollingAbility::Refused { reason, remedy } => {
            absent(format!("{command} refuses: {reason}")).with(remedy)
        }
        PollingAbility::Unknown(why) => unknown(why.as_str()),
    }
}

fn of_napi(found: &ExaminedInterface) -> Outcome {
    let Interface { name, driver, .. } = &found.link.interface;
    match found.napis {
        None => unknown("this kernel does not list NAPI instances"),
        Some(0) if driver == "veth" => absent("none: packets go through a CPU's backlog").with(
            format!("ethtool -K {name} gro on, and tso off at the other end"),
        ),
        Some(0) => absent("none: this driver cannot be polled by a timer"),
        Some(count) => good(format!("{count} to receive")),
    }
}

fn of_moderation(found: &ExaminedInterface) -> Outcome {
    let values = found.moderation.iter().flatten();
    let names: Vec<&str> = values.map(|(row, _)| row.name).collect();
    match names.is_empty() {
        true => absent("the driver has no interrupt moderation"),
        false => good(names.join(", ")),
    }
}

fn of_offloads(found: &ExaminedInterface) -> Outcome {
    let Some(features) = &found.features else {
        return unknown("its features cannot be read");
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
    good(finding)
}

fn of_xdp(found: &ExaminedInterface) -> Outcome {
    match found.xdp.map(|xdp| (xdp.has_zero_copy, xdp.is_native)) {
        None => unknown("this kernel does not report it"),
        Some((true, _)) => good("in the driver, AF_XDP without copying"),
        Some((false, true)) => good("in the driver, AF_XDP by copying"),
        Some((false, false)) => absent("not in the driver: generic XDP only, which is slow"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpoll_model::CheckStatus;

    fn found(kind: &str, is_up: bool) -> ExaminedInterface {
        ExaminedInterface {
            link: LinkInfo {
                interface: Interface {
                    name: String::from("em0"),
                    driver: String::from(kind),
                    ..Interface::default()
                },
                is_up,
                ..LinkInfo::default()
            },
            napis: Some(0),
            moderation: None,
            features: None,
            xdp: None,
            driver: None,
            polling: PollingAbility::Refused {
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
