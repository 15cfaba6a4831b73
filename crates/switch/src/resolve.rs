//! From names to interfaces: whole ones or parts, what lies below them, and what is recorded of them.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace};
use thiserror::Error;

use crate::apply::{Order, SetError, Switch};
use crate::control::ControlError;
use crate::journal::{Journal, JournalError};
use crate::kernel::Target;
use crate::links::PlacedInterface;
use crate::lower::{is_stacked, lowest};
use crate::plan::{self, Needs, Refusal};
use crate::request::{Name, Part, Values};
use crate::session;
use crate::similar::did_you_mean;

/// Every interface of a namespace that can be polled.
const ALL: &str = "all";
/// The word that follows the names.
const POLLING: &str = "polling";

/// The interfaces that names stand for.
#[derive(Debug, Default)]
pub struct Resolved {
    /// To be set, each once.
    pub orders: Vec<Order>,
    /// What to know about how they were found.
    pub notes: Vec<Note>,
}

/// Something to know about how an interface was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Others are set in its place.
    Stacked {
        /// The interface.
        name: String,
        /// What it is.
        driver: String,
        /// Those below it.
        below: Vec<String>,
    },
    /// It cannot do what is asked.
    LeftAlone(Refusal),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Stacked {
                name,
                driver,
                below,
            } => write!(
                f,
                "{name} is a {driver}; its packets arrive at {}",
                below.join(", ")
            ),
            Note::LeftAlone(refusal) => write!(f, "left alone: {refusal}"),
        }
    }
}

