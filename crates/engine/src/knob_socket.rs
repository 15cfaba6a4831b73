//! The knobs of a running engine, for other processes: a socket that only root can reach.
//!
//! A request is a line, `user_frac` to read or `user_frac=30` to write, of all CPUs or, with `cpu1.` before it, of one;
//! `cpus` asks for their numbers. The answer is a line, too: `ok VALUE`, with the value before it for a write, or
//! `error` and a sentence.
//!
//! Only root may enter the folder of the sockets. A client that says nothing, or too much, is dropped after a second and
//! takes nothing from the engine. [`remove_sockets_of_the_dead`] removes the sockets of killed processes.

use nicpoll_model::Refused;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nicpoll_core::{Knob, Poller};
use nicpoll_sys::link::LinkHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::background::Background;
use crate::knobs::{KnobError, TREE, over_all_cpus, parse_knob_of_cpu, write_knob};

/// Where the sockets are, one for each engine.
pub(crate) const FOLDER: &str = "/run/nicpoll";
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
    _thread: Background,
}

impl KnobServer {
    /// Serves the knobs of this process's engine at `interface`. `ask` has a request carried out by the engine's thread
    /// and returns its answer.
    ///
    /// # Errors
    /// When the folder is not root's alone, or no socket can be made in it.
    pub(crate) fn start(
        (interface, ifindex): (&str, u32),
        ask: impl Fn(&str) -> Result<String, KnobError> + Send + 'static,
    ) -> io::Result<Self> {
        let folder = Path::new(FOLDER);
        make_private(folder)?;
        let path = folder.join(format!(
            "{}-{ifindex}-{interface}{SUFFIX}",
            std::process::id()
        ));
        // One of an earlier process of this number.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let thread = Background::start("nicpoll-knobs", move || {
            await_client(&listener);
            if let Ok((client, _)) = listener.accept() {
                // A client that goes away is its own concern.
                let _ = serve(&client, &ask);
            }
        })?;
        Ok(KnobServer {
            path,
            _thread: thread,
        })
    }
}

impl Drop for KnobServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A knob that is to be written on some CPUs, and its value. It was tried on copies.
pub(crate) type KnobWrite = (Vec<u32>, Knob, u32);

/// The request for the CPUs that an engine runs on.
const CPUS: &str = "cpus";
/// Ticks a second. In FreeBSD that is the clock's, and none of polling's.
const HZ: &str = "hz";

/// Carries out a request on copies of the pollers of all CPUs. Returns the answer, and what is to be written to the
/// pollers themselves.
pub(crate) fn carry_out(
    mut all: Vec<(u32, Poller)>,
    request: &str,
) -> Result<(String, Option<KnobWrite>), KnobError> {
    let cpus: Vec<String> = all.iter().map(|(cpu, _)| cpu.to_string()).collect();
    if request == CPUS {
        return Ok((cpus.join(","), None));
    }
    let (name, value) = match request.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (request, None),
    };
    if name.strip_prefix(TREE).unwrap_or(name) == HZ {
        let hz = all.first().map_or(0, |(_, poller)| poller.hz());
        return match value {
            None => Ok((hz.to_string(), None)),
            Some(_) => Err(KnobError(format!("{HZ}: EPERM: it can only be read"))),
        };
    }
    let (of_cpu, knob) = parse_knob_of_cpu(name)?;
    all.retain(|(cpu, _)| of_cpu.is_none_or(|wanted| *cpu == wanted));
    if all.is_empty() {
        let cpus = cpus.join(", ");
        return Err(KnobError(format!(
            "unknown oid 'kern.polling.{}': the engine runs on CPU {cpus}",
            name.strip_prefix(TREE).unwrap_or(name)
        )));
    }
    let read = |all: &[(u32, Poller)]| {
        let values: Vec<u32> = all.iter().map(|(_, poller)| poller.read(knob)).collect();
        over_all_cpus(knob, &values)
    };
    let before = read(&all);
    let Some(value) = value else {
        return Ok((before.to_string(), None));
    };
    let number = value.parse().map_err(|_| {
        let name = knob.name();
        KnobError(format!(
            "{TREE}{name}={value}: EINVAL: a whole number is expected"
        ))
    })?;
    // All or none: what one of them refuses, none gets.
    for (_, poller) in &mut all {
        write_knob(poller, knob, number)?;
    }
    let cpus = all.iter().map(|(cpu, _)| *cpu).collect();
    Ok((
        format!("{before} -> {}", read(&all)),
        Some((cpus, knob, number)),
    ))
}

