//! What a thread is doing and where it may, from `/proc/PID`.

use std::fs;
use std::io;

use nicpoll_model::ThreadShow;

use crate::proc_files::ProcError;

/// Looks at a thread now.
///
/// # Errors
/// `NotFound` when there is no such thread.
pub fn thread(pid: u32) -> io::Result<ThreadShow> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let (name, state) = parse_task_stat(&stat).map_err(io::Error::other)?;
    Ok(ThreadShow {
        pid,
        name: String::from(name),
        state,
        cpus: parse_allowed_cpus(&status).map(String::from),
    })
}

/// Name and state of `/proc/PID/stat`. The name may hold anything, parentheses too.
pub fn parse_task_stat(text: &str) -> Result<(&str, char), ProcError> {
    let parse = || {
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let state = after.split_ascii_whitespace().next()?.chars().next()?;
        Some((name, state))
    };
    parse().ok_or(ProcError {
        file: "/proc/PID/stat",
        line: 1,
        expected: "a number, a name in parentheses and a letter were expected",
    })
}

/// `Cpus_allowed_list` of `/proc/PID/status`.
pub fn parse_allowed_cpus(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses() {
        let text = "812 (napi/e(m)0-8193) I 2 0 0 0 -1 69238880 0\n";
        assert_eq!(parse_task_stat(text), Ok(("napi/e(m)0-8193", 'I')));
        assert!(parse_task_stat("812 napi I").is_err());
        assert!(parse_task_stat("812 (napi)").is_err());
        assert!(parse_task_stat(")(").is_err());
    }

    #[test]
    fn the_list_of_cpus_is_found() {
        let status = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(parse_allowed_cpus(status), Some("0-1"));
        assert_eq!(parse_allowed_cpus("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_a_thread() {
        let task = thread(std::process::id()).unwrap();
        assert!(!task.name.is_empty() && task.cpus.is_some());
        assert!(thread(u32::MAX).is_err());
    }
}
