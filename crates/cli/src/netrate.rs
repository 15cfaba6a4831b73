//! `nicpoll netblast`, `netreceive` and `netsend`: FreeBSD's netrate tools.

use std::io;

use nicpoll_observe::HostAccount;
use nicpoll_report::render_document;
use nicpoll_sys::stdout;
use nicpoll_traffic::Account;
use nicpoll_traffic::netrate::command::{self, EXIT_SHORT, Ended, Program};
use nicpoll_traffic::netrate::options::Tool;

use crate::stop::Stop;

/// Runs a tool and returns its exit status.
pub fn run(tool: Tool, args: &[String]) -> io::Result<u8> {
    let (document, error) = match command::run(tool, args, &mut Lent(None))? {
        Ended::Status(status) => return Ok(status),
        Ended::Netblast(document) => (render_document(&document), document.sender.error),
        Ended::Netreceive(document) => (render_document(&document), None),
        Ended::Netsend(document) => (render_document(&document), document.sender.error),
    };
    stdout::print(&document)?;
    Ok(error.map_or(0, |_| EXIT_SHORT))
}

/// What the tools are lent: the signals, once they are caught, and the account of this host.
struct Lent(Option<Stop>);

impl Program for Lent {
    fn catch_signals(&mut self) -> io::Result<()> {
        self.0 = Some(Stop::on_signals()?);
        Ok(())
    }

    fn signal(&self) -> Option<i32> {
        self.0.as_ref()?.signal()
    }

    fn open_account(&self) -> Option<Account> {
        let account = HostAccount::begin().ok()?;
        Some(Box::new(|| account.end().ok()))
    }
}
