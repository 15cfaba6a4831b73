//! Putting back: `nicpoll restore` and `nicpoll set IF -polling`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use nicpoll_switch::{Journal, Link, Machine, Target};
use nicpoll_sys::netns::NetNamespace;

use super::args::RestoreArgs;
use super::freebsd;
use super::report::Report;
use super::targets::{self, Name, Resolved};
use crate::failure::Failure;
use crate::stop::Stop;

/// Runs `nicpoll restore` and returns its exit code.
pub fn restore(args: &RestoreArgs) -> Result<u8, Failure> {
    let mut report = Report::new(args.json, args.netns.as_deref(), false);
    if let Some(target) = freebsd::target_among(&args.interfaces)? {
        freebsd::restore(&target, &mut report)?;
        return report.finish();
    }
    let _stop = Stop::on_signals().context("catching signals")?;
    let journal = Journal::of_this_machine();
    if args.interfaces.is_empty() {
        everything(&journal, &mut report)?;
        return report.finish();
    }
    super::check_privileges()?;
    let mut machine = Machine::new();
    super::take_over(&journal, &mut machine)?;
    let netns_inode = targets::enter(&mut machine, args.netns.as_deref())?;
    let links = targets::links(&machine, netns_inode)?;
    let names = args
        .interfaces
        .iter()
        .map(|word| targets::parse_name(word))
        .collect::<Result<Vec<Name>, _>>()?;
    let place = (links.as_slice(), netns_inode);
    named(&journal, &mut machine, &names, place, false, &mut report)?;
    report.finish()
}

/// Puts back every interface of this machine and of others.
fn everything(journal: &Journal, report: &mut Report) -> Result<(), Failure> {
    let far = nicpoll_freebsd::changed_targets(journal).map_err(anyhow::Error::from)?;
    let mut machine = Machine::new();
    let mut paths = journal.paths().map_err(anyhow::Error::from)?;
    // What is another host's takes no privilege here.
    let privileged = super::check_privileges();
    if privileged.is_ok() {
        super::take_over(journal, &mut machine)?;
        paths = journal.paths().map_err(anyhow::Error::from)?;
    } else if far.is_empty() || !paths.is_empty() {
        privileged?;
    }
    if paths.is_empty() && far.is_empty() {
        eprintln!("nicpoll: nothing is changed, so there is nothing to put back");
    }
    let own = NetNamespace::current().context("opening the current network namespace")?;
    put_back(journal, &mut machine, paths, own.inode(), report)?;
    freebsd::restore_all(&far, report);
    Ok(())
}

/// Puts named interfaces back, or says what would be.
pub fn named(
    journal: &Journal,
    machine: &mut Machine,
    names: &[Name],
    place: (&[Link], u64),
    dry_run: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    let (links, netns_inode) = place;
    let paths = records_of(journal, names, links, netns_inode)?;
    if paths.is_empty() {
        let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
        eprintln!(
            "nicpoll: nicpoll has changed nothing on {}, so nothing is put back",
            names.join(", ")
        );
    }
    if dry_run {
        return would_put_back(journal, &paths, report);
    }
    put_back(journal, machine, paths, netns_inode, report)
}

/// The records of interfaces, with those that lie below them.
pub fn records_of(
    journal: &Journal,
    names: &[Name],
    links: &[Link],
    netns_inode: u64,
) -> Result<Vec<PathBuf>, Failure> {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    if targets::is_all(names) {
        wanted.extend(links.iter().map(|link| file_name(netns_inode, link)));
    } else {
        let gone = of_removed(journal, links, netns_inode)?;
        for name in names {
            if let Some((_, file)) = gone.iter().find(|(known, _)| *known == name.interface) {
                wanted.insert(file.clone());
                continue;
            }
            let one = std::slice::from_ref(name);
            let Resolved { orders, .. } = targets::resolve(one, links, netns_inode)?;
            wanted.extend(orders.iter().map(|order| Journal::file_name(&order.target)));
        }
    }
    let paths = journal.paths().map_err(anyhow::Error::from)?;
    Ok(paths
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            wanted.contains(&*name)
        })
        .collect())
}

/// Names and files of interfaces that were removed: their records are only to be closed, as a unit does that
/// stops because its device went away. A name that another interface has by now means that one.
fn of_removed(
    journal: &Journal,
    links: &[Link],
    netns_inode: u64,
) -> Result<Vec<(String, String)>, Failure> {
    let records = journal.records().map_err(anyhow::Error::from)?;
    let records = records.into_iter().filter_map(|(_, record)| record.ok());
    let is_removed = |target: &Target| {
        let is_there = |link: &Link| {
            link.interface.ifindex == target.interface.ifindex
                || link.interface.name == target.interface.name
        };
        target.netns_inode == netns_inode && !links.iter().any(is_there)
    };
    Ok(records
        .map(|record| record.target())
        .filter(is_removed)
        .map(|target| (target.interface.name.clone(), Journal::file_name(&target)))
        .collect())
}

fn file_name(netns_inode: u64, link: &Link) -> String {
    Journal::file_name(&Target {
        netns_inode,
        interface: link.interface.clone(),
    })
}

/// Puts back as much as can be; what cannot be is named, and makes the command fail.
fn put_back(
    journal: &Journal,
    machine: &mut Machine,
    paths: Vec<PathBuf>,
    netns_inode: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    for path in paths {
        match nicpoll_switch::restore(journal, machine, &path) {
            Ok(restored) => {
                for restored in restored {
                    report.restored(&restored, netns_inode)?;
                }
            }
            Err(error) => {
                let name = path.display().to_string();
                report.not_restored(&name, &Failure::Failed(error.into()));
            }
        }
    }
    journal.sweep().map_err(anyhow::Error::from)?;
    Ok(())
}

fn would_put_back(
    journal: &Journal,
    paths: &[PathBuf],
    report: &mut Report,
) -> Result<(), Failure> {
    for (path, record) in journal.records().map_err(anyhow::Error::from)? {
        let Ok(record) = record else { continue };
        if paths.contains(&path) {
            report.would_restore(&record.target(), &record.all_changes())?;
        }
    }
    Ok(())
}
