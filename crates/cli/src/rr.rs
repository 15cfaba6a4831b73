//! `nicpoll rr`: request and response, either end.

mod args;

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow};
use nicpoll_model::Protocol;
use nicpoll_model::rr::{RR_SCHEMA, RrSideStart, RrStart};
use nicpoll_report::{RR_TEXTS, RunPage, finish_rr_page};
use nicpoll_sys::tell;
use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{
    Event, Pacing, RrClientConfig, ServiceConfig, run_client_session, run_server_session,
};

use crate::failure::Failure;
use crate::output::{now, print};
use crate::stop::on_signal;
pub use args::RrArgs;

/// How long a client sends when nothing else ends it.
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
            Event::Start(side) => page.start(&start(side)),
            Event::Interval(interval) => page.interval(&interval),
            Event::Refused(refusal) => {
                tell!("nicpoll rr: {refusal}");
                return Ok(());
            }
            Event::End(end) => page.end(&end),
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
        Ok(problem) => problem.map(anyhow::Error::new),
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
    let bind = match &args.bind {
        Some(local) => Some(
            resolve(local, 0, peer.is_ipv6())
                .with_context(|| format!("cannot find the local address '{local}'"))?,
        ),
        None => None,
    };
    let depth = NonZeroU32::new(args.depth).unwrap_or(NonZeroU32::MIN);
    let requests = args.requests.and_then(NonZeroU64::new);
    Ok(RrClientConfig {
        bind,
        protocol: if args.udp {
            Protocol::Udp
        } else {
            Protocol::Tcp
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
    let any: IpAddr = if args.ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    Ok(ServiceConfig {
        bind: match &args.bind {
            Some(local) => resolve(local, args.port, args.ipv6)
                .with_context(|| format!("cannot find the local address '{local}'"))?,
            None => SocketAddr::new(any, args.port),
        },
        duration: args.time,
    })
}

/// The first address of a name: of IPv6 when that is wanted, else of IPv4 if there is one.
fn resolve(host: &str, port: u16, wants_ipv6: bool) -> anyhow::Result<SocketAddr> {
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let wanted = found.iter().find(|one| one.is_ipv6() == wants_ipv6);
    let any = found.first().filter(|_| !wants_ipv6);
    let chosen = wanted.or(any).copied();
    chosen.ok_or_else(|| anyhow!("it has no IPv6 address"))
}
