//! Ports for servers that a test starts as programs.
//!
//! All are below 32768: the kernel hands out higher ones to any socket, and a port that was free a moment ago may be
//! another test's connection when the server starts.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 20_000;
const PORTS: u32 = 12_000;

/// A port that is free for TCP and for UDP, as an option takes it. Each call gives another one.
///
/// # Panics
/// When none is free.
pub fn free_port() -> String {
    free_ports(1).to_string()
}

/// The first of so many ports in a row, each as [`free_port`] has them: none is given to another test of this program.
///
/// # Panics
/// When there is no such row.
pub fn free_ports(count: u16) -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at a time have numbers near each other: they begin far apart.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..PORTS {
        let taken = TAKEN.fetch_add(count.into(), Ordering::Relaxed);
        let first = (FIRST + begin.wrapping_add(taken) % PORTS) as u16;
        if (first..first + count).all(is_free) {
            return first;
        }
    }
    panic!("no {count} ports in a row from {FIRST} on are free");
}

fn is_free(port: u16) -> bool {
    let any = (Ipv6Addr::UNSPECIFIED, port);
    TcpListener::bind(any).is_ok() && UdpSocket::bind(any).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_one_and_out_of_the_kernels_own() {
        let first = u32::from(free_ports(3));
        let other: u32 = free_port().parse().unwrap();
        assert!(!(first..first + 3).contains(&other));
        // A row may reach a little over the end, far from the kernel's first.
        assert!(
            [first, other]
                .iter()
                .all(|port| (FIRST..FIRST + PORTS).contains(port))
        );
    }
}
