//! `nicpoll forward`: a router's fast path between interfaces.

use anyhow::Context;
use clap::Args;
use nicpoll_engine::{Forward, ForwardPath, ForwardSettings, Named};
use nicpoll_observe::forward_filters;
use nicpoll_report::FORWARD_TEXTS;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use super::options::{EngineArgs, RunningArgs};
use crate::failure::Failure;
use crate::output::origin;

/// Options of `nicpoll forward`.
#[derive(Args, Clone, Debug)]
#[command(long_about = include_str!("../help/forward-about.txt"), after_help = include_str!("../help/forward-examples.txt"))]
pub struct ForwardArgs {
    /// The interfaces, two at least
    #[arg(value_name = "IF", num_args = 2.., required = true)]
    interfaces: Vec<String>,
    /// Who forwards: auto (the fastest that works here and has the options given), xdp (the XDP program itself) or user
    /// (the polled engine)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = ForwardPath::by_name)]
    path: ForwardPath,
    #[command(flatten)]
    engine: EngineArgs,
    /// Forward although nftables or iptables has rules for routed packets, which would bypass them
    #[arg(long)]
    past_filters: bool,
    #[command(flatten)]
    running: RunningArgs,
}

/// Runs the command and returns its exit code.
pub fn run(args: &ForwardArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let names: Vec<&str> = args.interfaces.iter().map(String::as_str).collect();
    let settings = ForwardSettings {
        interfaces: args.interfaces.clone(),
        path: args.path,
        engine: args.engine.settings()?,
        engine_options: args.engine.given(),
        kernel_side: args.engine.kernel_side,
        kernel_cpus: args.engine.kernel_cpu.clone(),
        filters: forward_filters(&names).context("asking for the packet filter's rules")?,
        past_filters: args.past_filters,
        gone: args.running.policy(),
    };
    let support = args.engine.support(&names);
    let forward = Forward::start(&settings, origin(), &support)?;
    if let Some(gap) = support.gap() {
        tell!("nicpoll forward: {gap}");
    }
    let (_, code) = args.running.run(forward, FORWARD_TEXTS, &stop, &support)?;
    Ok(code)
}
