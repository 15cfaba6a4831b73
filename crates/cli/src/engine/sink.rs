//! `nicpoll sink`: receives packets on the engine and counts them.

use std::collections::BTreeSet;

use anyhow::Context;
use clap::Args;
use nicpoll_engine::{DeviceChoice, FRAMES_MAX, Named, PacketCheck, Sink, SinkSettings, Take};
use nicpoll_lab::{OtherEnd, check_of};
use nicpoll_report::SINK_TEXTS;
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use super::options::{EngineArgs, RunningArgs};
use crate::failure::Failure;
use crate::options::number;
use crate::output::origin;

/// Options of `nicpoll sink`.
#[derive(Args, Clone, Debug)]
#[command(long_about = include_str!("../help/sink-about.txt"), after_help = include_str!("../help/sink-examples.txt"))]
pub struct SinkArgs {
    /// The interface
    #[arg(value_name = "IF")]
    interface: String,
    /// How packets are received: auto (af-xdp, else af-packet), af-xdp, af-packet or tap
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = DeviceChoice::by_name)]
    device: DeviceChoice,
    /// UDP ports to take, of IPv4 and IPv6; the default is discard's and iperf's
    #[arg(
        long,
        value_name = "PORT",
        value_delimiter = ',',
        default_value = "9,5001",
        value_parser = number::<u16>(1..),
        conflicts_with = "all_udp"
    )]
    port: Vec<u16>,
    /// Take all UDP: this host's own DNS replies, DHCP and NTP included
    #[arg(long)]
    all_udp: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// CPU time to spend on each packet, in ns, like an application
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = number::<u64>(..=1_000_000))]
    work: u64,
    /// Count lost, doubled and late packets by the numbers in them: netrate (netblast, netsend), iperf (iperf 2) or
    /// mark (nicpoll blast, with the latency)
    #[arg(long, value_name = "NAME", value_parser = check_of)]
    check: Option<PacketCheck>,
    #[command(flatten)]
    running: RunningArgs,
}

/// Runs the command and returns its exit code.
pub fn run(args: &SinkArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let settings = settings(args)?;
    let support = args.engine.support(&[&args.interface]);
    let other_end = OtherEnd::of(&args.interface);
    let sink = Sink::start(&settings, origin(), &support)?;
    if let Some(gap) = support.gap() {
        tell!("nicpoll sink: {gap}");
    }
    let sink = other_end.around(sink);
    let (_, code) = args.running.run(sink, SINK_TEXTS, &stop, &support)?;
    Ok(code)
}

fn settings(args: &SinkArgs) -> Result<SinkSettings, Failure> {
    Ok(SinkSettings {
        interface: args.interface.clone(),
        device: args.device,
        take: if args.all_udp {
            Take::AllUdp
        } else {
            Take::Ports(args.port.iter().copied().collect::<BTreeSet<_>>())
        },
        frames: FRAMES_MAX,
        work_ns: args.work,
        check: args.check,
        engine: args.engine.settings()?,
        kernel_side: args.engine.kernel_side,
        kernel_cpus: args.engine.kernel_cpu.clone(),
        gone: args.running.policy(),
    })
}
