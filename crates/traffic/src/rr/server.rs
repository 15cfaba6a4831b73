//! The end that answers.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nicpoll_wire::rr::Message;

use super::datagram_request;
use crate::RefusedSends;
use crate::signals::Signals;
use crate::sockets::{self, SocketBuffer};
use crate::udp_server::{BoundUdp, ServerConfig, ServerError};

/// The longest time to empty the socket after the requester is done.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// How the answering ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// [`Signals::sender_done`] was set and the socket is empty.
    SenderDone,
    /// No request came for the idle timeout.
    Idle,
}

/// What the responder counted.
#[derive(Clone, Copy, Debug)]
pub struct RrServerReport {
    /// The requester; `None` when nobody came.
    pub peer: Option<SocketAddr>,
    /// Requests that were read.
    pub requests_received: u64,
    /// Responses that the kernel took,
    pub responses_sent: u64,
    /// and those that it refused.
    pub refused_sends: RefusedSends,
    /// Datagrams of other peers, and those that are no requests.
    pub foreign_datagrams: u64,
    /// From the first request to the last.
    pub seconds: f64,
    /// How it ended.
    pub end: End,
    /// The receive buffer.
    pub receive_buffer: SocketBuffer,
}

/// A bound responder, for one requester unless it is for all.
#[derive(Debug)]
pub struct Server {
    bound: BoundUdp,
    is_for_all: bool,
}

impl Server {
    /// Binds the socket; requests are queued from now on.
    ///
    /// # Errors
    /// [`ServerError::Bind`] and [`ServerError::Setup`].
    pub fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let bound = BoundUdp::bind(config)?;
        Ok(Server {
            bound,
            is_for_all: false,
        })
    }

    /// The responder, for every requester that comes.
    pub fn for_all(self) -> Self {
        Server {
            is_for_all: true,
            ..self
        }
    }

    /// The address bound to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.address
    }

    /// Answers requests until the requester is done. The first request decides whose, unless it is for all.
    ///
    /// # Errors
    /// See [`ServerError`]. A requester that never comes is no error: see [`RrServerReport::end`].
    pub fn run(self, signals: &Signals) -> Result<RrServerReport, ServerError> {
        let bound = &self.bound;
        let mut responder = Responder {
            bound,
            is_for_all: self.is_for_all,
            peer: None,
            requests_received: 0,
            responses_sent: 0,
            refused_sends: RefusedSends::default(),
            foreign_datagrams: 0,
        };
        let mut begun = None;
        let mut last = Instant::now();
        let mut draining_since = None;
        let end = loop {
            if signals.is_cancelled() {
                return Err(ServerError::Cancelled);
            }
            // Looked at before the receive, so that an empty socket afterwards is empty for good.
            let is_draining = signals.is_sender_done();
            if is_draining && draining_since.is_none() {
                bound
                    .socket
                    .set_nonblocking(true)
                    .map_err(|source| bound.receive_failed(source))?;
                draining_since = Some(Instant::now());
            }
            let received = responder.serve_one()?;
            let now = Instant::now();
            if received == Received::Request {
                begun.get_or_insert(now);
                last = now;
            }
            if let Some(since) = draining_since {
                if received == Received::Nothing || now.duration_since(since) >= DRAIN_LIMIT {
                    break End::SenderDone;
                }
            } else if now.duration_since(last) >= bound.idle_timeout {
                break End::Idle;
            }
        };
        Ok(RrServerReport {
            peer: responder.peer,
            requests_received: responder.requests_received,
            responses_sent: responder.responses_sent,
            refused_sends: responder.refused_sends,
            foreign_datagrams: responder.foreign_datagrams,
            seconds: begun.map_or(0.0, |begun| last.duration_since(begun).as_secs_f64()),
            end,
            receive_buffer: bound.receive_buffer,
        })
    }
}

#[derive(PartialEq, Eq)]
enum Received {
    Request,
    Other,
    Nothing,
}

struct Responder<'a> {
    bound: &'a BoundUdp,
    is_for_all: bool,
    peer: Option<SocketAddr>,
    requests_received: u64,
    responses_sent: u64,
    refused_sends: RefusedSends,
    foreign_datagrams: u64,
}

impl Responder<'_> {
    /// One receive, and the response when it was a request.
    fn serve_one(&mut self) -> Result<Received, ServerError> {
        // One byte more than a message, so that a longer datagram is not taken for one.
        let mut buffer = [0; Message::BYTES + 1];
        let (length, source) = match self.bound.socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Received::Nothing);
            }
            Err(error) if sockets::is_no_datagram(&error) => return Ok(Received::Other),
            Err(source) => return Err(self.bound.receive_failed(source)),
        };
        let request = datagram_request(&buffer[..length])
            .filter(|_| self.is_for_all || self.peer.is_none_or(|peer| peer == source));
        let Some(request) = request else {
            self.foreign_datagrams += 1;
            return Ok(Received::Other);
        };
        self.requests_received += 1;
        self.answer(source, request)?;
        Ok(Received::Request)
    }

    fn answer(&mut self, peer: SocketAddr, request: Message) -> Result<(), ServerError> {
        if self.peer.is_none() {
            if !self.is_for_all {
                self.bound.connect(peer)?;
            }
            self.peer = Some(peer);
        }
        let response = request.response().to_bytes();
        let refused = &mut self.refused_sends;
        let is_sent = match self.is_for_all {
            true => self.bound.answer_one(peer, &response, refused)?,
            false => self.bound.answer(peer, &response, refused)?,
        };
        if is_sent {
            self.responses_sent += 1;
        }
        Ok(())
    }
}
