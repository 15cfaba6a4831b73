//! `nicpoll agent`: what a controller runs at each host of a study, or in place of a command with `--host`.

use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nicpoll_lab::{obey_controller, serve_controller};
use nicpoll_switch::guard_of_this_program;
use nicpoll_traffic::signals::Stop;

use crate::failure::Failure;

/// Options of the agent.
#[derive(Args, Debug)]
pub struct AgentArgs {
    /// The folder with the copy of the program that was made for this agent, which removes it
    #[arg(long, value_name = "FOLDER")]
    pub copy: Option<PathBuf>,
    /// A command of nicpoll to run, in place of a controller's requests
    #[arg(last = true, value_name = "COMMAND")]
    pub words: Vec<OsString>,
}

/// Returns the words of the command that an agent is to run, if it is to run one. From here on the command ends with its
/// controller.
pub fn command(args: &AgentArgs) -> Result<Option<Vec<OsString>>, Failure> {
    if args.words.is_empty() {
        return Ok(None);
    }
    obey_controller(args.copy.as_deref())?;
    let program = iter::once(OsString::from("nicpoll"));
    Ok(Some(program.chain(args.words.iter().cloned()).collect()))
}

/// Serves a controller's requests and returns the exit code.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let guard = guard_of_this_program().context("finding this program")?;
    serve_controller(guard, args.copy.as_deref(), stop.asked())?;
    Ok(0)
}
