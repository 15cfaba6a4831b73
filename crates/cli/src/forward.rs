//! `nicpoll forward`: a router's fast path between interfaces.

use anyhow::Context;
use clap::Args;
use nicpoll_engine::{Forward, ForwardPath, ForwardSettings};
use nicpoll_model::forward::{FORWARD_SCHEMA, ForwardDocument, ForwardEnd};
use nicpoll_report::help::forward::{ABOUT, EXAMPLES};
use nicpoll_report::{
    render_document, render_forward_end, render_forward_interval, render_forward_start,
};

use crate::failure::Failure;
use crate::output::{origin, print};
use crate::running::RunningArgs;
use crate::stop::Stop;

/// Options of `nicpoll forward`.
#[derive(Args, Clone, Debug)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct ForwardArgs {
    /// The interfaces, two at least
    #[arg(value_name = "IF", num_args = 2.., required = true)]
    interfaces: Vec<String>,
    /// Who forwards: auto (the fastest that works here) or xdp (the XDP program itself)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = parse_path)]
    path: ForwardPath,
    #[command(flatten)]
    running: RunningArgs,
}

fn parse_path(text: &str) -> Result<ForwardPath, String> {
    let names = || ForwardPath::names().collect::<Vec<_>>().join(", ");
    ForwardPath::from_name(text).ok_or_else(|| format!("one of these was expected: {}", names()))
}

/// Runs the command and returns its exit code.
pub fn run(args: &ForwardArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let running = &args.running;
    let settings = ForwardSettings {
        interfaces: args.interfaces.clone(),
        path: args.path,
    };
    let mut forward = Forward::start(&settings, origin())?;
    let start = forward.facts().clone();
    running.show("start", &start, render_forward_start)?;
    let mut intervals = Vec::new();
    let outcome = running.each_interval(&stop, || {
        let interval = forward.interval()?;
        running.show("interval", &interval, render_forward_interval)?;
        if running.json {
            intervals.push(interval);
        }
        Ok(())
    });
    let end = ForwardEnd {
        ended_by_signal: stop.signal(),
        ..forward.end()?
    };
    outcome?;
    if running.json {
        print(&render_document(&ForwardDocument {
            schema: String::from(FORWARD_SCHEMA),
            start,
            intervals,
            end,
        }))?;
    } else {
        running.show("end", &end, render_forward_end)?;
    }
    Ok(stop.signal().map_or(0, |signal| 128 + signal as u8))
}
