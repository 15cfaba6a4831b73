//! The end that asks.

use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use nicpoll_model::Protocol;
use nicpoll_model::rr::RrClientInterval;
use nicpoll_wire::rr::Message;
use thiserror::Error;

use super::Latencies;
use super::RESPONSE_TIMEOUT;
use super::channel::{Channel, Incoming, Sent};
use super::outstanding::{Answer, Outstanding};
use super::report::ClientReport;
use super::schedule::{Pacing, Schedule};
use crate::RefusedSends;
use crate::signals::{LOOK_EVERY, Signals};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests whose fate is kept at a time. Beyond it none is sent until some are decided, which shows
/// as requests sent late or not at all.
const KEPT_MAX: usize = 1 << 20;

/// Whom to ask, how, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct RrClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Local address; the kernel's choice when `None`.
    pub bind: Option<SocketAddr>,
    /// What carries the messages.
    pub protocol: Protocol,
    /// When requests are sent.
    pub pacing: Pacing,
    /// How long to send; `None` without a limit. There is one request at least, and what is on its way
    /// then is waited for.
    pub duration: Option<Duration>,
    /// How many to send at most; `None` without a limit.
    pub requests: Option<NonZeroU64>,
    /// Length of a request, from [`Message::BYTES`] on.
    pub request_bytes: u32,
    /// Length of a response, from [`Message::BYTES`] on. A server does not answer over UDP when it is
    /// longer than the request.
    pub response_bytes: u32,
    /// Time after which a request counts as lost.
    pub timeout: Duration,
    /// How long a TCP connection may take.
    pub connect_timeout: Duration,
    /// Send buffer to ask for; `None` leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
    /// Length of an interval that is told of; `None` for none.
    pub interval: Option<Duration>,
}

impl RrClientConfig {
    /// Over UDP, the shortest messages, one at a time.
    pub fn udp(peer: SocketAddr, duration: Duration) -> Self {
        RrClientConfig {
            peer,
            bind: None,
            protocol: Protocol::Udp,
            pacing: Pacing::Closed {
                depth: NonZeroU32::MIN,
            },
            duration: Some(duration),
            requests: None,
            request_bytes: Message::BYTES as u32,
            response_bytes: Message::BYTES as u32,
            timeout: RESPONSE_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            send_buffer_bytes: None,
            interval: None,
        }
    }
}

