//! Runs a client or server from start to end and reports it as records.
//!
//! Each record is reported as soon as it is complete. The receiver of the records may end the session by an
//! error.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::traffic::{
    RrClientEnd, RrClientStart, RrEnd, RrInterval, RrServerEnd, RrServerInterval, RrServerStart,
    RrSideStart,
};

use crate::admission::{ClientRefusal, Notices};
use crate::rr::client::{ClientReport, Pacing, RrClientConfig, run_client};
use crate::rr::server::{Served, Service, ServiceConfig};
use crate::signals::Signals;
use crate::timing::Shortfall;
use crate::workload::WorkloadError;

/// How often a server checks for the end of an interval.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Something that happened.
#[derive(Debug)]
pub enum RrEvent {
    /// The session begins.
    Start(RrSideStart),
    /// An interval has ended.
    Interval(RrInterval),
    /// A server refused a client. Each kind of refusal is reported at most once a minute.
    Refused(ClientRefusal),
    /// The test is complete.
    End(RrEnd),
}

/// Receives the events.
pub type Tell<'a, E> = &'a mut dyn FnMut(RrEvent) -> Result<(), E>;

/// Runs a client. `is_interrupted`: whether a signal ended it. Returns what was wrong with a test that ran.
///
/// # Errors
/// Those of [`run_client`] and of `tell`.
pub fn run_client_session<E: From<WorkloadError>>(
    config: &RrClientConfig,
    signals: &Signals,
    is_interrupted: impl Fn() -> bool,
    tell: Tell<'_, E>,
) -> Result<Option<String>, E> {
    let (depth, scheduled_per_second) = match config.pacing {
        Pacing::Closed { depth } => (Some(depth.get()), None),
        Pacing::Open { rate } => (None, Some(rate.per_second())),
    };
    tell(RrEvent::Start(RrSideStart::Sender(RrClientStart {
        protocol: config.protocol,
        server: config.peer.to_string(),
        depth_requests: depth,
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
            told = tell(RrEvent::Interval(RrInterval::Sender(interval)));
        }
    });
    told?;
    let report = report?;
    let end = client_end(&report, is_interrupted());
    tell(RrEvent::End(RrEnd::Sender(Box::new(end))))?;
    Ok(problem_of(&report, config))
}

fn client_end(report: &ClientReport, is_interrupted: bool) -> RrClientEnd {
    let transactions = report.latencies.samples();
    let tried = report.requests.sent + report.refused_sends.all();
    RrClientEnd {
        scheduled_requests: report.scheduled_requests,
        unsent_requests: report.scheduled_requests.map(|scheduled| scheduled - tried),
        requests_sent: report.requests.sent,
        transactions,
        lost_requests: report.requests.lost,
        late_responses: report.requests.late,
        refused_sends: report.refused_sends.all(),
        foreign_messages: report.requests.foreign,
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

fn problem_of(report: &ClientReport, config: &RrClientConfig) -> Option<String> {
    let (peer, asked) = (config.peer, config.duration);
    if let Some(broken) = &report.broken {
        let shortfall = asked.and_then(|asked| Shortfall::of(asked, report.last_response));
        let less = shortfall.map_or_else(String::new, |shortfall| format!("{shortfall}: "));
        return Some(format!("{less}cannot reach {peer} any more: {broken}"));
    }
    if report.requests.sent == 0 && report.refused_sends.filtered > 0 {
        return Some(format!(
            "a packet filter of this host dropped every request to {peer}; see what it lets out (nft list ruleset)"
        ));
    }
    if report.latencies.samples() == 0 {
        return Some(format!(
            "no response came from {peer} in time; see whether a server runs there (nicpoll rr -s) and whether a \
             packet filter lets it answer"
        ));
    }
    // In a slow schedule, the last request may be long before the end.
    let silence = Shortfall::of(report.last_request, report.last_response)?;
    let shortfall = Shortfall {
        asked: asked.unwrap_or(silence.asked),
        obtained: silence.obtained,
    };
    Some(format!(
        "{shortfall}: no response came from {peer} any more; see whether the server still runs and the link is up"
    ))
}

/// Runs a server; `interval` is that of its reports.
///
/// # Errors
/// Those of [`Service`] and of `tell`.
pub fn run_server_session<E: From<WorkloadError> + Send>(
    config: &ServiceConfig,
    interval: Option<Duration>,
    signals: &Signals,
    is_interrupted: impl Fn() -> bool,
    tell: Tell<'_, E>,
) -> Result<(), E> {
    let service = Service::bind(config)?;
    tell(RrEvent::Start(RrSideStart::Receiver(RrServerStart {
        address: service.local_addr().to_string(),
        duration_seconds: config.duration.map(|time| time.as_secs_f64()),
    })))?;
    let served = Served::default();
    let duration = thread::scope(|scope| -> Result<Duration, E> {
        let named = thread::Builder::new().name(String::from("nicpoll-rr"));
        let serving = named.spawn_scoped(scope, || service.run(signals, &served));
        let serving = serving.map_err(|source| service.failed(source))?;
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
    tell(RrEvent::End(RrEnd::Receiver(RrServerEnd {
        seconds: duration.as_secs_f64(),
        udp: served.udp(),
        tcp: served.tcp(),
        connections: served.connections(),
        refused_connections: served.refused_connections(),
        is_interrupted: is_interrupted(),
    })))
}

/// Reports intervals and refusals until serving ends.
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
        // Checked first, so the last refusal is reported, too.
        let is_last = is_over();
        if let Some(refusal) = notices.due(served.refusal()) {
            tell(RrEvent::Refused(refusal))?;
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
        tell(RrEvent::Interval(RrInterval::Receiver(RrServerInterval {
            start_seconds: start.as_secs_f64(),
            end_seconds: end.as_secs_f64(),
            udp: now[0].since(before[0]),
            tcp: now[1].since(before[1]),
        })))?;
        (start, before) = (end, now);
        // Counted from the scheduled time, so the intervals do not drift.
        due = due.zip(interval).map(|(due, length)| due + length);
    }
}
