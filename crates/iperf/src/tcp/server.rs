//! The TCP server: its listener, the connections it accepts, and the streams that clients request.
//!
//! Each connection is read on the thread that runs it. Clients beyond the server's [`Slots`] wait in the
//! kernel's queue. A failure to accept one connection does not stop the listener. Time, write length and memory
//! are limited whatever a header states. A server connects back only to the address that the client's
//! connection came from; a client accepts connections only from its server's address.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
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

use super::client::connect_back;
use super::connection::{Connection, set_options};
use super::reader::{Incoming, TcpStreamReader};
use super::sender::Outgoing;
use crate::config::{
    ClientConfig, ListenerConfig, StreamConfig, receive_window, set_type_of_service,
};
use crate::records::{Splitter, Total, type_of_service};
use crate::slots::{Slots, Ticket};
use crate::stream::{
    AcceptedTest, Back, Error, Listen, ReadyStream, StreamRun, Streams, check_port,
};
use crate::wire::{
    ClientHeader, Directions, HEADER_BYTES_MAX, HeaderAck, HeaderError, Version, header_length,
    is_acknowledged,
};

/// Limit on the time a server sends, whatever the client requests.
const SEND_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest write that a client can request.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// How to send to a client: as requested, within the server's limits.
fn as_asked(asked: &ClientHeader, own: &StreamConfig) -> StreamConfig {
    let stated = asked.extension.map_or(0, |extension| extension.rate_bps);
    let mut stream = StreamConfig {
        amount: asked.amount,
        time_max: own.time_max.min(SEND_TIME_MAX),
        has_header: false,
        rate: Rate::bits_per_second(stated),
        length_bytes: match asked.buffer_bytes {
            0 => own.length_bytes,
            bytes => bytes.min(WRITE_BYTES_MAX) as usize,
        },
        ..own.clone()
    };
    if let Some(service) = asked.type_of_service() {
        stream.socket.type_of_service = Some(service);
    }
    stream
}

/// 2.1.8 gives a client this long to send its header.
const HEADER_LIMIT: Duration = Duration::from_secs(4);

/// Length of the flags word, which tells whether a header follows, and which kind.
const FIRST_WORD_BYTES: usize = 4;

/// Connections waiting to be accepted: the standard library's default.
const BACKLOG: i32 = 128;

