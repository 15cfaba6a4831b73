//! Putting back: `nicpoll restore` and `nicpoll set IF -polling`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use nicpoll_napi::{Journal, Link, Machine, Restored, Target};
use nicpoll_sys::netns::NetNamespace;

use super::args::RestoreArgs;
use super::freebsd;
use super::targets::{self, Name, Resolved};
use super::text;
use crate::failure::Failure;
use crate::stop::Stop;

/// Runs `nicpoll restore` and returns its exit code.
pub fn restore(args: &RestoreArgs) -> Result<u8, Failure> {
    if let Some(target) = freebsd::target_among(&args.interfaces)? {
        return freebsd::restore(&target, false);
    }
    super::check_privileges()?;
    let _stop = Stop::on_signals().context("catching signals")?;
    let journal = Journal::of_this_machine();
    let mut machine = Machine::new();
    if args.interfaces.is_empty() {
        let paths = journal.paths().map_err(anyhow::Error::from)?;
        let far = nicpoll_napi::freebsd::changed_targets(&journal).map_err(anyhow::Error::from)?;
        if paths.is_empty() && far.is_empty() {
            eprintln!("nicpoll: nothing is changed, so there is nothing to put back");
        }
        let own = NetNamespace::current().context("opening the current network namespace")?;
        let code = put_back(&journal, &mut machine, paths, own.inode())?;
        return Ok(code.max(freebsd::restore_all(&far)));
    }
    let netns_inode = targets::enter(&mut machine, args.netns.as_deref())?;
    let links = targets::links(&machine, netns_inode)?;
    let names = args
        .interfaces
        .iter()
        .map(|word| targets::parse_name(word))
        .collect::<Result<Vec<Name>, _>>()?;
    named(&journal, &mut machine, &names, &links, netns_inode, false)
}

/// Puts named interfaces back.
pub fn named(
    journal: &Journal,
    machine: &mut Machine,
    names: &[Name],
    links: &[Link],
    netns_inode: u64,
    dry_run: bool,
) -> Result<u8, Failure> {
    let paths = records_of(journal, names, links, netns_inode)?;
    if paths.is_empty() {
        let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
        eprintln!(
            "nicpoll: nicpoll has changed nothing on {}, so nothing is put back",
            names.join(", ")
        );
    }
    if dry_run {
        return would_put_back(journal, &paths);
    }
    put_back(journal, machine, paths, netns_inode)
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
        let Resolved { orders, .. } = targets::resolve(names, links, netns_inode)?;
        wanted.extend(orders.iter().map(|order| Journal::file_name(&order.target)));
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
) -> Result<u8, Failure> {
    let mut code = 0;
    for path in paths {
        match nicpoll_napi::restore(journal, machine, &path) {
            Ok(restored) => {
                for restored in restored {
                    report(&restored, netns_inode)?;
                }
            }
            Err(error) => {
                eprintln!("nicpoll: {:#}", anyhow::Error::from(error));
                code = 1;
            }
        }
    }
    journal.sweep().map_err(anyhow::Error::from)?;
    Ok(code)
}

fn would_put_back(journal: &Journal, paths: &[PathBuf]) -> Result<u8, Failure> {
    for (path, record) in journal.records().map_err(anyhow::Error::from)? {
        let Ok(record) = record else { continue };
        if paths.contains(&path) {
            let name = &record.interface.name;
            for change in record.all_changes() {
                let (knob, before, written) = (change.knob, change.before, change.written);
                if before != written {
                    text::print(&format!("{name}: {knob} {written} -> {before}\n"))?;
                }
            }
        }
    }
    Ok(0)
}

fn report(restored: &Restored, netns_inode: u64) -> Result<(), Failure> {
    let name = text::label(&restored.target, netns_inode);
    for drift in &restored.drift {
        eprintln!("nicpoll: {}", text::drift(&name, drift));
    }
    if restored.is_gone {
        eprintln!("nicpoll: {name} is gone, and what was set on it went along");
        return Ok(());
    }
    text::print(&format!("{name}: every value is as it was\n"))
}
