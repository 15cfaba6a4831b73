//! The requirements of a lab: privileges, two CPUs and a folder for the journal.
//! Also names this process, by which a store tells later whether a study's runner still lives.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;
use std::{fs, io};

use nicpoll_switch::{Journal, Owner, Recovered, boot_id};
use nicpoll_sys::{privilege, schedule};
use serde::{Deserialize, Serialize};

use crate::error::{Doing, LabError};

/// Draws a seed that is short enough to type, from the standard library's randomly seeded hasher.
pub fn draw_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(now.unwrap_or_default().as_nanos());
    hasher.finish() % 1_000_000
}

/// Refuses to go on without the privileges and the kernel that a lab needs, for `what`, which `command` runs.
///
/// # Errors
/// [`LabError::Missing`], with the remedy.
pub fn require_lab(what: &str, command: &str) -> Result<(), LabError> {
    privilege::require_proc().map_err(|error| LabError::Missing(error.to_string()))?;
    let missing = privilege::missing_for_lab().doing(|| "asking for privileges")?;
    if missing.is_empty() {
        two_cpus()?;
        return Ok(());
    }
    Err(LabError::Missing(format!(
        "{what} makes network namespaces and counts the kernel's polls; missing here: {}.\n\
         Run it as root: sudo {command} (from a source tree: cargo build --release, then \
         sudo target/release/{command})",
        missing.join(", ")
    )))
}

/// Refuses to go on if the records of changes cannot be written.
///
/// # Errors
/// [`LabError::Missing`], with another folder that may do.
pub fn require_state(journal: &Journal) -> Result<(), LabError> {
    let folder = journal.directory();
    let had_folder = folder.exists();
    let probe = folder.join(format!("writable-{}", std::process::id()));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&probe, ""));
    let _ = fs::remove_file(&probe);
    if !had_folder {
        let _ = fs::remove_dir(folder);
    }
    written.map_err(|error| {
        LabError::Missing(format!(
            "changes are first recorded in {}, which cannot be written: {error}; name \
             another folder: NICPOLL_STATE_DIR=/run/nicpoll",
            folder.display()
        ))
    })
}

pub fn two_cpus() -> Result<[u32; 2], LabError> {
    match schedule::allowed_cpus()?[..] {
        [sender, receiver, ..] => Ok([sender, receiver]),
        _ => Err(LabError::Missing(String::from(
            "two CPUs are needed, one for each end of the link; this process may use one",
        ))),
    }
}

/// Restores what earlier runs left. A record that cannot be restored stops the run: its interface may not have the
/// settings that a study assumes.
pub fn recover(journal: &Journal) -> Result<(), LabError> {
    for (path, outcome) in nicpoll_switch::recover(journal)? {
        if let Recovered::Failed(error) = outcome {
            return Err(error).doing(|| format!("restoring what {} records", path.display()));
        }
    }
    Ok(())
}

/// A process of one boot, as a store names the runner of a study.
#[derive(Serialize, Deserialize)]
struct Runner {
    boot_id: String,
    process: Owner,
}

/// Returns this process's name as the runner of a study.
///
/// # Errors
/// When `/proc` does not tell.
pub fn this_runner() -> io::Result<String> {
    let runner = Runner {
        boot_id: boot_id()?,
        process: Owner::this_process()?,
    };
    Ok(serde_json::to_string(&runner)?)
}

/// Returns whether a study's runner still runs; true if that cannot be determined.
pub fn still_runs(runner: &str) -> bool {
    let Ok(Runner {
        boot_id: boot,
        process,
    }) = serde_json::from_str(runner)
    else {
        return false;
    };
    boot_id().is_ok_and(|now| now == boot) && process.is_alive().unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_told_from_its_successor_and_from_another_boots() {
        let runner = this_runner().unwrap();
        assert!(still_runs(&runner));
        let other = |change: fn(&mut Runner)| {
            let mut runner: Runner = serde_json::from_str(&runner).unwrap();
            change(&mut runner);
            serde_json::to_string(&runner).unwrap()
        };
        assert!(!still_runs(&other(|it| it.process.start_time_ticks += 1)));
        assert!(!still_runs(&other(|it| it.boot_id.push('0'))));
        assert!(!still_runs("nobody"));
    }
}
