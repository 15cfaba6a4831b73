//! Programs in the namespaces of a veth pair, for all benchmarks.
//!
//! However the benchmark ends, all programs that it started end too, and its namespaces with them.

use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use nicpoll_sys::netns::NetnsThread;

/// Environment variable that marks all programs of one benchmark, and those that they start.
const MARK: &str = "NICPOLL_BENCHMARK";
/// Waits for the end of its input, then kills all programs with the mark: more than once, since a program may be
/// starting another one.
const REAPER: &str = "cat >/dev/null; for again in 1 2 3 4 5; do \
                      for process in /proc/[0-9]*; do \
                      grep -qszxF \"$1\" \"$process/environ\" && kill -9 \"${process#/proc/}\"; \
                      done; sleep 0.05; done";

/// The input of the process that ends the programs. The kernel closes it with this process.
static LEASH: OnceLock<ChildStdin> = OnceLock::new();

/// Starts a program in a host's namespace, bound to a core; `nicpoll` is the one built with the benchmark.
pub fn spawn(host: &NetnsThread<()>, cpu: u32, words: &str) -> Result<Child> {
    let mut command = leashed(command(words)?)?;
    let started = host.spawn_pinned(cpu, "bench", move || command.spawn())?;
    let child = started
        .join()
        .map_err(|_| anyhow!("the starting thread panicked"))??;
    child.with_context(|| format!("starting '{words}'; see that it is installed"))
}

/// Makes the command of a program that does not outlive this process.
pub fn leashed(mut command: Command) -> Result<Command> {
    let id = std::process::id().to_string();
    if LEASH.get().is_none() {
        let mut reaper = Command::new("sh");
        reaper.args(["-c", REAPER, "sh", &format!("{MARK}={id}")]);
        // It must not receive the terminal's signals.
        std::os::unix::process::CommandExt::process_group(&mut reaper, 0);
        reaper.stdin(Stdio::piped()).stderr(Stdio::null());
        let input = reaper.stdout(Stdio::null()).spawn()?.stdin;
        let _ = LEASH.set(input.context("no input")?);
    }
    command.env(MARK, id);
    Ok(command)
}

/// Makes the command of a line, with its input and output as pipes.
fn command(line: &str) -> Result<Command> {
    let mut words = line.split_whitespace();
    let program = match words.next().unwrap_or_default() {
        "nicpoll" => our_program()?,
        "bench" => std::env::current_exe()?,
        other => PathBuf::from(other),
    };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}

/// Returns the program next to this example's directory.
pub fn our_program() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let directory = example.parent().and_then(|path| path.parent());
    Ok(directory.context("no target directory")?.join("nicpoll"))
}
