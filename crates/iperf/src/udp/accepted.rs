//! A session that was opened, and the streams that make it up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::wire::{ClientHeader, Dialect, Directions};

use nicpoll_traffic::udp_server::BoundUdp;

use nicpoll_model::iperf::Direction;

use super::Streams;
use super::client::sending;
use super::incoming::Incoming;
use super::receiver::{Manner, Taken};
use super::reverse::{self, Answer, ConnectBack, make_as_asked};
use super::sender::{Outgoing, Plan, SendError};
use crate::config::ListenerConfig;
use crate::observer::Remarks;
use crate::slots::{Test, Ticket};

/// A session that was opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted {
    // The socket goes before the client's address does, so that the listener knows the client for as
    // long as datagrams of it can come here.
    pub(super) bound: BoundUdp,
    pub(super) config: ListenerConfig,
    /// What came before the socket was the client's alone; not empty.
    pub(super) queued: Vec<Taken>,
    /// When the first datagram was looked at.
    pub(super) begun: Instant,
    pub(super) answer: Answer,
    pub(super) asked: Option<ClientHeader>,
    pub(super) client: Arc<SocketAddr>,
    pub(super) ticket: Ticket,
}

impl Accepted {
    /// The client.
    pub fn peer(&self) -> SocketAddr {
        *self.client
    }

    /// What is known of its test.
    pub fn test(&self) -> Test {
        self.ticket.test().clone()
    }

    /// What is to be received and sent.
    ///
    /// # Errors
    /// [`SendError::Setup`].
    pub fn open(self) -> Result<Streams, SendError> {
        let mut streams = Streams::default();
        match (self.answer, self.asked) {
            (Answer::Granted(Directions::Reverse), Some(asked)) => {
                streams.outgoing = Some(self.outgoing(Direction::Reverse, &asked)?);
            }
            (Answer::Granted(Directions::FullDuplex), Some(asked)) => {
                streams.outgoing = Some(self.outgoing(Direction::FullDuplex, &asked)?);
                streams.incoming = Some(self.incoming(Direction::FullDuplex, false));
            }
            (Answer::Granted(Directions::Dual { port, is_at_once }), Some(asked)) => {
                streams.back = Some(self.back(port, is_at_once, &asked)?);
                streams.incoming = Some(self.incoming(Direction::Forward, true));
            }
            // Such a client takes what comes for data.
            (Answer::Refused(Directions::FullDuplex), _) => {
                streams.incoming = Some(self.incoming(Direction::Forward, false));
            }
            _ => streams.incoming = Some(self.incoming(Direction::Forward, true)),
        }
        Ok(streams)
    }

    fn incoming(self, direction: Direction, is_answered: bool) -> Incoming {
        let remarks = Remarks::of_server(&self.config.stream, self.asked.as_ref());
        Incoming {
            bound: self.bound,
            stream: self.config.stream,
            manner: Manner {
                direction,
                is_answered,
                remarks,
                ..Manner::ANSWERED
            },
            queued: self.queued,
            begun: Some(self.begun),
            request: None,
            _client: Some(self.client),
            ticket: Some(self.ticket),
        }
    }

    fn outgoing(&self, direction: Direction, asked: &ClientHeader) -> Result<Outgoing, SendError> {
        let peer = *self.client;
        let setup = |source| SendError::Setup { peer, source };
        let socket = self.bound.socket.try_clone().map_err(setup)?;
        // Whom nothing comes from cannot show more; its address is an allowed one.
        self.ticket.prove();
        let remarks = Remarks::of_server(&self.config.stream, Some(asked));
        make_as_asked(&socket, peer, asked).map_err(setup)?;
        Ok(Outgoing {
            connected: sending(&socket, peer, direction, None, remarks).map_err(setup)?,
            socket,
            plan: self.plan(asked),
            _client: Some(Arc::clone(&self.client)),
            _ticket: Some(self.ticket.clone()),
        })
    }

    /// What to send to the client.
    fn plan(&self, asked: &ClientHeader) -> Plan {
        let first = self.queued.first();
        let dialect = first.map_or(Dialect::V2_1, |first| Dialect::of_client(&first.raw));
        reverse::plan(asked, dialect, self.client.ip(), &self.config)
    }

    fn back(
        &self,
        port: u16,
        is_at_once: bool,
        asked: &ClientHeader,
    ) -> Result<ConnectBack, SendError> {
        let mut peer = *self.client;
        peer.set_port(port);
        let local = self.bound.socket.local_addr();
        let mut local = local.map_err(|source| SendError::Setup { peer, source })?;
        local.set_port(0);
        Ok(ConnectBack {
            peer,
            local,
            options: self.config.stream.socket.clone(),
            asked: *asked,
            remarks: Remarks::of_server(&self.config.stream, Some(asked)),
            plan: self.plan(asked),
            is_at_once,
            ticket: self.ticket.clone(),
        })
    }
}
