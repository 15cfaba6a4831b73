//! `nicpoll sim hosts`: what host files can be had without one.

use clap::Args;
use nicpoll_sim::{EmbeddedHost, list_presets};

use super::usage;
use crate::failure::Failure;
use crate::output;

pub const EXAMPLES: &str = "\
A host file may begin from presets: [cpu] preset = a host of the list, which gives every number,
[card] preset = a driver, [link] preset = a speed. What the file states itself counts. docs/router.md has
a router in ten lines. Wherever a host file is wanted, a name of the list will do.

Examples:
  nicpoll sim hosts
  nicpoll sim hosts net6501 > mine.toml
  nicpoll sim run net6501 --discipline freebsd-polling

Exit codes: 0 done, 1 failed, 2 usage.";

/// Options of `nicpoll sim hosts`.
#[derive(Args, Debug)]
pub struct HostsArgs {
    /// Print the file of this host
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: &HostsArgs) -> Result<u8, Failure> {
    let Some(name) = &args.name else {
        output::print(&list_presets())?;
        return Ok(0);
    };
    let names = || {
        EmbeddedHost::all()
            .map(|host| host.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let host = EmbeddedHost::named(name);
    let host =
        host.ok_or_else(|| usage(format!("there is no host '{name}'; there are {}", names())))?;
    output::print(host.text)?;
    Ok(0)
}
