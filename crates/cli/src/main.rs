//! `nicpoll`: device polling for network interfaces, and the bench that proves what it does.
//!
//! Standard output carries results only. Errors go to standard error and say what failed, why, and
//! what to do; the exit codes are in each command's `--help`.
#![forbid(unsafe_code)]

mod ab;
mod args;
mod blast;
mod demo;
mod doctor;
mod failure;
mod forward;
mod guard;
mod host_file;
mod iperf;
mod knobs;
mod linerate;
mod man;
mod netrate;
mod output;
mod progress;
mod rr;
mod running;
mod serve;
mod set;
mod show;
mod sim;
mod sink;
mod sitting;
mod study;
mod sysctl;
mod watch;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use nicpoll_sys::tell;
use nicpoll_traffic::netrate::options::Tool;
use nicpoll_traffic::stop;

use crate::args::{Cli, Command, OwnArgs};
use crate::failure::Failure;

fn main() -> ExitCode {
    let parsed = Cli::try_parse_from(set::translated(arguments().into_iter()));
    let ended = match parsed {
        Ok(cli) => run(&cli.command),
        Err(told) => help_or_usage(&told),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure @ Failure::Unread) => ExitCode::from(failure.code()),
        Err(failure) => {
            let words = output::in_locale(&failure.to_string());
            tell!("nicpoll: {words}");
            ExitCode::from(failure.code())
        }
    }
}

/// What the parser has to say: help and the version are results, anything else is wrong usage.
fn help_or_usage(told: &clap::Error) -> Result<u8, Failure> {
    if told.use_stderr() {
        told.exit();
    }
    let text = told.render();
    output::print(&if output::text_options().color {
        text.ansi().to_string()
    } else {
        text.to_string()
    })?;
    Ok(0)
}

/// The arguments. Called through a link with a tool's name, the program is that tool.
fn arguments() -> Vec<OsString> {
    let mut args: Vec<OsString> = env::args_os().collect();
    let name = args.first().and_then(|path| Path::new(path).file_name());
    let name = name.and_then(|name| Tool::named(name.to_str()?));
    if let Some(tool) = name {
        args.insert(1, OsString::from(tool.name()));
    }
    args
}

fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Demo(args) => return demo::demo(args),
        Command::Ab(args) => return ab::ab(args),
        Command::Study(args) => return study::run(args),
        Command::Serve(args) => return serve::serve(args),
        Command::Rr(args) => return rr::run(args),
        Command::Sim(args) => return sim::run(args),
        Command::Blast(args) => return blast::run(args),
        Command::Sink(args) => return sink::run(args),
        Command::Forward(args) => return forward::run(args),
        Command::Sysctl(args) => return sysctl::run(args),
        Command::Linerate(args) => return linerate::run(args),
        Command::Watch(args) => return watch::watch(args),
        Command::Doctor(args) => return doctor::doctor(args),
        Command::Show(args) => return show::show(args),
        Command::Set(args) => return set::set(args),
        Command::Restore(args) => return set::restore(args),
        Command::Guard(args) => return guard::guard(args),
        Command::Iperf(OwnArgs { args }) => return Ok(iperf::run(args).context("nicpoll iperf")?),
        Command::Netblast(OwnArgs { args }) => {
            return Ok(netrate::run(Tool::Netblast, args).context("netblast")?);
        }
        Command::Netreceive(OwnArgs { args }) => {
            return Ok(netrate::run(Tool::Netreceive, args).context("netreceive")?);
        }
        Command::Netsend(OwnArgs { args }) => {
            return Ok(netrate::run(Tool::Netsend, args).context("netsend")?);
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "nicpoll", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Command::Man(args) => return man::run(args),
    }
    Ok(0)
}
