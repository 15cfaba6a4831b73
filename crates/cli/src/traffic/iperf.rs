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

/// The version whose options are understood, as it states it.
const VERSION: &str = "iperf version 2.1.8 (12 August 2022) pthreads";
/// What the original ends with after a usage error, help or version.
const EXIT_USAGE: u8 = 1;
/// What a server in the background failed with.
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
    // Before there is another thread.
    let daemon = match options.daemon.then(stdio::detach).transpose()? {
        None => None,
        Some(Detached::Background(daemon)) => Some(daemon),
        Some(Detached::Foreground(starting)) => return told(starting),
    };
    on_signal(&signals, end)?;
    run_server(&options, &signals, account(&options), daemon)
}

/// What the process that was called says of the one in the background, and its exit status. What went
/// wrong there has been said.
fn told(starting: Starting) -> io::Result<u8> {
    if !starting.is_up()? {
        return Ok(EXIT_FAILED);
    }
    tell!("Running Iperf Server as a daemon");
    Ok(0)
}

/// Has streams end, whichever way they go, so that what was measured until then is still told.
fn end(signals: &Signals) {
    signals.finish.store(true, Ordering::Relaxed);
    signals.sender_done.store(true, Ordering::Release);
}

/// The account of this host, for whoever prints it: JSON always, text where datagrams may be lost.
fn account(options: &Options) -> Option<CloseAccount> {
    let is_told = options.json.is_some() || options.is_udp();
    is_told.then(open_account)?
}
