//! What the streams of both protocols share: the bounds of a test, and how the driver sees it, whichever protocol it
//! runs over.
//!
//! Whatever a header states, the time of a stream is bounded, and so is the wait for the other end.

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
pub trait Listen: Send {
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
