//! Resolves names to interfaces: whole ones or parts, the interfaces below stacked ones, their records, and the
//! interface that carries the caller's ssh connection.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use nicpoll_sys::netns::{NAMED_DIRECTORY, NetNamespace};

use super::change::Switch;
use crate::error::SwitchError;
use crate::journal::Journal;
use crate::kernel::{Interface, LinkInfo, Target, is_stacked, lowest};
use crate::plan::{Needs, preconditions};
use crate::request::{InterfacePart, KnobValues, Name, Order, did_you_mean};

/// The name that means every interface of a namespace that can be polled.
const ALL: &str = "all";
/// The word after the names on the command line.
const POLLING: &str = "polling";

/// Set by sshd: the client's address and port, then this machine's.
const SSH_VARIABLE: &str = "SSH_CONNECTION";
const ENTERING: &str = "entering the network namespace";
/// Limit of the search; a shell under sudo under ssh has fewer ancestors.
const ANCESTORS_MAX: u32 = 32;

/// Positions of the client's and of this machine's address in the variable.
const CLIENT: usize = 0;
const SERVER: usize = 2;

/// The result of resolving names.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The orders, each once.
    pub orders: Vec<Order>,
    /// Notes on how the names were resolved.
    pub notes: Vec<String>,
}

/// Whether the names are the single word `all`.
pub fn is_all(names: &[Name]) -> bool {
    matches!(names, [name] if name.interface == ALL && name.part == InterfacePart::Whole)
}

/// Opens the namespace that ip-netns(8) named `netns`, or the caller's own.
///
/// # Errors
/// When no namespace has that name.
pub fn namespace_named(netns: Option<&str>) -> Result<NetNamespace, SwitchError> {
    let Some(name) = netns else {
        return NetNamespace::current().map_err(SwitchError::of_io(ENTERING));
    };
    let path = Path::new(NAMED_DIRECTORY).join(name);
    let doing = format!("opening network namespace '{name}' ('ip netns' lists them)");
    NetNamespace::open(&path).map_err(SwitchError::of_io(doing))
}

impl Switch {
    /// Enters the namespace of that name, or the caller's own, and returns its inode number.
    pub fn enter(&mut self, netns: Option<&str>) -> Result<u64, SwitchError> {
        let namespace = namespace_named(netns)?;
        let entered = self.machine().enter(namespace);
        entered.map_err(SwitchError::of_io(ENTERING))
    }

    /// Returns every interface of a namespace that has been entered.
    pub fn links(&mut self, netns_inode: u64) -> Result<Vec<LinkInfo>, SwitchError> {
        self.machine().run(netns_inode, |control| control.links())?
    }

    /// Returns the orders for names. VLANs, bonds and bridges are replaced by the interfaces below them, and 'all' by
    /// every interface that is up and can take the values.
    pub fn resolve(
        &mut self,
        names: &[Name],
        values: &KnobValues,
        netns_inode: u64,
        needs: Needs,
    ) -> Result<Resolved, SwitchError> {
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
        links: &[LinkInfo],
        values: &KnobValues,
        netns_inode: u64,
        needs: Needs,
    ) -> Result<Resolved, SwitchError> {
        let mut resolved = Resolved::default();
        // A stacked interface is left out: the interfaces below it are in the list themselves.
        let is_meant = |link: &&LinkInfo| link.is_up && !is_stacked(&link.interface.driver);
        for link in links.iter().filter(is_meant) {
            let order = order(link, netns_inode, InterfacePart::Whole, values);
            let refusal = match self.survey(std::slice::from_ref(&order)) {
                Ok(facts) => preconditions(&facts, needs).err(),
                Err(SwitchError::Refused(refusal)) => Some(refusal),
                Err(error) => return Err(error),
            };
            match refusal {
                Some(refusal) => resolved.notes.push(format!("left alone: {refusal}")),
                None => resolved.orders.push(order),
            }
        }
        if resolved.orders.is_empty() {
            let notes = resolved.notes.join("\n");
            return Err(SwitchError::Failed(format!(
                "no interface here can do that\n{notes}"
            )));
        }
        Ok(resolved)
    }