/// A listening server for any number of streams.
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
    /// Starts to listen; clients may connect from now on.
    ///
    /// # Errors
    /// Also at a client whose server is on this host with the same port: without the server, the client would
    /// connect to itself.
    pub fn bind(config: &ListenerConfig) -> Result<Self, Error> {
        Self::with_slots(config, &Slots::new(config.of_server.is_some()))
    }

    /// Like [`Self::bind`], with a server's `slots`.
    pub(crate) fn with_slots(config: &ListenerConfig, slots: &Slots) -> Result<Self, Error> {
        check_port(config)?;
        let bind = config.bind;
        let prepare = || {
            let options = &config.stream.socket;
            let fd = options.open(SocketType::STREAM, SocketFlags::NONBLOCK, bind)?;
            // Connections of an earlier server may still be in TIME_WAIT.
            sockopt::set_socket_reuseaddr(&fd, true)?;
            // Accepted sockets inherit these; TCP needs some of them before the first segment.
            sockets::send_buffer(&fd, config.stream.buffer_bytes)?;
            let buffer = receive_window(&fd, config.stream.buffer_bytes)?;
            set_options(&fd, &config.stream)?;
            Ok((fd, buffer))
        };
        let (fd, receive_buffer) = prepare().map_err(Error::setup(bind))?;
        let listen = || {
            rustix::net::bind(&fd, &bind)?;
            rustix::net::listen(&fd, BACKLOG)
        };
        let refused = |source| Error::Bind {
            what: format!(
                "cannot listen on {bind} over TCP; see whether the address is local and the port free"
            ),
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
            slots: slots.clone(),
            spare: Spare::default(),
        })
    }

    fn accept_one(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let (stream, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // The client left before it was accepted.
            Err(error) if is_passing(&error) => return Ok(None),
            Err(source) if is_exhausted(&source) => {
                self.spare.turn_away(&self.listener);
                let peer = Caller(None);
                self.slots
                    .admission()
                    .refuse(ClientRefusal::Descriptor { peer, source });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        sockets::make_blocking(&stream)?;
        Ok(Some((stream, peer)))
    }

    /// Takes the reason of the last refusal that was not yet reported.
    pub fn refusal(&self) -> Option<ClientRefusal> {
        self.slots.admission().refusal()
    }
}

impl Listen for Listener {
    fn accept(
        &mut self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Option<AcceptedTest>, Error> {
        let address = self.address;
        let failed = |source| Error::Io {
            what: format!(
                "cannot take a connection on {address}; see the kernel's limit on open files"
            ),
            source,
        };
        let begun = Instant::now();
        loop {
            signals.check()?;
            let is_full = self.slots.admission().is_full();
            if !is_full
                && let Some((socket, peer)) = self.accept_one().map_err(failed)?
                // Closes connections from hosts other than the expected server, and from clients with too many.
                && self.config.is_for(peer.ip())
                && let Some(ticket) = self.slots.take(peer, 1)
            {
                let proof = ticket.proof().clone();
                let accepted = Accepted {
                    connection: Connection {
                        socket: Arc::new(socket),
                        peer,
                        begun: Instant::now(),
                        connecting: None,
                        buffers: None,
                        stream: self.config.stream.clone(),
                        type_of_service: 0,
                        ticket: Some(ticket),
                    },
                    idle_timeout: self.config.idle_timeout,
                    is_of_server: self.config.of_server.is_some(),
                };
                return Ok(Some(AcceptedTest {
                    peer,
                    proof,
                    open: Box::new(move |signals| accepted.open(signals)),
                }));
            }
            if begun.elapsed() >= patience || signals.is_sender_done() {
                let at_once = [&self.listener];
                let is_awaited = sockets::poll_any(&at_once, PollFlags::IN, Duration::ZERO);
                if is_full && is_awaited.map_err(failed)? {
                    self.slots.admission().wait();
                }
                return Ok(None);
            }
            let is_awaited = sockets::poll_once(&self.listener, PollFlags::IN).map_err(failed)?;
            if is_full && is_awaited {
                self.slots.admission().wait();
                // A poll would return at once.
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn buffer(&self) -> SocketBuffer {
        self.receive_buffer
    }
}

fn is_passing(error: &io::Error) -> bool {
    sockets::is_no_progress(error) || error.kind() == io::ErrorKind::ConnectionAborted
}

/// An accepted connection, not yet read.
struct Accepted {
    connection: Connection,
    idle_timeout: Duration,
    /// Whether this is a client and the connection is its server's.
    is_of_server: bool,
}

impl Accepted {
    /// Reads the client's request; returns the streams to run.
    fn open(mut self, signals: &Signals) -> Result<Streams, Error> {
        let mut streams = Streams::default();
        if self.is_of_server {
            // A requested stream has no header, whatever its first bytes.
            self.prove();
            streams.incoming = Some(self.incoming(Direction::Forward, 0)?);
            return Ok(streams);
        }
        let (header, bytes) = self.read_request(signals)?;
        self.connection.type_of_service = type_of_service(&self.connection.stream, header.as_ref());
        let Some(asked) = header else {
            streams.incoming = Some(self.incoming(Direction::Forward, bytes)?);
            return Ok(streams);
        };
        let peer = self.connection.peer;
        let directions = asked.directions().map_err(bad_header(peer))?;
        if let Some(service) = asked.type_of_service() {
            // Data and acknowledgements to the client carry the type of service it sends with.
            set_type_of_service(&self.connection.socket, peer, service)
                .map_err(Error::setup(peer))?;
        }
        let (incoming, outgoing) = match directions {
            Directions::Forward => (Some(Direction::Forward), None),
            Directions::Reverse => (None, Some(Direction::Reverse)),
            Directions::FullDuplex => {
                self.stop_if_crowded()?;
                (Some(Direction::FullDuplex), Some(Direction::FullDuplex))
            }
            Directions::Dual { port, is_at_once } => {
                self.stop_if_crowded()?;
                streams.back = Some(self.back(port, is_at_once, &asked)?);
                (Some(Direction::Forward), None)
            }
        };
        if let Some(direction) = incoming {
            streams.incoming = Some(self.incoming(direction, bytes)?);
        }
        if let Some(direction) = outgoing {
            let connection = Connection {
                stream: as_asked(&asked, &self.connection.stream),
                ..self.connection.clone()
            };
            streams.outgoing = Some(Outgoing::of(connection, direction)?.boxed());
        }
        Ok(streams)
    }

    /// Marks the client as proved to exist.
    fn prove(&self) {
        if let Some(ticket) = &self.connection.ticket {
            ticket.prove();
        }
    }

    /// Reads the header, if there is one, and acknowledges it when 2.1.8 would; also returns the number of
    /// bytes read. Reads no byte beyond the header. If the stream ends within its header, the next read reports
    /// that.
    fn read_request(&self, signals: &Signals) -> Result<(Option<ClientHeader>, u64), Error> {
        let mut nobody = ();
        let intervals = Splitter::new(None, &mut nobody);
        let mut reader = TcpStreamReader::new(&self.connection, signals, intervals);
        let header = read_header(&mut reader, self.connection.peer)?;
        let bytes = reader.counted.bytes;
        if header.is_some() || bytes == FIRST_WORD_BYTES as u64 {
            self.prove();
        }
        if header.as_ref().is_some_and(is_acknowledged) {
            let version = Version::V2_1_8;
            let mut socket = &*self.connection.socket;
            socket
                .write_all(&HeaderAck { version }.to_bytes())
                .map_err(|source| reader.broken(source))?;
        }
        Ok((header, bytes))
    }

    fn incoming(&self, direction: Direction, bytes_received: u64) -> Result<StreamRun, Error> {
        let incoming = Incoming {
            connected: self.connection.connected(direction, false)?,
            connection: self.connection.clone(),
            silence_max: self.idle_timeout,
            bytes_received,
        };
        Ok(incoming.boxed())
    }

    /// Connects from the address that the client reached to the client's source address.
    fn back(&self, port: u16, is_at_once: bool, asked: &ClientHeader) -> Result<Back, Error> {
        let mut peer = self.connection.peer;
        let local = self.connection.socket.local_addr();
        let mut local = local.map_err(Error::setup(peer))?;
        local.set_port(0);
        peer.set_port(port);
        let stream = as_asked(asked, &self.connection.stream);
        let config = ClientConfig {
            bind: Some(local),
            ..ClientConfig::new(peer, stream)
        };
        let ticket = self.connection.ticket.clone();
        Ok(Back {
            is_at_once,
            length_bytes: config.stream.length_bytes,
            rate: None,
            connect: Box::new(move |signals| {
                let mut outgoing = connect_back(&config, signals)?;
                outgoing.connection.ticket = ticket;
                outgoing.may_be_reset = true;
                Ok((outgoing.connected, outgoing.boxed()))
            }),
        })
    }

    /// Refuses a client whose second stream would exceed the limit.
    fn stop_if_crowded(&self) -> Result<(), Error> {
        let Connection { ticket, peer, .. } = &self.connection;
        if ticket.as_ref().is_none_or(Ticket::has_room_for_another) {
            return Ok(());
        }
        Err(Error::Because(format!(
            "{peer} asks for a stream while all are in use; try again later"
        )))
    }
}

fn bad_header(peer: SocketAddr) -> impl Fn(HeaderError) -> Error + Copy {
    move |source| {
        Error::Because(format!(
            "the stream from {peer} has no valid header ({source})"
        ))
    }
}

fn read_header(
    reader: &mut TcpStreamReader,
    peer: SocketAddr,
) -> Result<Option<ClientHeader>, Error> {
    let bad = bad_header(peer);
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

/// A listening server for one stream.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    idle_timeout: Duration,
}

impl Server {
    /// Starts to listen; clients may connect from now on.
    ///
    /// # Errors
    /// [`Error::Bind`].
    pub fn bind(config: &ServerConfig) -> Result<Self, Error> {
        Ok(Server {
            listener: Listener::bind(&ListenerConfig::tcp(*config))?,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The address it listens at, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Accepts one connection and reads it to its end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(mut self, signals: &Signals) -> Result<Total, Error> {
        let (address, begun) = (self.local_addr(), Instant::now());
        let Some(taken) = self.listener.accept(signals, self.idle_timeout)? else {
            let seconds = begun.elapsed().as_secs_f64();
            return Err(Error::Because(format!(
                "no client connected to {address} within {seconds} s; start it sooner or wait longer"
            )));
        };
        match (taken.open)(signals)? {
            Streams {
                incoming: Some(incoming),
                outgoing: None,
                back: None,
            } => incoming(signals, &mut ()),
            _ => Err(Error::Because(format!(
                "{} asks for traffic towards itself; run it without -d, -r, -R and --full-duplex",
                taken.peer
            ))),
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
        let mut own = StreamConfig::tcp(Amount::Bytes(0));
        let mut asked = ClientHeader::for_tcp(1, Amount::Time(Duration::MAX));
        assert_eq!(as_asked(&asked, &own).bounds().0, SEND_TIME_MAX);
        own.time_max = Duration::from_secs(1);
        assert_eq!(as_asked(&asked, &own).bounds().0, own.time_max);
        for (buffer_bytes, write_bytes) in [
            (0, TCP_LENGTH_BYTES),
            (1, 1),
            (u32::MAX, WRITE_BYTES_MAX as usize),
        ] {
            asked.buffer_bytes = buffer_bytes;
            assert_eq!(as_asked(&asked, &own).length_bytes, write_bytes);
        }
    }
}
