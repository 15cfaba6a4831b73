//! The client: closed loop or open loop, over UDP or TCP.
//!
//! `sent = answered + lost + in flight`, whatever arrives in whatever order. No request is answered twice, and
//! none that was given up counts as answered. The schedule of an open loop depends only on the rate and the
//! request's number. However late a request is sent, its latency counts from its scheduled time, so a stalled
//! server does not hide the wait of the requests behind it (coordinated omission).

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::{Add, AddAssign};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nicpoll_model::traffic::RrClientInterval;
use nicpoll_model::{Protocol, Rate, RoundTrip, RoundTripQuantiles, TimeDistribution};
use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, sockopt};

use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends, SocketBuffer};
use crate::workload::{WorkloadError, merged};
use nicpoll_stats::Latencies;

/// How long to wait for a response.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most requests tracked at a time. At this limit, none is sent until some are decided; these are then sent
/// late or not at all.
const KEPT_MAX: usize = 1 << 20;

/// What to request from whom, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct RrClientConfig {
    /// The server.
    pub peer: SocketAddr,
    /// Local address; the kernel's choice when `None`.
    pub bind: Option<SocketAddr>,
    /// Transport protocol.
    pub protocol: Protocol,
    /// When to send requests.
    pub pacing: Pacing,
    /// How long to send; `None` is unlimited. Sends at least one request, and waits for those then in flight.
    pub duration: Option<Duration>,
    /// Most requests to send; `None` is unlimited.
    pub requests: Option<NonZeroU64>,
    /// Length of a request, at least [`Message::BYTES`].
    pub request_bytes: u32,
    /// Length of a response, at least [`Message::BYTES`]. Over UDP, a server does not answer if it exceeds the
    /// request's.
    pub response_bytes: u32,
    /// Time after which a request counts as lost.
    pub timeout: Duration,
    /// Interval of the reports; `None` for none.
    pub interval: Option<Duration>,
}

impl RrClientConfig {
    /// UDP, the shortest messages, one at a time.
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
            interval: None,
        }
    }
}

/// Sends requests until the time is up, then waits for responses still in flight. Reports each interval when it
/// ends.
///
/// # Errors
/// [`WorkloadError::Cancelled`] also when [`Signals::finish`] was set before there was a connection. A server
/// that never answers is no error, nor is a connection that breaks later: see [`ClientReport::broken`].
pub fn run_client(
    config: &RrClientConfig,
    signals: &Signals,
    on_interval: &mut dyn FnMut(RrClientInterval),
) -> Result<ClientReport, WorkloadError> {
    let channel = Channel::open(config, signals)?;
    // By default, the kernel may wake a sleeping thread 50 us late: too late for a schedule.
    let slack = config
        .pacing
        .is_open()
        .then(rustix::thread::current_timer_slack)
        .and_then(Result::ok);
    let set_slack = |ns| rustix::thread::set_current_timer_slack(NonZeroU64::new(ns));
    if slack.is_some() {
        let _ = set_slack(1);
    }
    let report = ClientReport {
        send_lags: config.pacing.is_open().then(Latencies::default),
        send_buffer: channel.send_buffer,
        ..ClientReport::default()
    };
    let mut client = RrClient {
        config,
        signals,
        channel,
        requests: Outstanding::new(config.timeout),
        report,
        begun: Instant::now(),
        sending_ended: None,
        ended: Duration::ZERO,
        interval: OpenInterval::default(),
        on_interval,
    };
    let outcome = client.run();
    if let Some(slack) = slack {
        let _ = set_slack(slack);
    }
    outcome?;
    Ok(client.report())
}

struct RrClient<'a> {
    config: &'a RrClientConfig,
    signals: &'a Signals,
    channel: Channel,
    requests: Outstanding,
    report: ClientReport,
    begun: Instant,
    /// When sending ended; `None` while it continues.
    sending_ended: Option<Duration>,
    /// End of the time that the report's seconds cover.
    ended: Duration,
    interval: OpenInterval,
    on_interval: &'a mut dyn FnMut(RrClientInterval),
}

/// The open interval, and the counts before it.
#[derive(Default)]
struct OpenInterval {
    start: Duration,
    before: RequestCounts,
    latencies: Latencies,
}

