//! `nicpoll iperf`: the iperf 2 command, letter for letter.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nicpoll_iperf::command::{run_client, run_server};
use nicpoll_iperf::options::{Options, Parsed, help_text, parse};
use nicpoll_sys::stdio::{self, Detached, Starting};
use nicpoll_sys::tell;
use nicpoll_traffic::signals::on_signal;
use nicpoll_traffic::{CloseAccount, Signals};

use crate::traffic::open_account;

/// The text of `--version` of the iperf whose options are supported.
const VERSION: &str = "iperf version 2.1.8 (12 August 2022) pthreads";
/// Exit status of the original after a usage error, help or version.
const EXIT_USAGE: u8 = 1;
/// Exit status if a server in the background cannot start.
const EXIT_FAILED: u8 = 1;

/// Runs the command and returns its exit status.
pub fn run(args: &[String]) -> io::Result<u8> {
    let options = match parse(args.iter().cloned(), |name| std::env::var(name).ok()) {
        Ok(Parsed::Test(options)) => options,
        Ok(Parsed::Help) => {
            stdio::print_error(help_text());
            return Ok(EXIT_USAGE);
        }
        Ok(Parsed::Version) => {
            tell!("nicpoll {} as {VERSION}", env!("CARGO_PKG_VERSION"));
            return Ok(EXIT_USAGE);
        }
        Err(error) => {
            tell!("{error}");
            return Ok(EXIT_USAGE);
        }
    };
    for warning in &options.warnings {
        tell!("{warning}");
    }
    let signals = Arc::new(Signals::default());
    if options.is_client() {
        on_signal(&signals, end)?;
        return run_client(&options, &signals, || account(&options));
    }
    // A fork, so before any thread starts.
    let daemon = match options.daemon.then(stdio::detach).transpose()? {
        None => None,
        Some(Detached::Background(daemon)) => Some(daemon),
        Some(Detached::Foreground(starting)) => return await_daemon(starting),
    };
    on_signal(&signals, end)?;
    run_server(&options, &signals, account(&options), daemon)
}

/// Prints the calling process's message about the one in the background and returns its exit status. Errors were
/// printed there.
fn await_daemon(starting: Starting) -> io::Result<u8> {
    if !starting.is_up()? {
        return Ok(EXIT_FAILED);
    }
    tell!("Running Iperf Server as a daemon");
    Ok(0)
}

/// Ends the streams of both directions; their reports are still printed.
fn end(signals: &Signals) {
    signals.finish.store(true, Ordering::Relaxed);
    signals.sender_done.store(true, Ordering::Release);
}

/// Opens the account of this host: for JSON always, for text if datagrams may be lost.
fn account(options: &Options) -> Option<CloseAccount> {
    let is_told = options.json.is_some() || options.is_udp();
    is_told.then(open_account)?
}
