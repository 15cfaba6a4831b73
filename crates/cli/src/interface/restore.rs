//! `nicpoll restore`, `nicpoll set IF -polling`, and the guard process that undoes changes when their client is gone.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nicpoll_switch::freebsd::FreebsdTarget;
use nicpoll_switch::persist::{HeldFiles, orphans_here, restore_files};
use nicpoll_switch::{
    Journal, Name, Switch, SwitchError, require_privileges, restore as restore_record, take_over,
    watch_over, would_restore, writes_back,
};
use nicpoll_sys::netns::NetNamespace;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use super::freebsd;
use super::knobs::parse_names;
use super::report::Report;
use crate::failure::Failure;
use crate::options::There;

/// Options of `nicpoll restore`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll restore\n  nicpoll restore eth0\n  nicpoll restore em0 --netns lab\n  \
        nicpoll restore root@bsd:em0\n\n\
        Exit codes: 0 done, 1 something could not be restored, 5 a privilege or /proc is missing."
)]
pub struct RestoreArgs {
    /// Interfaces [default: all that were changed]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Network namespace, by its name for 'ip netns'
    #[arg(long, value_name = "NAME", requires = "interfaces")]
    pub netns: Option<String>,
    /// Print one JSON object instead of text (docs/switch.md)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub there: There,
}

/// Runs `nicpoll restore` and returns its exit code.
pub fn restore(args: &RestoreArgs) -> Result<u8, Failure> {
    let mut report = Report::new(args.json, args.netns.as_deref(), false);
    if let Some(target) = FreebsdTarget::among(&args.interfaces)? {
        freebsd::restore(&target, &mut report)?;
        return report.finish();
    }
    let _stop = Stop::on_signals().context("catching signals")?;
    let mut switch = Switch::new(Journal::of_this_machine());
    if args.interfaces.is_empty() {
        everything(&mut switch, &mut report)?;
        return report.finish();
    }
    require_privileges()?;
    take_over(&mut switch)?;
    let netns_inode = switch.enter(args.netns.as_deref())?;
    let names = parse_names(&args.interfaces)?;
    restore_named(&mut switch, &names, netns_inode, false, &mut report)?;
    report.finish()
}

/// Restores every interface, of this machine and of others.
fn everything(switch: &mut Switch, report: &mut Report) -> Result<(), Failure> {
    let far = nicpoll_switch::freebsd::changed_targets(switch.journal())?;
    let mut paths = switch.journal().paths()?;
    let cleared = clear_boot_files(switch.journal(), report)?;
    // Restoring another host takes no privilege here.
    let privileged = require_privileges();
    if privileged.is_ok() {
        take_over(switch)?;
        paths = switch.journal().paths()?;
    } else if far.is_empty() || !paths.is_empty() {
        privileged?;
    }
    if paths.is_empty() && far.is_empty() && !cleared {
        tell!("nicpoll: nothing is changed, so there is nothing to put back");
    }
    let own = NetNamespace::current().context("opening the current network namespace")?;
    restore_paths(switch, paths, own.inode(), report)?;
    freebsd::restore_all(&far, report);
    Ok(())
}

/// Removes the files of a `set --persist` that was killed half way. Returns whether there were any.
fn clear_boot_files(journal: &Journal, report: &mut Report) -> Result<bool, Failure> {
    let restored = match restore_files(journal) {
        // Another process is writing them and will finish.
        Err(SwitchError::Busy(_)) => return Ok(false),
        restored => restored?,
    };
    for path in &restored {
        tell!(
            "nicpoll: {} is as it was before a 'set --persist' that was killed",
            path.display()
        );
    }
    let orphans = orphans_here(journal);
    HeldFiles::write(journal, &orphans, false)?.keep()?;
    report.files(&orphans)?;
    Ok(!(restored.is_empty() && orphans.is_empty()))
}

/// Restores named interfaces, or shows what it would do.
pub fn restore_named(
    switch: &mut Switch,
    names: &[Name],
    netns_inode: u64,
    dry_run: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    let paths = switch.records_of(names, netns_inode)?;
    if paths.is_empty() {
        let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
        tell!(
            "nicpoll: nicpoll has changed nothing on {}, so nothing is put back",
            names.join(", ")
        );
    }
    if !dry_run {
        return restore_paths(switch, paths, netns_inode, report);
    }
    for path in paths {
        for (target, changes) in would_restore(switch, &path)? {
            report.values(writes_back(&target, &changes), netns_inode)?;
        }
    }
    Ok(())
}

fn restore_paths(
    switch: &mut Switch,
    paths: Vec<PathBuf>,
    netns_inode: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    for path in paths {
        match restore_record(switch, &path) {
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
    switch.journal().sweep()?;
    Ok(())
}

/// Options of the guard.
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// When to undo the changes, in ns of CLOCK_BOOTTIME [default: when the client is gone]
    #[arg(long)]
    pub until: Option<u64>,
}

/// Runs the guard and returns its exit code.
pub fn guard(args: &GuardArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    watch_over(&Journal::of_this_machine(), args.until, stop.asked())?;
    Ok(0)
}
