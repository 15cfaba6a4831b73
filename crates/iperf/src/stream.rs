//! What the streams of both protocols share: the payload that comes from elsewhere, the bounds of a test, and
//! how the driver sees a test, whichever protocol it runs over.
//!
//! Whatever a header states, the time of a stream is bounded, and so is the wait for the other end.

mod error;

pub use error::{Error, SPEAKER};

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

use nicpoll_model::Rate;
use nicpoll_traffic::{Signals, SocketBuffer, sockets};
use rustix::event::PollFlags;
use rustix::thread::set_current_timer_slack;

use crate::config::{Input, ListenerConfig, StreamConfig};
use crate::records::{Connected, Observer, Total};
use crate::slots::Proof;
use crate::wire::Amount;

/// Runs one stream of either protocol to its end; what it came to, or whatever kept it from its end.
pub type Run = Box<dyn FnOnce(&Signals, &mut dyn Observer) -> Result<Total, Error> + Send>;

/// Begins something.
pub type Begin<T> = Box<dyn FnOnce(&Signals) -> Result<T, Error> + Send>;

/// The streams of one test. Each may run on a thread of its own.
#[derive(Default)]
pub struct Streams {
    /// What is to be received over the socket.
    pub incoming: Option<Run>,
    /// What is to be sent over it.
    pub outgoing: Option<Run>,
    /// What is to be sent over a socket of its own; a server's only.
    pub back: Option<Back>,
}

/// A stream that a server connects back for (-d and -r).
pub struct Back {
    /// Whether it is to begin at once rather than after the client's own stream.
    pub is_at_once: bool,
    /// Length of a write, or of a datagram's payload.
    pub length_bytes: usize,
    /// The rate to keep to, over UDP.
    pub rate: Option<Rate>,
    /// Connects.
    pub connect: Begin<(Connected, Run)>,
}

/// A client whose test may begin.
pub struct Taken {
    /// The client.
    pub peer: SocketAddr,
    /// Whether it has shown to be there.
    pub proof: Proof,
    /// Reads what it asks for.
    pub open: Begin<Streams>,
}

/// A listening socket of either protocol.
pub trait Listen: AsFd + Send {
    /// Takes the next client; `None` when none came for `patience`, or none waits and
    /// [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// When the listener cannot go on.
    fn accept(&mut self, signals: &Signals, patience: Duration) -> Result<Option<Taken>, Error>;
    /// The address listened at, with the port that was chosen.
    fn local_addr(&self) -> SocketAddr;
    /// The receive buffer as granted.
    fn buffer(&self) -> SocketBuffer;
    /// The first client that asked for data and was not allowed to have them.
    fn not_allowed(&self) -> Option<SocketAddr> {
        None
    }
}

