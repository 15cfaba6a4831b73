//! Ports for servers that a test starts as programs.
//!
//! What must hold: the kernel gives none of them to a socket that asks for any port. It takes those from 32768 on,
//! so that a port which was free a moment ago is another test's connection when the server comes.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 20_000;
const PORTS: u32 = 12_000;

/// A port that is free for TCP and for UDP, as an option takes it. Each call gives another one.
///
/// # Panics
/// When none is free.
pub fn free_port() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at a time have numbers near each other: they begin far apart.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..PORTS {
        let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + begin.wrapping_add(taken) % PORTS) as u16;
        let any = (Ipv6Addr::UNSPECIFIED, port);
        if TcpListener::bind(any).is_ok() && UdpSocket::bind(any).is_ok() {
            return port.to_string();
        }
    }
    panic!("no port of {FIRST} to {} is free", FIRST + PORTS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_one_and_out_of_the_kernels_own() {
        let [one, other] = [(); 2].map(|()| free_port().parse::<u32>().unwrap());
        assert_ne!(one, other);
        assert!(
            [one, other]
                .iter()
                .all(|port| (FIRST..FIRST + PORTS).contains(port))
        );
    }
}
