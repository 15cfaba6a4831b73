//! `nicpoll netblast`, `netreceive` and `netsend`: FreeBSD's netrate tools.

use anyhow::Context;
use nicpoll_traffic::netrate::command;
use nicpoll_traffic::netrate::options::NetrateTool;

use crate::failure::Failure;
use crate::traffic::open_account;

/// Runs a tool and returns its exit status.
pub fn run(tool: NetrateTool, args: &[String]) -> Result<u8, Failure> {
    Ok(command::run(tool, args, &open_account).context(tool.name())?)
}
