//! What the benchmarks share: programs in the namespaces of a veth pair.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow};
use nicpoll_sys::netns::NetnsThread;

/// Starts a program in a host's namespace, bound to a core; `nicpoll` is the one that was built beside the benchmark.
pub fn spawn(host: &NetnsThread<()>, cpu: u32, words: &str) -> Result<Child> {
    let mut command = command(words)?;
    let started = host.spawn_pinned(cpu, "bench", move || command.spawn())?;
    let child = started
        .join()
        .map_err(|_| anyhow!("the starting thread panicked"))??;
    child.with_context(|| format!("starting '{words}'; see that it is installed"))
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
fn our_program() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let directory = example.parent().and_then(|path| path.parent());
    Ok(directory.context("no target directory")?.join("nicpoll"))
}
