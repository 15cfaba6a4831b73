//! What streams of both protocols share: their limits, and the types by which a command runs them.
//!
//! Whatever a header states, a stream and the wait for the other end are bounded in time.

mod error;

pub use error::{Error, SPEAKER};

use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::time::Duration;

use nicpoll_model::Rate;
use nicpoll_traffic::{Signals, SocketBuffer, sockets};
use rustix::thread::set_current_timer_slack;

use crate::config::ListenerConfig;
use crate::records::{Connected, Observer, Total};
use crate::slots::Proof;
use crate::wire::Amount;

/// Runs one stream to its end; returns its total or why it failed.
pub type StreamRun = Box<dyn FnOnce(&Signals, &mut dyn Observer) -> Result<Total, Error> + Send>;

/// A stream that is ready to run.
pub trait ReadyStream: Sized + Send + 'static {
    /// Runs the stream to its end; returns its total or why it failed.
    fn run(self, signals: &Signals, observer: &mut dyn Observer) -> Result<Total, Error>;

    /// Defers the run.
    fn boxed(self) -> StreamRun {
        Box::new(move |signals, observer| self.run(signals, observer))
    }
}

/// Starts something.
pub type Begin<T> = Box<dyn FnOnce(&Signals) -> Result<T, Error> + Send>;

/// The streams of one test. Each may run on its own thread.
#[derive(Default)]
pub struct Streams {
    /// Receives over the test's socket.
    pub incoming: Option<StreamRun>,
    /// Sends over the same socket.
    pub outgoing: Option<StreamRun>,
    /// Sends over a socket of its own; servers only.
    pub back: Option<Back>,
}

/// A stream for which a server connects back (-d and -r).
pub struct Back {
    /// Whether it starts at once, or after the client's own stream.
    pub is_at_once: bool,
    /// Length of a write, or of a datagram's payload.
    pub length_bytes: usize,
    /// Send rate; UDP only.
    pub rate: Option<Rate>,
    /// Connects.
    pub connect: Begin<(Connected, StreamRun)>,
}

/// A client whose test may start.
pub struct AcceptedTest {
    /// The client.
    pub peer: SocketAddr,
    /// Whether the client has proved to exist.
    pub proof: Proof,
    /// Reads the client's request.
    pub open: Begin<Streams>,
}

/// A listening socket of either protocol.
pub trait Listen: Send {
    /// Waits for the next client; `None` when none came within `patience`, or when none waits and
    /// [`Signals::sender_done`] is set.
    ///
    /// # Errors
    /// When the listener cannot go on.
    fn accept(
        &mut self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Option<AcceptedTest>, Error>;
    /// The address it listens at, with the actual port.
    fn local_addr(&self) -> SocketAddr;
    /// The receive buffer as granted.
    fn buffer(&self) -> SocketBuffer;
    /// The first client that asked for data without permission.
    fn not_allowed(&self) -> Option<SocketAddr> {
        None
    }
}

/// Makes the calling thread's sleeps end on time, rather than up to 50 µs late.
pub fn make_sleeps_exact() {
    // A refusal shows in the rate and gaps reached.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// 2.1.8 waits this much longer than the test for a server that sends,
const GRACE: Duration = Duration::from_secs(2);
/// but we never wait longer than this.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a server that was asked to send may be silent.
pub fn silence_max(amount: Amount) -> Duration {
    match amount {
        Amount::Time(duration) => duration.saturating_add(GRACE).min(SILENCE_MAX),
        Amount::Bytes(_) => SILENCE_MAX,
    }
}

/// Refuses a client listener that its own server's address would reach: without a server, the client would
/// connect to itself.
pub fn check_port(config: &ListenerConfig) -> Result<(), Error> {
    let Some(server) = config.of_server else {
        return Ok(());
    };
    if !is_address_of_server(config.bind, server) {
        return Ok(());
    }
    Err(Error::Because(format!(
        "the server at {server} is on this host and uses that port itself; choose another port for its \
         streams with -L"
    )))
}

fn is_address_of_server(bind: SocketAddr, server: SocketAddr) -> bool {
    let reaches = bind.ip().is_unspecified() || bind.ip() == server.ip();
    bind.port() == server.port() && reaches && is_local(server)
}

/// Whether `address` is this host's: the kernel then picks it as the source address, too.
fn is_local(address: SocketAddr) -> bool {
    let any = sockets::any_address(address.is_ipv6(), 0);
    let chosen = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    chosen.is_ok_and(|chosen| chosen.ip() == address.ip())
}

#[cfg(test)]
mod tests {
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
}
