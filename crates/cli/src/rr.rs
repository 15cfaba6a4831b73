//! `nicpoll rr`: request and response, either end.

mod args;
mod printer;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, error::Error};

use anyhow::{Context, anyhow};
use nicpoll_model::Protocol;
use nicpoll_model::rr::{
    RR_SCHEMA, RrClientEnd, RrClientStart, RrEnd, RrInterval, RrServerEnd, RrServerInterval,
    RrServerStart, RrSideStart, RrStart,
};
use nicpoll_traffic::Signals;
use nicpoll_traffic::rr::{
    ClientConfig, ClientReport, Pacing, Served, Service, ServiceConfig, run_client,
};

use crate::failure::Failure;
use crate::output::now;
use crate::stop::{Stop, on_signal};
pub use args::RrArgs;
use printer::Printer;

/// How long a client asks when nothing else ends it.
const DURATION: Duration = Duration::from_secs(10);
/// How often a server looks whether an interval has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs the command and returns its exit code.
pub fn run(args: &RrArgs) -> Result<u8, Failure> {
    args.check().map_err(Failure::Usage)?;
    let signals = Arc::new(Signals::default());
    let stop = on_signal(&signals, |signals| {
        signals.finish.store(true, Ordering::Relaxed);
    })
    .context("catching signals")?;
    let mut printer = Printer::new(args.output());
    let outcome = match &args.client {
        Some(host) => client(args, host, &signals, &stop, &mut printer),
        None => serve(args, &signals, &stop, &mut printer),
    };
    let problem = match outcome {
        Ok(problem) => problem,
        Err(_) if stop.signal().is_some() => None,
        Err(error) => Some(error),
    };
    printer.finish(problem.as_ref().map(|error| format!("{error:#}")))?;
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

/// Asks. What was asked and measured may still have come to nothing: that is the inner error.
fn client(
    args: &RrArgs,
    host: &str,
    signals: &Signals,
    stop: &Stop,
    printer: &mut Printer,
) -> anyhow::Result<Option<anyhow::Error>> {
    let config = client_config(args, host)?;
    let (depth, scheduled_per_second) = match config.pacing {
        Pacing::Closed { depth } => (Some(depth.get()), None),
        Pacing::Open { rate } => (None, Some(rate.per_second())),
    };
    printer.start(start(RrSideStart::Sender(RrClientStart {
        protocol: config.protocol,
        server: config.peer.to_string(),
        depth,
        scheduled_per_second,
        request_bytes: config.request_bytes,
        response_bytes: config.response_bytes,
        timeout_seconds: config.timeout.as_secs_f64(),
        duration_seconds: config.duration.map(|duration| duration.as_secs_f64()),
        requests: config.requests.map(NonZeroU64::get),
    })))?;
    let mut printed = Ok(());
    let report = run_client(&config, signals, &mut |interval| {
        if printed.is_ok() {
            printed = printer.interval(RrInterval::Sender(interval));
        }
    });
    printed?;
    let report = report.map_err(with_cause)?;
    let end = client_end(&report, stop.signal().is_some());
    printer.end(RrEnd::Sender(Box::new(end)))?;
    Ok(problem_of(&report, config.peer))
}

fn client_config(args: &RrArgs, host: &str) -> anyhow::Result<ClientConfig> {
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
    Ok(ClientConfig {
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
        ..ClientConfig::udp(peer, DURATION)
    })
}

fn client_end(report: &ClientReport, is_interrupted: bool) -> RrClientEnd {
    let transactions = report.latencies.samples();
    let tried = report.requests_sent + report.refused_sends;
    RrClientEnd {
        scheduled_requests: report.scheduled_requests,
        unsent_requests: report.scheduled_requests.map(|scheduled| scheduled - tried),
        requests_sent: report.requests_sent,
        transactions,
        lost_requests: report.timeouts,
        late_responses: report.late_responses,
        refused_sends: report.refused_sends,
        foreign_messages: report.foreign_messages,
        seconds: report.seconds,
        transactions_per_second: if report.seconds > 0.0 {
            transactions as f64 / report.seconds
        } else {
            0.0
        },
        latency: report.latencies.summary(),
        send_lag: report.send_lags.as_ref().map(|lags| lags.summary()),
        is_interrupted,
    }
}

/// What is wrong with a test that could be carried out.
fn problem_of(report: &ClientReport, peer: SocketAddr) -> Option<anyhow::Error> {
    if let Some(broken) = &report.broken {
        return Some(anyhow!("the connection to {peer} broke: {broken}"));
    }
    (report.latencies.samples() == 0).then(|| {
        anyhow!(
            "no response came from {peer} in time; see whether a server runs there (nicpoll rr -s) \
             and whether a packet filter lets it answer"
        )
    })
}

fn serve(
    args: &RrArgs,
    signals: &Signals,
    stop: &Stop,
    printer: &mut Printer,
) -> anyhow::Result<Option<anyhow::Error>> {
    let any: IpAddr = if args.ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let bind = match &args.bind {
        Some(local) => resolve(local, args.port, args.ipv6)
            .with_context(|| format!("cannot find the local address '{local}'"))?,
        None => SocketAddr::new(any, args.port),
    };
    let config = ServiceConfig {
        bind,
        duration: args.time,
    };
    let service = Service::bind(&config).map_err(with_cause)?;
    printer.start(start(RrSideStart::Receiver(RrServerStart {
        address: service.local_addr().to_string(),
        duration_seconds: args.time.map(|time| time.as_secs_f64()),
    })))?;
    let served = Served::default();
    let duration = thread::scope(|scope| {
        let serving = scope.spawn(|| service.run(signals, &served));
        let told = tell_intervals(args.interval, &served, printer, || serving.is_finished());
        if told.is_err() {
            signals.finish.store(true, Ordering::Relaxed);
        }
        let outcome = serving.join().map_err(|_| anyhow!("the server panicked"))?;
        told.and(outcome.map_err(with_cause))
    })?;
    printer.end(RrEnd::Receiver(RrServerEnd {
        seconds: duration.as_secs_f64(),
        udp: served.udp(),
        tcp: served.tcp(),
        connections: served.connections(),
        refused_connections: served.refused_connections(),
        is_interrupted: stop.signal().is_some(),
    }))?;
    Ok(None)
}

/// Tells of each interval when it ends, until the serving does.
fn tell_intervals(
    interval: Option<Duration>,
    served: &Served,
    printer: &mut Printer,
    is_over: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut start = Duration::ZERO;
    let mut due = interval;
    let mut before = [served.udp(), served.tcp()];
    while !is_over() {
        let left = due.map_or(LOOK_EVERY, |due| due.saturating_sub(begun.elapsed()));
        thread::sleep(left.min(LOOK_EVERY));
        let end = begun.elapsed();
        if due.is_none_or(|due| end < due) {
            continue;
        }
        let now = [served.udp(), served.tcp()];
        printer.interval(RrInterval::Receiver(RrServerInterval {
            start_seconds: start.as_secs_f64(),
            end_seconds: end.as_secs_f64(),
            udp: now[0].since(before[0]),
            tcp: now[1].since(before[1]),
        }))?;
        (start, before) = (end, now);
        // Counted from the last one's time, not from its end, so that they do not drift.
        due = due.zip(interval).map(|(due, length)| due + length);
    }
    Ok(())
}

/// The first address of a name: of IPv6 when that is wanted, else of IPv4 if there is one.
fn resolve(host: &str, port: u16, wants_ipv6: bool) -> anyhow::Result<SocketAddr> {
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let wanted = found.iter().find(|one| one.is_ipv6() == wants_ipv6);
    let any = found.first().filter(|_| !wants_ipv6);
    let chosen = wanted.or(any).copied();
    chosen.ok_or_else(|| anyhow!("it has no IPv6 address"))
}

/// An error with what the kernel said; it tells its cause only by `source`.
fn with_cause(error: impl Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow::Error::new(error)
}
