//! The end that is connected to: a listening socket, the connections that it yields, and the streams that their
//! clients ask for.
//!
//! Each connection is read on the thread that runs it; clients beyond the server's [`Slots`] wait in the
//! kernel's queue; and whatever keeps one connection from being taken, the listener goes on. Whatever a
//! header states, the time, the length of a write and the memory are bounded. A server connects back to the
//! address that the client's own connection came from and to no other; a client takes connections from its
//! server's address only.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nicpoll_model::Rate;
use nicpoll_model::traffic::Direction;
use nicpoll_traffic::sockets::{self, SocketBuffer};
use nicpoll_traffic::udp_server::ServerConfig;
use nicpoll_traffic::{Caller, ClientRefusal, LOOK_EVERY, Signals, Spare, is_exhausted};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, SocketType, sockopt};

use super::client::{ConnectBack, Streams};
use super::reader::{Incoming, Reader, ReceiveReport};
use super::sender::{Outgoing, Plan};
use super::socket::{Error, View, set_options};
use crate::config::{ClientConfig, ListenerConfig, StreamConfig, set_type_of_service};
use crate::events::Failed;
use crate::records::{Connected, Intervals, Remarks};
use crate::slots::{Slots, Ticket};
use crate::stream::{Listen, Taken, bounds, is_address_of_server};
use crate::wire::{
    ClientHeader, Directions, HEADER_BYTES_MAX, HeaderAck, Version, header_length, is_acknowledged,
};

/// The longest that a server sends to a client, whatever that asks for.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest write that a client can ask a server for.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// What a server sends to a client that asks for it, within the bounds of the server.
pub(super) fn plan(asked: &ClientHeader, config: &ListenerConfig) -> Plan {
    let time_max = config.send_time_max.min(SEND_TIME_MAX);
    let (duration, bytes_max) = bounds(asked.amount, time_max);
    let stated = asked.extension.map_or(0, |extension| extension.rate_bps);
    Plan {
        duration,
        bytes_max,
        header: None,
        bytes_sent: 0,
        stream: StreamConfig {
            pacing_bytes_per_second: asked.pacing_bytes_per_second,
            rate: Rate::bits_per_second(stated),
            length_bytes: match asked.buffer_bytes {
                0 => config.stream.length_bytes,
                bytes => bytes.min(WRITE_BYTES_MAX) as usize,
            },
            ..config.stream.clone()
        },
        may_be_reset: false,
    }
}

/// How a server connects back: from the address that the client reached to the one that it came from.
pub(super) fn way_back(
    mut local: SocketAddr,
    mut peer: SocketAddr,
    port: u16,
    asked: &ClientHeader,
    config: &ListenerConfig,
) -> ClientConfig {
    local.set_port(0);
    peer.set_port(port);
    let mut stream = StreamConfig {
        has_header: false,
        pacing_bytes_per_second: asked.pacing_bytes_per_second,
        ..config.stream.clone()
    };
    if let Some(service) = asked.type_of_service() {
        stream.socket.type_of_service = Some(service);
    }
    ClientConfig {
        bind: Some(local),
        ..ClientConfig::new(peer, stream)
    }
}
/// 2.1.8 gives a client this long for its header.
const HEADER_LIMIT: Duration = Duration::from_secs(4);

