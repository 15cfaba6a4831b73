//! Starts other programs: finds them, says what is run, and turns a bad end into an error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

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
    run_to_stdout(command.stdout(std::io::stderr()))
}

/// Runs a program whose standard output is the result of the whole command.
pub fn run_to_stdout(command: &mut Command) -> Result<()> {
    eprintln!("   {}", shown(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
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
    fn programs_are_found_and_missing_ones_are_not() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-anywhere").is_none());
    }
}
