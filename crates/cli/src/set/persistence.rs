//! `--persist` and `--no-persist`.

use anyhow::Context;
use nicpoll_napi::Part;
use nicpoll_napi::persist::{self, FileChange, Persistence};

use super::args::SetArgs;
use super::targets::{self, Name};
use super::text;
use crate::failure::Failure;

/// The files that make the command's settings come back at boot; none when that is not asked for.
pub fn plan(args: &SetArgs, names: &[Name], is_polling: bool) -> Result<Vec<FileChange>, Failure> {
    if !args.persist {
        return Ok(Vec::new());
    }
    check_names(names)?;
    let program = std::env::current_exe().context("finding this program")?;
    let options = args.persistent_options(is_polling);
    let files = Persistence::at(&args.root);
    let mut changes: Vec<FileChange> = Vec::new();
    for name in names {
        let own = files
            .install(&program, &name.interface, &options)
            .map_err(anyhow::Error::from)?;
        // The template serves all of them.
        for change in own {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    Ok(changes)
}

/// Shows the files and writes them.
pub fn carry_out(changes: &[FileChange]) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    text::print(&text::file_changes(changes))?;
    persist::carry_out(changes).map_err(anyhow::Error::from)?;
    eprintln!(
        "nicpoll: systemd learns of it at the next boot, or now with: systemctl daemon-reload"
    );
    Ok(())
}

/// Takes away what `--persist` wrote.
pub fn remove(args: &SetArgs, names: &[Name]) -> Result<u8, Failure> {
    check_names(names)?;
    let files = Persistence::at(&args.root);
    let mut found = false;
    for name in names {
        let changes = files.remove(&name.interface).map_err(anyhow::Error::from)?;
        found |= !changes.is_empty();
        if args.dry_run {
            text::print(&text::file_changes(&changes))?;
        } else {
            carry_out(&changes)?;
        }
    }
    if !found {
        eprintln!("nicpoll: nothing of nicpoll's runs at boot for that");
    }
    Ok(0)
}

fn check_names(names: &[Name]) -> Result<(), Failure> {
    let is_whole = |name: &Name| name.part == Part::Whole;
    if names.iter().all(is_whole) && !targets::is_all(names) {
        return Ok(());
    }
    Err(Failure::Usage(String::from(
        "what comes back at boot is set for whole interfaces, each by its name: ids of NAPI instances and \
         numbers of queues may be others then",
    )))
}
