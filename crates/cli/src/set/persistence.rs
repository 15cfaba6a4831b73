//! `--persist` and `--no-persist`.

use nicpoll_switch::persist::{FileChange, Persistence, carry_out as write_files};
use nicpoll_switch::{Deferral, Name, Part, Values, is_all};
use nicpoll_sys::tell;

use super::args::SetArgs;
use super::report::Report;
use crate::failure::Failure;

/// The files that make the command's settings come back at boot; none when that is not asked for.
pub fn plan(
    args: &SetArgs,
    names: &[Name],
    is_polling: bool,
    values: &Values,
) -> Result<Vec<FileChange>, Failure> {
    if !args.persist {
        return Ok(Vec::new());
    }
    check_names(names)?;
    let options = args.persistent_options(is_polling);
    let files = Persistence::at(&args.root);
    let program = files.program(args.program.as_deref())?;
    let deferral = Deferral::of(values);
    let mut changes: Vec<FileChange> = Vec::new();
    for name in names {
        let own = files.install(&program, &name.interface, &options, deferral)?;
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
pub fn carry_out(changes: &[FileChange], report: &mut Report) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    report.files(changes)?;
    write_files(changes)?;
    tell!(
        "nicpoll: systemd and udev read it at the next boot, or now with: systemctl daemon-reload; udevadm control \
         --reload"
    );
    Ok(())
}

/// Makes the files be as they were, because the settings could not be made.
pub fn take_back(changes: &[FileChange]) {
    let back: Vec<FileChange> = changes.iter().rev().map(FileChange::reversed).collect();
    if let Err(error) = write_files(&back) {
        tell!("nicpoll: {:#}", anyhow::Error::from(error));
    }
}

/// Takes away what `--persist` wrote.
pub fn remove(args: &SetArgs, names: &[Name], report: &mut Report) -> Result<(), Failure> {
    check_names(names)?;
    let files = Persistence::at(&args.root);
    let mut found = false;
    for name in names {
        let changes = files.remove(&name.interface)?;
        found |= !changes.is_empty();
        if args.dry_run {
            report.files(&changes)?;
        } else {
            carry_out(&changes, report)?;
        }
    }
    if !found {
        tell!("nicpoll: nothing of nicpoll's runs at boot for that");
    }
    Ok(())
}

fn check_names(names: &[Name]) -> Result<(), Failure> {
    let is_whole = |name: &Name| name.part == Part::Whole;
    if names.iter().all(is_whole) && !is_all(names) {
        return Ok(());
    }
    Err(Failure::Usage(String::from(
        "--persist takes whole interfaces, each by its name: NAPI ids and queue numbers may differ after a boot",
    )))
}