/// Why requests could not be made.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No socket.
    #[error(
        "cannot set up a UDP socket to {peer}; see that there is a route and the buffer is sane"
    )]
    Setup {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// No connection.
    #[error("cannot connect to {peer}; see whether a server runs there: nicpoll rr -s")]
    Connect {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A send failed for good.
    #[error("cannot send requests to {peer}; see the route and whether the interface is up")]
    Send {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A receive failed for good.
    #[error("cannot receive responses from {peer}; see whether the interface is still up")]
    Receive {
        /// The server.
        peer: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// [`Signals::cancel`] was set, or [`Signals::finish`] before there was a connection.
    #[error("the requester was told to stop")]
    Cancelled,
}

/// Asks as the pacing says until the time is up; then waits for the responses that are still on their
/// way. Each interval is told of when it ends.
///
/// # Errors
/// See [`ClientError`]. A server that never answers is no error, and neither is a connection that ends
/// on the way: see [`ClientReport::broken`].
pub fn run_client(
    config: &RrClientConfig,
    signals: &Signals,
    on_interval: &mut dyn FnMut(RrClientInterval),
) -> Result<ClientReport, ClientError> {
    let peer = config.peer;
    let channel = match config.protocol {
        Protocol::Udp => {
            Channel::udp(config).map_err(|source| ClientError::Setup { peer, source })?
        }
        Protocol::Tcp => Channel::tcp(config, signals)
            .map_err(|source| ClientError::Connect { peer, source })?
            .ok_or(ClientError::Cancelled)?,
    };
    let schedule = Schedule::new(config.pacing);
    // The kernel may wake a sleeper late by the slack, 50 us by default: too late for a schedule.
    let slack = schedule
        .is_open()
        .then(rustix::thread::current_timer_slack)
        .and_then(Result::ok);
    let set_slack = |ns| rustix::thread::set_current_timer_slack(NonZeroU64::new(ns));
    if slack.is_some() {
        let _ = set_slack(1);
    }
    let mut client = Client::new(config, signals, channel, schedule, on_interval);
    let outcome = client.run();
    if let Some(slack) = slack {
        let _ = set_slack(slack);
    }
    outcome?;
    Ok(client.report())
}

struct Client<'a> {
    config: &'a RrClientConfig,
    signals: &'a Signals,
    channel: Channel,
    schedule: Schedule,
    books: Outstanding,
    latencies: Latencies,
    send_lags: Latencies,
    refused_sends: RefusedSends,
    begun: Instant,
    /// When the sending ended; `None` while it goes on.
    sending_ended: Option<Duration>,
    last_request: Duration,
    last_response: Duration,
    /// What the report's seconds last to.
    ended: Duration,
    broken: Option<String>,
    interval: Interval,
    on_interval: &'a mut dyn FnMut(RrClientInterval),
}

/// The interval that is open, and the books at its beginning.
#[derive(Default)]
struct Interval {
    start: Duration,
    sent: u64,
    transactions: u64,
    lost: u64,
    latencies: Latencies,
}

impl<'a> Client<'a> {
    fn new(
        config: &'a RrClientConfig,
        signals: &'a Signals,
        channel: Channel,
        schedule: Schedule,
        on_interval: &'a mut dyn FnMut(RrClientInterval),
    ) -> Self {
        Client {
            config,
            signals,
            channel,
            schedule,
            books: Outstanding::new(config.timeout),
            latencies: Latencies::default(),
            send_lags: Latencies::default(),
            refused_sends: RefusedSends::default(),
            begun: Instant::now(),
            sending_ended: None,
            last_request: Duration::ZERO,
            last_response: Duration::ZERO,
            ended: Duration::ZERO,
            broken: None,
            interval: Interval::default(),
            on_interval,
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn run(&mut self) -> Result<(), ClientError> {
        let mut now = self.now();
        loop {
            if self.signals.is_cancelled() {
                return Err(ClientError::Cancelled);
            }
            self.books.give_up(now);
            self.close_intervals(now);
            if self.sending_ended.is_none() {
                self.send_due(now)?;
            }
            if self.sending_ended.is_some() && self.books.on_their_way() == 0 {
                break;
            }
            now = self.receive(self.wait(now))?;
            if self.broken.is_some() {
                self.sending_ended.get_or_insert(now);
                self.books.give_up_all();
            }
        }
        let now = self.now();
        if !self.schedule.is_open() {
            self.ended = now;
        }
        self.ended = self.ended.max(self.sending_ended.unwrap_or(now));
        self.close_last_interval(now);
        self.await_late_responses()
    }

    /// Sends the next request when its time has come, or ends the sending.
    fn send_due(&mut self, now: Duration) -> Result<(), ClientError> {
        let tried = self.books.requests_sent() + self.refused_sends.all();
        let is_over = self.config.duration.is_some_and(|end| now >= end)
            || self.config.requests.is_some_and(|most| tried >= most.get());
        if self.signals.is_finishing() || tried > 0 && is_over {
            self.sending_ended = Some(now);
            return Ok(());
        }
        let Some(from) = self.schedule.due(now, tried, self.books.on_their_way()) else {
            return Ok(());
        };
        if self.books.kept() >= KEPT_MAX {
            return Ok(());
        }
        // Read again: what went before may have taken its time.
        let sent = self.now();
        let message = Message {
            bytes: self.config.request_bytes,
            response_bytes: self.config.response_bytes,
            ..Message::request(self.books.next_sequence(), sent.as_nanos() as u64)
        };
        self.last_request = sent;
        match self.channel.send(message, &mut self.refused_sends) {
            Ok(Sent::Taken) => {
                self.books.sent(from.unwrap_or(sent), sent);
                if let Some(from) = from {
                    self.send_lags.record(sent.saturating_sub(from));
                }
            }
            Ok(Sent::Refused | Sent::Busy) => {}
            Err(source) if self.has_begun() => {
                self.broken = Some(source.to_string());
                self.sending_ended = Some(sent);
                self.books.give_up_all();
            }
            Err(source) => {
                return Err(ClientError::Send {
                    peer: self.config.peer,
                    source,
                });
            }
        }
        Ok(())
    }

    /// Whether there was a way to the server: from then on its end is a test's and not an error of the set-up.
    fn has_begun(&self) -> bool {
        self.config.protocol == Protocol::Tcp || self.books.requests_sent() > 0
    }

    /// How long nothing has to be done but to receive.
    fn wait(&self, now: Duration) -> Duration {
        let mut wait = LOOK_EVERY;
        if let Some(left) = self.books.left(now) {
            wait = wait.min(left);
        }
        if let Some(interval) = self.config.interval {
            wait = wait.min((self.interval.start + interval).saturating_sub(now));
        }
        if self.sending_ended.is_none() {
            let tried = self.books.requests_sent() + self.refused_sends.all();
            let until_due = self.schedule.left(now, tried, self.books.on_their_way());
            wait = wait.min(until_due.unwrap_or(LOOK_EVERY));
        }
        wait
    }

    /// One receive. Returns the time after it.
    fn receive(&mut self, wait: Duration) -> Result<Duration, ClientError> {
        let incoming = self.channel.receive(wait);
        let now = self.now();
        match incoming {
            Ok(Incoming::Response(sequence)) => {
                self.last_response = now;
                if let Answer::InTime(latency) = self.books.answered(sequence, now) {
                    self.latencies.record(latency);
                    if self.config.interval.is_some() {
                        self.interval.latencies.record(latency);
                    }
                    self.ended = now;
                }
            }
            Ok(Incoming::Foreign) => self.books.foreign(),
            Ok(Incoming::Nothing) => {}
            Err(source) if self.has_begun() => self.broken = Some(source.to_string()),
            Err(source) => {
                return Err(ClientError::Receive {
                    peer: self.config.peer,
                    source,
                });
            }
        }
        Ok(now)
    }

    fn await_late_responses(&mut self) -> Result<(), ClientError> {
        let deadline = self.now() + self.config.timeout;
        let mut now = self.now();
        while self.books.awaits_late() && self.broken.is_none() && now < deadline {
            if self.signals.is_cancelled() {
                return Err(ClientError::Cancelled);
            }
            if self.signals.is_finishing() {
                break;
            }
            now = self.receive(LOOK_EVERY.min(deadline - now))?;
        }
        Ok(())
    }

    fn close_intervals(&mut self, now: Duration) {
        while let Some(length) = self.config.interval
            && now >= self.interval.start + length
        {
            self.close_interval(self.interval.start + length);
        }
    }

    /// What is left of the last interval, unless it is next to nothing.
    fn close_last_interval(&mut self, now: Duration) {
        self.close_intervals(now);
        let has_new = self.books.requests_sent() > self.interval.sent
            || self.books.transactions() > self.interval.transactions
            || self.books.lost() > self.interval.lost;
        if self.config.interval.is_some() && has_new {
            self.close_interval(now);
        }
    }

    fn close_interval(&mut self, end: Duration) {
        let [sent, transactions, lost] = [
            self.books.requests_sent(),
            self.books.transactions(),
            self.books.lost(),
        ];
        let length = end.saturating_sub(self.interval.start).as_secs_f64();
        let answered = transactions - self.interval.transactions;
        (self.on_interval)(RrClientInterval {
            start_seconds: self.interval.start.as_secs_f64(),
            end_seconds: end.as_secs_f64(),
            requests_sent: sent - self.interval.sent,
            transactions: answered,
            lost_requests: lost - self.interval.lost,
            transactions_per_second: answered as f64 / length,
            latency: self.interval.latencies.summary(),
        });
        self.interval.start = end;
        self.interval.sent = sent;
        self.interval.transactions = transactions;
        self.interval.lost = lost;
        self.interval.latencies.clear();
    }

    fn report(self) -> ClientReport {
        let tried = self.books.requests_sent() + self.refused_sends.all();
        let ended = self.sending_ended.unwrap_or(self.ended);
        let ended = self.config.duration.map_or(ended, |end| end.min(ended));
        let due = self.schedule.due_by(ended).map(|due| {
            let most = self.config.requests.map_or(u64::MAX, NonZeroU64::get);
            due.min(most).max(tried)
        });
        ClientReport {
            scheduled_requests: due,
            requests_sent: self.books.requests_sent(),
            responses_received: self.books.transactions() + self.books.late(),
            late_responses: self.books.late(),
            timeouts: self.books.lost(),
            refused_sends: self.refused_sends,
            foreign_messages: self.books.foreign_messages(),
            seconds: self.ended.as_secs_f64(),
            last_request: match self.schedule.is_open() {
                true => self.last_request,
                // There is always one on its way, or about to be.
                false => self.last_request.max(ended),
            },
            last_response: self.last_response,
            latencies: self.latencies,
            send_lags: self.schedule.is_open().then_some(self.send_lags),
            send_buffer: self.channel.send_buffer,
            broken: self.broken,
        }
    }
}
