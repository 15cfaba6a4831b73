//! The end that asks: closed loop or open loop, over UDP or TCP.
//!
//! `sent = answered + lost + on their way`, whatever comes in whatever order. No request is answered twice, and none that
//! was given up counts as answered. The times of an open loop depend only on the rate and the number of the request: however
//! late it is sent, its latency counts from its own time, so a server that stalls does not hide the wait of the requests
//! behind it (coordinated omission).

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nicpoll_model::traffic::RrClientInterval;
use nicpoll_model::{Protocol, Rate, RoundTrip, RoundTripQuantiles, TimeDistribution};
use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, sockopt,
};
use thiserror::Error;

use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, RefusedSends, SocketBuffer};
use nicpoll_stats::Latencies;

/// How long a response is waited for.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);

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

/// What one read of a stream takes at most.
const READ_BYTES: usize = 65_536;

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it, or will take its rest in order.
    Taken,
    /// The kernel refused it; the next one may go.
    Refused,
    /// An earlier one is not taken yet; nothing was done.
    Busy,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The response to the request of this number.
    Response(u64),
    /// A datagram that is no response.
    Foreign,
    /// Nothing within the wait.
    Nothing,
}

/// A way to the server and back.
#[derive(Debug)]
pub struct Channel {
    carrier: Carrier,
    pub send_buffer: SocketBuffer,
    /// The request: its head is written for each, its filler is zero.
    request: Vec<u8>,
    received: Vec<u8>,
}

#[derive(Debug)]
enum Carrier {
    Udp(UdpSocket),
    Tcp {
        stream: TcpStream,
        decoder: Decoder,
        /// The part of `received` that is not decoded yet.
        undecoded: std::ops::Range<usize>,
        /// How much of `request` is still to be written.
        unwritten: usize,
    },
}

impl Channel {
    pub fn udp(config: &RrClientConfig) -> io::Result<Self> {
        let (socket, send_buffer) = sockets::connected_udp(
            config.peer,
            config.bind,
            config.send_buffer_bytes,
            LOOK_EVERY,
        )?;
        // One byte more than a response, so that a longer datagram is not taken for one.
        let received = config.response_bytes as usize + 1;
        Ok(Self::new(
            config,
            Carrier::Udp(socket),
            send_buffer,
            received,
        ))
    }