/// Has the calling thread's sleeps end when they are over, rather than up to 50 µs later.
pub fn make_sleeps_exact() {
    // The rate and the gaps that are reached show what a refusal costs.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// What 2.1.8 grants a server that sends for a time beyond that time,
const GRACE: Duration = Duration::from_secs(2);
/// and the longest silence in any case.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a server that was asked to send may be silent.
pub fn silence_max(amount: Amount) -> Duration {
    match amount {
        Amount::Time(duration) => duration.saturating_add(GRACE).min(SILENCE_MAX),
        Amount::Bytes(_) => SILENCE_MAX,
    }
}

/// Refuses to have a client listen where it would be reached at the address of its own server: it would connect to
/// itself if the server does not run.
pub fn check_port(config: &ListenerConfig) -> Result<(), Error> {
    let Some(server) = config.of_server else {
        return Ok(());
    };
    if !is_address_of_server(config.bind, server) {
        return Ok(());
    }
    Err(Error::Because(format!(
        "the server at {server} is on this host and has that port itself; choose another port for the way \
         back with -L"
    )))
}

fn is_address_of_server(bind: SocketAddr, server: SocketAddr) -> bool {
    let reaches = bind.ip().is_unspecified() || bind.ip() == server.ip();
    bind.port() == server.port() && reaches && is_local(server)
}

/// Whether an address is one of this host's: to reach such a one, the host takes that one itself.
fn is_local(address: SocketAddr) -> bool {
    let any = sockets::any_address(address.is_ipv6(), 0);
    let chosen = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    chosen.is_ok_and(|chosen| chosen.ip() == address.ip())
}

/// What a source has.
#[derive(Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// A whole block, or what is left before the end.
    Ready(&'a [u8]),
    /// Nothing yet, or not enough. Some time was spent waiting for it.
    NotYet,
    /// Nothing any more.
    End,
}

/// Cuts what is read into blocks.
#[derive(Debug)]
pub struct Source {
    file: File,
    block: Vec<u8>,
    filled: usize,
    is_at_end: bool,
}

impl Source {
    /// Opens what a stream to `peer` carries, if that comes from elsewhere, in blocks of `block_bytes`.
    pub fn of(
        stream: &StreamConfig,
        block_bytes: usize,
        peer: SocketAddr,
    ) -> Result<Option<Self>, Error> {
        let input = stream.input.as_ref();
        let source = input.map(|input| Source::open(input, block_bytes));
        source.transpose().map_err(Error::input(peer))
    }

    /// Opens what is to be read in blocks of `block_bytes`, 1 at least.
    fn open(input: &Input, block_bytes: usize) -> io::Result<Self> {
        let file = match input {
            Input::File(path) => File::open(path)?,
            // Not std's handle, which would read ahead.
            Input::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned()?),
        };
        Ok(Source {
            file,
            block: vec![0; block_bytes.max(1)],
            filled: 0,
            is_at_end: false,
        })
    }

    /// The next block, or that there is none. Waits no longer than until the signals have to be looked
    /// at again.
    pub fn next_block(&mut self) -> io::Result<Block<'_>> {
        while !self.is_at_end && self.filled < self.block.len() {
            if !sockets::poll_once(&self.file, PollFlags::IN)? {
                return Ok(Block::NotYet);
            }
            match self.file.read(&mut self.block[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if sockets::is_no_progress(&error) => return Ok(Block::NotYet),
                Err(error) => return Err(error),
            }
        }
        match std::mem::take(&mut self.filled) {
            0 => Ok(Block::End),
            filled => Ok(Block::Ready(&self.block[..filled])),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_client_is_not_its_own_server() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (bind, server, is_own) in [
            ("0.0.0.0:5001", "127.0.0.1:5001", true),
            ("127.0.0.1:5001", "127.0.0.1:5001", true),
            ("[::]:5001", "[::1]:5001", true),
            ("0.0.0.0:5002", "127.0.0.1:5001", false),
            ("127.0.0.2:5001", "127.0.0.1:5001", false),
            ("0.0.0.0:5001", "192.0.2.1:5001", false),
        ] {
            assert_eq!(is_address_of_server(address(bind), address(server)), is_own);
        }
    }

    fn source(path: &std::path::Path, block_bytes: usize) -> Source {
        Source::open(&Input::File(path.to_owned()), block_bytes).unwrap()
    }

    #[test]
    fn a_file_is_read_in_blocks_to_its_last_byte() {
        let path = std::env::temp_dir().join(format!("nicpoll-input-{}", std::process::id()));
        std::fs::write(&path, b"abcdefgh").unwrap();
        let mut source = source(&path, 3);
        std::fs::remove_file(&path).unwrap();
        for block in [&b"abc"[..], b"def", b"gh"] {
            assert_eq!(source.next_block().unwrap(), Block::Ready(block));
        }
        assert_eq!(source.next_block().unwrap(), Block::End);
        assert_eq!(source.next_block().unwrap(), Block::End);
    }

    #[test]
    fn a_pipe_without_enough_is_waited_for_in_slices() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut source = Source {
            file: File::from(std::os::fd::OwnedFd::from(reader)),
            block: vec![0; 4],
            filled: 0,
            is_at_end: false,
        };
        writer.write_all(b"ab").unwrap();
        assert_eq!(source.next_block().unwrap(), Block::NotYet);
        writer.write_all(b"cdef").unwrap();
        assert_eq!(source.next_block().unwrap(), Block::Ready(b"abcd"));
        drop(writer);
        assert_eq!(source.next_block().unwrap(), Block::Ready(b"ef"));
        assert_eq!(source.next_block().unwrap(), Block::End);
    }

    #[test]
    fn what_is_not_there_cannot_be_opened() {
        let missing = Input::File("/nonexistent/payload".into());
        assert!(Source::open(&missing, 1).is_err());
    }
}