/// What tells whether a stream begins with a header, and with which.
const FIRST_WORD_BYTES: usize = 4;

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
    /// [`Error::Setup`], [`Error::Bind`], and [`Error::PortOfServer`] at a client whose server is on this
    /// host and has the same port, since the client would connect to itself should the server not run.
    pub fn bind(config: &ListenerConfig) -> Result<Self, Error> {
        Self::with_slots(config, None)
    }

    /// The same at one more port of a server, whose `slots` it shares.
    pub(crate) fn with_slots(
        config: &ListenerConfig,
        slots: Option<&Slots>,
    ) -> Result<Self, Error> {
        if let Some(server) = config.of_server
            && is_address_of_server(config.bind, server)
        {
            let port = server.port();
            return Err(Error::PortOfServer { server, port });
        }
        let slots = slots.cloned();
        let slots = slots.unwrap_or_else(|| Slots::new(config.of_server.is_some()));
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
                // Others than the server of a client are closed, and one that has too many already.
                && self.is_expected(peer)
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

    fn is_expected(&self, peer: SocketAddr) -> bool {
        let server = self.config.of_server;
        server.is_none_or(|server| server.ip().to_canonical() == peer.ip().to_canonical())
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
}

impl Listen for Listener {
    fn take(&mut self, signals: &Signals, patience: Duration) -> Result<Option<Taken>, Failed> {
        let accepted = self.accept(signals, patience)?;
        Ok(accepted.map(|accepted| Taken {
            peer: accepted.peer,
            proof: accepted.ticket.proof().clone(),
            open: Box::new(move |signals| Ok(accepted.open(signals)?.into())),
        }))
    }

    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn buffer(&self) -> SocketBuffer {
        self.receive_buffer
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
    /// Reads what the client asks for; returns the streams that make it up.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(self, signals: &Signals) -> Result<Streams, Error> {
        if self.config.of_server.is_some() {
            // A stream that was asked for has no header, whatever it begins with.
            self.ticket.prove();
            return self.forward(None, 0);
        }
        let (header, bytes) = self.read_request(signals)?;
        let Some(asked) = header else {
            return self.forward(None, bytes);
        };
        let directions = asked.directions().map_err(|source| Error::Header {
            peer: self.peer,
            source,
        })?;
        if let Some(service) = asked.type_of_service() {
            // What is sent to the client has what it sends with, acknowledgements included.
            set_type_of_service(&self.socket, self.peer, service).map_err(|source| {
                Error::Setup {
                    peer: self.peer,
                    source,
                }
            })?;
        }
        let mut streams = Streams::default();
        match directions {
            Directions::Forward => return self.forward(header, bytes),
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

    /// Reads the header, if the stream begins with one, and answers it when 2.1.8 would; how many bytes were
    /// read. Not a byte more is read than belongs to it. A stream that ends within its header is left for the
    /// next read to report.
    fn read_request(&self, signals: &Signals) -> Result<(Option<ClientHeader>, u64), Error> {
        let mut nobody = ();
        let intervals = Intervals::new(None, &mut nobody);
        let ticket = Some(&self.ticket);
        let now = Instant::now();
        let mut reader = Reader::new(&self.socket, self.peer, ticket, signals, intervals, now);
        let header = read_header(&mut reader, self.peer)?;
        let has_no_header = reader.bytes_received() == FIRST_WORD_BYTES as u64;
        if header.is_some() || has_no_header {
            self.ticket.prove();
        }
        if header.as_ref().is_some_and(is_acknowledged) {
            let version = Version::V2_1_8;
            let mut socket = &*self.socket;
            socket
                .write_all(&HeaderAck { version }.to_bytes())
                .map_err(|source| reader.broken(source))?;
        }
        Ok((header, reader.bytes_received()))
    }

    fn forward(&self, header: Option<ClientHeader>, bytes: u64) -> Result<Streams, Error> {
        Ok(Streams {
            incoming: Some(self.incoming(Direction::Forward, header, bytes)?),
            ..Streams::default()
        })
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
            plan: plan(asked, &self.config),
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
            config: way_back(local, self.peer, port, asked, &self.config),
            plan: plan(asked, &self.config),
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

fn read_header(reader: &mut Reader, peer: SocketAddr) -> Result<Option<ClientHeader>, Error> {
    let bad = |source| Error::Header { peer, source };
    let mut bytes = [0; HEADER_BYTES_MAX];
    let (first_word, rest) = bytes.split_at_mut(FIRST_WORD_BYTES);
    if !reader.read_whole(first_word, HEADER_LIMIT)? {
        return Ok(None);
    }
    let mut flag_word = [0; FIRST_WORD_BYTES];
    flag_word.copy_from_slice(first_word);
    let length = header_length(flag_word).map_err(bad)?;
    let rest = &mut rest[..length.saturating_sub(FIRST_WORD_BYTES)];
    if !reader.read_whole(rest, HEADER_LIMIT)? {
        return Ok(None);
    }
    ClientHeader::parse_tcp(&bytes).map_err(bad)
}

/// A listening server, for one stream.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    idle_timeout: Duration,
}

impl Server {
    /// Begins to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, Error> {
        Ok(Server {
            listener: Listener::bind(&ListenerConfig::tcp(*config))?,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Takes one connection and reads it to its end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(self, signals: &Signals) -> Result<ReceiveReport, Error> {
        let begun = Instant::now();
        let Some(accepted) = self.listener.accept(signals, self.idle_timeout)? else {
            return Err(Error::NoClient {
                address: self.local_addr(),
                seconds: begun.elapsed().as_secs_f64(),
            });
        };
        let peer = accepted.peer;
        match accepted.open(signals)? {
            Streams {
                incoming: Some(incoming),
                outgoing: None,
                back: None,
            } => incoming.run(signals, &mut ()),
            _ => Err(Error::OtherDirection { peer }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::config::TCP_LENGTH_BYTES;
    use crate::wire::Amount;

    #[test]
    fn a_client_cannot_ask_for_more_than_the_server_gives() {
        let mut config = ListenerConfig::tcp(ServerConfig {
            bind: ([127, 0, 0, 1], 0).into(),
            receive_buffer_bytes: None,
            idle_timeout: Duration::ZERO,
        });
        let mut asked = ClientHeader::for_tcp(1, Amount::Time(Duration::MAX));
        assert_eq!(plan(&asked, &config).duration, SEND_TIME_MAX);
        config.send_time_max = Duration::MAX;
        assert_eq!(plan(&asked, &config).duration, SEND_TIME_MAX);
        config.send_time_max = Duration::from_secs(1);
        assert_eq!(plan(&asked, &config).duration, config.send_time_max);
        for (buffer_bytes, write_bytes) in [
            (0, TCP_LENGTH_BYTES),
            (1, 1),
            (u32::MAX, WRITE_BYTES_MAX as usize),
        ] {
            asked.buffer_bytes = buffer_bytes;
            assert_eq!(plan(&asked, &config).stream.length_bytes, write_bytes);
        }
    }
}
