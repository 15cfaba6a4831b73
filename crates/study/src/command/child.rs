//! A program of the user's while it runs.
//!
//! What must hold: it never outlives its value; no more than [`OUTPUT_MAX`] bytes of what it says are kept, and it is
//! never kept waiting for somebody to read the rest.

use std::fs;
use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nicpoll_traffic::workload::WorkloadError;

use super::output::CommandOutputError;

/// Bytes of a program's output that are kept.
const OUTPUT_MAX: usize = 1 << 20;
/// How long a receiver may take until it listens.
const LISTEN_MAX: Duration = Duration::from_secs(1);
/// A receiver whose port is not seen is given this long.
const LISTEN_BLIND: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_millis(300);

/// A program that runs.
pub struct Child {
    name: String,
    process: std::process::Child,
    output: Option<[JoinHandle<Vec<u8>>; 2]>,
}

/// What a program ended with.
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
    pub errors: String,
}

impl Child {
    /// Starts a program with its arguments, in the calling thread's namespace and on its core.
    pub fn start(words: &[String]) -> Result<Self, WorkloadError> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| WorkloadError::failed(io::Error::from(io::ErrorKind::InvalidInput)))?;
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = started.map_err(|source| {
            WorkloadError::failed(CommandOutputError::Start {
                program: program.clone(),
                source,
            })
        })?;
        let stdout = process.stdout.take();
        let stderr = process.stderr.take();
        Ok(Child {
            name: program.clone(),
            process,
            output: Some([
                thread::spawn(|| kept(stdout)),
                thread::spawn(|| kept(stderr)),
            ]),
        })
    }

    /// Waits until something listens at a port of this namespace, or the program has had its time for that.
    pub fn wait_for_port(&mut self, port: u16) -> Result<(), WorkloadError> {
        let begin = Instant::now();
        while begin.elapsed() < LISTEN_MAX {
            let is_over = self.process.try_wait().map_err(WorkloadError::failed)?;
            if is_over.is_some() {
                let ended = self.end()?;
                return Err(ended.failed(&self.name));
            }
            if is_bound(port) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        // It may listen at a port of its own.
        thread::sleep(LISTEN_BLIND);
        Ok(())
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool, WorkloadError> {
        let status = self.process.try_wait().map_err(WorkloadError::failed)?;
        Ok(status.is_some())
    }

    /// Asks it to end, ends it if it does not, and returns what it said.
    pub fn end(&mut self) -> Result<Ended, WorkloadError> {
        let pid = rustix::process::Pid::from_child(&self.process);
        let begin = Instant::now();
        let mut is_asked = false;
        let status = loop {
            if let Some(status) = self.process.try_wait().map_err(WorkloadError::failed)? {
                break status;
            }
            if !is_asked {
                is_asked = true;
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            if begin.elapsed() > GRACE {
                let _ = self.process.kill();
            }
            thread::sleep(LOOK_EVERY);
        };
        let [output, errors] = match self.output.take() {
            Some(readers) => readers.map(|reader| reader.join().unwrap_or_default()),
            None => Default::default(),
        };
        Ok(Ended {
            status,
            output: String::from_utf8_lossy(&output).into_owned(),
            errors: String::from_utf8_lossy(&errors).into_owned(),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Ended {
    /// That a program ended with an error, in its own last words.
    pub fn failed(&self, name: &str) -> WorkloadError {
        let said = [&self.errors, &self.output];
        let last = said.iter().find_map(|text| {
            let mut lines = text.lines().map(str::trim);
            lines.rfind(|line| !line.is_empty())
        });
        WorkloadError::failed(CommandOutputError::Ended {
            program: String::from(name),
            status: self.status.to_string(),
            said: String::from(last.unwrap_or("nothing")),
        })
    }
}

/// Reads to the end, and keeps the beginning.
fn kept(pipe: Option<impl Read>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else {
        return kept;
    };
    let mut buffer = [0; 8192];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return kept,
            Ok(length) => {
                let room = OUTPUT_MAX - kept.len();
                kept.extend(&buffer[..length.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return kept,
        }
    }
}

/// Whether a socket of this namespace has a port: the second column of the kernel's tables ends with it.
fn is_bound(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .any(|address| address.ends_with(&wanted))
    })
}
