//! Who holds a change: a process of this boot, told apart from a later one with the same pid.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// A process, identified beyond the reuse of its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start of the process in clock ticks since boot: field 22 of `/proc/PID/stat` (proc_pid_stat(5)).
    pub start_time_ticks: u64,
}

impl Owner {
    /// The calling process.
    pub fn this_process() -> io::Result<Self> {
        Self::of_process(std::process::id())
    }

    /// A process that runs.
    ///
    /// # Errors
    /// When it does not, or `/proc` does not show it.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let start_time_ticks = start_time_of(pid)?.ok_or_else(|| {
            io::Error::other(format!("/proc does not show process {pid}; is it mounted?"))
        })?;
        Ok(Owner {
            pid,
            start_time_ticks,
        })
    }

    /// Whether that very process still runs. A zombie does not: it can put nothing back.
    pub fn is_alive(&self) -> io::Result<bool> {
        Ok(start_time_of(self.pid)? == Some(self.start_time_ticks))
    }
}

/// This boot's identity.
pub fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(String::from(id.trim()))
}

fn start_time_of(pid: u32) -> io::Result<Option<u64>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => Ok(parse_start_time(&stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // The process ended between opening and reading.
        Err(error) if error.raw_os_error() == Some(3) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The command's name is in parentheses and may itself hold spaces and parentheses, so the fields are
/// counted from the last one.
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The state is field 3, the start time field 22.
    fields.nth(22 - 3 - 1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat =
            "7 (a) S 1 2) R 1 1 1 0 -1 4194304 100 0 0 0 1 1 0 0 20 0 1 0 4242 1000 10 1 2 3\n";
        assert_eq!(parse_start_time(stat), Some(4242));
        assert_eq!(parse_start_time(&stat.replace(") R", ") Z")), None);
        assert_eq!(parse_start_time("7 (a"), None);
        assert_eq!(parse_start_time("7 (a) R 1"), None);
    }

    #[test]
    fn this_process_is_alive_and_its_successor_is_not() {
        let owner = Owner::this_process().unwrap();
        assert!(owner.is_alive().unwrap());
        let successor = Owner {
            start_time_ticks: owner.start_time_ticks + 1,
            ..owner
        };
        assert!(!successor.is_alive().unwrap());
    }

    #[test]
    fn a_process_that_ended_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start_time_ticks = start_time_of(child.id()).unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let owner = Owner {
            pid,
            start_time_ticks: start_time_ticks.unwrap_or(1),
        };
        assert!(!owner.is_alive().unwrap());
    }
}
