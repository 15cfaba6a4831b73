//! `nicpoll guard`: the process that undoes changes when their client is gone. The program starts it itself.

use anyhow::Context;
use clap::Args;
use nicpoll_switch::{Journal, watch_over};

use crate::failure::Failure;
use crate::stop::Stop;

/// Options of the guard.
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// When to undo the changes, in ns of CLOCK_BOOTTIME [default: when the client is gone]
    #[arg(long)]
    pub until: Option<u64>,
}

/// Runs the guard and returns its exit code.
pub fn guard(args: &GuardArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    watch_over(&Journal::of_this_machine(), args.until, stop.asked())?;
    Ok(0)
}
