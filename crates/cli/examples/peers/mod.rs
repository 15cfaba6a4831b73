//! What the benchmarks share: programs in the namespaces of a veth pair.
//!
//! What must hold: when the benchmark ends, in whatever way, all that it started ends too, and its namespaces with it.

use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use nicpoll_sys::netns::NetnsThread;

/// The variable by which all programs of one benchmark are known, those included that they start themselves.
const MARK: &str = "NICPOLL_BENCHMARK";
/// Waits until nobody holds its input any more, then kills whatever has the mark: more than once, since a program may
/// be starting another one.
const REAPER: &str = "cat >/dev/null; for again in 1 2 3 4 5; do \
                      for process in /proc/[0-9]*; do \
                      grep -qszxF \"$1\" \"$process/environ\" && kill -9 \"${process#/proc/}\"; \
                      done; sleep 0.05; done";

/// The input of the process that ends what this one leaves behind. The kernel closes it with this process.
static LEASH: OnceLock<ChildStdin> = OnceLock::new();

/// Starts a program in a host's namespace, bound to a core; `nicpoll` is the one that was built beside the benchmark.
pub fn spawn(host: &NetnsThread<()>, cpu: u32, words: &str) -> Result<Child> {
    let mut command = leashed(command(words)?)?;
    let started = host.spawn_pinned(cpu, "bench", move || command.spawn())?;
    let child = started
        .join()
        .map_err(|_| anyhow!("the starting thread panicked"))??;
    child.with_context(|| format!("starting '{words}'; see that it is installed"))
}

/// The command of a program that does not outlive this process.
pub fn leashed(mut command: Command) -> Result<Command> {
    let id = std::process::id().to_string();
    if LEASH.get().is_none() {
        let mut reaper = Command::new("sh");
        reaper.args(["-c", REAPER, "sh", &format!("{MARK}={id}")]);
        // What the terminal sends to the benchmark is not for it.
        std::os::unix::process::CommandExt::process_group(&mut reaper, 0);
        reaper.stdin(Stdio::piped()).stderr(Stdio::null());
        let input = reaper.stdout(Stdio::null()).spawn()?.stdin;
        let _ = LEASH.set(input.context("no input")?);
    }
    command.env(MARK, id);
    Ok(command)
}

/// The command of a line, with its input and output as pipes.
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

/// The program beside this example's directory.
pub fn our_program() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let directory = example.parent().and_then(|path| path.parent());
    Ok(directory.context("no target directory")?.join("nicpoll"))
}
