//! The knobs of a running engine, for other processes: a socket that only root can reach.
//!
//! A request is a line, `user_frac` to read or `user_frac=30` to write. The answer is a line, too: `ok VALUE`, with
//! the value before it for a write, or `error` and a sentence.
//!
//! What must hold: only root may enter the folder of the sockets. A client that says nothing, or too much, is left
//! after a second and takes nothing from the engine. A socket whose process was killed is nobody's, and is removed.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nicpoll_core::{Knob, Poller};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use crate::knobs::{KnobNameError, KnobRefusal, parse_knob, write_knob};

/// Where the sockets are, one for each engine.
const FOLDER: &str = "/run/nicpoll";
const SUFFIX: &str = ".knobs";
/// A client has that long for its line, and the engine for its answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the server looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// No request is longer.
const LINE_BYTES_MAX: u64 = 200;

/// Serves requests until it is dropped.
pub(crate) struct KnobServer {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KnobServer {
    /// Serves the knobs of this process's engine at `interface`. `ask` has a request carried out by the engine's thread
    /// and returns its answer.
    ///
    /// # Errors
    /// When the folder is not root's alone, or no socket can be made in it.
    pub(crate) fn start(
        interface: &str,
        ask: impl Fn(String) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let folder = Path::new(FOLDER);
        make_private(folder)?;
        let path = folder.join(format!("{}-{interface}{SUFFIX}", std::process::id()));
        // One of an earlier process of this number.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name(String::from("nicpoll-knobs"))
            .spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    await_client(&listener);
                    if let Ok((client, _)) = listener.accept() {
                        // A client that goes away is its own concern.
                        let _ = serve(&client, &ask);
                    }
                }
            })?;
        Ok(KnobServer {
            path,
            ends,
            thread: Some(thread),
        })
    }
}

impl Drop for KnobServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// Carries out a request.
pub(crate) fn answer(poller: &mut Poller, request: &str) -> String {
    match carry_out(poller, request) {
        Ok(value) => format!("ok {value}"),
        Err(why) => format!("error {why}"),
    }
}

/// Why a request was refused.
#[derive(Debug, Error)]
enum RequestError {
    #[error(transparent)]
    Name(#[from] KnobNameError),
    #[error(transparent)]
    Value(#[from] KnobRefusal),
    #[error("kern.polling.{}={value}: EINVAL: a whole number is expected", knob.name())]
    NoNumber { knob: Knob, value: String },
}

fn carry_out(poller: &mut Poller, request: &str) -> Result<String, RequestError> {
    let Some((name, value)) = request.split_once('=') else {
        return Ok(poller.read(parse_knob(request)?).to_string());
    };
    let knob = parse_knob(name)?;
    let number = value.parse().map_err(|_| RequestError::NoNumber {
        knob,
        value: value.to_owned(),
    })?;
    let before = poller.read(knob);
    write_knob(poller, knob, number)?;
    Ok(format!("{before} -> {}", poller.read(knob)))
}

/// What an engine says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnobAnswer {
    /// The value, or the one before and the new one: `50 -> 30`.
    Value(String),
    /// Nothing was read or changed, and why.
    Refused(String),
}

/// A running engine that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningEngine {
    /// Its process.
    pub pid: u32,
    /// Its interface.
    pub interface: String,
    path: PathBuf,
}

impl RunningEngine {
    /// All engines that run on this machine.
    ///
    /// # Errors
    /// `EACCES` without root's rights.
    pub fn all() -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(FOLDER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut engines = Vec::new();
        for entry in entries {
            let engine = Self::at(entry?.path());
            engines.extend(engine.filter(RunningEngine::is_alive));
        }
        engines.sort_by_key(|engine| engine.pid);
        Ok(engines)
    }

    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        let (pid, interface) = name.split_once('-')?;
        let (pid, interface) = (pid.parse().ok()?, interface.to_owned());
        Some(RunningEngine {
            pid,
            interface,
            path,
        })
    }

    /// Whether somebody serves; the socket of a killed process is removed.
    fn is_alive(&self) -> bool {
        match UnixStream::connect(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&self.path);
                false
            }
            outcome => outcome.is_ok(),
        }
    }

    /// Asks for a knob, `user_frac`, or for a change of it, `user_frac=30`.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub fn ask(&self, request: &str) -> io::Result<KnobAnswer> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        writeln!(stream, "{request}")?;
        let mut line = String::new();
        BufReader::new(stream.take(10 * LINE_BYTES_MAX)).read_line(&mut line)?;
        let line = line.trim_end();
        if let Some(value) = line.strip_prefix("ok ") {
            return Ok(KnobAnswer::Value(value.to_owned()));
        }
        match line.strip_prefix("error ") {
            Some(why) => Ok(KnobAnswer::Refused(why.to_owned())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Makes the folder, or sees to it that it is nobody else's.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
        let message = format!("{} is not a folder of root's alone", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

fn await_client(listener: &UnixListener) {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_EVERY.as_nanos() as _,
    };
    let fd = listener.as_fd();
    let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout));
}

fn serve(client: &UnixStream, ask: &impl Fn(String) -> String) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(client.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let Some(request) = line.strip_suffix('\n') else {
        return Ok(());
    };
    let mut answer = ask(request.to_owned());
    answer.push('\n');
    (&*client).write_all(answer.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_writes_and_refusals_are_told_apart() {
        let mut poller = Poller::new(1000).unwrap();
        for (request, expected) in [
            ("user_frac", "ok 50"),
            ("kern.polling.user_frac=30", "ok 50 -> 30"),
            ("user_frac", "ok 30"),
            (
                "user_frac=100",
                "error kern.polling.user_frac=100: EINVAL: 0 to 99 are possible",
            ),
            (
                "user_frac=",
                "error kern.polling.user_frac=: EINVAL: a whole number is expected",
            ),
            (
                "phase=1",
                "error kern.polling.phase=1: EPERM: it can only be read",
            ),
            // burst_max takes each_burst along, to 10 and not to the new limit.
            ("burst_max=100", "ok 150 -> 100"),
        ] {
            assert_eq!(answer(&mut poller, request), expected, "{request}");
        }
        let unknown = answer(&mut poller, "speed");
        assert!(
            unknown.starts_with("error unknown oid 'kern.polling.speed'"),
            "{unknown}"
        );
        let deprecated = answer(&mut poller, "kern.polling.enable=1");
        assert!(
            deprecated.contains("nicpoll set IF polling"),
            "{deprecated}"
        );
    }
}