/// Why names stand for nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No such namespace.
    #[error("opening network namespace '{name}' ('ip netns' lists them)")]
    Namespace {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The caller's own namespace cannot be entered.
    #[error("entering the network namespace")]
    Enter(#[source] io::Error),
    /// No such interface.
    #[error("there is no interface '{name}'; there are {}{}", .known.join(", "), hint(.name, .known))]
    NoInterface {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// None of all interfaces.
    #[error("no interface here can do that\n{reasons}")]
    None {
        /// Why not, a line for each.
        reasons: String,
    },
    /// The kernel does not say.
    #[error("{doing}")]
    Control {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: ControlError,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An interface cannot be read.
    #[error(transparent)]
    Set(#[from] SetError),
}

fn reading(doing: &'static str) -> impl FnOnce(ControlError) -> ResolveError {
    move |source| ResolveError::Control { doing, source }
}

/// What a name that is none was meant to be.
fn hint(name: &str, known: &[String]) -> String {
    let words = known.iter().map(String::as_str).chain([POLLING]);
    did_you_mean(name, words)
}

/// Whether the names are the one word for every interface.
pub fn is_all(names: &[Name]) -> bool {
    matches!(names, [name] if name.interface == ALL && name.part == Part::Whole)
}

/// The namespace of a name that ip-netns(8) gave it, or the caller's own.
///
/// # Errors
/// When there is none of that name.
pub fn namespace_named(netns: Option<&str>) -> Result<NetNamespace, ResolveError> {
    let Some(name) = netns else {
        return NetNamespace::current().map_err(ResolveError::Enter);
    };
    let path = Path::new(NAMED_DIRECTORY).join(name);
    NetNamespace::open(&path).map_err(|source| ResolveError::Namespace {
        name: String::from(name),
        source,
    })
}

impl Switch {
    /// Enters the namespace of a name, or the caller's own, and returns its number.
    pub fn enter(&mut self, netns: Option<&str>) -> Result<u64, ResolveError> {
        let namespace = namespace_named(netns)?;
        self.machine().enter(namespace).map_err(ResolveError::Enter)
    }

    /// Every interface of a namespace that has been entered.
    pub fn links(&mut self, netns_inode: u64) -> Result<Vec<PlacedInterface>, ResolveError> {
        self.machine()
            .run(netns_inode, |control| control.links())
            .and_then(|links| links)
            .map_err(reading("looking at the interfaces"))
    }

    /// What is to be set for names: VLANs, bonds and bridges are replaced by what lies below, and 'all' by every
    /// interface that is up and can do what is asked.
    pub fn resolve(
        &mut self,
        names: &[Name],
        values: &Values,
        netns_inode: u64,
        needs: Needs,
    ) -> Result<Resolved, ResolveError> {
        let links = self.links(netns_inode)?;
        if is_all(names) {
            return self.resolve_all(&links, values, netns_inode, needs);
        }
        let mut resolved = Resolved::default();
        for name in names {
            let (below, note) = below(name, &links)?;
            resolved.notes.extend(note);
            for link in below {
                let order = order(link, netns_inode, name.part.clone(), values);
                if !resolved.orders.contains(&order) {
                    resolved.orders.push(order);
                }
            }
        }
        Ok(resolved)
    }

    fn resolve_all(
        &mut self,
        links: &[PlacedInterface],
        values: &Values,
        netns_inode: u64,
        needs: Needs,
    ) -> Result<Resolved, ResolveError> {
        let mut resolved = Resolved::default();
        // Below a stacked interface are others of the list.
        let is_meant = |link: &&PlacedInterface| link.is_up && !is_stacked(&link.interface.driver);
        for link in links.iter().filter(is_meant) {
            let order = order(link, netns_inode, Part::Whole, values);
            let refusal = match self.survey(std::slice::from_ref(&order)) {
                Ok(facts) => facts.iter().find_map(|facts| {
                    let planned = plan::features(facts, values);
                    plan::preconditions(facts, values, &planned, needs).err()
                }),
                Err(SetError::Refused(refusal)) => Some(refusal),
                Err(error) => return Err(error.into()),
            };
            match refusal {
                Some(refusal) => resolved.notes.push(Note::LeftAlone(refusal)),
                None => resolved.orders.push(order),
            }
        }
        if resolved.orders.is_empty() {
            let reasons: Vec<String> = resolved.notes.iter().map(Note::to_string).collect();
            return Err(ResolveError::None {
                reasons: reasons.join("\n"),
            });
        }
        Ok(resolved)
    }

    /// The records of interfaces, with those that lie below them.
    pub fn records_of(
        &mut self,
        names: &[Name],
        netns_inode: u64,
    ) -> Result<Vec<PathBuf>, ResolveError> {
        let links = self.links(netns_inode)?;
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        if is_all(names) {
            let all = links.iter().map(|link| target(link, netns_inode));
            wanted.extend(all.map(|target| Journal::file_name(&target)));
        } else {
            let absent = self.of_absent(&links, netns_inode)?;
            for name in names {
                if let Some((_, file)) = absent.iter().find(|(known, _)| *known == name.interface) {
                    wanted.insert(file.clone());
                    continue;
                }
                let (below, _) = below(name, &links)?;
                let targets = below.iter().map(|link| target(link, netns_inode));
                wanted.extend(targets.map(|target| Journal::file_name(&target)));
            }
        }
        let is_wanted = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            wanted.contains(&*name)
        };
        Ok(self
            .journal()
            .paths()?
            .into_iter()
            .filter(is_wanted)
            .collect())
    }

    /// Names and files of interfaces that were changed in this namespace and are no longer in it: they were moved to
    /// another one or removed. A name that another interface has by now means that one.
    fn of_absent(
        &self,
        links: &[PlacedInterface],
        netns_inode: u64,
    ) -> Result<Vec<(String, String)>, JournalError> {
        let records = self.journal().records()?.into_iter();
        let is_absent = |target: &Target| {
            let is_there = |link: &PlacedInterface| {
                target.interface.is_still(&link.interface)
                    || link.interface.name == target.interface.name
            };
            target.netns_inode == netns_inode && !links.iter().any(is_there)
        };
        Ok(records
            .filter_map(|(_, record)| record.ok())
            .map(|record| record.target())
            .filter(is_absent)
            .map(|target| (target.interface.name.clone(), Journal::file_name(&target)))
            .collect())
    }

    /// Whether one of the interfaces carries the ssh connection that the caller came by, be it through a bridge, bond
    /// or VLAN.
    pub fn carries_own_ssh(
        &mut self,
        netns_inode: u64,
        orders: &[Order],
    ) -> Result<bool, ResolveError> {
        let Some(address) = session::own_address() else {
            return Ok(false);
        };
        let holders = self
            .machine()
            .run(netns_inode, move |control| control.interfaces_with(address))
            .and_then(|holders| holders)
            .map_err(reading("asking which interface carries the ssh connection"))?;
        let links = self.links(netns_inode)?;
        let carriers: Vec<u32> = links
            .iter()
            .filter(|link| holders.contains(&link.interface.ifindex))
            .flat_map(|link| lowest(&links, link))
            .map(|link| link.interface.ifindex)
            .collect();
        Ok(orders
            .iter()
            .any(|order| carriers.contains(&order.target.interface.ifindex)))
    }
}

/// The interfaces that a name stands for, and what is to be said about it.
fn below<'a>(
    name: &Name,
    links: &'a [PlacedInterface],
) -> Result<(Vec<&'a PlacedInterface>, Option<Note>), ResolveError> {
    let mut all = links.iter();
    let top = all
        .find(|link| link.interface.name == name.interface)
        .ok_or_else(|| {
            let known = links.iter().map(|link| link.interface.name.clone());
            ResolveError::NoInterface {
                name: name.interface.clone(),
                known: known.collect(),
            }
        })?;
    let below = lowest(links, top);
    if below.is_empty() {
        // Kept, so that it is refused with the reason.
        return Ok((vec![top], None));
    }
    let note = is_stacked(&top.interface.driver).then(|| Note::Stacked {
        name: name.interface.clone(),
        driver: top.interface.driver.clone(),
        below: below
            .iter()
            .map(|link| link.interface.name.clone())
            .collect(),
    });
    Ok((below, note))
}

fn target(link: &PlacedInterface, netns_inode: u64) -> Target {
    Target {
        netns_inode,
        interface: link.interface.clone(),
    }
}

fn order(link: &PlacedInterface, netns_inode: u64, part: Part, values: &Values) -> Order {
    Order {
        target: target(link, netns_inode),
        part,
        values: values.clone(),
    }
}
