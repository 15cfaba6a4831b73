//! `nicpoll sim hosts`: what host files can be had without one.

use clap::Args;
pub use nicpoll_report::help::sim_hosts::EXAMPLES;
use nicpoll_sim::{EmbeddedHost, list_presets};

use super::usage;
use crate::failure::Failure;
use crate::output;

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
