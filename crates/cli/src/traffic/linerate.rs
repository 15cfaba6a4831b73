//! `nicpoll linerate`: computes what a line carries, and what share of it a rate takes.

use std::io;

use anyhow::Context;
use clap::{ArgGroup, Args};
use nicpoll_model::Rate;
use nicpoll_model::line::{
    IpVersion, LINE_RATES_SCHEMA, Line, LineFacts, LinePacket, LineRates, LineRow, MTU_BYTES,
    RFC_2544_FRAMES,
};
use nicpoll_model::units::{parse_rate, parse_speed};
use nicpoll_report::render_line_rates;
use nicpoll_sys::ethtool;

use crate::failure::Failure;
use crate::options::{number, usage};
use crate::output;

/// Options of `nicpoll linerate`.
#[derive(Args, Debug)]
#[command(long_about = include_str!("../help/linerate-about.txt"), after_help = include_str!("../help/linerate-examples.txt"))]
#[command(group = ArgGroup::new("line").required(true).args(["speed", "interface"]))]
pub struct LinerateArgs {
    /// Speed of the line in bit/s, such as 100m, 1g, 2.5g or 10g
    #[arg(value_parser = parse_line_speed)]
    speed: Option<u64>,
    /// Take speed and MTU from an interface; a virtual one's speed is nominal, and labelled so
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// Frame lengths in bytes, with FCS, or imix: seven of 64 bytes, four of 594, one of 1518 [default: the sizes of
    /// RFC 2544]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_frame)]
    frame: Vec<LinePacket>,
    /// Payload bytes of UDP datagrams; above the MTU they are fragmented
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = number::<u32>(..))]
    udp: Vec<u32>,
    /// Bytes of TCP writes, each sent alone
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = number::<u32>(..))]
    tcp: Vec<u32>,
    /// Add TCP's timestamps option, 12 bytes a segment, Linux's default
    #[arg(long, requires = "tcp")]
    tcp_timestamps: bool,
    /// IP version of --udp and --tcp: 4 or 6 [default: both]
    #[arg(long, value_name = "VERSION", value_parser = parse_ip)]
    ip: Option<IpVersion>,
    /// VLAN tags in each frame
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::<u8>(0..=2))]
    vlan: u8,
    /// The longest IP packet in a frame [default: 1500, or the interface's]
    #[arg(long, value_name = "BYTES", value_parser = number::<u32>(68..=65_535))]
    mtu: Option<u32>,
    /// A rate to compare with the line: packets/s (70kpps) or bit/s of payload, with --frame of frames
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<Rate>,
    /// Print one JSON object instead of a table (docs/linerate.md)
    #[arg(long)]
    json: bool,
}

fn parse_frame(text: &str) -> Result<LinePacket, String> {
    if text == "imix" {
        return Ok(LinePacket::Imix);
    }
    let bytes = text
        .parse()
        .map_err(|_| String::from("a number of bytes or imix was expected"))?;
    Ok(LinePacket::Frame { bytes })
}

/// The slowest Ethernet line, in bit/s.
const SLOWEST_LINE: u64 = 1_000_000;

/// Parses a speed; a number too small for a line needs a unit.
fn parse_line_speed(text: &str) -> Result<u64, String> {
    let speed = parse_speed(text).map_err(|error| error.to_string())?;
    let has_unit = text.ends_with(|last: char| last.is_alphabetic());
    if speed < SLOWEST_LINE && !has_unit {
        return Err(format!("a unit is needed, such as '{text}m' or '{text}g'"));
    }
    Ok(speed)
}

fn parse_ip(text: &str) -> Result<IpVersion, String> {
    match text {
        "4" => Ok(IpVersion::V4),
        "6" => Ok(IpVersion::V6),
        _ => Err(String::from("4 or 6 was expected")),
    }
}

/// Runs the command and returns its exit code.
pub fn run(args: &LinerateArgs) -> Result<u8, Failure> {
    let (line, facts) = line(args)?;
    let rows = packets(args)
        .into_iter()
        .map(|packet| LineRow::new(&line, packet, args.rate))
        .collect::<Result<_, _>>()
        .map_err(usage)?;
    let rates = LineRates {
        schema: String::from(LINE_RATES_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        line: facts,
        rows,
    };
    output::print_either(&rates, args.json, render_line_rates)?;
    Ok(0)
}

fn packets(args: &LinerateArgs) -> Vec<LinePacket> {
    let ips = match args.ip {
        Some(ip) => vec![ip],
        None => vec![IpVersion::V4, IpVersion::V6],
    };
    let mut frames = args.frame.clone();
    if frames.is_empty() && args.udp.is_empty() && args.tcp.is_empty() {
        frames = RFC_2544_FRAMES
            .map(|bytes| LinePacket::Frame { bytes })
            .to_vec();
    }
    let udp = args.udp.iter().flat_map(|&payload_bytes| {
        ips.iter()
            .map(move |&ip| LinePacket::Udp { ip, payload_bytes })
    });
    let tcp = args.tcp.iter().flat_map(|&payload_bytes| {
        ips.iter().map(move |&ip| LinePacket::Tcp {
            ip,
            payload_bytes,
            has_timestamps: args.tcp_timestamps,
        })
    });
    frames.into_iter().chain(udp).chain(tcp).collect()
}

fn line(args: &LinerateArgs) -> Result<(Line, LineFacts), Failure> {
    let mut interface_mtu = None;
    let mut driver = None;
    let mut is_nominal = None;
    let speed = match &args.interface {
        Some(interface) => {
            let link = link_of(interface)?;
            interface_mtu = Some(link.mtu_bytes);
            driver = Some(link.driver);
            is_nominal = Some(link.is_virtual);
            u64::from(link.speed_mbps.unwrap_or(0)) * 1_000_000
        }
        None => args.speed.unwrap_or(0),
    };
    let line = Line::new(speed).ok_or_else(|| {
        let interface = args.interface.as_deref().unwrap_or_default();
        Failure::Failed(anyhow::anyhow!(
            "{interface} reports no speed: its link is down, or its driver knows none; give the speed \
             instead: nicpoll linerate 1g"
        ))
    })?;
    let line = Line {
        mtu_bytes: args.mtu.or(interface_mtu).unwrap_or(MTU_BYTES),
        vlan_tags: args.vlan,
        ..line
    };
    let facts = LineFacts {
        bits_per_second: line.bits_per_second.get(),
        mtu_bytes: line.mtu_bytes,
        vlan_tags: line.vlan_tags,
        interface: args.interface.clone(),
        driver,
        is_nominal,
    };
    Ok((line, facts))
}

fn link_of(interface: &str) -> Result<ethtool::DriverLink, Failure> {
    let found = ethtool::link(interface);
    let remedy = match found.as_ref().map_err(io::Error::kind) {
        Err(io::ErrorKind::Unsupported) => "it is no Ethernet interface; give the speed instead",
        _ => "see 'ip link' for the names that there are",
    };
    Ok(found.with_context(|| format!("cannot read the speed of {interface} ({remedy})"))?)
}
