//! `nicpoll`: device polling for network interfaces, and the bench that proves what it does.
//!
//! Standard output carries results only. Errors go to standard error and say what failed, why, and
//! what to do; the exit codes are in `nicpoll demo --help`.
#![forbid(unsafe_code)]

mod args;
mod demo;
mod failure;
mod iperf;
mod progress;
mod stop;

use std::io;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("nicpoll: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Demo(args) => return demo::demo(args),
        Command::Iperf { args } => return Ok(iperf::run(args).context("nicpoll iperf")?),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "nicpoll", &mut io::stdout());
        }
        Command::Man => {
            clap_mangen::Man::new(Cli::command())
                .render(&mut io::stdout())
                .context("writing the manual page")?;
        }
    }
    Ok(0)
}
