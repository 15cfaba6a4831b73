//! A client or server from its beginning to its end, as the records that it becomes.
//!
//! Reports a record as soon as it is complete. The receiver of the records may end the session by failing.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{
    RrClientEnd, RrClientStart, RrEnd, RrInterval, RrServerEnd, RrServerInterval, RrServerStart,
    RrSideStart,
};
use thiserror::Error;

use crate::admission::{ClientRefusal, Notices};
use crate::rr::client::{ClientError, ClientReport, Pacing, RrClientConfig, run_client};
use crate::rr::server::{Served, Service, ServiceConfig, ServiceError};
use crate::signals::Signals;
use crate::timing::Shortfall;

/// How often a server looks whether an interval has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The session begins.
    Start(RrSideStart),
    /// An interval has ended.
    Interval(RrInterval),
    /// A server did not serve a client. Of each kind of refusal there is one in a minute.
    Refused(ClientRefusal),
    /// All was measured.
    End(RrEnd),
}

/// Who is told of it.
pub type Tell<'a, E> = &'a mut dyn FnMut(Event) -> Result<(), E>;

/// What is wrong with a test that could be carried out.
#[derive(Clone, Debug, Error)]
pub enum Problem {
    /// The connection, or the route, ended before the test did.
    #[error("{less}the way to {peer} broke: {broken}", less = prefix(*shortfall))]
    Broken {
        /// The server.
        peer: SocketAddr,
        /// What there was of the time; `None` when it was all of it, or none was asked for.
        shortfall: Option<Shortfall>,
        /// How.
        broken: String,
    },
    /// The responses ended before the requests did.
    #[error(
        "{shortfall}: no response came from {peer} any more; see whether the server still runs and the link \
         is up"
    )]
    Gone {
        /// The server.
        peer: SocketAddr,
        /// What there was of the time.
        shortfall: Shortfall,
    },
    /// A filter of the client's own host let no request out.
    #[error(
        "a packet filter of this host dropped every request to {peer}; see what it lets out (nft list ruleset)"
    )]
    Filtered {
        /// The server.
        peer: SocketAddr,
    },
    /// Nothing was measured.
    #[error(
        "no response came from {peer} in time; see whether a server runs there (nicpoll rr -s) and \
         whether a packet filter lets it answer"
    )]
    NoResponse {
        /// The server.
        peer: SocketAddr,
    },
}

/// The beginning of a message that tells how early a test ended.
fn prefix(shortfall: Option<Shortfall>) -> String {
    shortfall.map_or_else(String::new, |shortfall| format!("{shortfall}: "))
}

