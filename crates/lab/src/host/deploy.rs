//! How this program gets to another machine and runs there: a start script for ssh(1), and whole commands.
//!
//! The program in PATH is taken if its SHA-256 is this one's. Otherwise a copy goes, over the same connection, into a private
//! folder that has room and may run programs; the agent removes that folder once it runs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_switch::freebsd::ssh_command;
use nicpoll_sys::stdio;
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

use crate::error::HostFailure;
use crate::host::protocol::{LINE_BYTES_MAX, MARK, PING_EVERY};

/// The program is sent in blocks of this size, which dd(1) reads exactly.
const BLOCK_BYTES: usize = 64 << 10;

/// The largest program: more is no nicpoll.
const PROGRAM_BYTES_MAX: u64 = 512 << 20;

/// The file of this program, even if a newer one took its place.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// ssh's exit code if it cannot reach the machine or log in.
pub const EXIT_NOT_REACHED: i32 = 255;

/// The first words of the start script's lines: it asks for the program, or gives up.
pub const SEND: &str = "nicpoll-send";
pub const FAILED: &str = "nicpoll-failed";

/// The argument on which a program runs [`serve_controller`](crate::serve_controller).
pub const AGENT_COMMAND: &str = "agent";

/// A program to run on another machine.
pub struct OwnProgram {
    /// Its file.
    pub path: PathBuf,
    /// Its bytes, filled up with zeros to whole blocks. An ELF file runs as well with them.
    pub bytes: Vec<u8>,
    /// SHA-256 of the file, and of these bytes.
    hashes: [String; 2],
}

impl OwnProgram {
    /// Reads a file, or that of this program.
    pub fn read(path: Option<&Path>) -> io::Result<Self> {
        let path = path.unwrap_or(Path::new(THIS_PROGRAM)).to_path_buf();
        let file = File::open(&path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!("{} is no file", path.display())));
        }
        let mut bytes = Vec::new();
        file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes)?;
        let own = Sha256::new_with_prefix(&bytes);
        let length = bytes.len();
        bytes.resize(length.next_multiple_of(BLOCK_BYTES), 0);
        let sent = own.clone().chain_update(&bytes[length..]);
        let hashes = [text_of(own), text_of(sent)];
        Ok(OwnProgram {
            path,
            bytes,
            hashes,
        })
    }

    /// The command that starts an agent there with these words: by the program in PATH if it is the same, else by a copy
    /// in a private folder that can hold and run it.
    pub fn start_script(&self, words: &[String]) -> String {
        let [own, sent] = &self.hashes;
        let (blocks, kib) = (self.bytes.len() / BLOCK_BYTES, self.bytes.len() / 1024);
        START_SCRIPT
            .replace("OWN", own)
            .replace("SENT", sent)
            .replace("BLOCKS", &blocks.to_string())
            .replace("KIB", &kib.to_string())
            + &quoted(words)
    }

    /// Checks that the program runs on a system, as uname(1) names it: `Linux x86_64`.
    pub fn check(&self, system: &str) -> Result<(), HostFailure> {
        let own = match self.bytes.get(ELF_MACHINE) {
            Some([62, 0]) => "x86_64",
            Some([183, 0]) => "aarch64",
            _ => return Ok(()),
        };
        match system.split_once(' ') {
            Some(("Linux", machine)) if machine == own => Ok(()),
            Some(("Linux", machine)) => Err(HostFailure::new(format!(
                "it is a machine of {machine}, and this program is for {own}; name a file of nicpoll for it: program = \
                 \"PATH\""
            ))),
            _ => {
                let why = format!("it runs {system}; an agent runs on Linux");
                Err(HostFailure::new(why))
            }
        }
    }
}

/// Where an ELF file has its machine's number, which is little-endian on the machines that are told apart.
const ELF_MACHINE: std::ops::Range<usize> = 18..20;

/// For any POSIX shell, on one line in single quotes: the user's login shell may be another one, such as csh. The
/// folders' mount may forbid programs, which a script shows. A connection that is cut off while the program comes ends
/// neither the shell nor what it has to remove.
const START_SCRIPT: &str = "exec sh -c 'umask 077; trap \"\" PIPE; s() { sha256sum \"$1\" 2>/dev/null | cut -d\" \" -f1; }; \
    p=$(command -v nicpoll); if [ -n \"$p\" ] && [ \"$(s \"$p\")\" = OWN ]; then exec \"$p\" agent \"$@\"; fi; \
    for t in \"${XDG_RUNTIME_DIR:-/run}\" /run /var/tmp /tmp \"$HOME\"; do \
    d=$(mktemp -d \"$t/nicpoll.XXXXXX\" 2>/dev/null) || continue; \
    printf \"#\\041/bin/sh\\n\" > \"$d/nicpoll\" && chmod 700 \"$d/nicpoll\" && \"$d/nicpoll\" 2>/dev/null && \
    [ \"$(df -Pk \"$d\" | tail -n 1 | tr -s \" \" | cut -d\" \" -f4)\" -gt KIB ] && break; \
    rm -rf \"$d\"; d=; done; \
    if [ -z \"$d\" ]; then echo nicpoll-failed none of its folders has KIB KiB and runs programs: /run, /var/tmp, /tmp, home; exit 1; fi; \
    echo nicpoll-send $(uname -sm); \
    if e=$(dd bs=65536 count=BLOCKS iflag=fullblock of=\"$d/nicpoll\" 2>&1) && [ \"$(s \"$d/nicpoll\")\" = SENT ]; \
    then \"$d/nicpoll\" agent --copy \"$d\" \"$@\"; r=$?; else echo nicpoll-failed the program arrived damaged: $e; r=1; fi; \
    rm -rf \"$d\"; exit $r' nicpoll";

