//! `nicpoll blast`: sends frames past the kernel's stack.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nicpoll_engine::blast::{
    Blast, BlastPath, BlastSettings, FLOW_PORTS, FrameLengths, FrameReceiver, LinkSettings,
    LinkTraffic,
};
use nicpoll_engine::{Choice, Named};
use nicpoll_model::Rate;
use nicpoll_model::units::parse_rate;
use nicpoll_report::BLAST_TEXTS;
use nicpoll_sys::schedule;
use nicpoll_traffic::signals::Stop;
use nicpoll_wire::frame::Mac;

use super::options::{RunningArgs, cpus_allowed};
use crate::failure::{EXIT_FAILED, Failure};
use crate::options::{number, parsed};
use crate::output::origin;

/// Options of `nicpoll blast`.
#[derive(Args, Clone, Debug)]
#[command(long_about = include_str!("../help/blast-about.txt"), after_help = include_str!("../help/blast-examples.txt"))]
pub struct BlastArgs {
    /// The interface; several send at the same time
    #[arg(value_name = "IF", required = true)]
    interfaces: Vec<String>,
    // Not a doc comment: rustdoc would take the brackets for a link.
    #[arg(
        long,
        help = "The receiver's address, or with a port, such as 198.18.0.2:9 or [2001:2::2]:9. Once for all \
                interfaces, or once for each",
        value_name = "ADDRESS",
        required_unless_present = "replay",
        conflicts_with = "replay"
    )]
    to: Vec<String>,
    /// Port of the receiver, unless ADDRESS has one
    #[arg(long, value_name = "PORT", default_value_t = 9, value_parser = number::<u16>(1..))]
    port: u16,
    /// Source address [default: the kernel's choice]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "replay", value_parser = parsed::<IpAddr>("an IPv4 or IPv6 address"))]
    from: Option<IpAddr>,
    /// Hardware address of the receiver or the next router [default: found by the kernel]
    #[arg(long, value_name = "MAC")]
    mac: Option<Mac>,
    /// Frame lengths in bytes, with FCS: one, a list that is cycled through, or imix (7 x 64, 4 x 594, 1 x 1518)
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "64",
        conflicts_with = "replay"
    )]
    size: FrameLengths,
    /// Number of flows, sent in turn: they differ in source port
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u16>(1..=FLOW_PORTS.len() as u64), conflicts_with = "replay")]
    flows: u16,
    /// Send the frames of a pcap file instead, at their recorded times
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Frames a second of each interface, such as 500k [default: as fast as they go]
    #[arg(long, value_name = "RATE", value_parser = frame_rate)]
    rate: Option<Rate>,
    /// Frames sent back to back; '--rate' stays the average
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate", value_parser = number::<u32>(1..=100_000))]
    burst: u32,
    /// End after N frames of each interface
    #[arg(long, value_name = "N", value_parser = number::<u64>(1..))]
    count: Option<u64>,
    /// How frames leave: live, af-xdp, af-packet or auto, the fastest that works here
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = Choice::<BlastPath>::by_name)]
    path: Choice<BlastPath>,
    /// CPUs of the sending threads, one for each interface [default: the first allowed ones]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = number::<u32>(..))]
    cpu: Vec<u32>,
    /// Duration and output.
    #[command(flatten)]
    running: RunningArgs,
}

fn frame_rate(text: &str) -> Result<Rate, String> {
    let text = text.trim().trim_end_matches("pps");
    let rate = parse_rate(&format!("{text}pps"));
    rate.map_err(|_| {
        String::from("frames a second were expected, above 0, such as 10000, 500k or 1.2m")
    })
}

/// Runs the command and returns its exit code.
pub fn run(args: &BlastArgs) -> Result<u8, Failure> {
    let stop = Stop::on_signals().context("catching signals")?;
    let blast = Blast::start(&settings(args)?, origin())?;
    let (end, code) = args.running.run(blast, BLAST_TEXTS, &stop, &())?;
    let has_failed = end.links.iter().any(|link| link.failure.is_some());
    Ok(match code {
        0 if has_failed => EXIT_FAILED,
        code => code,
    })
}

fn settings(args: &BlastArgs) -> Result<BlastSettings, Failure> {
    let links = args.interfaces.len();
    let receivers = args.to.iter().map(|to| receiver(args, to));
    let receivers = receivers.collect::<Result<Vec<_>, Failure>>()?;
    if args.replay.is_none() && receivers.len() != 1 && receivers.len() != links {
        return Err(Failure::Usage(format!(
            "--to: one for all interfaces or one for each was expected, and there are {} for {links}",
            receivers.len()
        )));
    }
    let mut cpus = cpus_allowed("--cpu", &args.cpu)?;
    if cpus.is_empty() {
        cpus = schedule::allowed_cpus().context("reading which CPUs are allowed")?;
    }
    let link = |(index, interface): (usize, &String)| LinkSettings {
        interface: interface.clone(),
        cpu: cpus[index % cpus.len()],
        traffic: match &args.replay {
            Some(file) => LinkTraffic::Replay {
                file: file.clone(),
                mac: args.mac,
            },
            None => LinkTraffic::Datagrams {
                receiver: receivers[index % receivers.len()],
                lengths: args.size.clone(),
                flows: args.flows,
            },
        },
    };
    Ok(BlastSettings {
        links: args.interfaces.iter().enumerate().map(link).collect(),
        path: args.path,
        rate: args.rate,
        burst: args.burst,
        count: args.count,
        duration: args.running.duration,
        gone: args.running.policy(),
    })
}

fn receiver(args: &BlastArgs, to: &str) -> Result<FrameReceiver, Failure> {
    let address = |text: &str| text.parse().ok().map(|ip| SocketAddr::new(ip, args.port));
    let to = to.parse().ok().or_else(|| address(to)).ok_or_else(|| {
        Failure::Usage(format!(
            "--to {to}: an address was expected, such as 198.18.0.2, 198.18.0.2:9 or [2001:2::2]:9"
        ))
    })?;
    Ok(FrameReceiver {
        to,
        from: args.from,
        mac: args.mac,
    })
}