/// Runs a client. `is_interrupted` says whether a signal ended it.
///
/// # Errors
/// Those of [`run_client`], and of whoever is told.
pub fn run_client_session<E: From<ClientError>>(
    config: &RrClientConfig,
    signals: &Signals,
    is_interrupted: impl Fn() -> bool,
    tell: Tell<'_, E>,
) -> Result<Option<Problem>, E> {
    let (depth, scheduled_per_second) = match config.pacing {
        Pacing::Closed { depth } => (Some(depth.get()), None),
        Pacing::Open { rate } => (None, Some(rate.per_second())),
    };
    tell(Event::Start(RrSideStart::Sender(RrClientStart {
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
    let mut told = Ok(());
    let report = run_client(config, signals, &mut |interval| {
        if told.is_ok() {
            told = tell(Event::Interval(RrInterval::Sender(interval)));
        }
    });
    told?;
    let report = report?;
    let end = client_end(&report, is_interrupted());
    tell(Event::End(RrEnd::Sender(Box::new(end))))?;
    Ok(problem_of(&report, config))
}

fn client_end(report: &ClientReport, is_interrupted: bool) -> RrClientEnd {
    let transactions = report.latencies.samples();
    let tried = report.requests_sent + report.refused_sends.all();
    RrClientEnd {
        scheduled_requests: report.scheduled_requests,
        unsent_requests: report.scheduled_requests.map(|scheduled| scheduled - tried),
        requests_sent: report.requests_sent,
        transactions,
        lost_requests: report.timeouts,
        late_responses: report.late_responses,
        refused_sends: report.refused_sends.all(),
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

fn problem_of(report: &ClientReport, config: &RrClientConfig) -> Option<Problem> {
    let peer = config.peer;
    if let Some(broken) = &report.broken {
        let obtained = report.last_response;
        let shortfall = config
            .duration
            .and_then(|asked| Shortfall::of(asked, obtained));
        return Some(Problem::Broken {
            peer,
            shortfall,
            broken: broken.clone(),
        });
    }
    if report.requests_sent == 0 && report.refused_sends.filtered > 0 {
        return Some(Problem::Filtered { peer });
    }
    if report.latencies.samples() == 0 {
        return Some(Problem::NoResponse { peer });
    }
    // A slow schedule may have its last request long before its end.
    let silence = Shortfall::of(report.last_request, report.last_response)?;
    let shortfall = Shortfall {
        asked: config.duration.unwrap_or(silence.asked),
        obtained: silence.obtained,
    };
    Some(Problem::Gone { peer, shortfall })
}

/// Runs a server. `interval` is the time from one interval's record to the next.
///
/// # Errors
/// Those of [`Service`], and of whoever is told.
pub fn run_server_session<E: From<ServiceError> + Send>(
    config: &ServiceConfig,
    interval: Option<Duration>,
    signals: &Signals,
    is_interrupted: impl Fn() -> bool,
    tell: Tell<'_, E>,
) -> Result<(), E> {
    let service = Service::bind(config)?;
    tell(Event::Start(RrSideStart::Receiver(RrServerStart {
        address: service.local_addr().to_string(),
        duration_seconds: config.duration.map(|time| time.as_secs_f64()),
    })))?;
    let served = Served::default();
    let duration = thread::scope(|scope| -> Result<Duration, E> {
        let named = thread::Builder::new().name(String::from("nicpoll-rr"));
        let serving = named.spawn_scoped(scope, || service.run(signals, &served));
        let serving = serving.map_err(|source| ServiceError::Serve {
            address: service.local_addr(),
            source,
        })?;
        let told = tell_meanwhile(interval, &served, tell, || serving.is_finished());
        if told.is_err() {
            signals.finish.store(true, Ordering::Relaxed);
        }
        let outcome = match serving.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        told?;
        Ok(outcome?)
    })?;
    tell(Event::End(RrEnd::Receiver(RrServerEnd {
        seconds: duration.as_secs_f64(),
        udp: served.udp(),
        tcp: served.tcp(),
        connections: served.connections(),
        refused_connections: served.refused_connections(),
        is_interrupted: is_interrupted(),
    })))
}

/// Tells of each interval when it ends, and of refusals, until the serving ends.
fn tell_meanwhile<E>(
    interval: Option<Duration>,
    served: &Served,
    tell: Tell<'_, E>,
    is_over: impl Fn() -> bool,
) -> Result<(), E> {
    let begun = Instant::now();
    let mut start = Duration::ZERO;
    let mut due = interval;
    let mut before = [served.udp(), served.tcp()];
    let mut notices = Notices::default();
    loop {
        // Looked at first, so that the last refusal is told of, too.
        let is_last = is_over();
        if let Some(refusal) = notices.due(served.refusal()) {
            tell(Event::Refused(refusal))?;
        }
        if is_last {
            return Ok(());
        }
        let left = due.map_or(LOOK_EVERY, |due| due.saturating_sub(begun.elapsed()));
        thread::sleep(left.min(LOOK_EVERY));
        let end = begun.elapsed();
        if due.is_none_or(|due| end < due) {
            continue;
        }
        let now = [served.udp(), served.tcp()];
        tell(Event::Interval(RrInterval::Receiver(RrServerInterval {
            start_seconds: start.as_secs_f64(),
            end_seconds: end.as_secs_f64(),
            udp: now[0].since(before[0]),
            tcp: now[1].since(before[1]),
        })))?;
        (start, before) = (end, now);
        // Counted from the last one's time, not from its end, so that they do not drift.
        due = due.zip(interval).map(|(due, length)| due + length);
    }
}
