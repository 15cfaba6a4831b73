//! Whether the host that the user works from still answers, while the interface that carries the connection takes
//! turns between settings.
//!
//! What must hold: one echo request goes to that host and to no other, and only when the user came by ssh.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket,
};

/// Bytes of an echo message before its data: type, code, checksum, identifier, number (RFC 792).
const HEADER_BYTES: usize = 8;
/// More than any answer that is looked for.
const ANSWER_BYTES: usize = 1_500;

/// What differs between the versions of IP.
struct Version {
    family: AddressFamily,
    protocol: Protocol,
    request: u8,
    reply: u8,
    /// Whether a raw socket shows the header of IP.
    has_ip_header: bool,
}

fn version_of(address: IpAddr) -> Version {
    match address {
        IpAddr::V4(_) => Version {
            family: AddressFamily::INET,
            protocol: ipproto::ICMP,
            request: 8,
            reply: 0,
            has_ip_header: true,
        },
        IpAddr::V6(_) => Version {
            family: AddressFamily::INET6,
            protocol: ipproto::ICMPV6,
            request: 128,
            reply: 129,
            has_ip_header: false,
        },
    }
}

/// Sends one echo request out of the calling thread's namespace, and waits for its answer.
///
/// # Errors
/// `EPERM` without CAP_NET_RAW; what the kernel says when the host cannot be reached.
pub fn is_answered(address: IpAddr, number: u16, time: Duration) -> io::Result<bool> {
    let version = version_of(address);
    let socket = socket(version.family, SocketType::RAW, Some(version.protocol))?;
    let request = request(version.request, std::process::id() as u16, number);
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddr::new(address, 0),
    )?;
    let until = Instant::now() + time;
    let mut answer = [0; ANSWER_BYTES];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let wait = left.max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Recv, Some(wait))?;
        match recv(&socket, &mut answer, RecvFlags::empty()) {
            Ok((length, _)) if is_reply(&version, &answer[..length], &request) => return Ok(true),
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn request(kind: u8, identifier: u16, number: u16) -> [u8; HEADER_BYTES] {
    let [id_high, id_low] = identifier.to_be_bytes();
    let [high, low] = number.to_be_bytes();
    let mut request = [kind, 0, 0, 0, id_high, id_low, high, low];
    // The kernel itself writes that of ICMPv6.
    let [sum_high, sum_low] = checksum(&request).to_be_bytes();
    (request[2], request[3]) = (sum_high, sum_low);
    request
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn is_reply(version: &Version, packet: &[u8], request: &[u8; HEADER_BYTES]) -> bool {
    let skipped = match (version.has_ip_header, packet.first()) {
        (true, Some(first)) => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    let message = packet.get(skipped..skipped + HEADER_BYTES);
    message.is_some_and(|message| message[0] == version.reply && message[4..] == request[4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_one_to_this_request() {
        let version = version_of(IpAddr::from([127, 0, 0, 1]));
        let asked = request(8, 0x1234, 7);
        assert_eq!(checksum(&asked), 0);
        let answer = |kind, number| {
            let mut packet = vec![0x45; 20];
            packet.extend(request(kind, 0x1234, number));
            is_reply(&version, &packet, &asked)
        };
        assert!(answer(0, 7));
        // What this host sent itself, an answer to another request, and half a packet.
        assert!(!answer(8, 7) && !answer(0, 8));
        assert!(!is_reply(&version, &[0x45; 21], &asked));
        assert!(!is_reply(&version, &[], &asked));
    }

    #[test]
    fn the_loopback_answers_where_raw_sockets_are_allowed() {
        nicpoll_testkit::needs!(Root);
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(is_answered(loopback, 1, Duration::from_secs(5)).unwrap());
    }
}
