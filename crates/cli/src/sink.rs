//! `nicpoll sink`: receives packets on the engine and counts them.

use std::collections::BTreeSet;

use anyhow::Context;
use clap::Args;
use nicpoll_core::{Controller, Knob};
use nicpoll_engine::{
    Check, DeviceChoice, Drive, EngineSettings, FRAMES_MAX, KernelSide, RunnerSettings, Sink,
    SinkSettings, Take, parse_knob_setting,
};
use nicpoll_report::SINK_TEXTS;
use nicpoll_report::help::sink::{ABOUT, EXAMPLES};
use nicpoll_study::{EngineSupport, check_of};
use nicpoll_sys::{affinity, tell};

use crate::failure::{Failure, over};
use crate::output::origin;
use crate::running::RunningArgs;
use crate::stop::Stop;

/// Options of `nicpoll sink`.
#[derive(Args, Clone, Debug)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct SinkArgs {
    /// The interface
    #[arg(value_name = "IF")]
    interface: String,
    /// How the packets come: auto (the fastest of the first two that works), af-xdp, af-packet or tap
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: DeviceChoice,
    /// UDP ports whose packets are taken, of IPv4 and IPv6: discard and iperf unless named
    #[arg(
        long,
        value_name = "PORT",
        value_delimiter = ',',
        default_value = "9,5001",
        conflicts_with = "all_udp"
    )]
    port: Vec<u16>,
    /// Take all UDP: this host's own DNS replies, DHCP and NTP included
    #[arg(long)]
    all_udp: bool,
    /// How to learn of packets: polling, interrupt, busy-poll or adaptive
    #[arg(long, value_name = "NAME", default_value = "polling")]
    discipline: Drive,
    /// Ticks a second
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    hz: u32,
    /// How the burst follows the load: freebsd (a packet more or less each tick) or share (by the clock)
    #[arg(long, value_name = "NAME", default_value = "freebsd", value_parser = parse_controller)]
    controller: Controller,
    /// Write a knob of kern.polling before it begins, such as burst_max=1000; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_knob_setting)]
    set: Vec<(Knob, u32)>,
    /// Throttle an interrupt after N passes back to back (hw.intr_storm_threshold); 0: never
    #[arg(long, value_name = "N", default_value_t = 0)]
    storm_threshold: u32,
    /// CPUs of the threads that receive, such as 0,1; queues go round them [default: the last one that is allowed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpu: Vec<u32>,
    /// What to ask of the kernel's side while it runs: as-is, threaded (kernel threads receive) or polling (a timer
    /// begins the kernel's rounds)
    #[arg(long, value_name = "NAME", default_value = "as-is")]
    kernel_side: KernelSide,
    /// CPUs of the kernel's threads with '--kernel-side threaded' [default: those that the engine leaves free]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    kernel_cpu: Vec<u32>,
    /// CPU time to spend on each packet, in ns, as an application would
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    work: u64,
    /// Look for lost, doubled and late packets by the numbers in them: netrate (netblast, netsend), iperf
    /// (iperf 2) or mark (nicpoll blast, with the latency)
    #[arg(long, value_name = "NAME", value_parser = check_of)]
    check: Option<Check>,
    #[command(flatten)]
    running: RunningArgs,
}

fn parse_controller(text: &str) -> Result<Controller, String> {
    Controller::from_name(text).ok_or_else(|| String::from("freebsd or share was expected"))
}

/// Runs the command and returns its exit code.
pub fn run(args: &SinkArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let settings = settings(args)?;
    let support = EngineSupport::of(&args.interface, args.discipline, args.kernel_side);
    let sink = Sink::start(&settings, origin(), &support.helpers())?;
    if let Some(gap) = support.gap() {
        tell!("nicpoll sink: {gap}");
    }
    args.running.run(sink, SINK_TEXTS, &stop)?;
    Ok(over(&stop))
}

fn settings(args: &SinkArgs) -> Result<SinkSettings, Failure> {
    let cpus = match &args.cpu[..] {
        [] => vec![affinity::last_allowed_cpu().context("reading which CPUs are allowed")?],
        cpus => cpus.to_vec(),
    };
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
        engine: EngineSettings {
            cpus,
            runner: RunnerSettings {
                drive: args.discipline,
                hz: args.hz,
                controller: args.controller,
                storm_threshold: args.storm_threshold,
            },
            knobs: args.set.clone(),
        },
        kernel_side: args.kernel_side,
        kernel_cpus: args.kernel_cpu.clone(),
    })
}