    /// Returns the records of interfaces and of those below them.
    pub fn records_of(
        &mut self,
        names: &[Name],
        netns_inode: u64,
    ) -> Result<Vec<PathBuf>, SwitchError> {
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

    /// Names and files of interfaces that were changed in this namespace and have left it since, moved or removed. If
    /// another interface has such a name now, the name means that one.
    fn of_absent(
        &self,
        links: &[LinkInfo],
        netns_inode: u64,
    ) -> Result<Vec<(String, String)>, SwitchError> {
        let records = self.journal().records()?.into_iter();
        let is_absent = |target: &Target| {
            let is_there = |link: &LinkInfo| {
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

    /// Whether one of the interfaces carries the caller's ssh connection, directly or below a bridge, bond or VLAN.
    pub fn carries_own_ssh(
        &mut self,
        netns_inode: u64,
        orders: &[Order],
    ) -> Result<bool, SwitchError> {
        let Some(address) = own_address() else {
            return Ok(false);
        };
        let all = self
            .machine()
            .run(netns_inode, |control| control.addresses())??;
        let has_address = |link: &&LinkInfo| {
            let mut own = all.iter();
            own.any(|(ifindex, own, _)| *ifindex == link.interface.ifindex && *own == address)
        };
        let links = self.links(netns_inode)?;
        let carriers: Vec<u32> = links
            .iter()
            .filter(has_address)
            .flat_map(|link| lowest(&links, link))
            .map(|link| link.interface.ifindex)
            .collect();
        Ok(orders
            .iter()
            .any(|order| carriers.contains(&order.target.interface.ifindex)))
    }
}

/// Finds the interfaces that a name stands for. The note says so if they are below a stacked one.
fn below<'a>(
    name: &Name,
    links: &'a [LinkInfo],
) -> Result<(Vec<&'a LinkInfo>, Option<String>), SwitchError> {
    let mut all = links.iter();
    let top = all
        .find(|link| link.interface.name == name.interface)
        .ok_or_else(|| {
            let known = links.iter().map(|link| link.interface.name.as_str());
            let known: Vec<&str> = known.collect();
            SwitchError::Failed(format!(
                "there is no interface '{}'; there are {}{}",
                name.interface,
                known.join(", "),
                did_you_mean(&name.interface, known.iter().copied().chain([POLLING]))
            ))
        })?;
    let below = lowest(links, top);
    if below.is_empty() {
        // The survey refuses it later, with the reason.
        return Ok((vec![top], None));
    }
    let Interface { name, driver, .. } = &top.interface;
    let note = is_stacked(driver).then(|| {
        let names: Vec<&str> = below
            .iter()
            .map(|link| link.interface.name.as_str())
            .collect();
        format!(
            "{name} is a {driver}; its packets arrive at {}",
            names.join(", ")
        )
    });
    Ok((below, note))
}

fn target(link: &LinkInfo, netns_inode: u64) -> Target {
    Target::new(netns_inode, link.interface.clone())
}

fn order(link: &LinkInfo, netns_inode: u64, part: InterfacePart, values: &KnobValues) -> Order {
    Order {
        target: target(link, netns_inode),
        part,
        values: values.clone(),
    }
}

/// This machine's address in the caller's ssh connection.
fn own_address() -> Option<IpAddr> {
    address(&connection()?, SERVER)
}

/// Returns the client's address in the caller's ssh connection.
pub fn client_address() -> Option<IpAddr> {
    address(&connection()?, CLIENT)
}

fn connection() -> Option<String> {
    if let Ok(connection) = std::env::var(SSH_VARIABLE) {
        return Some(connection);
    }
    // sudo removes the variable; an ancestor shell still has it.
    let mut pid = rustix::process::getppid()?.as_raw_nonzero().get() as u32;
    for _ in 0..ANCESTORS_MAX {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        if let Some(connection) = variable(&environment) {
            return Some(connection);
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        pid = parent(&stat).filter(|&parent| parent > 1)?;
    }
    None
}

fn variable(environment: &[u8]) -> Option<String> {
    environment
        .split(|&byte| byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok())
        .find_map(|entry| entry.strip_prefix(SSH_VARIABLE)?.strip_prefix('='))
        .map(String::from)
}

fn address(connection: &str, word: usize) -> Option<IpAddr> {
    let address = connection.split_whitespace().nth(word)?;
    // A link-local address has its interface after a percent sign.
    let address = address.split('%').next()?;
    let address: IpAddr = address.parse().ok()?;
    Some(address.to_canonical())
}

/// Parses field 4 of `/proc/PID/stat`. The command's name in field 2 may hold any bytes.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_word_is_this_machine() {
        let of = |text, word| address(text, word).map(|address| address.to_string());
        let connection = "203.0.113.9 50000 198.51.100.7 22";
        assert_eq!(of(connection, SERVER).as_deref(), Some("198.51.100.7"));
        assert_eq!(of(connection, CLIENT).as_deref(), Some("203.0.113.9"));
        let address = |text| of(text, SERVER);
        assert_eq!(
            address("fe80::1%eth0 50000 fe80::2%eth0 22").as_deref(),
            Some("fe80::2")
        );
        assert_eq!(
            address("::ffff:203.0.113.9 1 ::ffff:198.51.100.7 22").as_deref(),
            Some("198.51.100.7")
        );
        for wrong in ["", "203.0.113.9 50000", "a b c d"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_hostile_command_name_does_not_shift_the_parent() {
        assert_eq!(parent("7 (a) S 1 2) R 41 1 1 0"), Some(41));
        assert_eq!(parent("7 (a"), None);
    }

    #[test]
    fn the_variable_is_found_by_its_whole_name() {
        let environment = b"A=1\0XSSH_CONNECTION=no\0SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22\0";
        assert_eq!(
            variable(environment).as_deref(),
            Some("1.2.3.4 5 6.7.8.9 22")
        );
        assert_eq!(variable(b"SSH_CONNECTIONS=1\0"), None);
    }
}
