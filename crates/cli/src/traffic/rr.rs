//! `nicpoll rr`: request and response, either end.

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args};
use nicpoll_model::traffic::{RR_SCHEMA, RrSideStart, RrStart};
use nicpoll_model::units::{parse_count_rate, parse_seconds};
use nicpoll_model::{Protocol, Rate};
use nicpoll_report::{PageForm, RR_TEXTS, RunPage, finish_rr_page};
use nicpoll_sys::tell;
use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{
    Pacing, RrClientConfig, RrEvent, ServiceConfig, run_client_session, run_server_session,
};
use nicpoll_traffic::signals::on_signal;
use nicpoll_wire::rr::{MESSAGE_BYTES_MAX, Message};

use crate::failure::Failure;
use crate::options::number;
use crate::output::{now, print};

/// The default duration of a client.
const DURATION: Duration = Duration::from_secs(10);

/// Runs the command and returns its exit code.
pub fn run(args: &RrArgs) -> Result<u8, Failure> {
    args.check().map_err(Failure::Usage)?;
    let signals = Arc::new(Signals::default());
    let stop = on_signal(&signals, |signals| {
        signals.finish.store(true, Ordering::Relaxed);
    })
    .context("catching signals")?;
    let mut page = RunPage::new(args.form(), RR_TEXTS);
    let tell = &mut |event| {
        print(&match event {
            RrEvent::Start(side) => page.start(&start(side)),
            RrEvent::Interval(interval) => page.interval(&interval),
            RrEvent::Refused(refusal) => {
                tell!("nicpoll rr: {refusal}");
                return Ok(());
            }
            RrEvent::End(end) => page.end(&end),
        })
    };
    let is_interrupted = || stop.signal().is_some();
    let outcome = match &args.client {
        Some(host) => client_config(args, host)
            .and_then(|config| run_client_session(&config, &signals, is_interrupted, tell)),
        None => server_config(args).and_then(|config| {
            run_server_session(&config, args.interval, &signals, is_interrupted, tell)?;
            Ok(None)
        }),
    };
    let problem = match outcome {
        Ok(problem) => problem.map(anyhow::Error::msg),
        Err(_) if stop.signal().is_some() => None,
        Err(error) => Some(error),
    };
    let said = problem.as_ref().map(|error| format!("{error:#}"));
    print(&finish_rr_page(page, said))?;
    match (problem, stop.signal()) {
        (_, Some(signal)) => Ok(128 + signal as u8),
        (Some(problem), None) => Err(problem.into()),
        (None, None) => Ok(0),
    }
}

