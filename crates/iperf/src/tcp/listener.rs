//! A listening socket, and the connections that it yields.
//!
//! What must hold: each connection is read on the thread that runs it; clients beyond the server's
//! [`Slots`] wait in the kernel's queue; and whatever keeps one connection from being taken, the
//! listener goes on.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{SocketFlags, SocketType, sockopt};

use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::{Caller, ClientRefusal, LOOK_EVERY, Signals, Spare, is_exhausted};

use crate::wire::{ClientHeader, Directions};
use nicpoll_model::iperf::Direction;

use super::request::{self, Request};
use super::reverse;
use super::{ConnectBack, Error, Incoming, Outgoing, Streams, View, set_options};
use crate::config::ListenerConfig;
use crate::observer::{Connected, Remarks};
use crate::slots::{Slots, Test, Ticket};
use crate::socket_options;

/// Connections that wait to be accepted, the standard library's number.
const BACKLOG: i32 = 128;

/// A listening server, for any number of streams.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    receive_buffer: SocketBuffer,
    config: ListenerConfig,
    slots: Slots,
    spare: Spare,
}

impl Listener {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`Error::Setup`] and [`Error::Bind`].
    pub fn bind(config: &ListenerConfig) -> Result<Self, Error> {
        let slots = match config.of_server {
            Some(_) => Slots::for_one_server(),
            None => Slots::new(),
        };
        Self::with_slots(config, slots)
    }

    /// Listens at one more port of the same server: its clients count as those of this one do.
    ///
    /// # Errors
    /// [`Error::Setup`] and [`Error::Bind`].
    pub fn beside(&self, config: &ListenerConfig) -> Result<Self, Error> {
        Self::with_slots(config, self.slots.clone())
    }

    fn with_slots(config: &ListenerConfig, slots: Slots) -> Result<Self, Error> {
        let bind = config.bind;
        let prepare = || {
            let options = &config.stream.socket;
            let fd = options.open(SocketType::STREAM, SocketFlags::NONBLOCK, bind)?;
            // Connections of an earlier server may still be in TIME_WAIT.
            sockopt::set_socket_reuseaddr(&fd, true)?;
            // Accepted sockets inherit all of it, and TCP has to know some before the first segment.
            sockets::send_buffer(&fd, config.stream.buffer_bytes)?;
            let buffer = sockets::receive_buffer(&fd, config.stream.buffer_bytes)?;
            set_options(&fd, &config.stream)?;
            Ok((fd, buffer))
        };
        let (fd, receive_buffer) =
            prepare().map_err(|source| Error::Setup { peer: bind, source })?;
        let listen = || {
            rustix::net::bind(&fd, &bind)?;
            rustix::net::listen(&fd, BACKLOG)
        };
        let refused = |source| Error::Bind {
            address: bind,
            source,
        };
        listen().map_err(|error| refused(error.into()))?;
        let listener = TcpListener::from(fd);
        let address = listener.local_addr().map_err(refused)?;
        Ok(Listener {
            listener,
            address,
            receive_buffer,
            config: config.clone(),
            slots,
            spare: Spare::default(),
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The receive buffer as granted to the listening socket.
    pub fn receive_buffer(&self) -> SocketBuffer {
        self.receive_buffer
    }

    /// Takes the next connection; `None` when none came for `patience`, or when none waits and
    /// [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// [`Error::Accept`] and [`Error::Cancelled`].
    pub fn accept(&self, signals: &Signals, patience: Duration) -> Result<Option<Accepted>, Error> {
        let failed = |source| Error::Accept {
            address: self.address,
            source,
        };
        let begun = Instant::now();
        loop {
            if signals.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let is_full = self.slots.are_taken();
            if !is_full
                && let Some((socket, peer)) = self.accept_one().map_err(failed)?
                // One that has too many already is closed.
                && let Some(ticket) = self.slots.take(peer, 1)
            {
                return Ok(Some(Accepted {
                    socket: Arc::new(socket),
                    peer,
                    accepted: Instant::now(),
                    config: self.config.clone(),
                    ticket,
                }));
            }
            if begun.elapsed() >= patience || signals.is_sender_done() {
                let at_once = [&self.listener];
                let is_awaited = sockets::poll_any(&at_once, PollFlags::IN, Duration::ZERO);
                if is_full && is_awaited.map_err(failed)? {
                    self.slots.wait();
                }
                return Ok(None);
            }
            let is_awaited = sockets::poll_once(&self.listener, PollFlags::IN).map_err(failed)?;
            if is_full && is_awaited {
                self.slots.wait();
                // A poll would not wait.
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn accept_one(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let (stream, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // A client that was gone before it was accepted is none.
            Err(error) if is_passing(&error) => return Ok(None),
            Err(source) if is_exhausted(&source) => {
                self.spare.turn_away(&self.listener);
                let peer = Caller(None);
                self.slots
                    .refuse(ClientRefusal::Descriptor { peer, source });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(LOOK_EVERY))?;
        Ok(Some((stream, peer)))
    }

    /// Why a client was refused last, unless that was asked before.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.slots.refusal()
    }

    /// Takes note of a client that could not be served.
    pub fn refuse(&self, refusal: ClientRefusal) {
        self.slots.refuse(refusal);
    }

    /// Has connections end whose client has not sent a whole header.
    pub fn let_go_of_strangers(&self) {
        self.slots.close();
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn is_passing(error: &io::Error) -> bool {
    sockets::is_no_progress(error) || error.kind() == io::ErrorKind::ConnectionAborted
}

/// A connection that was taken and waits to be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Accepted {
    socket: Arc<TcpStream>,
    peer: SocketAddr,
    accepted: Instant,
    config: ListenerConfig,
    ticket: Ticket,
}

impl Accepted {
    /// The client.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What is known of the client's test.
    pub fn test(&self) -> Test {
        self.ticket.test().clone()
    }

    /// Reads what the client asks for; returns the streams that make it up.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(self, signals: &Signals) -> Result<Streams, Error> {
        let ticket = Some(&self.ticket);
        let Request { header, bytes } = request::read(&self.socket, self.peer, ticket, signals)?;
        let Some(asked) = header else {
            return Ok(Streams {
                incoming: Some(self.incoming(Direction::Forward, None, bytes)?),
                ..Streams::default()
            });
        };
        let directions = asked.directions().map_err(|source| Error::Header {
            peer: self.peer,
            source,
        })?;
        if let Some(service) = asked.type_of_service() {
            // What is sent to the client has what it sends with, acknowledgements included.
            socket_options::set_type_of_service(&self.socket, self.peer, service).map_err(
                |source| Error::Setup {
                    peer: self.peer,
                    source,
                },
            )?;
        }
        let mut streams = Streams::default();
        match directions {
            Directions::Forward => {
                streams.incoming = Some(self.incoming(Direction::Forward, header, bytes)?);
            }
            Directions::Reverse => {
                streams.outgoing = Some(self.outgoing(Direction::Reverse, &asked)?);
            }
            Directions::FullDuplex => {
                self.stop_if_crowded()?;
                streams.incoming = Some(self.incoming(Direction::FullDuplex, header, bytes)?);
                streams.outgoing = Some(self.outgoing(Direction::FullDuplex, &asked)?);
            }
            Directions::Dual { port, is_at_once } => {
                self.stop_if_crowded()?;
                streams.back = Some(self.back(port, is_at_once, &asked)?);
                streams.incoming = Some(self.incoming(Direction::Forward, header, bytes)?);
            }
        }
        Ok(streams)
    }

    /// A stream without header, whatever it begins with: one that was asked for.
    pub(super) fn without_header(self) -> Result<Incoming, Error> {
        self.ticket.prove();
        self.incoming(Direction::Forward, None, 0)
    }

    fn incoming(
        &self,
        direction: Direction,
        header: Option<ClientHeader>,
        bytes_received: u64,
    ) -> Result<Incoming, Error> {
        Ok(Incoming {
            socket: Arc::clone(&self.socket),
            connected: self.view(direction, false, header.as_ref())?,
            begun: self.accepted,
            stream: self.config.stream.clone(),
            silence_max: self.config.idle_timeout,
            header,
            bytes_received,
            ticket: Some(self.ticket.clone()),
        })
    }

    fn outgoing(&self, direction: Direction, asked: &ClientHeader) -> Result<Outgoing, Error> {
        Ok(Outgoing {
            socket: Arc::clone(&self.socket),
            connected: self.view(direction, true, Some(asked))?,
            plan: reverse::plan(asked, &self.config),
            input: None,
            is_read: direction == Direction::FullDuplex,
            _ticket: Some(self.ticket.clone()),
        })
    }

    fn back(
        &self,
        port: u16,
        is_at_once: bool,
        asked: &ClientHeader,
    ) -> Result<ConnectBack, Error> {
        let setup = |source| Error::Setup {
            peer: self.peer,
            source,
        };
        let local = self.socket.local_addr().map_err(setup)?;
        Ok(ConnectBack {
            config: reverse::way_back(local, self.peer, port, asked, &self.config),
            plan: reverse::plan(asked, &self.config),
            is_at_once,
            ticket: self.ticket.clone(),
        })
    }

    fn view(
        &self,
        direction: Direction,
        is_sender: bool,
        asked: Option<&ClientHeader>,
    ) -> Result<Connected, Error> {
        let view = View {
            remarks: Remarks::of_server(&self.config.stream, asked),
            direction,
            is_sender,
            asked_bytes: self.config.stream.buffer_bytes,
            connecting: None,
        };
        view.of(&self.socket, self.peer)
            .map_err(|source| Error::Setup {
                peer: self.peer,
                source,
            })
    }

    /// Refuses a client whose second stream would be one too many.
    fn stop_if_crowded(&self) -> Result<(), Error> {
        if !self.ticket.has_room_for_another() {
            return Err(Error::Crowded { peer: self.peer });
        }
        Ok(())
    }
}
