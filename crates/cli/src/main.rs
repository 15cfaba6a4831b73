//! `nicpoll`: switches network interfaces to polling, measures what that changes, and simulates it.
//!
//! Standard output carries results only. Errors go to standard error and say what failed, why, and
//! what to do; the exit codes are in each command's `--help`.

mod args;
mod engine;
mod failure;
mod interface;
mod man;
mod options;
mod output;
mod progress;
mod reading;
mod sim;
mod study;
mod traffic;

use std::env;
use std::ffi::OsString;
use std::iter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use nicpoll_engine::remove_sockets_of_the_dead;
use nicpoll_lab::run_there;
use nicpoll_sys::{socket, stdio, tell};
use nicpoll_traffic::netrate::options::NetrateTool;
use nicpoll_traffic::signals::Stop;

use crate::args::{Cli, NicpollCommand, OwnArgs};
use crate::engine::{blast, forward, sink, sysctl};
use crate::failure::{EXIT_FAILED, Failure};
use crate::interface::{ab, doctor, restore, set, show, watch};
use crate::study::{agent, demo, serve, tune};
use crate::traffic::{iperf, linerate, netrate, rr};

fn main() -> ExitCode {
    socket::find_hosts_without_modules();
    match command_of(arguments(), false) {
        Ok(code) => ExitCode::from(code),
        Err(failure @ Failure::Unread) => ExitCode::from(failure.code()),
        Err(failure) => {
            let words = output::in_locale(&failure.to_string());
            tell!("nicpoll: {words}");
            ExitCode::from(failure.code())
        }
    }
}

/// Runs the command of these words, the program's name first, and returns its exit code. On the machine of its option
/// `--host` an agent runs it.
fn command_of(args: Vec<OsString>, is_by_agent: bool) -> Result<u8, Failure> {
    set::see_words(&args)?;
    match Cli::try_parse_from(set::translated(args.into_iter())) {
        Ok(cli) => match cli.command.elsewhere() {
            Some(host) if !is_by_agent => elsewhere(host),
            _ => run(&cli.command),
        },
        Err(told) => help_or_usage(&told),
    }
}

/// Runs this very command on another machine.
fn elsewhere(host: &str) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let own = env::args().skip(1);
    let words: Vec<String> = iter::once(String::from("--")).chain(own).collect();
    let code = run_there(host, &words, stop.asked())?;
    Ok(stop.signal().map_or(code, |signal| 128 + signal as u8))
}

/// Prints the parser's text: help and the version are results, anything else is wrong usage.
fn help_or_usage(told: &clap::Error) -> Result<u8, Failure> {
    let text = told.render();
    if told.use_stderr() {
        stdio::print_error(text);
        return Ok(told.exit_code().try_into().unwrap_or(EXIT_FAILED));
    }
    output::print(&if output::text_options().color {
        text.ansi().to_string()
    } else {
        text.to_string()
    })?;
    Ok(0)
}

/// Returns the arguments. Called through a link with a tool's name, the program is that tool.
fn arguments() -> Vec<OsString> {
    let mut args: Vec<OsString> = env::args_os().collect();
    let name = args.first().and_then(|path| Path::new(path).file_name());
    let name = name.and_then(|name| NetrateTool::named(name.to_str()?));
    if let Some(tool) = name {
        args.insert(1, OsString::from(tool.name()));
    }
    args
}

fn run(command: &NicpollCommand) -> Result<u8, Failure> {
    remove_sockets_of_the_dead();
    match command {
        NicpollCommand::Demo(args) => demo::demo(args),
        NicpollCommand::Ab(args) => ab::ab(args),
        NicpollCommand::Tune(args) => match tune::tune(args)? {
            (_, Some(words)) => command_of(words, false),
            (code, None) => Ok(code),
        },
        NicpollCommand::Study(args) => study::run(args),
        NicpollCommand::Serve(args) => serve::serve(args),
        NicpollCommand::Rr(args) => rr::run(args),
        NicpollCommand::Sim(args) => sim::run(args),
        NicpollCommand::Blast(args) => blast::run(args),
        NicpollCommand::Sink(args) => sink::run(args),
        NicpollCommand::Forward(args) => forward::run(args),
        NicpollCommand::Sysctl(args) => sysctl::run(args),
        NicpollCommand::Linerate(args) => linerate::run(args),
        NicpollCommand::Watch(args) => watch::watch(args),
        NicpollCommand::Doctor(args) => doctor::doctor(args),
        NicpollCommand::Show(args) => show::show(args),
        NicpollCommand::Set(args) => set::set(args),
        NicpollCommand::Restore(args) => restore::restore(args),
        NicpollCommand::Guard(args) => restore::guard(args),
        NicpollCommand::Agent(args) => match agent::command(args)? {
            Some(words) => command_of(words, true),
            None => agent::run(args),
        },
        NicpollCommand::Iperf(OwnArgs { args }) => Ok(iperf::run(args).context("nicpoll iperf")?),
        NicpollCommand::Netblast(OwnArgs { args }) => netrate::run(NetrateTool::Netblast, args),
        NicpollCommand::Netreceive(OwnArgs { args }) => netrate::run(NetrateTool::Netreceive, args),
        NicpollCommand::Netsend(OwnArgs { args }) => netrate::run(NetrateTool::Netsend, args),
        NicpollCommand::Completions { shell } => completions(*shell),
        NicpollCommand::Man(args) => man::run(args, Cli::command()),
    }
}

fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nicpoll", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