impl RrClient<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn run(&mut self) -> Result<(), WorkloadError> {
        let mut now = self.now();
        loop {
            self.signals.check()?;
            self.requests.give_up(now);
            self.close_intervals(now);
            if self.sending_ended.is_none() {
                self.send_due(now)?;
            }
            if self.sending_ended.is_some() && self.requests.on_their_way == 0 {
                break;
            }
            now = self.receive(self.wait(now))?;
            if self.report.broken.is_some() {
                self.sending_ended.get_or_insert(now);
                self.requests.give_up_all();
            }
        }
        let now = self.now();
        if !self.config.pacing.is_open() {
            self.ended = now;
        }
        self.ended = self.ended.max(self.sending_ended.unwrap_or(now));
        self.close_last_interval(now);
        self.await_late_responses()
    }

    /// Requests sent or refused.
    fn tried(&self) -> u64 {
        self.requests.counts.sent + self.report.refused_sends.all()
    }

    /// Sends the next request if it is due, or ends the sending.
    fn send_due(&mut self, now: Duration) -> Result<(), WorkloadError> {
        let (config, tried) = (self.config, self.tried());
        let is_over = config.duration.is_some_and(|end| now >= end)
            || config.requests.is_some_and(|most| tried >= most.get());
        if self.signals.is_finishing() || tried > 0 && is_over {
            self.sending_ended = Some(now);
            return Ok(());
        }
        let due = config.pacing.due(now, tried, self.requests.on_their_way);
        let Some(from) = due.filter(|_| self.requests.kept.len() < KEPT_MAX) else {
            return Ok(());
        };
        // Read the clock again: the steps before may have taken time.
        let sent = self.now();
        let message = Message {
            bytes: config.request_bytes,
            response_bytes: config.response_bytes,
            ..Message::request(self.requests.next_sequence(), sent.as_nanos() as u64)
        };
        self.report.last_request = sent;
        match self.channel.send(message, &mut self.report.refused_sends) {
            Ok(true) => {
                self.requests.sent(from.unwrap_or(sent), sent);
                if let Some((from, lags)) = from.zip(self.report.send_lags.as_mut()) {
                    lags.record(sent.saturating_sub(from));
                }
            }
            Ok(false) => {}
            Err(source) if self.passes(&source) => {}
            Err(source) if self.has_begun() => {
                self.report.broken = Some(why(&source));
                self.sending_ended = Some(sent);
                self.requests.give_up_all();
            }
            Err(source) => {
                let what = format!(
                    "cannot send requests to {}; see the route and whether the interface is up",
                    config.peer
                );
                return Err(WorkloadError::because(what)(source));
            }
        }
        Ok(())
    }

    /// Whether there was a way to the server: a failure is then the test's, not the set-up's.
    fn has_begun(&self) -> bool {
        self.config.protocol == Protocol::Tcp || self.requests.counts.sent > 0
    }

    /// Whether to ignore a closed port at the other end: a server that has answered may do so again.
    fn passes(&self, source: &io::Error) -> bool {
        is_refusal(source) && !self.report.last_response.is_zero()
    }

    /// How long there is nothing to do but receive.
    fn wait(&self, now: Duration) -> Duration {
        let mut wait = LOOK_EVERY;
        if let Some(left) = self.requests.left(now) {
            wait = wait.min(left);
        }
        if let Some(interval) = self.config.interval {
            wait = wait.min((self.interval.start + interval).saturating_sub(now));
        }
        if self.sending_ended.is_none() {
            let (pacing, on_their_way) = (self.config.pacing, self.requests.on_their_way);
            let until_due = pacing.left(now, self.tried(), on_their_way);
            wait = wait.min(until_due.unwrap_or(LOOK_EVERY));
        }
        wait
    }

    /// Receives once; returns the time after it.
    fn receive(&mut self, wait: Duration) -> Result<Duration, WorkloadError> {
        let incoming = self.channel.receive(wait);
        let now = self.now();
        match incoming {
            Ok(ReceivedMessage::Response(sequence)) => {
                self.report.last_response = now;
                if let Some(latency) = self.requests.answered(sequence, now) {
                    self.report.latencies.record(latency);
                    if self.config.interval.is_some() {
                        self.interval.latencies.record(latency);
                    }
                    self.ended = now;
                }
            }
            Ok(ReceivedMessage::Foreign) => self.requests.counts.foreign += 1,
            Ok(ReceivedMessage::Nothing) => {}
            Err(source) if self.passes(&source) => {}
            Err(source) if self.has_begun() => self.report.broken = Some(why(&source)),
            Err(source) => {
                let what = format!(
                    "cannot receive responses from {}; see whether the interface is still up",
                    self.config.peer
                );
                return Err(WorkloadError::because(what)(source));
            }
        }
        Ok(now)
    }

    fn await_late_responses(&mut self) -> Result<(), WorkloadError> {
        let deadline = self.now() + self.config.timeout;
        let mut now = self.now();
        let is_awaited =
            |client: &Self| !client.requests.given_up.is_empty() && client.report.broken.is_none();
        while is_awaited(self) && now < deadline {
            self.signals.check()?;
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

    /// Closes the last interval, unless nothing happened in it.
    fn close_last_interval(&mut self, now: Duration) {
        self.close_intervals(now);
        let of = |counts: RequestCounts| [counts.sent, counts.answered, counts.lost];
        let has_new = of(self.requests.counts) != of(self.interval.before);
        if self.config.interval.is_some() && has_new {
            self.close_interval(now);
        }
    }

    fn close_interval(&mut self, end: Duration) {
        let (counts, interval) = (self.requests.counts, &mut self.interval);
        let length = end.saturating_sub(interval.start).as_secs_f64();
        let answered = counts.answered - interval.before.answered;
        (self.on_interval)(RrClientInterval {
            start_seconds: interval.start.as_secs_f64(),
            end_seconds: end.as_secs_f64(),
            requests_sent: counts.sent - interval.before.sent,
            transactions: answered,
            lost_requests: counts.lost - interval.before.lost,
            transactions_per_second: answered as f64 / length,
            latency: interval.latencies.summary(),
        });
        (interval.start, interval.before) = (end, counts);
        interval.latencies.clear();
    }

    fn report(mut self) -> ClientReport {
        let tried = self.tried();
        let ended = self.sending_ended.unwrap_or(self.ended);
        let ended = self.config.duration.map_or(ended, |end| end.min(ended));
        let most = self.config.requests.map_or(u64::MAX, NonZeroU64::get);
        let due = self.config.pacing.due_by(ended);
        self.report.scheduled_requests = due.map(|due| due.min(most).max(tried));
        if !self.config.pacing.is_open() {
            // There is always one in flight, or about to be.
            self.report.last_request = self.report.last_request.max(ended);
        }
        self.report.requests = self.requests.counts;
        self.report.seconds = self.ended.as_secs_f64();
        self.report
    }
}

/// Most bytes per read of a stream.
const READ_BYTES: usize = 65_536;

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceivedMessage {
    /// The response to the request with this number.
    Response(u64),
    /// A datagram that is not a response.
    Foreign,
    /// Nothing in time.
    Nothing,
}

/// The connection to the server.
#[derive(Debug)]
struct Channel {
    carrier: Carrier,
    send_buffer: SocketBuffer,
    /// The request: each one gets a new head; the filler is zero.
    request: Vec<u8>,
    received: Vec<u8>,
}

#[derive(Debug)]
enum Carrier {
    Udp(UdpSocket),
    Tcp {
        stream: TcpStream,
        decoder: Decoder,
        /// The part of `received` not yet decoded.
        undecoded: std::ops::Range<usize>,
        /// Bytes of `request` not yet written.
        unwritten: usize,
    },
}

impl Channel {
    /// Connects to the server.
    fn open(config: &RrClientConfig, signals: &Signals) -> Result<Self, WorkloadError> {
        let peer = config.peer;
        let (carrier, send_buffer, received) = match config.protocol {
            Protocol::Udp => {
                let bound = sockets::connected_udp(peer, config.bind, LOOK_EVERY);
                let (socket, send_buffer) = bound.map_err(WorkloadError::because(format!(
                    "cannot set up a UDP socket to {peer}; see that there is a route and the buffer is sane"
                )))?;
                // One byte longer than a response, so a longer datagram is detected.
                let received = config.response_bytes as usize + 1;
                (Carrier::Udp(socket), send_buffer, received)
            }
            Protocol::Tcp => {
                let connected = connected(config, signals);
                let connected = connected.map_err(WorkloadError::because(format!(
                    "cannot connect to {peer}; see whether a server runs there: nicpoll rr -s"
                )))?;
                let (stream, send_buffer) = connected.ok_or(WorkloadError::Cancelled)?;
                let carrier = Carrier::Tcp {
                    stream,
                    decoder: Decoder::default(),
                    undecoded: 0..0,
                    unwritten: 0,
                };
                (carrier, send_buffer, READ_BYTES)
            }
        };
        Ok(Channel {
            carrier,
            send_buffer,
            request: vec![0; config.request_bytes as usize],
            received: vec![0; received],
        })
    }

    /// Sends a request. Returns whether the kernel took it, or will take the rest in order. Counts refused
    /// requests; sends nothing while an earlier request is not fully written.
    fn send(&mut self, message: Message, refused: &mut RefusedSends) -> io::Result<bool> {
        if self.flush()? {
            return Ok(false);
        }
        self.request[..Message::BYTES].copy_from_slice(&message.to_bytes());
        match &mut self.carrier {
            Carrier::Udp(socket) => match socket.send(&self.request) {
                Ok(_) => Ok(true),
                Err(error) if refused.note(&error, 1) && !is_refusal(&error) => Ok(false),
                Err(error) => Err(error),
            },
            Carrier::Tcp { unwritten, .. } => {
                *unwritten = self.request.len();
                self.flush()?;
                Ok(true)
            }
        }
    }

    /// Writes the rest of a request; returns whether some is still left.
    fn flush(&mut self) -> io::Result<bool> {
        let Carrier::Tcp {
            stream, unwritten, ..
        } = &mut self.carrier
        else {
            return Ok(false);
        };
        while *unwritten > 0 {
            let rest = &self.request[self.request.len() - *unwritten..];
            match send(&*stream, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(written) => *unwritten -= written,
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(false)
    }

    /// Returns the next message; waits for `wait` at most.
    ///
    /// # Errors
    /// The kernel's error; or a stream that ended or does not contain messages.
    fn receive(&mut self, wait: Duration) -> io::Result<ReceivedMessage> {
        if let Some(incoming) = self.decode()? {
            return Ok(incoming);
        }
        let is_busy = self.flush()?;
        let Some(length) = self.read(wait, is_busy)? else {
            return Ok(ReceivedMessage::Nothing);
        };
        match &mut self.carrier {
            Carrier::Udp(_) => Ok(response(Message::parse(&self.received[..length]).ok())),
            Carrier::Tcp { .. } if length == 0 => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the server closed the connection",
            )),
            Carrier::Tcp { undecoded, .. } => {
                *undecoded = 0..length;
                Ok(self.decode()?.unwrap_or(ReceivedMessage::Nothing))
            }
        }
    }

    /// The next message already read.
    fn decode(&mut self) -> io::Result<Option<ReceivedMessage>> {
        let Carrier::Tcp {
            decoder, undecoded, ..
        } = &mut self.carrier
        else {
            return Ok(None);
        };
        let mut stream = &self.received[undecoded.clone()];
        let message = decoder.next(&mut stream);
        undecoded.start = undecoded.end - stream.len();
        let message = message.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(message.map(|message| response(Some(message))))
    }

    /// Reads once; `None` when nothing came. A long wait uses the socket's timeout, which takes one system
    /// call; a short one needs a finer timer.
    fn read(&mut self, wait: Duration, is_busy: bool) -> io::Result<Option<usize>> {
        let fd = match &self.carrier {
            Carrier::Udp(socket) => socket.as_fd(),
            Carrier::Tcp { stream, .. } => stream.as_fd(),
        };
        let buffer = &mut self.received[..];
        if wait >= LOOK_EVERY && !is_busy {
            return read_now(fd, buffer, RecvFlags::empty());
        }
        let read = read_now(fd, buffer, RecvFlags::DONTWAIT)?;
        if read.is_some() || wait.is_zero() {
            return Ok(read);
        }
        let events = if is_busy {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: wait.min(LOOK_EVERY).subsec_nanos().into(),
        };
        match rustix::event::poll(&mut [PollFd::new(&fd, events)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => read_now(fd, buffer, RecvFlags::DONTWAIT),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn response(message: Option<Message>) -> ReceivedMessage {
    match message {
        Some(message) if message.kind == MessageKind::Response => {
            ReceivedMessage::Response(message.sequence)
        }
        _ => ReceivedMessage::Foreign,
    }
}

fn read_now(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Option<usize>> {
    match recv(fd, buffer, flags).map_err(io::Error::from) {
        Ok((length, _)) => Ok(Some(length)),
        Err(error) if sockets::is_no_datagram(&error) && !is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the other end's port is closed.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

/// Why the connection to the server broke.
fn why(source: &io::Error) -> String {
    match is_refusal(source) {
        true => String::from("its port is closed; see whether a server runs there: nicpoll rr -s"),
        false => source.to_string(),
    }
}

/// Connects; `None` if the signals stop it.
fn connected(
    config: &RrClientConfig,
    signals: &Signals,
) -> io::Result<Option<(TcpStream, SocketBuffer)>> {
    let fd = sockets::open(config.peer, SocketType::STREAM, SocketFlags::NONBLOCK)?;
    let send_buffer = sockets::send_buffer(&fd, None)?;
    // A request must not wait for the answer to the one before.
    sockopt::set_tcp_nodelay(&fd, true)?;
    if let Some(local) = config.bind {
        sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &local)?;
    }
    let stream = sockets::connect(fd, config.peer, CONNECT_TIMEOUT, signals)?;
    Ok(stream.map(|stream| (stream, send_buffer)))
}

/// Most requests given up whose late answers are recognised.
const REMEMBERED_MAX: usize = 65_536;

/// A request in flight, or one answered while an older one is in flight.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    /// Latency counts from here, since the first request.
    from: Duration,
    /// Time of sending.
    sent: Duration,
    is_answered: bool,
}

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests that the kernel took: `sent = answered + lost`, once none is in flight.
    pub sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Not answered in time.
    pub lost: u64,
    /// Lost requests that were answered later.
    pub late: u64,
    /// Messages that answer no request, or repeat an answer.
    pub foreign: u64,
}

impl AddAssign for RequestCounts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.lost += other.lost;
        self.late += other.late;
        self.foreign += other.foreign;
    }
}

/// Tracks the requests. Times are relative to an origin that the caller chooses.
#[derive(Debug)]
struct Outstanding {
    timeout: Duration,
    /// By number, without gaps, from `first`.
    kept: VecDeque<SentRequest>,
    first: u64,
    on_their_way: usize,
    given_up: BTreeSet<u64>,
    counts: RequestCounts,
}

impl Outstanding {
    /// Requests count as lost if not answered within `timeout` after sending.
    fn new(timeout: Duration) -> Self {
        Outstanding {
            timeout,
            kept: VecDeque::new(),
            first: 1,
            on_their_way: 0,
            given_up: BTreeSet::new(),
            counts: RequestCounts::default(),
        }
    }

    /// The number of the next request.
    fn next_sequence(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Records that the next request was sent.
    fn sent(&mut self, from: Duration, sent: Duration) {
        self.kept.push_back(SentRequest {
            from,
            sent,
            is_answered: false,
        });
        self.on_their_way += 1;
        self.counts.sent += 1;
    }

    /// Records a response; returns the latency of its request, if that was in flight.
    fn answered(&mut self, sequence: u64, now: Duration) -> Option<Duration> {
        self.give_up(now);
        let index = sequence.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let open = index.and_then(|index| self.kept.get_mut(index));
        if let Some(request) = open.filter(|request| !request.is_answered) {
            request.is_answered = true;
            let latency = now.saturating_sub(request.from);
            self.on_their_way -= 1;
            self.counts.answered += 1;
            self.drop_answered();
            return Some(latency);
        }
        if self.given_up.remove(&sequence) {
            self.counts.late += 1;
        } else {
            self.counts.foreign += 1;
        }
        None
    }

    /// Gives up overdue requests.
    fn give_up(&mut self, now: Duration) {
        while let Some(request) = self.kept.front() {
            if !request.is_answered {
                if now.saturating_sub(request.sent) < self.timeout {
                    return;
                }
                self.remember();
                self.on_their_way -= 1;
                self.counts.lost += 1;
            }
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Gives up all requests in flight: no more responses will come.
    fn give_up_all(&mut self) {
        self.give_up(Duration::MAX);
    }

    /// Time until the oldest request is overdue; `None` when none is in flight.
    fn left(&self, now: Duration) -> Option<Duration> {
        let oldest = self.kept.front()?;
        Some((oldest.sent + self.timeout).saturating_sub(now))
    }

    fn drop_answered(&mut self) {
        while self.kept.front().is_some_and(|one| one.is_answered) {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    fn remember(&mut self) {
        self.given_up.insert(self.first);
        if self.given_up.len() > REMEMBERED_MAX {
            self.given_up.pop_first();
        }
    }
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// As soon as fewer than `depth` are in flight.
    Closed {
        /// Most requests in flight.
        depth: NonZeroU32,
    },
    /// At a rate, regardless of responses. Each request's time follows from its number, not from the previous
    /// one, so the schedule does not drift.
    Open {
        /// Requests per second.
        rate: Rate,
    },
}

impl Pacing {
    fn is_open(self) -> bool {
        matches!(self, Pacing::Open { .. })
    }

    /// Whether a request is due after `tried` others, with its scheduled time; a closed loop has none:
    /// `Some(None)`.
    fn due(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Option<Duration>> {
        match self {
            Pacing::Closed { depth } => (on_their_way < depth.get() as usize).then_some(None),
            Pacing::Open { rate } => {
                let time = rate.time_of(tried, 0);
                (time <= now).then_some(Some(time))
            }
        }
    }

    /// Time until a request is due; `None` when an answer must come first.
    fn left(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Duration> {
        match self {
            Pacing::Closed { .. } => {
                let due = self.due(now, tried, on_their_way);
                due.map(|_| Duration::ZERO)
            }
            Pacing::Open { rate } => Some(rate.time_of(tried, 0).saturating_sub(now)),
        }
    }

    /// Requests scheduled before `end`; `None` in a closed loop.
    fn due_by(self, end: Duration) -> Option<u64> {
        let Pacing::Open { rate } = self else {
            return None;
        };
        let whole = rate.packets_in(end, 0);
        Some(whole + u64::from(rate.time_of(whole, 0) < end))
    }
}

/// The client's counts.
#[derive(Clone, Debug, Default)]
pub struct ClientReport {
    /// Requests that were due; `None` in a closed loop.
    pub scheduled_requests: Option<u64>,
    /// Requests by outcome.
    pub requests: RequestCounts,
    /// Sends that the kernel refused; these requests were not sent.
    pub refused_sends: RefusedSends,
    /// From the first request to the last answer or the end of sending, whichever is later; in a closed loop,
    /// to the end of the last transaction, answered or not.
    pub seconds: f64,
    /// Until when there were requests to answer, since the first.
    pub last_request: Duration,
    /// When the last response came, even a late one; zero if none did.
    pub last_response: Duration,
    /// Latencies of requests answered in time: from sending in a closed loop, from the scheduled time in an
    /// open one.
    pub latencies: Latencies,
    /// Delays from scheduled time to sending; `None` in a closed loop.
    pub send_lags: Option<Latencies>,
    /// The send buffer.
    pub send_buffer: SocketBuffer,
    /// Why the test ended early; `None` if it did not.
    pub broken: Option<String>,
}

impl ClientReport {
    /// Adds another client's counts from the same time.
    #[must_use]
    pub fn and(mut self, other: ClientReport) -> Self {
        self.scheduled_requests =
            merged(self.scheduled_requests, other.scheduled_requests, u64::add);
        self.requests += other.requests;
        self.refused_sends += other.refused_sends;
        self.seconds = self.seconds.max(other.seconds);
        self.last_request = self.last_request.max(other.last_request);
        self.last_response = self.last_response.max(other.last_response);
        self.latencies.add(&other.latencies);
        self.send_lags = merged(self.send_lags, other.send_lags, |mut one, other| {
            one.add(&other);
            one
        });
        self.broken = self.broken.or(other.broken);
        self
    }

    /// Round trips, however few; `None` if there were none.
    pub fn round_trip(&self) -> Option<RoundTrip> {
        let recorded = &self.latencies;
        (recorded.samples() > 0).then(|| RoundTrip {
            transactions: recorded.samples(),
            transactions_per_second: recorded.samples() as f64 / self.seconds,
            timeouts: self.requests.lost,
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

    /// The distribution of round trips.
    pub fn round_trip_distribution(&self) -> Option<TimeDistribution> {
        (self.latencies.samples() > 0).then(|| self.latencies.distribution())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum ClientEvent {
        Send,
        Answer(u64),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = ClientEvent> {
        prop_oneof![
            Just(ClientEvent::Send),
            (0..60u64).prop_map(ClientEvent::Answer),
            (0..40u64).prop_map(ClientEvent::Wait),
        ]
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        OnItsWay { sent: u64 },
        Answered,
        Lost,
        Late,
    }

    proptest! {
        /// Compared with a model that keeps every request.
        #[test]
        fn every_request_has_one_fate(steps in proptest::collection::vec(step(), 0..400)) {
            const TIMEOUT: u64 = 100;
            let ms = Duration::from_millis;
            let mut books = Outstanding::new(ms(TIMEOUT));
            let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
            let mut now = 0;
            let mut foreign = 0;
            for step in steps {
                match step {
                    ClientEvent::Wait(time) => now += time,
                    ClientEvent::Send => {
                        fates.insert(books.next_sequence(), Fate::OnItsWay { sent: now });
                        books.sent(ms(now), ms(now));
                    }
                    ClientEvent::Answer(_) => {}
                }
                for fate in fates.values_mut() {
                    if matches!(fate, Fate::OnItsWay { sent } if now - *sent >= TIMEOUT) {
                        *fate = Fate::Lost;
                    }
                }
                if let ClientEvent::Answer(sequence) = step {
                    let fate = fates.get_mut(&sequence);
                    let expected = match fate.as_deref() {
                        Some(Fate::OnItsWay { sent }) => Some(ms(now - sent)),
                        _ => None,
                    };
                    match fate {
                        Some(fate @ Fate::OnItsWay { .. }) => *fate = Fate::Answered,
                        Some(fate @ Fate::Lost) => *fate = Fate::Late,
                        _ => foreign += 1,
                    }
                    prop_assert_eq!(books.answered(sequence, ms(now)), expected);
                }
                books.give_up(ms(now));
                let count = |wanted: fn(&Fate) -> bool| {
                    fates.values().filter(|fate| wanted(fate)).count() as u64
                };
                let on_their_way = count(|fate| matches!(fate, Fate::OnItsWay { .. }));
                let lost = count(|fate| matches!(fate, Fate::Lost | Fate::Late));
                prop_assert_eq!(books.on_their_way as u64, on_their_way);
                prop_assert_eq!(books.counts.answered, count(|fate| *fate == Fate::Answered));
                prop_assert_eq!(books.counts.lost, lost);
                prop_assert_eq!(books.counts.late, count(|fate| *fate == Fate::Late));
                prop_assert_eq!(books.counts.foreign, foreign);
                let sent = books.counts.sent;
                prop_assert_eq!(sent, books.counts.answered + lost + on_their_way);
            }
            books.give_up_all();
            prop_assert_eq!(books.counts.sent, books.counts.answered + books.counts.lost);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut books = Outstanding::new(Duration::ZERO);
        for _ in 0..REMEMBERED_MAX + 10 {
            books.sent(Duration::ZERO, Duration::ZERO);
            books.give_up(Duration::ZERO);
        }
        assert_eq!(books.given_up.len(), REMEMBERED_MAX);
        assert_eq!(books.answered(1, Duration::ZERO), None);
        assert_eq!((books.counts.foreign, books.counts.late), (1, 0));
        assert_eq!(books.answered(11, Duration::ZERO), None);
        assert_eq!((books.counts.foreign, books.counts.late), (1, 1));
    }

    #[test]
    fn an_open_loop_keeps_its_times_however_late_it_is() {
        let schedule = Pacing::Open {
            rate: Rate::packets_per_second(1000).unwrap(),
        };
        let ms = Duration::from_millis;
        assert_eq!(schedule.due(ms(0), 0, 0), Some(Some(ms(0))));
        assert_eq!(schedule.due(ms(0), 1, 0), None);
        assert_eq!(schedule.left(ms(0), 1, 0), Some(ms(1)));
        // Half a second late: the second request still counts from its own time.
        assert_eq!(schedule.due(ms(500), 1, 9), Some(Some(ms(1))));
        assert_eq!(schedule.due_by(ms(500)), Some(500));
        // After three million requests, the schedule has not drifted.
        assert_eq!(
            schedule.due(Duration::MAX, 3_000_000, 0),
            Some(Some(ms(3_000_000)))
        );
    }

    #[test]
    fn a_closed_loop_waits_for_answers() {
        let depth = NonZeroU32::new(2).unwrap();
        let schedule = Pacing::Closed { depth };
        let now = Duration::from_secs(1);
        assert_eq!(schedule.due(now, 7, 1), Some(None));
        assert_eq!(schedule.due(now, 7, 2), None);
        assert_eq!(schedule.left(now, 7, 2), None);
        assert_eq!(schedule.due_by(now), None);
    }
}