    /// Connects; `None` when the signals say to stop meanwhile.
    pub fn tcp(config: &RrClientConfig, signals: &Signals) -> io::Result<Option<Self>> {
        let family = match config.peer {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        let send_buffer = sockets::send_buffer(&fd, config.send_buffer_bytes)?;
        // A request must not wait for the answer to the one before.
        sockopt::set_tcp_nodelay(&fd, true)?;
        if let Some(local) = config.bind {
            sockopt::set_socket_reuseaddr(&fd, true)?;
            rustix::net::bind(&fd, &local)?;
        }
        let Some(stream) = connected(fd, config, signals)? else {
            return Ok(None);
        };
        let carrier = Carrier::Tcp {
            stream,
            decoder: Decoder::default(),
            undecoded: 0..0,
            unwritten: 0,
        };
        Ok(Some(Self::new(config, carrier, send_buffer, READ_BYTES)))
    }

    fn new(
        config: &RrClientConfig,
        carrier: Carrier,
        send_buffer: SocketBuffer,
        received: usize,
    ) -> Self {
        Channel {
            carrier,
            send_buffer,
            request: vec![0; config.request_bytes as usize],
            received: vec![0; received],
        }
    }

    /// Sends a request of the channel's length. Counts it when it is refused.
    pub fn send(&mut self, message: Message, refused: &mut RefusedSends) -> io::Result<Sent> {
        if self.flush()? {
            return Ok(Sent::Busy);
        }
        self.request[..Message::BYTES].copy_from_slice(&message.to_bytes());
        match &mut self.carrier {
            Carrier::Udp(socket) => match socket.send(&self.request) {
                Ok(_) => Ok(Sent::Taken),
                Err(error) if refused.note(&error, 1) => Ok(Sent::Refused),
                Err(error) => Err(error),
            },
            Carrier::Tcp { unwritten, .. } => {
                *unwritten = self.request.len();
                self.flush()?;
                Ok(Sent::Taken)
            }
        }
    }

    /// Writes what is left of a request; whether something still is.
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

    /// The next message, waited for as long as `wait`, or shorter.
    ///
    /// # Errors
    /// What the kernel says; a stream that ended or does not hold messages.
    pub fn receive(&mut self, wait: Duration) -> io::Result<Incoming> {
        if let Some(incoming) = self.decode()? {
            return Ok(incoming);
        }
        let is_busy = self.flush()?;
        let Some(length) = self.read(wait, is_busy)? else {
            return Ok(Incoming::Nothing);
        };
        match &mut self.carrier {
            Carrier::Udp(_) => Ok(response(Message::parse(&self.received[..length]).ok())),
            Carrier::Tcp { .. } if length == 0 => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the server closed the connection",
            )),
            Carrier::Tcp { undecoded, .. } => {
                *undecoded = 0..length;
                Ok(self.decode()?.unwrap_or(Incoming::Nothing))
            }
        }
    }

    /// The next message of what was read already.
    fn decode(&mut self) -> io::Result<Option<Incoming>> {
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

    /// One read; `None` when nothing came. A long wait is the socket's own, which takes one system
    /// call; a short one needs a timer that is finer than that.
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

fn response(message: Option<Message>) -> Incoming {
    match message {
        Some(message) if message.kind == MessageKind::Response => {
            Incoming::Response(message.sequence)
        }
        _ => Incoming::Foreign,
    }
}

fn read_now(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Option<usize>> {
    match recv(fd, buffer, flags) {
        Ok((length, _)) => Ok(Some(length)),
        Err(errno) => {
            let error = io::Error::from(errno);
            if sockets::is_no_datagram(&error) {
                return Ok(None);
            }
            Err(error)
        }
    }
}

fn connected(
    fd: OwnedFd,
    config: &RrClientConfig,
    signals: &Signals,
) -> io::Result<Option<TcpStream>> {
    let begun = Instant::now();
    match rustix::net::connect(&fd, &config.peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    while !sockets::poll_once(&fd, PollFlags::OUT)? {
        if signals.is_cancelled() || signals.is_finishing() {
            return Ok(None);
        }
        if begun.elapsed() >= config.connect_timeout {
            return Err(Errno::TIMEDOUT.into());
        }
    }
    sockopt::socket_error(&fd)??;
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    Ok(Some(stream))
}

/// Requests given up whose late answer is still known for one.
const REMEMBERED_MAX: usize = 65_536;

/// What a response was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answers a request that was on its way, so long after its time began.
    InTime(Duration),
    /// It answers one that was given up.
    Late,
    /// It answers none.
    Foreign,
}

/// A request on its way, or one that was answered while an older one is on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Its latency counts from here; since the first request.
    from: Duration,
    /// When it was sent.
    sent: Duration,
    is_answered: bool,
}

/// The books of the requests. Times count from an origin that the caller chooses.
#[derive(Debug)]
pub struct Outstanding {
    timeout: Duration,
    /// By number, without a gap: the first one's is `first`.
    requests: VecDeque<Request>,
    first: u64,
    on_their_way: usize,
    given_up: BTreeSet<u64>,
    answered: u64,
    lost: u64,
    late: u64,
    foreign: u64,
}

impl Outstanding {
    /// Requests count as lost when `timeout` after their sending there is no answer.
    pub fn new(timeout: Duration) -> Self {
        Outstanding {
            timeout,
            requests: VecDeque::new(),
            first: 1,
            on_their_way: 0,
            given_up: BTreeSet::new(),
            answered: 0,
            lost: 0,
            late: 0,
            foreign: 0,
        }
    }

    /// The number of the next request.
    pub fn next_sequence(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// The next request was sent.
    pub fn sent(&mut self, from: Duration, sent: Duration) {
        self.requests.push_back(Request {
            from,
            sent,
            is_answered: false,
        });
        self.on_their_way += 1;
    }

    /// A response came.
    pub fn answered(&mut self, sequence: u64, now: Duration) -> Answer {
        self.give_up(now);
        let index = sequence.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let open = index.and_then(|index| self.requests.get_mut(index));
        if let Some(request) = open.filter(|request| !request.is_answered) {
            request.is_answered = true;
            let latency = now.saturating_sub(request.from);
            self.on_their_way -= 1;
            self.answered += 1;
            self.drop_answered();
            return Answer::InTime(latency);
        }
        if self.given_up.remove(&sequence) {
            self.late += 1;
            return Answer::Late;
        }
        self.foreign += 1;
        Answer::Foreign
    }

    /// Something came that is no response.
    pub fn foreign(&mut self) {
        self.foreign += 1;
    }

    /// Gives up the requests whose time is over.
    pub fn give_up(&mut self, now: Duration) {
        while let Some(request) = self.requests.front() {
            if !request.is_answered {
                if now.saturating_sub(request.sent) < self.timeout {
                    return;
                }
                self.remember();
                self.on_their_way -= 1;
                self.lost += 1;
            }
            self.requests.pop_front();
            self.first += 1;
        }
    }

    /// Gives up all that are on their way: nothing comes any more.
    pub fn give_up_all(&mut self) {
        self.give_up(Duration::MAX);
    }

    /// Time from `now` until the oldest request's is over; `None` when none is on its way.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        let oldest = self.requests.front()?;
        Some((oldest.sent + self.timeout).saturating_sub(now))
    }

    fn drop_answered(&mut self) {
        while self.requests.front().is_some_and(|one| one.is_answered) {
            self.requests.pop_front();
            self.first += 1;
        }
    }

    fn remember(&mut self) {
        self.given_up.insert(self.first);
        if self.given_up.len() > REMEMBERED_MAX {
            self.given_up.pop_first();
        }
    }

    /// Requests that were sent.
    pub fn requests_sent(&self) -> u64 {
        self.next_sequence() - 1
    }

    /// Requests that may still be answered in time.
    pub fn on_their_way(&self) -> usize {
        self.on_their_way
    }

    /// Entries kept: requests on their way, and those answered after an older one that is.
    pub fn kept(&self) -> usize {
        self.requests.len()
    }

    /// Whether late answers may still come.
    pub fn awaits_late(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Requests answered in time.
    pub fn transactions(&self) -> u64 {
        self.answered
    }

    /// Requests given up.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Of these, those that were answered after all.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What answers no request, or one once more.
    pub fn foreign_messages(&self) -> u64 {
        self.foreign
    }
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// As soon as fewer than `depth` are on their way.
    Closed {
        /// Requests on their way at a time.
        depth: NonZeroU32,
    },
    /// At a rate, whatever becomes of them.
    Open {
        /// Requests a second.
        rate: Rate,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Schedule(Pacing);

impl Schedule {
    pub fn new(pacing: Pacing) -> Self {
        Schedule(pacing)
    }

    pub fn is_open(self) -> bool {
        matches!(self.0, Pacing::Open { .. })
    }

    /// Whether a request is due after `tried` others, and the time that it was scheduled for, which a
    /// closed loop does not know: `Some(None)`.
    pub fn due(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Option<Duration>> {
        match self.0 {
            Pacing::Closed { depth } => (on_their_way < depth.get() as usize).then_some(None),
            Pacing::Open { .. } => {
                let time = self.time_of(tried)?;
                (time <= now).then_some(Some(time))
            }
        }
    }

    /// Time from `now` until a request is due, when time alone decides; `None` when an answer has to
    /// come first.
    pub fn left(self, now: Duration, tried: u64, on_their_way: usize) -> Option<Duration> {
        match self.0 {
            Pacing::Closed { depth } => {
                (on_their_way < depth.get() as usize).then_some(Duration::ZERO)
            }
            Pacing::Open { .. } => Some(self.time_of(tried)?.saturating_sub(now)),
        }
    }

    /// Requests whose time came before `end`; `None` in a closed loop.
    pub(crate) fn due_by(self, end: Duration) -> Option<u64> {
        match self.0 {
            Pacing::Closed { .. } => None,
            Pacing::Open { rate } => {
                let whole = rate.packets_in(end, 0);
                Some(whole + u64::from(rate.time_of(whole, 0) < end))
            }
        }
    }

    /// The time of the request after `tried` others; counted from the rate, never from the last one,
    /// so that it does not drift.
    fn time_of(self, tried: u64) -> Option<Duration> {
        match self.0 {
            Pacing::Closed { .. } => None,
            Pacing::Open { rate } => Some(rate.time_of(tried, 0)),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send,
        Answer(u64),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Send),
            (0..60u64).prop_map(Step::Answer),
            (0..40u64).prop_map(Step::Wait),
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
        /// Against books that keep every request for good.
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
                    Step::Wait(time) => now += time,
                    Step::Send => {
                        fates.insert(books.next_sequence(), Fate::OnItsWay { sent: now });
                        books.sent(ms(now), ms(now));
                    }
                    Step::Answer(_) => {}
                }
                for fate in fates.values_mut() {
                    if matches!(fate, Fate::OnItsWay { sent } if now - *sent >= TIMEOUT) {
                        *fate = Fate::Lost;
                    }
                }
                if let Step::Answer(sequence) = step {
                    let fate = fates.get_mut(&sequence);
                    let expected = match fate.as_deref() {
                        Some(Fate::OnItsWay { sent }) => Answer::InTime(ms(now - sent)),
                        Some(Fate::Lost) => Answer::Late,
                        _ => Answer::Foreign,
                    };
                    match (expected, fate) {
                        (Answer::InTime(_), Some(fate)) => *fate = Fate::Answered,
                        (Answer::Late, Some(fate)) => *fate = Fate::Late,
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
                prop_assert_eq!(books.on_their_way() as u64, on_their_way);
                prop_assert_eq!(books.transactions(), count(|fate| *fate == Fate::Answered));
                prop_assert_eq!(books.lost(), lost);
                prop_assert_eq!(books.late(), count(|fate| *fate == Fate::Late));
                prop_assert_eq!(books.foreign_messages(), foreign);
                let sent = books.requests_sent();
                prop_assert_eq!(sent, books.transactions() + lost + on_their_way);
            }
            books.give_up_all();
            prop_assert_eq!(books.requests_sent(), books.transactions() + books.lost());
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
        assert_eq!(books.answered(1, Duration::ZERO), Answer::Foreign);
        assert_eq!(books.answered(11, Duration::ZERO), Answer::Late);
    }

    #[test]
    fn an_open_loop_keeps_its_times_however_late_it_is() {
        let schedule = Schedule::new(Pacing::Open {
            rate: Rate::packets_per_second(1000).unwrap(),
        });
        let ms = Duration::from_millis;
        assert_eq!(schedule.due(ms(0), 0, 0), Some(Some(ms(0))));
        assert_eq!(schedule.due(ms(0), 1, 0), None);
        assert_eq!(schedule.left(ms(0), 1, 0), Some(ms(1)));
        // Half a second behind: the second request still counts from its own time.
        assert_eq!(schedule.due(ms(500), 1, 9), Some(Some(ms(1))));
        assert_eq!(schedule.due_by(ms(500)), Some(500));
        // Three million requests on, it has not drifted.
        assert_eq!(
            schedule.due(Duration::MAX, 3_000_000, 0),
            Some(Some(ms(3_000_000)))
        );
    }

    #[test]
    fn a_closed_loop_waits_for_answers() {
        let depth = NonZeroU32::new(2).unwrap();
        let schedule = Schedule::new(Pacing::Closed { depth });
        let now = Duration::from_secs(1);
        assert_eq!(schedule.due(now, 7, 1), Some(None));
        assert_eq!(schedule.due(now, 7, 2), None);
        assert_eq!(schedule.left(now, 7, 2), None);
        assert_eq!(schedule.due_by(now), None);
    }
}
