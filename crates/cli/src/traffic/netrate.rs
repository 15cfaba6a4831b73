//! `nicpoll netblast`, `netreceive` and `netsend`: FreeBSD's netrate tools.

use std::io;

use nicpoll_model::traffic::NetrateSender;
use nicpoll_observe::HostAccount;
use nicpoll_report::render_document;
use nicpoll_sys::stdio;
use nicpoll_traffic::CloseAccount;
use nicpoll_traffic::netrate::command::{self, EXIT_SHORT, Program, ToolEnded};
use nicpoll_traffic::netrate::options::Tool;
use nicpoll_traffic::signals::Stop;

/// Runs a tool and returns its exit status.
pub fn run(tool: Tool, args: &[String]) -> io::Result<u8> {
    // Whoever ended a test by a signal knows what was obtained.
    let is_short =
        |sender: &NetrateSender| sender.error.is_some() && sender.ended_by_signal.is_none();
    let (document, is_short) = match command::run(tool, args, &mut Lent(None))? {
        ToolEnded::Status(status) => return Ok(status),
        ToolEnded::Netblast(document) => (render_document(&document), is_short(&document.sender)),
        ToolEnded::NetblastRuns(document) => {
            let is_any_short = document.runs.iter().any(|run| is_short(&run.sender));
            (render_document(&document), is_any_short)
        }
        ToolEnded::Netreceive(document) => (render_document(&document), false),
        ToolEnded::Netsend(document) => (render_document(&document), is_short(&document.sender)),
    };
    stdio::print(&document)?;
    Ok(if is_short { EXIT_SHORT } else { 0 })
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

    fn open_account(&self) -> Option<CloseAccount> {
        let account = HostAccount::begin().ok()?;
        Some(Box::new(|| account.end().ok()))
    }
}
