//! Starts other programs: finds them, says what is run, and turns a bad end into an error.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// A program that ran and reported failure.
#[derive(Debug)]
pub struct Failed {
    what: String,
    /// Its exit status, or 1 when a signal ended it.
    pub status: u8,
}

impl Failed {
    fn new(command: &Command, status: ExitStatus) -> Self {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Self {
            what: format!("`{}` ended with {status}", shown(command)),
            status: code.unwrap_or(1),
        }
    }

    #[cfg(test)]
    pub fn for_test(status: u8) -> Self {
        let what = "a program".to_owned();
        Self { what, status }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failed {}

/// The cargo that runs this program, so that one toolchain does all of it.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Runs a program whose output is for the eye only: it goes to stderr.
pub fn run(command: &mut Command) -> Result<()> {
    let mut child = start(command.stdout(std::io::stderr()))?;
    ended_well(command, child.wait())
}

/// Runs a program and gives each line of its standard output away as it comes.
pub fn run_line_by_line(command: &mut Command, mut line: impl FnMut(&str)) -> Result<()> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let output = child.stdout.take().context("its output is a pipe")?;
    for bytes in BufReader::new(output).split(b'\n') {
        line(&String::from_utf8_lossy(&bytes?));
    }
    ended_well(command, child.wait())
}

/// What a program left that was run for what it prints on stderr.
pub struct Ended {
    /// What it printed.
    pub errors: String,
    /// CPU time that it took, all its threads together.
    pub cpu_seconds: f64,
    /// Its end.
    pub result: Result<()>,
}

/// Runs a program, passes its standard error on, and keeps it, whatever its end.
pub fn run_reading_errors(command: &mut Command) -> Result<Ended> {
    command.stdout(io::stderr()).stderr(Stdio::piped());
    let mut child = start(command)?;
    let output = child.stderr.take().context("its stderr is a pipe")?;
    let mut errors = String::new();
    for bytes in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&bytes?).into_owned();
        eprintln!("{line}");
        errors += &line;
        errors.push('\n');
    }
    // Whoever reads of it before it is waited for still finds it.
    let cpu_seconds = cpu_seconds(child.id())?;
    Ok(Ended {
        errors,
        cpu_seconds,
        result: ended_well(command, child.wait()),
    })
}

/// CPU time of a process in user space and in the kernel (proc_pid_stat(5), fields 14 and 15).
fn cpu_seconds(pid: u32) -> Result<f64> {
    // USER_HZ, which the kernel's interface fixes.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no name in its stat file")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<f64>, _> = ticks.map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// Runs a program to its end and keeps its standard output, whatever its end.
pub fn kept_output(command: &mut Command) -> (String, Result<()>) {
    let mut output = String::new();
    let ended = run_line_by_line(command, |line| {
        output.push_str(line);
        output.push('\n');
    });
    (output, ended)
}

fn start(command: &mut Command) -> Result<Child> {
    eprintln!("   {}", shown(command));
    let child = command.stdin(Stdio::null()).spawn();
    child.with_context(|| format!("cannot start `{}`", shown(command)))
}

fn ended_well(command: &Command, status: io::Result<ExitStatus>) -> Result<()> {
    let status = status?;
    if status.success() {
        Ok(())
    } else {
        Err(Failed::new(command, status).into())
    }
}

/// What a program prints, when it can be started and succeeds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// What `cargo metadata` says of the workspace's own packages.
pub fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    let text = output_of(&mut command).context("`cargo metadata --no-deps` failed")?;
    serde_json::from_str(&text).context("`cargo metadata` did not print JSON")
}

/// Looks for a program in PATH, and where Debian keeps the administrator's programs, which the
/// PATH of other users lacks.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(extra)
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_keeps_its_status() {
        let error = run(Command::new("sh").args(["-c", "exit 7"])).unwrap_err();
        assert_eq!(error.downcast_ref::<Failed>().unwrap().status, 7);
        assert!(error.to_string().contains("sh -c exit 7"), "{error}");
    }

    #[test]
    fn each_line_is_given_away_even_when_the_program_fails() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two; exit 3"]);
        let ended = run_line_by_line(&mut command, |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["one", "two"]);
        assert!(ended.is_err());
    }

    #[test]
    fn errors_are_kept_with_the_end_and_the_time() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo one >&2; exit 3",
        ]);
        let ended = run_reading_errors(&mut command).unwrap();
        assert_eq!(ended.errors, "one\n");
        assert!(ended.result.is_err());
        assert!(ended.cpu_seconds > 0.0);
    }

    #[test]
    fn programs_are_found_and_missing_ones_are_not() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-anywhere").is_none());
    }
}
