//! What carries the requester's messages: a connected UDP socket or a TCP connection.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nicpoll_wire::rr::{Decoder, Message, MessageKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, sockopt,
};

use super::RrClientConfig;
use crate::RefusedSends;
use crate::signals::{LOOK_EVERY, Signals};
use crate::sockets::{self, SocketBuffer};

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
    /// The request: its head is written anew for each, its filler is zero.
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
