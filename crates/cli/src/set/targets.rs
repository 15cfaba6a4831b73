//! From the names on the command line to interfaces: whole ones or parts, and what lies below them.

use anyhow::Context;
use nicpoll_switch::standing::{self, Order};
use nicpoll_switch::{Abilities, Link, Machine, Part, Request, Target, is_stacked, lowest, plan};
use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace};

use super::args::parse_numbers;
use crate::failure::Failure;

/// Every interface of a namespace that can be polled.
const ALL: &str = "all";

/// A name with the part that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The interface.
    pub interface: String,
    /// Which of its NAPI instances.
    pub part: Part,
}

/// The interfaces that names stand for.
#[derive(Debug, Default)]
pub struct Resolved {
    /// To be set, each once.
    pub orders: Vec<Order>,
    /// What to know about how they were found.
    pub notes: Vec<String>,
}

/// Enters the namespace that is meant and returns its number.
pub fn enter(machine: &mut Machine, netns: Option<&str>) -> Result<u64, Failure> {
    let namespace = match netns {
        None => NetNamespace::current().context("opening the current network namespace")?,
        Some(name) => {
            let path = std::path::Path::new(NAMED_DIRECTORY).join(name);
            NetNamespace::open(&path).with_context(|| {
                format!("opening network namespace '{name}' ('ip netns' lists them)")
            })?
        }
    };
    let inode = machine
        .enter(namespace)
        .context("entering the network namespace")?;
    Ok(inode)
}

/// Reads `IF`, `IF:rx0-3` or `IF:napi257`.
pub fn parse_name(word: &str) -> Result<Name, Failure> {
    let whole = Name {
        interface: String::from(word),
        part: Part::Whole,
    };
    let Some((interface, part)) = word.rsplit_once(':') else {
        return Ok(whole);
    };
    let numbers = |text: &str| {
        parse_numbers(text).map_err(|error| Failure::Usage(format!("{word}: {error}")))
    };
    let part = if let Some(list) = part.strip_prefix("rx") {
        Part::RxQueues(numbers(list)?)
    } else if let Some(list) = part.strip_prefix("napi") {
        Part::Napis(numbers(list)?)
    } else {
        return Err(Failure::Usage(format!(
            "{word}: after the colon comes a part, such as {interface}:rx0-3 or {interface}:napi257"
        )));
    };
    Ok(Name {
        interface: String::from(interface),
        part,
    })
}

/// Every interface of a namespace.
pub fn links(machine: &Machine, netns_inode: u64) -> Result<Vec<Link>, Failure> {
    let links = machine
        .run(netns_inode, |control| control.links())
        .and_then(|links| links)
        .context("looking at the interfaces")?;
    Ok(links)
}

/// The interfaces that names stand for, VLANs, bonds and bridges replaced by what lies below.
pub fn resolve(names: &[Name], links: &[Link], netns_inode: u64) -> Result<Resolved, Failure> {
    let mut resolved = Resolved::default();
    for name in names {
        let top = links
            .iter()
            .find(|link| link.interface.name == name.interface)
            .ok_or_else(|| {
                let known: Vec<&str> = links.iter().map(|l| l.interface.name.as_str()).collect();
                Failure::Failed(anyhow::anyhow!(
                    "there is no interface '{}'; there are {}",
                    name.interface,
                    known.join(", ")
                ))
            })?;
        let mut below = lowest(links, top);
        if below.is_empty() {
            // Kept, so that it is refused with the reason.
            below.push(top);
        } else if is_stacked(&top.interface.driver) {
            let names: Vec<&str> = below.iter().map(|l| l.interface.name.as_str()).collect();
            resolved.notes.push(format!(
                "{} is a {}; its packets arrive at {}",
                name.interface,
                top.interface.driver,
                names.join(", ")
            ));
        }
        for link in below {
            let order = Order {
                target: Target {
                    netns_inode,
                    interface: link.interface.clone(),
                },
                part: name.part.clone(),
            };
            if !resolved.orders.contains(&order) {
                resolved.orders.push(order);
            }
        }
    }
    Ok(resolved)
}

/// Whether the names are the one word for every interface.
pub fn is_all(names: &[Name]) -> bool {
    matches!(names, [name] if name.interface == ALL && name.part == Part::Whole)
}

/// Every interface that is up and can do what is asked; the others are named with their reason.
pub fn resolve_all(
    machine: &mut Machine,
    links: &[Link],
    netns_inode: u64,
    request: &Request,
    abilities: &Abilities,
    fix: bool,
) -> Result<Resolved, Failure> {
    let mut resolved = Resolved::default();
    for link in links.iter().filter(|link| link.is_up) {
        let order = Order {
            target: Target {
                netns_inode,
                interface: link.interface.clone(),
            },
            part: Part::Whole,
        };
        // Below a stacked interface are others of the list.
        if is_stacked(&link.interface.driver) {
            continue;
        }
        let orders = std::slice::from_ref(&order);
        let refusal = match standing::survey(machine, orders, request, abilities) {
            Ok(facts) => facts
                .iter()
                .find_map(|facts| plan::preconditions(facts, request, fix).err()),
            Err(standing::SetError::Refused(refusal)) => Some(refusal),
            Err(error) => return Err(Failure::Failed(error.into())),
        };
        match refusal {
            Some(refusal) => resolved.notes.push(format!("left alone: {refusal}")),
            None => resolved.orders.push(order),
        }
    }
    if resolved.orders.is_empty() {
        let reasons = resolved.notes.join("\n");
        return Err(Failure::Failed(anyhow::anyhow!(
            "no interface here can do that\n{reasons}"
        )));
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_follows_the_colon() {
        let part = |word| parse_name(word).map(|name| name.part).ok();
        assert_eq!(part("eth0"), Some(Part::Whole));
        assert_eq!(part("eth0:rx0-2"), Some(Part::RxQueues(vec![0, 1, 2])));
        assert_eq!(part("eth0:napi257,9"), Some(Part::Napis(vec![257, 9])));
        for wrong in ["eth0:", "eth0:tx0", "eth0:rx", "eth0:rxa"] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }
}