/// A running engine that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningEngine {
    /// Its process.
    pub pid: u32,
    /// Its interface, by the name that it had.
    pub interface: String,
    ifindex: u32,
    path: PathBuf,
}

impl RunningEngine {
    /// All engines that run on this machine.
    ///
    /// # Errors
    /// `EACCES` without root's rights.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut engines = Self::with_sockets()?;
        engines.retain(RunningEngine::is_alive);
        engines.sort_by_key(|engine| engine.pid);
        Ok(engines)
    }

    /// Those that have a socket, killed ones too.
    fn with_sockets() -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(FOLDER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let engines = entries.map(|entry| Ok(Self::at(entry?.path())));
        Ok(engines
            .collect::<io::Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Those of this process number, or of this interface of the caller's network namespace, by its name of now or by the
    /// one that it had; all of them where none is named. Other namespaces may have one of the same name.
    ///
    /// # Errors
    /// `EACCES` without root's rights.
    pub fn named(wanted: Option<&str>) -> io::Result<Vec<Self>> {
        let mut engines = Self::all()?;
        if let Some(wanted) = wanted {
            engines.retain(|engine| {
                engine.pid.to_string() == wanted
                    || engine.is_at(wanted) && engine.is_in_namespace_of_caller()
            });
        }
        Ok(engines)
    }

    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        let mut parts = name.splitn(3, '-');
        let mut number = || parts.next()?.parse().ok();
        let (pid, ifindex) = number().zip(number())?;
        Some(RunningEngine {
            pid,
            interface: parts.next()?.to_owned(),
            ifindex,
            path,
        })
    }

    /// Whether it is at the interface that has this name, or had it and nobody has it now.
    fn is_at(&self, wanted: &str) -> bool {
        match LinkHandle::named(wanted) {
            Ok(link) => link.ifindex() == self.ifindex,
            Err(_) => self.interface == wanted,
        }
    }

    fn is_in_namespace_of_caller(&self) -> bool {
        let namespace = |process: &str| fs::metadata(format!("/proc/{process}/ns/net"));
        match [&self.pid.to_string(), "thread-self"].map(namespace) {
            [Ok(engine), Ok(caller)] => {
                (engine.dev(), engine.ino()) == (caller.dev(), caller.ino())
            }
            _ => false,
        }
    }

    fn is_alive(&self) -> bool {
        UnixStream::connect(&self.path).is_ok()
    }

    /// Whether its process has ended and nobody serves. An engine in a PID namespace that this process does not see is
    /// known by its answer; one that this process sees is not asked, since it may have been stopped.
    fn is_dead(&self) -> bool {
        let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        let is_seen = Path::new("/proc").join(self.pid.to_string()).exists();
        !is_seen && UnixStream::connect(&self.path).is_err_and(refuses)
    }

    /// The names of its knobs: of all CPUs together and, where it runs on several, of each.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let list = self.ask(CPUS)?.map_err(io::Error::other)?;
        let cpus: Vec<&str> = list.split(',').collect();
        let names = || Knob::ALL.iter().map(|knob| knob.name());
        let of_cpus = cpus.iter().filter(|_| cpus.len() > 1);
        let of_cpus = of_cpus.flat_map(|cpu| names().map(move |name| format!("cpu{cpu}.{name}")));
        Ok(names().map(String::from).chain(of_cpus).collect())
    }

    /// Asks for a knob, `user_frac`, or for a change of it, `user_frac=30`; of one CPU with `cpu1.` before it. The answer is
    /// the value, or the one before and the new one, `50 -> 30`; or why nothing was read or changed.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub fn ask(&self, request: &str) -> io::Result<Result<String, Refused>> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        writeln!(stream, "{request}")?;
        let mut line = String::new();
        BufReader::new(stream.take(10 * LINE_BYTES_MAX)).read_line(&mut line)?;
        let line = line.trim_end();
        match (line.strip_prefix("ok "), line.strip_prefix("error ")) {
            (Some(value), _) => Ok(Ok(value.to_owned())),
            (None, Some(why)) => Ok(Err(Refused(why.to_owned()))),
            (None, None) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Removes what killed engines left in the folder of the sockets. Does nothing without root's rights.
pub fn remove_sockets_of_the_dead() {
    let engines = RunningEngine::with_sockets().unwrap_or_default();
    for engine in engines.iter().filter(|engine| engine.is_dead()) {
        let _ = fs::remove_file(&engine.path);
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

fn serve(client: &UnixStream, ask: &impl Fn(&str) -> Result<String, KnobError>) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(client.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let Some(request) = line.strip_suffix('\n') else {
        return Ok(());
    };
    let answer = answer_line(ask(request));
    (&*client).write_all(answer.as_bytes())
}

/// An answer as a line.
fn answer_line(answer: Result<String, KnobError>) -> String {
    match answer {
        Ok(value) => format!("ok {value}\n"),
        Err(why) => format!("error {why}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(cpus: &[u32]) -> Vec<(u32, Poller)> {
        let pollers = cpus.iter().map(|cpu| (*cpu, Poller::new(1000).unwrap()));
        pollers.collect()
    }

    /// What the engine of these pollers answers.
    fn asked(pollers: &mut [(u32, Poller)], request: &str) -> String {
        let answer = carry_out(pollers.to_vec(), request).map(|(answer, write)| {
            let (cpus, knob, value) = write.unwrap_or((Vec::new(), Knob::Burst, 0));
            for (_, poller) in pollers.iter_mut().filter(|(cpu, _)| cpus.contains(cpu)) {
                poller.write(knob, value).unwrap();
            }
            answer
        });
        answer_line(answer).trim_end().to_owned()
    }

    #[test]
    fn reads_writes_and_refusals_are_told_apart() {
        let mut one = cores(&[3]);
        for (request, expected) in [
            ("cpus", "ok 3"),
            ("hz", "ok 1000"),
            ("kern.polling.hz", "ok 1000"),
            ("hz=2000", "error hz: EPERM: it can only be read"),
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
            assert_eq!(asked(&mut one, request), expected, "{request}");
        }
        let unknown = asked(&mut one, "speed");
        assert!(
            unknown.starts_with("error unknown oid 'kern.polling.speed'"),
            "{unknown}"
        );
        let deprecated = asked(&mut one, "kern.polling.enable=1");
        assert!(
            deprecated.contains("nicpoll set IF polling"),
            "{deprecated}"
        );
    }

    #[test]
    fn a_knob_is_that_of_all_cpus_or_of_one() {
        let mut two = cores(&[0, 2]);
        for (request, expected) in [
            ("cpus", "ok 0,2"),
            ("user_frac=30", "ok 50 -> 30"),
            ("cpu0.user_frac", "ok 30"),
            ("kern.polling.cpu2.burst_max=500", "ok 150 -> 500"),
            ("cpu0.burst_max", "ok 150"),
            // What one of them refuses, the other does not get.
            (
                "each_burst=400",
                "error kern.polling.each_burst=400: EINVAL: 1 to 150 are possible, which is burst_max",
            ),
            ("cpu2.each_burst", "ok 5"),
            (
                "cpu1.burst",
                "error unknown oid 'kern.polling.cpu1.burst': the engine runs on CPU 0, 2",
            ),
        ] {
            assert_eq!(asked(&mut two, request), expected, "{request}");
        }
    }
}