/// Says why ssh(1) did not start.
pub fn no_ssh(error: &io::Error) -> String {
    format!("running ssh; is it installed? {error}")
}

/// Quotes words for a shell.
pub fn quoted(words: &[String]) -> String {
    let words = words.iter().map(|word| word.replace('\'', "'\\''"));
    words.fold(String::new(), |all, word| format!("{all} '{word}'"))
}

/// Time for a machine to log in and take the program.
pub const START_MAX: Duration = Duration::from_secs(60);

/// What a login may print before the agent's first line.
const GREETING_BYTES_MAX: usize = 64 << 10;

/// Reads the lines that come before the agent's first one.
///
/// # Errors
/// When the stream ends before it, or goes on without it.
pub fn greeting(
    reader: &mut impl BufRead,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = 0;
    loop {
        let mut line = Vec::new();
        let left = (GREETING_BYTES_MAX - bytes) as u64;
        bytes += reader.take(left).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            if bytes >= GREETING_BYTES_MAX {
                let what =
                    "it prints something else than the agent does; its login may run a program";
                return Err(io::Error::other(what));
            }
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&line);
        if line.starts_with(MARK) {
            return Ok(());
        }
        each(line.trim_end())?;
    }
}

/// Runs a command of this program on another machine, prints what it prints, and returns its exit code. When this
/// process is gone or cut off, the command is ended there as by SIGTERM.
///
/// # Errors
/// When the machine cannot be reached or cannot run the program.
pub fn run_there(ssh: &str, words: &[String], stop: &AtomicBool) -> Result<u8, HostFailure> {
    let failed = |why: String| HostFailure::new(format!("{ssh}: {why}"));
    let io_failed = |error: io::Error| failed(error.to_string());
    let program = OwnProgram::read(None).map_err(io_failed)?;
    let mut command = ssh_command(ssh);
    command.arg(program.start_script(words)).process_group(0);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = pipes.spawn();
    let mut child = child.map_err(|error| failed(no_ssh(&error)))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(String::from("ssh has no pipes")));
    };
    let mut reader = BufReader::new(output);
    let ended = thread::scope(|scope| {
        let (started, is_started) = mpsc::channel();
        let process = Pid::from_child(&child);
        scope.spawn(move || keep_alive(&is_started, process, stop));
        let mut refused = None;
        let greeted = greeting(&mut reader, |line| {
            if let Some(system) = line.strip_prefix(SEND) {
                match program.check(system.trim()) {
                    Ok(()) => input.write_all(&program.bytes)?,
                    Err(why) => {
                        refused = Some(why.message);
                        return Err(io::ErrorKind::Unsupported.into());
                    }
                }
            } else if let Some(why) = line.strip_prefix(FAILED) {
                refused = Some(String::from(why.trim()));
            }
            Ok(())
        });
        let printed = greeted.and_then(|()| {
            let _ = started.send(input);
            print_lines(&mut reader)
        });
        drop(started);
        refused.map_or(printed.map_err(|error| error.to_string()), Err)
    });
    let code = child.wait().map_err(io_failed)?.code();
    match (ended, code) {
        (_, Some(EXIT_NOT_REACHED)) => Err(failed(format!(
            "ssh could not reach it or lost it; it must log in without a password: ssh -o BatchMode=yes {ssh} true"
        ))),
        (Ok(()), Some(code)) => Ok(u8::try_from(code).unwrap_or(1)),
        (Ok(()), None) => Err(failed(String::from("ssh was killed"))),
        (Err(why), _) => Err(failed(why)),
    }
}

/// Tells the machine once a second that its controller runs. Ends ssh, and by this the command, when `stop` becomes true
/// or the command does not start.
fn keep_alive(is_started: &mpsc::Receiver<ChildStdin>, ssh: Pid, stop: &AtomicBool) {
    let begin = Instant::now();
    let mut input = None;
    let mut next = begin;
    loop {
        if stop.load(Ordering::Relaxed) || (input.is_none() && begin.elapsed() > START_MAX) {
            if input.take().is_none() {
                let _ = kill_process(ssh, Signal::TERM);
                return;
            }
            // The command sees the end of its input, and has its own last words.
            return;
        }
        match is_started.recv_timeout(LOOK_EVERY) {
            Ok(started) => input = Some(started),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(input) = input.as_mut()
            && Instant::now() >= next
        {
            next = Instant::now() + PING_EVERY;
            // The reader finds out what is wrong.
            let _ = input.write_all(b"\n");
        }
    }
}

/// Interval of checks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints lines as they come.
fn print_lines(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        if reader.take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        stdio::print(&String::from_utf8_lossy(&line))?;
    }
}

fn text_of(hash: Sha256) -> String {
    let mut text = String::new();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
