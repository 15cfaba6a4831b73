//! Commands on a host, by the system's ssh(1).
//!
//! What must hold: nobody is asked for a password, a host that is gone is given up, and no more is read
//! than the limit.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::error::FreebsdError;
use super::target::FreebsdTarget;

/// More than any of the commands prints, or /etc/rc.conf holds.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// ssh's own exit code when it cannot reach the host or log in.
const EXIT_NOT_REACHED: i32 = 255;
const OPTIONS: [&str; 4] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=3",
];

/// A host that commands are run on.
#[derive(Clone, Debug)]
pub struct Ssh {
    host: String,
}

impl Ssh {
    /// The host of a target. Nothing is connected yet.
    pub fn to(target: &FreebsdTarget) -> Self {
        Ssh {
            host: String::from(target.host()),
        }
    }

    /// The host's name for ssh.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Runs a command and returns what it printed.
    pub(crate) fn run(&self, command: &str) -> Result<String, FreebsdError> {
        self.run_with(command, "")
    }

    /// Runs a command that reads `input`.
    pub(crate) fn run_with(&self, command: &str, input: &str) -> Result<String, FreebsdError> {
        let mut ssh = Command::new("ssh");
        ssh.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
        ssh.args(["-T", "--", &self.host, command]);
        ssh.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = ssh.spawn().map_err(FreebsdError::Ssh)?;
        let (output, said) = exchange(&mut child, input).map_err(FreebsdError::Ssh)?;
        let status = child.wait().map_err(FreebsdError::Ssh)?;
        // First: a command whose output is not read to its end fails, too.
        if output.len() as u64 > OUTPUT_BYTES_MAX {
            return Err(FreebsdError::TooLong {
                host: self.host.clone(),
                command: String::from(command),
                limit: OUTPUT_BYTES_MAX,
            });
        }
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        match status.code() {
            Some(0) => {}
            Some(EXIT_NOT_REACHED) => {
                let host = self.host.clone();
                return Err(FreebsdError::NotReached { host, said });
            }
            code => {
                return Err(FreebsdError::Command {
                    host: self.host.clone(),
                    command: String::from(command),
                    code: code.unwrap_or(-1),
                    said,
                });
            }
        }
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

/// Writes the input and reads both outputs up to the limit, all at once, so that no pipe fills up.
fn exchange(child: &mut Child, input: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let stdout = child.stdout.take();
    thread::scope(|scope| {
        let said = scope.spawn(move || bounded(stderr));
        let writer = scope.spawn(move || match stdin {
            // A command that does not read it all is judged by its exit code.
            Some(mut stdin) => stdin
                .write_all(input.as_bytes())
                .or_else(ignore_broken_pipe),
            None => Ok(()),
        });
        let output = bounded(stdout)?;
        let panicked = |_| io::Error::other("a thread that talks to ssh panicked");
        writer.join().map_err(panicked)??;
        Ok((output, said.join().map_err(panicked)??))
    })
}

/// Reads one byte past the limit at the most; the rest is lost with the pipe.
fn bounded(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn ignore_broken_pipe(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    }
}
