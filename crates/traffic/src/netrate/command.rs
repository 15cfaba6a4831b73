//! The tools from their arguments to their last line.
//!
//! Without nicpoll's own options, standard output, standard error and the exit status
//! are the originals', but for what netreceive adds when it ends. With `--json` standard output is left to
//! one document, and what the originals print there before it goes to standard error.

mod blast;
mod common;
mod receive;
mod send;

use std::io;

use nicpoll_sys::stdio::print;
use nicpoll_sys::tell;

pub use common::{EXIT_SHORT, Program, ToolEnded};

use crate::netrate::options::{
    CommandLine, EXIT_REFUSED, OptionError, Tool, parse_netblast, parse_netreceive, parse_netsend,
};
use common::{DONE, Refused};

/// The help text of a tool.
pub fn help_text(tool: Tool) -> &'static str {
    match tool {
        Tool::Netblast => include_str!("command/netblast.txt"),
        Tool::Netreceive => include_str!("command/netreceive.txt"),
        Tool::Netsend => include_str!("command/netsend.txt"),
    }
}

/// Runs a tool with its arguments.
///
/// # Errors
/// When something fails that the originals do not have.
pub fn run(tool: Tool, args: &[String], program: &mut dyn Program) -> io::Result<ToolEnded> {
    match tool {
        Tool::Netblast => dispatch(tool, parse_netblast(args), program, blast::run),
        Tool::Netreceive => dispatch(tool, parse_netreceive(args), program, receive::run),
        Tool::Netsend => dispatch(tool, parse_netsend(args), program, send::run),
    }
}

fn dispatch<T>(
    tool: Tool,
    asked: Result<CommandLine<T>, OptionError>,
    program: &mut dyn Program,
    run: fn(&T, &mut dyn Program) -> Result<ToolEnded, Refused>,
) -> io::Result<ToolEnded> {
    let refused = match asked {
        Ok(CommandLine::Help) => {
            print(help_text(tool))?;
            return Ok(DONE);
        }
        Ok(CommandLine::Run(options)) => match run(&options, program) {
            Ok(ended) => return Ok(ended),
            Err(Refused::Because(text)) => text,
            Err(Refused::Failed(error)) => return Err(error),
        },
        Err(error) => error.to_string(),
    };
    tell!("{refused}");
    Ok(ToolEnded::Status(EXIT_REFUSED))
}
