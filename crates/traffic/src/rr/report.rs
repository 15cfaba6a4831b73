//! What one client counted, or several that asked at the same time.

use std::time::Duration;

use nicpoll_model::{RoundTrip, RoundTripQuantiles, TimeDistribution};

use super::Latencies;
use crate::{RefusedSends, SocketBuffer};

/// What the requester counted: `requests_sent = transactions + timeouts`.
#[derive(Clone, Debug)]
pub struct ClientReport {
    /// Requests whose time had come; `None` in a closed loop.
    pub scheduled_requests: Option<u64>,
    /// Requests that the kernel took.
    pub requests_sent: u64,
    /// Responses that were read, late ones included.
    pub responses_received: u64,
    /// Responses that came after their request had been given up.
    pub late_responses: u64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Sends that the kernel refused. Their requests were not sent.
    pub refused_sends: RefusedSends,
    /// Messages that answer no open request.
    pub foreign_messages: u64,
    /// From the first request to the last answer or the end of the sending, whichever is later; to the
    /// end of the last transaction, answered or not, in a closed loop.
    pub seconds: f64,
    /// Until when there were requests to answer, from the first one's time on.
    pub last_request: Duration,
    /// When the last response came, a late one too; zero when none did.
    pub last_response: Duration,
    /// Of the requests that were answered in time: from the sending in a closed loop, from the
    /// scheduled time in an open one.
    pub latencies: Latencies,
    /// From the scheduled time to the sending; `None` in a closed loop.
    pub send_lags: Option<Latencies>,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
    /// Why it ended before its time; `None` when it did not.
    pub broken: Option<String>,
}

impl ClientReport {
    /// Adds what another client counted that asked at the same time.
    pub fn add(&mut self, other: &ClientReport) {
        self.scheduled_requests = self
            .scheduled_requests
            .zip(other.scheduled_requests)
            .map(|(own, others)| own + others);
        self.requests_sent += other.requests_sent;
        self.responses_received += other.responses_received;
        self.late_responses += other.late_responses;
        self.timeouts += other.timeouts;
        self.refused_sends += other.refused_sends;
        self.foreign_messages += other.foreign_messages;
        self.seconds = self.seconds.max(other.seconds);
        self.last_request = self.last_request.max(other.last_request);
        self.last_response = self.last_response.max(other.last_response);
        self.latencies.add(&other.latencies);
        if let (Some(own), Some(others)) = (&mut self.send_lags, &other.send_lags) {
            own.add(others);
        }
        if self.broken.is_none() {
            self.broken.clone_from(&other.broken);
        }
    }

    /// The round trips, however few; `None` when there were none.
    pub fn round_trip(&self) -> Option<RoundTrip> {
        let recorded = &self.latencies;
        (recorded.samples() > 0).then(|| RoundTrip {
            transactions: recorded.samples(),
            transactions_per_second: recorded.samples() as f64 / self.seconds,
            timeouts: self.timeouts,
            quantiles: RoundTripQuantiles {
                min_ns: Some(recorded.min_ns()),
                p50_ns: Some(recorded.quantile_ns(0.5)),
                p99_ns: Some(recorded.quantile_ns(0.99)),
                p999_ns: Some(recorded.quantile_ns(0.999)),
                max_ns: Some(recorded.max_ns()),
                mean_ns: Some(recorded.mean_ns()),
            },
        })
    }

    /// How they are distributed.
    pub fn round_trip_distribution(&self) -> Option<TimeDistribution> {
        (self.latencies.samples() > 0).then(|| self.latencies.distribution())
    }
}
