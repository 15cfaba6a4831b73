//! Runs the tools from their arguments to their last line.
//!
//! Without nicpoll's own options, standard output, standard error and exit status are the originals', except
//! for netreceive's summary at the end. With `--json`, standard output has only one document; what the
//! originals print there before it goes to standard error.

mod common;
mod receive;
mod send;

use std::io;

use nicpoll_sys::stdio::print;
use nicpoll_sys::tell;

use crate::netrate::options::{NetrateOptions, NetrateTool};
use common::ToolFailure;

pub use common::OpenAccount;

/// Exit status when a tool refuses its arguments or cannot start: the original's -1.
const EXIT_REFUSED: u8 = 255;

/// The help text of a tool.
pub fn help_text(tool: NetrateTool) -> &'static str {
    match tool {
        NetrateTool::Netblast => include_str!("command/netblast.txt"),
        NetrateTool::Netreceive => include_str!("command/netreceive.txt"),
        NetrateTool::Netsend => include_str!("command/netsend.txt"),
    }
}

/// Runs a tool with its arguments; returns its exit status.
///
/// # Errors
/// Errors for which the originals have no message.
pub fn run(tool: NetrateTool, args: &[String], open_account: OpenAccount<'_>) -> io::Result<u8> {
    let options = match NetrateOptions::parse(tool, args) {
        Ok(Some(options)) => options,
        Ok(None) => return print(help_text(tool)).map(|()| 0),
        Err(refused) => {
            tell!("{refused}");
            return Ok(EXIT_REFUSED);
        }
    };
    let ended = match tool {
        NetrateTool::Netblast => send::blast(&options, open_account),
        NetrateTool::Netreceive => receive::run(&options, open_account),
        NetrateTool::Netsend => send::paced(&options, open_account),
    };
    match ended {
        Ok(status) => Ok(status),
        Err(ToolFailure::Because(text)) => {
            tell!("{text}");
            Ok(EXIT_REFUSED)
        }
        Err(ToolFailure::Failed(error)) => Err(error),
    }
}