fn start(side: RrSideStart) -> RrStart {
    RrStart {
        schema: String::from(RR_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at: now(),
        side,
    }
}

fn client_config(args: &RrArgs, host: &str) -> anyhow::Result<RrClientConfig> {
    let peer = resolve(host, args.port, args.ipv6)
        .with_context(|| format!("cannot find the server '{host}'; give its name or address"))?;
    let bind = args.bind.as_ref();
    let bind = bind.map(|local| resolve_local(local, 0, peer.is_ipv6()));
    let depth = NonZeroU32::new(args.depth).unwrap_or(NonZeroU32::MIN);
    let requests = args.requests.and_then(NonZeroU64::new);
    Ok(RrClientConfig {
        bind: bind.transpose()?,
        protocol: match args.udp {
            true => Protocol::Udp,
            false => Protocol::Tcp,
        },
        pacing: match args.rate {
            Some(rate) => Pacing::Open { rate },
            None => Pacing::Closed { depth },
        },
        duration: match requests {
            Some(_) => args.time,
            None => Some(args.time.unwrap_or(DURATION)),
        },
        requests,
        request_bytes: args.request_bytes,
        response_bytes: args.response_bytes,
        timeout: args.timeout,
        interval: args.interval,
        ..RrClientConfig::udp(peer, DURATION)
    })
}

fn server_config(args: &RrArgs) -> anyhow::Result<ServiceConfig> {
    let any: IpAddr = match args.ipv6 {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    Ok(ServiceConfig {
        bind: match &args.bind {
            Some(local) => resolve_local(local, args.port, args.ipv6)?,
            None => SocketAddr::new(any, args.port),
        },
        duration: args.time,
    })
}

fn resolve_local(local: &str, port: u16, wants_ipv6: bool) -> anyhow::Result<SocketAddr> {
    resolve(local, port, wants_ipv6)
        .with_context(|| format!("cannot find the local address '{local}'"))
}

/// Resolves a name to its first address: IPv6 if wanted, else IPv4 if there is one.
fn resolve(host: &str, port: u16, wants_ipv6: bool) -> anyhow::Result<SocketAddr> {
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let wanted = found.iter().find(|one| one.is_ipv6() == wants_ipv6);
    let any = found.first().filter(|_| !wants_ipv6);
    let chosen = wanted.or(any).copied();
    chosen.ok_or_else(|| anyhow!("it has no IPv6 address"))
}

/// Default port of the server; no registered service has it.
const PORT: u16 = 5018;
/// The shortest message.
const HEAD_BYTES: u32 = Message::BYTES as u32;
/// Lengths of a message.
const MESSAGE_BYTES: RangeInclusive<u64> = HEAD_BYTES as u64..=MESSAGE_BYTES_MAX as u64;
/// The longest UDP payload over both versions of IP.
const DATAGRAM_BYTES_MAX: u32 = 65_507;
/// The most requests in flight; more would be a stream.
const DEPTH_MAX: u64 = 1024;
/// The longest time in the histogram.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Options of `nicpoll rr`.
#[derive(Args, Debug)]
#[command(long_about = include_str!("../help/rr-about.txt"), after_help = include_str!("../help/rr-examples.txt"))]
#[command(group = ArgGroup::new("end").required(true).args(["server", "client"]))]
pub struct RrArgs {
    /// Serve, over UDP and TCP
    #[arg(short, long, conflicts_with_all = [
        "udp", "requests", "rate", "depth", "timeout", "request_bytes", "response_bytes",
    ])]
    server: bool,
    /// Connect to the server at this name or address
    #[arg(short, long, value_name = "HOST")]
    pub client: Option<String>,
    /// Use UDP rather than TCP
    #[arg(short, long)]
    pub udp: bool,
    /// Port of the server
    #[arg(short, long, default_value_t = PORT, value_parser = number::<u16>(1..))]
    pub port: u16,
    /// Local address
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub bind: Option<String>,
    /// IPv6; a server then takes IPv4 as well
    #[arg(short = 'V', long)]
    pub ipv6: bool,
    /// How long to send [default: 10s unless -n is given] or to serve [default: until a signal]
    #[arg(short, long, value_name = "TIME", value_parser = parse_seconds)]
    pub time: Option<Duration>,
    /// How many requests to send; with -t whichever ends first
    #[arg(short = 'n', long, value_name = "N", value_parser = number::<u64>(1..))]
    pub requests: Option<u64>,
    /// Print each interval when it ends
    #[arg(short, long, value_name = "TIME", value_parser = parse_seconds)]
    pub interval: Option<Duration>,
    /// Open loop: requests a second, such as 500 or 10k
    #[arg(long, value_name = "RATE", value_parser = parse_count_rate, conflicts_with = "depth")]
    pub rate: Option<Rate>,
    /// Closed loop: requests in flight at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u32>(1..=DEPTH_MAX))]
    pub depth: u32,
    /// Time after which a request counts as lost, up to 60s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_seconds)]
    pub timeout: Duration,
    /// Bytes of a request, at least 64
    #[arg(long, value_name = "BYTES", default_value_t = HEAD_BYTES, value_parser = number::<u32>(MESSAGE_BYTES))]
    pub request_bytes: u32,
    /// Bytes of a response, at least 64; over UDP no more than of the request
    #[arg(long, value_name = "BYTES", default_value_t = HEAD_BYTES, value_parser = number::<u32>(MESSAGE_BYTES))]
    pub response_bytes: u32,
    /// Print one JSON object instead of text (docs/rr.md)
    #[arg(long)]
    json: bool,
    /// Print a line of JSON for each event as it happens
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

impl RrArgs {
    /// Refuses contradictions, and names what to do instead.
    pub fn check(&self) -> Result<(), String> {
        if self.udp && self.request_bytes > DATAGRAM_BYTES_MAX {
            return Err(format!(
                "a request of {} bytes does not fit into a datagram; give --request-bytes \
                 {DATAGRAM_BYTES_MAX} or less, or leave out -u",
                self.request_bytes
            ));
        }
        if self.udp && self.response_bytes > self.request_bytes {
            return Err(format!(
                "over UDP a server sends no more than it gets: a response of {} bytes takes a request \
                 as long; give --request-bytes {0}, or leave out -u",
                self.response_bytes
            ));
        }
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MAX {
            return Err(String::from("--timeout takes a time above 0 and up to 60s"));
        }
        if self
            .interval
            .is_some_and(|interval| interval < INTERVAL_MIN)
        {
            return Err(String::from("-i takes a time from 10ms on"));
        }
        Ok(())
    }

    /// Returns the output's form.
    pub fn form(&self) -> PageForm {
        PageForm::of(self.json, self.json_stream)
    }
}
