//! What both ends need to know before a server sends to a client, over either protocol.
//!
//! What must hold: whatever a header states, the time is bounded, and so is the wait for the other end.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::pace::Amount;

/// What 2.1.8 grants a server that sends for a time beyond that time,
const GRACE: Duration = Duration::from_secs(2);
/// and the longest silence in any case.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a server that was asked to send may be silent.
pub(super) fn silence_max(amount: Amount) -> Duration {
    match amount {
        Amount::Time(duration) => duration.saturating_add(GRACE).min(SILENCE_MAX),
        Amount::Bytes(_) => SILENCE_MAX,
    }
}

/// How long to send and how many bytes at most, of which the first that is reached ends the stream.
pub(super) fn bounds(asked: Amount, time_max: Duration) -> (Duration, u64) {
    let (time, bytes) = own_bounds(asked);
    (time.min(time_max), bytes)
}

/// The same for what the own command line asks for, which nothing else bounds.
pub(super) fn own_bounds(amount: Amount) -> (Duration, u64) {
    match amount {
        Amount::Time(duration) => (duration, u64::MAX),
        Amount::Bytes(bytes) => (Duration::MAX, bytes),
    }
}

/// Whether a client that listens at `bind` would be reached at the address of its own server, so that
/// it would speak with itself should the server not run.
pub(super) fn is_address_of_server(bind: SocketAddr, server: SocketAddr) -> bool {
    let reaches = bind.ip().is_unspecified() || bind.ip() == server.ip();
    bind.port() == server.port() && reaches && is_local(server)
}

/// Whether an address is one of this host's: to reach such a one, the host takes that one itself.
fn is_local(address: SocketAddr) -> bool {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
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
    fn no_amount_is_beyond_the_bounds() {
        let hour = Duration::from_secs(3600);
        let second = Duration::from_secs(1);
        for (asked, bounded) in [
            (Amount::Time(second), (second, u64::MAX)),
            (Amount::Time(Duration::MAX), (hour, u64::MAX)),
            (Amount::Bytes(0), (hour, 0)),
            (Amount::Bytes(i32::MAX as u64), (hour, i32::MAX as u64)),
        ] {
            assert_eq!(bounds(asked, hour), bounded);
        }
    }

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
